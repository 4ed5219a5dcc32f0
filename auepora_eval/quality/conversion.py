"""A file to another format of its kind: datasets, ground truth, results, benchmark data.

What the other format has no place for is left out with a `DroppedWarning`; nothing is left out in silence.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..core.dataset import EvaluationDataset
from ..core.types import STORED_OUTPUT
from ..errors import DataError, UnknownNameError
from ..io.csv import DroppedWarning
from ..io.detect import IN_WORDS, kind_of_file, kind_of_name, not_a_dataset
from ..io.documents import read_document, write_document
from ..io.files import file_name
from ..io.ground_truth import annotations_in, annotators_in, check_annotations, save_ground_truth
from ..io.jsonl import save_records
from ..io.loader import FORMATS, format_of_name, open_dataset, save_dataset
from ..io.outputs import WRITERS, save_with_answers
from ..io.schema import check_no_errors, config_form_errors
from ..io.trec import read_run, with_topics
from ..read.convert import Convert
from ..read.records import prediction_record

DATASET = "dataset"
RUN, GROUND_TRUTH = "trec-run", "ground_truth"
Counts = dict[str, int]


@dataclass(frozen=True)
class Wanted:
    """What a conversion is asked for, beside its two files."""

    from_format: str | None = None
    to_format: str | None = None
    force: bool = False
    columns: Mapping[str, str] | None = None
    convert: Convert | None = None
    outputs: Path | None = None  # of the answers, if the file holds some or the format needs them
    topics: Path | None = None  # the texts of the queries of a TREC file


@dataclass(frozen=True)
class Converted:
    """What was written."""

    path: Path
    kind: str
    counts: Counts
    size: int


def convert(source: str | Path, target: str | Path, wanted: Wanted | None = None) -> Converted:
    """Write a file's content in the format that the other file's name says, or that is wanted."""
    source, target, wanted = Path(source), Path(target), wanted or Wanted()
    name = wanted.from_format or kind_of_file(source)
    if name == "trec" and kind_of_file(source) == RUN:
        name = RUN
    if name == "label-studio" and kind_of_name(target) == GROUND_TRUTH:
        return _write_annotators(source, target, wanted)
    kind = _kind(name, source)
    if source.resolve() == target.resolve() or (target.exists() and source.samefile(target)):
        raise DataError(str(target), "is the file that is read.", fix="Name another one to write.")
    _check_same_kind(kind, target, wanted.to_format)
    if kind == DATASET:
        dataset = open_dataset(source, name, wanted.columns, wanted.convert)
        if wanted.topics is not None:
            dataset = with_topics(dataset, wanted.topics)
        return write_dataset(dataset, target, wanted)
    _check_ending(kind, target)
    counts = _OTHERS[kind].convert(source, target, wanted)
    return Converted(target, kind, counts, target.stat().st_size)


def _write_annotators(source: Path, target: Path, wanted: Wanted) -> Converted:
    """Write what each annotator of Label Studio said to a file of its own: out-1.gt.json, out-2.gt.json."""
    people = annotators_in(read_document(source), source.name)
    base, dot, ending = target.name.partition(".gt.")
    paths = {
        name: target.with_name(f"{base}-{file_name(name, 'annotator')}{dot}{ending}")
        for name in people.annotations
    }
    for name, path in paths.items():
        save_ground_truth(people.annotations[name], path, force=wanted.force)
    if people.without_place:
        listed = ", ".join(f"{count} {kind[:40]}" for kind, count in people.without_place.most_common(8))
        what = f"{source.name}: {people.without_place.total()} results have no place here ({listed})."
        warnings.warn(what, DroppedWarning, stacklevel=3)
    counts = {"annotators": len(paths), "annotations": sum(map(len, people.annotations.values()))}
    size = sum(path.stat().st_size for path in paths.values())
    return Converted(target.with_name(f"{base}-*{dot}{ending}"), GROUND_TRUTH, counts, size)


def write_dataset(dataset: EvaluationDataset, target: Path, wanted: Wanted) -> Converted:
    """Write a dataset in the format that the file's name says, or that is wanted."""
    _check_same_kind(DATASET, target, wanted.to_format)
    form = wanted.to_format or format_of_name(target)
    counts = {"samples": len(dataset)}
    if form not in WRITERS and wanted.outputs is not None and not dataset.outputs:
        raise DataError(dataset.name, "there are no answers in it.", fix="Leave out --outputs.")
    if form in WRITERS:
        save_with_answers(form, dataset, target, wanted.outputs, force=wanted.force)
    else:
        save_dataset(dataset, target, form, force=wanted.force)
        counts |= _save_answers(dataset, wanted)
    # BEIR is a folder.
    files = [path for path in (target, *target.rglob("*")) if path.is_file()]
    return Converted(target, DATASET, counts, sum(path.stat().st_size for path in files))


