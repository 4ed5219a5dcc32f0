"""Datasets: a named collection of samples."""

from __future__ import annotations

import gc
import hashlib
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import PurePath
from typing import Any, Protocol

import msgspec

from ..errors import DataError, wrong_type
from ..read.convert import Convert, converted, to_sample
from ..read.fields import Reading, read_foreign
from ..read.names import NOT_READ, has_query
from .types import Document, EvaluationSample, SystemOutputs


class EvaluationDataset(ABC):
    """A collection of samples that can be iterated more than once."""

    @abstractmethod
    def __iter__(self) -> Iterator[EvaluationSample]: ...

    @property
    @abstractmethod
    def name(self) -> str: ...

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    def info(self) -> dict[str, Any]:
        """What is known of the whole: dataset_id, name, version, description, created_at, metadata."""
        return {}

    @property
    def snapshot(self) -> dict[str, str]:
        """Which state of the dataset this is, as far as it says so: its version and its manifest's sha256."""
        metadata = self.info.get("metadata")
        facts = {**(metadata if isinstance(metadata, dict) else {}), **self.info}
        names = ("version", "manifest_sha256")
        return {name: facts[name] for name in names if isinstance(facts.get(name), str)}

    @property
    def documents(self) -> Sequence[Document]:
        """The corpus, where the dataset carries one; its samples' documents need not be in it."""
        return ()

    @property
    def outputs(self) -> Mapping[str, SystemOutputs]:
        """What a system answered, by sample id, where the file has it beside the questions."""
        return {}


class InMemoryDataset(EvaluationDataset):
    """A list of samples, with what is known of the dataset and with its corpus, if it has one."""

    def __init__(
        self,
        name: str,
        samples: list[EvaluationSample],
        *,
        info: dict[str, Any] | None = None,
        documents: Sequence[Document] = (),
    ):
        self._name = name
        self._samples = samples
        self._info = info or {}
        self._documents = documents
        self._outputs: Mapping[str, SystemOutputs] = {}

    @classmethod
    def of_readings(cls, name: str, readings: Iterable[Reading], **facts: Any) -> InMemoryDataset:
        """Return the dataset of records that may hold outputs too; DataError if an id occurs twice."""
        pairs = list(readings)
        dataset = cls(name, checked_samples(name, (sample for sample, _ in pairs)), **facts)
        dataset._outputs = {sample.sample_id: output for sample, output in pairs if output is not None}
        return dataset

    def __iter__(self) -> Iterator[EvaluationSample]:
        return iter(self._samples)

    @property
    def name(self) -> str:
        return self._name

    def __len__(self) -> int:
        return len(self._samples)

    @property
    def info(self) -> dict[str, Any]:
        return self._info

    @property
    def documents(self) -> Sequence[Document]:
        return self._documents

    @property
    def outputs(self) -> Mapping[str, SystemOutputs]:
        return self._outputs


class PartOfDataset(InMemoryDataset):
    """The samples of a dataset that `choose` yields, with the name, the facts and the corpus of the whole."""

    def __init__(
        self,
        dataset: EvaluationDataset,
        choose: Callable[[Iterable[EvaluationSample]], Iterator[EvaluationSample]],
    ) -> None:
        super().__init__(dataset.name, [], info=dataset.info, documents=dataset.documents)
        self._dataset, self._choose = dataset, choose

    def __iter__(self) -> Iterator[EvaluationSample]:
        return self._choose(self._dataset)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def first_samples(dataset: EvaluationDataset, limit: int) -> EvaluationDataset:
    """Return the first samples of a dataset."""
    # islice takes no larger number, and a limit from the command line may be any whole number.
    return PartOfDataset(dataset, lambda samples: islice(samples, min(limit, sys.maxsize)))


class Frame(Protocol):
    """A DataFrame of pandas or polars, or a Hugging Face dataset; none of these is imported here."""

    @property
    def columns(self) -> Any: ...


