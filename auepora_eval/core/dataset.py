"""Datasets: a named collection of samples."""

from __future__ import annotations

import hashlib
import json
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass, replace
from itertools import islice
from pathlib import PurePath
from typing import Any, Protocol

import msgspec

from ..errors import ArgumentError, DataError, did_you_mean, warn_user, wrong_type
from .types import Document, EvaluationSample


class UnknownFieldWarning(UserWarning):
    """A record has a field that is not read; it may be misspelt."""


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


class PartOfDataset(EvaluationDataset):
    """The samples of a dataset that `choose` yields, with the name, the facts and the corpus of the whole."""

    def __init__(
        self,
        dataset: EvaluationDataset,
        choose: Callable[[Iterable[EvaluationSample]], Iterator[EvaluationSample]],
    ) -> None:
        self._dataset, self._choose = dataset, choose

    def __iter__(self) -> Iterator[EvaluationSample]:
        return self._choose(self._dataset)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @property
    def name(self) -> str:
        return self._dataset.name

    @property
    def info(self) -> dict[str, Any]:
        return self._dataset.info

    @property
    def documents(self) -> Sequence[Document]:
        return self._dataset.documents


def first_samples(dataset: EvaluationDataset, limit: int) -> EvaluationDataset:
    """Return the first samples of a dataset."""
    # islice takes no larger number, and a limit from the command line may be any whole number.
    return PartOfDataset(dataset, lambda samples: islice(samples, min(limit, sys.maxsize)))


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


class Frame(Protocol):
    """A DataFrame of pandas or polars, which are not imported here."""

    @property
    def columns(self) -> Any: ...


DatasetForms = EvaluationDataset | Iterable[EvaluationSample | Mapping[str, Any]] | Frame
_DATASET_FORMS = "a dataset, a list of samples or dicts, or a DataFrame"
# The keys of a sample as a dict are the fields of the class.
_SAMPLE_KEYS = tuple(field.name for field in fields(EvaluationSample))


def as_dataset(thing: object, *, accepted: str = _DATASET_FORMS) -> EvaluationDataset:
    """Return a dataset from one, from a list of samples or dicts, or from a DataFrame.

    >>> len(as_dataset([{"sample_id": "1", "query": "How many?", "reference_answer": "22"}]))
    1
    """
    if isinstance(thing, EvaluationDataset):
        return thing
    if hasattr(thing, "columns"):
        thing = _frame_records(thing)
    if isinstance(thing, str | bytes | Mapping) or not isinstance(thing, Iterable):
        raise wrong_type("dataset", accepted, thing)
    return InMemoryDataset("samples", [as_sample(one, f"dataset[{n}]") for n, one in enumerate(thing)])


def as_sample(thing: object, argument: str = "sample") -> EvaluationSample:
    """Return a sample from one, or from a dict with its fields."""
    if isinstance(thing, EvaluationSample):
        return thing
    if not isinstance(thing, Mapping):
        raise wrong_type(argument, "a sample or a dict with 'sample_id' and 'query'", thing)
    for key in ("sample_id", "query"):
        if thing.get(key) is None:
            raise ArgumentError(f"{argument} has no {key!r}: a sample needs 'sample_id' and 'query'")
    for key in thing:
        if key not in _SAMPLE_KEYS:
            hint = did_you_mean(key, _SAMPLE_KEYS, "Put what you want kept under 'metadata'.")
            warn_user(f"{argument}: the field {key!r:.80} is not read. {hint}", UnknownFieldWarning)
    return EvaluationSample(**{key: thing[key] for key in _SAMPLE_KEYS if thing.get(key) is not None})


def _frame_records(frame: Any) -> object:
    """Return the rows of a DataFrame; pandas and polars are recognised by their methods, not imported."""
    if hasattr(frame, "to_dicts"):
        return frame.to_dicts()
    if not hasattr(frame, "to_dict"):
        return frame
    # pandas reads an empty cell as NaN.
    return [
        {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in row.items()}
        for row in frame.to_dict("records")
    ]


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
            if isinstance(thing, EvaluationSample) and [] in (thing.relevant_docs, thing.candidate_docs):
                # An empty list and None mean the same. A file can only store one of them.
                thing = replace(
                    thing,
                    relevant_docs=thing.relevant_docs or None,
                    candidate_docs=thing.candidate_docs or None,
                )
            self._digest.update(canonical_json(thing))
            # Canonical JSON has no line break, so no two lists of records give the same bytes.
            self._digest.update(b"\n")
        return self

    def hexdigest(self) -> str:
        """Return the fingerprint of everything added so far."""
        return self._digest.hexdigest()


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
        document = asdict(thing) if is_dataclass(thing) and not isinstance(thing, type) else thing
        return json.dumps(document, sort_keys=True, separators=(",", ":"), default=plain).encode("ascii")


def plain(thing: Any) -> Any:
    """Return what is written to JSON for a value that it has no form for: arrays as lists, paths as text."""
    if isinstance(thing, PurePath):
        return thing.as_posix()
    if hasattr(thing, "tolist"):  # numpy arrays and scalars
        return thing.tolist()
    return f"<{type(thing).__module__}.{type(thing).__qualname__}>"