def _save_answers(dataset: EvaluationDataset, wanted: Wanted) -> Counts:
    """Write the answers that a dataset's file holds, or report that they are left out."""
    answers = dataset.outputs
    if wanted.outputs is None:
        # The answers of a label set are part of its samples.
        if answers and not any(STORED_OUTPUT in sample.metadata for sample in dataset):
            count = "1 answer" if len(answers) == 1 else f"{len(answers)} answers"
            what = f"{dataset.name}: the file holds {count} too; --outputs FILE writes them."
            warnings.warn(what, DroppedWarning, stacklevel=3)
        return {}
    records = (prediction_record(sample_id, output) for sample_id, output in answers.items())
    save_records(records, wanted.outputs, force=wanted.force)
    return {"answers": len(answers)}


def _convert_run(source: Path, target: Path, wanted: Wanted) -> Counts:
    """Write a run of TREC as predictions."""
    outputs = read_run(source)
    records = (prediction_record(sample_id, output) for sample_id, output in outputs.items())
    save_records(records, target, force=wanted.force)
    return {"predictions": len(outputs)}


def _convert_ground_truth(source: Path, target: Path, wanted: Wanted) -> Counts:
    document = read_document(source)
    check_annotations(document, source.name)
    write_document(document, target, force=wanted.force)
    return {"annotations": len(annotations_in(document))}


def _convert_config(source: Path, target: Path, wanted: Wanted) -> Counts:
    document = read_document(source)
    check_no_errors(config_form_errors(document), source.name)
    write_document(document, target, force=wanted.force)
    return {"keys": len(document)}


def _convert_results(source: Path, target: Path, wanted: Wanted) -> Counts:
    from ..io.results.tables import load_results, save_results
    from ..store.storage import StoredRun

    results = load_results(source)
    if results.pop("run_file", None) is not None:
        # The other file may go anywhere: it takes its rows along.
        with StoredRun(source) as stored:
            results["query_results"] = list(stored.rows())
    save_results(results, target, force=wanted.force)
    return {"rows": len(results.get("query_results") or ())}


def _convert_benchmark(source: Path, target: Path, wanted: Wanted) -> Counts:
    from ..io.benchmark import load_benchmark, save_benchmark

    data = load_benchmark(source)
    save_benchmark(data, target, force=wanted.force)
    records = data.get("records")
    return {"records": len(records)} if isinstance(records, list) else {"parts": len(data)}


@dataclass(frozen=True)
class _Other:
    """A kind of file that is not a dataset: how it is converted, and what its files are called."""

    convert: Callable[[Path, Path, Wanted], Counts]
    texts: tuple[str, ...]  # endings of formats that may be packed (.gz) as well
    tables: tuple[str, ...] = ()


# Endings of files that are one document.
_DOCUMENT = (".json", ".yaml", ".yml")
_OTHERS = {
    RUN: _Other(_convert_run, (".jsonl",)),
    GROUND_TRUTH: _Other(_convert_ground_truth, _DOCUMENT),
    "config": _Other(_convert_config, _DOCUMENT),
    "results": _Other(_convert_results, (*_DOCUMENT, ".csv")),
    "benchmark": _Other(_convert_benchmark, _DOCUMENT, (".parquet", ".h5", ".hdf5")),
}


def _kind(name: str, source: Path) -> str:
    """The kind that a format belongs to."""
    if name in set(FORMATS):
        return DATASET
    if name in _OTHERS:
        return name
    if name in IN_WORDS:
        if name in ("traces", "beir-file"):
            raise not_a_dataset(source, name)
        raise DataError(source.name, f"this is {IN_WORDS[name]}, which has no other format.")
    raise _unknown(name)


def _unknown(name: str) -> UnknownNameError:
    known = ", ".join((*FORMATS, *_OTHERS))
    return UnknownNameError(f"there is no format {name!r:.60}. The formats are {known}.")


def _check_same_kind(kind: str, target: Path, to_format: str | None) -> None:
    name = to_format or kind_of_name(target)
    if name is None or (name == "csv" and to_format is None):
        return  # a name that says no kind
    if name in IN_WORDS and name not in _OTHERS:
        what = f"this is the name of {IN_WORDS[name]}, which nothing is converted to."
        raise DataError(target.name, what, fix="Choose another name.")
    if name not in {*FORMATS, *_OTHERS, *WRITERS}:
        raise _unknown(name)
    other = name if name in _OTHERS else DATASET
    if other != kind:
        words = {**IN_WORDS, DATASET: "a dataset"}
        raise DataError(
            target.name, f"{words[kind]} cannot become {words[other]}.", fix="Choose another name."
        )


def _check_ending(kind: str, target: Path) -> None:
    other, name = _OTHERS[kind], target.name.lower()
    if not name.removesuffix(".gz").endswith(other.texts) and not name.endswith(other.tables or ("\0",)):
        raise DataError(
            target.name,
            f"{IN_WORDS[kind]} cannot be written to a file of this name.",
            fix=f"End it in one of {', '.join((*other.texts, *other.tables))}.",
        )