DatasetForms = EvaluationDataset | Iterable[EvaluationSample | Mapping[str, Any]] | Frame
_DATASET_FORMS = "a dataset, a list of samples or dicts, or a DataFrame"


def as_dataset(
    thing: object,
    *,
    accepted: str = _DATASET_FORMS,
    columns: Mapping[str, str] | None = None,
    convert: Convert | None = None,
    is_answered: bool = False,
) -> EvaluationDataset:
    """Return a dataset from one, from samples or dicts in any iterable, or from a DataFrame.

    Dicts and rows may have the field names of other tools (`read.fields`), or those that `columns` gives:
    {"query": "question"}. `convert` makes a sample of each record instead.

    >>> len(as_dataset([{"sample_id": "1", "query": "How many?", "reference_answer": "22"}]))
    1
    """
    if isinstance(thing, EvaluationDataset):
        return thing
    rows = records_of(thing)
    if rows is None:
        raise wrong_type("dataset", accepted, thing)
    if convert is not None:
        placed = ((f"dataset[{number}]", row) for number, row in enumerate(rows))
        return InMemoryDataset.of_readings("samples", converted(placed, convert, "dataset"))
    if rows and all(isinstance(row, Mapping) for row in rows):
        readings = read_foreign(rows, "dataset", columns, is_answered=is_answered)
        return InMemoryDataset.of_readings("samples", readings)
    return InMemoryDataset("samples", [to_sample(one, f"dataset[{n}]") for n, one in enumerate(rows)])


def records_of(thing: object) -> list[Any] | None:
    """Return the rows of a frame, or the items of an iterable; None if it is neither."""
    thing = ready_frame(thing)
    if hasattr(thing, "columns") or hasattr(thing, "to_pylist"):
        thing = _frame_records(thing)
    if isinstance(thing, Mapping) and has_query(thing):
        thing = rows_of_columns(thing)
    is_rows = isinstance(thing, Iterable) and not isinstance(thing, str | bytes | Mapping)
    return list(thing) if is_rows else None  # type: ignore[call-overload]


