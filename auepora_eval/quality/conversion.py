"""A file to another format of its kind: datasets, ground truth, results, benchmark data.

What the other format has no place for is left out with a `DroppedWarning`; nothing is left out in silence.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ..core.dataset import EvaluationDataset
from ..core.types import STORED_OUTPUT
from ..errors import DataError, UnknownNameError, warn_user
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
RUN, GROUND_TRUTH, RESULTS, BENCHMARK = "trec-run", "ground_truth", "results", "benchmark"
CONFIG = "config"
# How the names of files end that are not datasets; all but tables may be packed (.gz).
_DOCUMENT = (".json", ".yaml", ".yml")
_ENDINGS = {
    RUN: (".jsonl",),
    GROUND_TRUTH: _DOCUMENT,
    CONFIG: _DOCUMENT,
    RESULTS: (*_DOCUMENT, ".csv"),
    BENCHMARK: (*_DOCUMENT, ".parquet", ".h5", ".hdf5"),
}
Counts = dict[str, int]


class Converted(NamedTuple):
    """What was written."""

    path: Path
    kind: str
    counts: Counts
    size: int


def convert(
    source: str | Path,
    target: str | Path,
    *,
    from_format: str | None = None,
    to_format: str | None = None,
    columns: Mapping[str, str] | None = None,
    reader: Convert | None = None,
    topics: Path | None = None,
    outputs: Path | None = None,
    force: bool = False,
) -> Converted:
    """Write a file's content in the format that the other file's name or `to_format` says.

    `columns` and `reader` say how records are read, `topics` has the texts of the queries of a TREC file, and
    `outputs` is the file of the answers, if the file holds some or the format needs them.
    """
    source, target = Path(source), Path(target)
    name = from_format or kind_of_file(source)
    if name == "trec" and kind_of_file(source) == RUN:
        name = RUN
    if name == "label-studio" and kind_of_name(target) == GROUND_TRUTH:
        return _write_annotators(source, target, force=force)
    kind = _kind(name, source)
    if source.resolve() == target.resolve() or (target.exists() and source.samefile(target)):
        raise DataError(str(target), "is the file that is read.", fix="Name another one to write.")
    if kind == DATASET:
        dataset = open_dataset(source, name, columns, reader)
        dataset = dataset if topics is None else with_topics(dataset, topics)
        return write_dataset(dataset, target, to_format, outputs, force=force)
    _check_target(kind, target, to_format)
    counts = _write_other(kind, source, target, force=force)
    return Converted(target, kind, counts, target.stat().st_size)


def write_dataset(
    dataset: EvaluationDataset,
    target: Path,
    to_format: str | None = None,
    outputs: Path | None = None,
    *,
    force: bool = False,
) -> Converted:
    """Write a dataset in the format that the file's name or `to_format` says."""
    _check_target(DATASET, target, to_format)
    form = to_format or format_of_name(target)
    counts = {"samples": len(dataset)}
    if form not in WRITERS and outputs is not None and not dataset.outputs:
        raise DataError(dataset.name, "there are no answers in it.", fix="Leave out --outputs.")
    if form in WRITERS:
        save_with_answers(form, dataset, target, outputs, force=force)
    else:
        save_dataset(dataset, target, form, force=force)
        counts |= _save_answers(dataset, outputs, force=force)
    # BEIR is a folder.
    files = [path for path in (target, *target.rglob("*")) if path.is_file()]
    return Converted(target, DATASET, counts, sum(path.stat().st_size for path in files))


def _save_answers(dataset: EvaluationDataset, outputs: Path | None, *, force: bool) -> Counts:
    """Write the answers that a dataset's file holds, or report that they are left out."""
    answers = dataset.outputs
    if outputs is None:
        # The answers of a label set are part of its samples.
        if answers and not any(STORED_OUTPUT in sample.metadata for sample in dataset):
            count = "1 answer" if len(answers) == 1 else f"{len(answers)} answers"
            what = f"{dataset.name}: the file holds {count} too; --outputs FILE writes them."
            warn_user(what, DroppedWarning)
        return {}
    records = (prediction_record(sample_id, output) for sample_id, output in answers.items())
    save_records(records, outputs, force=force)
    return {"answers": len(answers)}