def rows_of_columns(columns: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the rows of columns that are lists, or dicts by row; None if the values are neither."""
    lists = [list(cells.values()) if isinstance(cells, Mapping) else cells for cells in columns.values()]
    if not all(isinstance(cells, list | tuple) for cells in lists):
        return None
    for name, cells in zip(columns, lists, strict=True):
        if len(cells) != len(lists[0]):
            what = (
                f"the columns differ in length: {name!r:.60} has {len(cells)}, others have {len(lists[0])}."
            )
            raise DataError("dataset", what, fix="Write None for a value that is missing.")
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*lists, strict=True)]


def ready_frame(thing: Any) -> Any:
    """Return a lazy frame of polars as a frame, and a Hugging Face dataset as one whose rows are dicts."""
    if hasattr(thing, "collect") and hasattr(thing, "collect_schema"):
        return thing.collect()
    if hasattr(thing, "with_format") and hasattr(thing, "column_names"):
        return thing.with_format(None)  # its rows may be frames or tensors, as the user set it
    return thing


def _frame_records(frame: Any) -> object:
    """Return the rows of a DataFrame; pandas and polars are recognised by their methods, not imported."""
    for method in ("to_dicts", "to_pylist"):
        if hasattr(frame, method):
            return getattr(frame, method)()
    if not hasattr(frame, "to_dict"):
        return frame
    if not hasattr(frame, "notna"):
        return frame.to_dict("records")
    # Empty cells of pandas are NaN, NaT or NA.
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    for name, cells in frame.items():
        # A column of whole numbers has floats once a cell was empty: 22 would become the text "22.0".
        if cells.dtype.kind == "f" and (cells.dropna() % 1 == 0).all():
            for row in rows:
                row[name] = None if row[name] is None else int(row[name])
    return rows


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect garbage seldom: a chunk has many objects, and none is garbage before all of them are.

    Metrics of rankings take twice as long without it in a program that has many objects of its own.
    """
    before = gc.get_threshold()
    gc.set_threshold(before[0] and max(before[0], 1_000_000), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def checked_samples(name: str, samples: Iterable[EvaluationSample]) -> list[EvaluationSample]:
    """Return the samples as a list; DataError if an id occurs twice."""
    checked = list(samples)
    # Scores, journals and comparisons find a sample by its id.
    seen: set[str] = set()
    for number, sample in enumerate(checked, start=1):
        if sample.sample_id in seen:
            raise DataError(
                f"{name}: sample {number}",
                f"the sample_id {sample.sample_id!r} occurs twice.",
                fix="Scores are matched by id: give each sample its own.",
            )
        seen.add(sample.sample_id)
    return checked


# Fingerprints: equal samples have equal fingerprints, on every machine.


class Fingerprint:
    """The sha256 of the canonical JSON of samples, or of records, in their order."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, things: Iterable[EvaluationSample | Mapping[str, object]]) -> Fingerprint:
        """Add further samples or records; return self."""
        for thing in things:
            self._digest.update(canonical_json(_without_unread(as_stored(thing))))
            # Canonical JSON has no line break, so no two lists of records give the same bytes.
            self._digest.update(b"\n")
        return self

    def add_lines(self, lines: bytes) -> None:
        """Add records that are canonical JSON already, one on each line."""
        self._digest.update(lines)

    def add_stored(self, samples: Sequence[EvaluationSample], lines: bytes) -> None:
        """Add samples that are canonical JSON already, one on each line."""
        if any(NOT_READ in sample.metadata for sample in samples):
            self.add(samples)
        else:
            self.add_lines(lines)

    def hexdigest(self) -> str:
        """Return the fingerprint of everything added so far."""
        return self._digest.hexdigest()


def as_stored(thing: Any) -> Any:
    """Return a sample whose empty lists are None: both mean the same, and a file can only store one."""
    if isinstance(thing, EvaluationSample) and [] in (thing.relevant_docs, thing.candidate_docs):
        relevant, candidates = thing.relevant_docs or None, thing.candidate_docs or None
        return replace(thing, relevant_docs=relevant, candidate_docs=candidates)
    return thing


def _without_unread(thing: Any) -> Any:
    """Return a sample without the columns of its file that nothing reads."""
    unread = thing.metadata.get(NOT_READ) if isinstance(thing, EvaluationSample) else None
    if not isinstance(unread, list):
        return thing
    dropped = {NOT_READ, *map(str, unread)}
    return replace(thing, metadata={k: value for k, value in thing.metadata.items() if k not in dropped})


def dataset_fingerprint(samples: Iterable[EvaluationSample]) -> str:
    """Return the fingerprint of samples."""
    return Fingerprint().add(samples).hexdigest()


def canonical_json(thing: Any) -> bytes:
    """Return JSON with sorted keys and no spaces; NaN becomes null."""
    try:
        return msgspec.json.encode(thing, enc_hook=plain, order="deterministic")
    except TypeError as error:  # a key that is not text, or a set of mixed types
        where = f"sample {thing.sample_id!r:.80}" if isinstance(thing, EvaluationSample) else "the record"
        fix = "Use text as keys, and lists instead of sets."
        raise DataError(where, f"cannot be written as JSON: {error}.", fix=fix) from error
    except UnicodeEncodeError:
        # A lone surrogate has no UTF-8 form; escaped, it still has one spelling.
        document = msgspec.to_builtins(thing, enc_hook=plain)
        return json.dumps(document, sort_keys=True, separators=(",", ":"), default=plain).encode("ascii")


def plain(thing: Any) -> Any:
    """Return what is written to JSON for a value that it has no form for: arrays as lists, paths as text."""
    if isinstance(thing, PurePath | str):  # a text may be of a class of its own, as LangChain's
        return str(thing)
    if hasattr(thing, "tolist"):  # numpy arrays and scalars
        return thing.tolist()
    return f"<{type(thing).__module__}.{type(thing).__qualname__}>"