def _write_annotators(source: Path, target: Path, *, force: bool) -> Converted:
    """Write what each annotator of Label Studio said to a file of its own: out-1.gt.json, out-2.gt.json."""
    people = annotators_in(read_document(source), source.name)
    base, dot, ending = target.name.partition(".gt.")
    paths = {
        name: target.with_name(f"{base}-{file_name(name, 'annotator')}{dot}{ending}")
        for name in people.annotations
    }
    for name, path in paths.items():
        save_ground_truth(people.annotations[name], path, force=force)
    if people.without_place:
        listed = ", ".join(f"{count} {kind[:40]}" for kind, count in people.without_place.most_common(8))
        what = f"{source.name}: {people.without_place.total()} results have no place here ({listed})."
        warn_user(what, DroppedWarning)
    counts = {"annotators": len(paths), "annotations": sum(map(len, people.annotations.values()))}
    size = sum(path.stat().st_size for path in paths.values())
    return Converted(target.with_name(f"{base}-*{dot}{ending}"), GROUND_TRUTH, counts, size)


def _write_other(kind: str, source: Path, target: Path, *, force: bool) -> Counts:
    """Write a file that is not a dataset, and return what it has."""
    if kind == RUN:
        outputs = read_run(source)
        records = (prediction_record(sample_id, output) for sample_id, output in outputs.items())
        save_records(records, target, force=force)
        return {"predictions": len(outputs)}
    if kind == RESULTS:
        return _write_results(source, target, force=force)
    if kind == BENCHMARK:
        from ..io.benchmark import load_benchmark, save_benchmark

        data = load_benchmark(source)
        save_benchmark(data, target, force=force)
        listed = data.get("records")
        return {"records": len(listed)} if isinstance(listed, list) else {"parts": len(data)}
    document = read_document(source)
    if kind == GROUND_TRUTH:
        check_annotations(document, source.name)
    else:
        check_no_errors(config_form_errors(document), source.name)
    write_document(document, target, force=force)
    return {"annotations": len(annotations_in(document))} if kind == GROUND_TRUTH else {"keys": len(document)}


def _write_results(source: Path, target: Path, *, force: bool) -> Counts:
    from ..io.results.tables import load_results, save_results
    from ..store.storage import StoredRun

    results = load_results(source)
    if results.pop("run_file", None) is not None:
        # The other file may go anywhere: it takes its rows along.
        with StoredRun(source) as stored:
            results["query_results"] = list(stored.rows())
    save_results(results, target, force=force)
    return {"rows": len(results.get("query_results") or ())}


def _kind(name: str, source: Path) -> str:
    """Return the kind that a format belongs to."""
    if name in FORMATS:
        return DATASET
    if name in _ENDINGS:
        return name
    if name in ("traces", "beir-file"):
        raise not_a_dataset(source, name)
    if name in IN_WORDS:
        raise DataError(source.name, f"this is {IN_WORDS[name]}, which has no other format.")
    raise _unknown(name)


def _unknown(name: str) -> UnknownNameError:
    known = ", ".join((*FORMATS, *_ENDINGS))
    return UnknownNameError(f"there is no format {name!r:.60}. The formats are {known}.")


def _check_target(kind: str, target: Path, to_format: str | None) -> None:
    """Check that the name of a file, or the format, is one of this kind."""
    if to_format is not None and to_format not in {*FORMATS, *WRITERS, *_ENDINGS}:
        raise _unknown(to_format)
    words = {**IN_WORDS, DATASET: "a dataset"}
    named = to_format or kind_of_name(target)
    other = named if named in IN_WORDS else DATASET
    # A name that ends in .csv, or in nothing that is known, says no kind.
    if named is not None and (named != "csv" or to_format) and other != kind:
        what = f"{words[kind]} cannot become {words[other]}."
        raise DataError(target.name, what, fix="Choose another name.")
    endings = _ENDINGS.get(kind, ("",))
    if not target.name.lower().removesuffix(".gz").endswith(endings):
        what = f"{words[kind]} cannot be written to a file of this name."
        raise DataError(target.name, what, fix=f"End it in one of {', '.join(endings)}.")
