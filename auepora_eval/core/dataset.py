"""Datasets: a named collection of samples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..errors import DataError
from .types import Document, EvaluationSample


class EvaluationDataset(ABC):
    """A collection of samples that can be walked through more than once."""

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
    def snapshot(self) -> dict[str, Any]:
        """Which state of the dataset this is, as far as it says so: its version and its manifest's sha256."""
        metadata = self.info.get("metadata")
        known = {**(metadata if isinstance(metadata, dict) else {}), **self.info}
        names = ("version", "manifest_sha256")
        return {name: known[name] for name in names if isinstance(known.get(name), str)}

    @property
    def documents(self) -> Sequence[Document]:
        """The corpus, where the dataset carries one; its samples' documents need not be in it."""
        return ()


class PartOfDataset(EvaluationDataset):
    """Some samples of a dataset, which has the name, the facts and the corpus."""

    def __init__(self, dataset: EvaluationDataset) -> None:
        self._dataset = dataset

    @property
    def name(self) -> str:
        return self._dataset.name

    @property
    def info(self) -> dict[str, Any]:
        return self._dataset.info

    @property
    def documents(self) -> Sequence[Document]:
        return self._dataset.documents


class InMemoryDataset(EvaluationDataset):
    """A dataset that is a list."""

    def __init__(self, name: str, samples: list[EvaluationSample]):
        self._name = name
        self._samples = samples

    def __iter__(self) -> Iterator[EvaluationSample]:
        return iter(self._samples)

    @property
    def name(self) -> str:
        return self._name

    def __len__(self) -> int:
        return len(self._samples)


class DescribedDataset(InMemoryDataset):
    """A dataset that comes with a description of itself, and with its corpus."""

    def __init__(
        self,
        name: str,
        samples: list[EvaluationSample],
        *,
        info: dict[str, Any] | None = None,
        documents: Sequence[Document] = (),
    ) -> None:
        super().__init__(name, samples)
        self._info = info or {}
        self._documents = documents

    @property
    def info(self) -> dict[str, Any]:
        return self._info

    @property
    def documents(self) -> Sequence[Document]:
        return self._documents


def checked_samples(name: str, samples: Iterable[EvaluationSample]) -> list[EvaluationSample]:
    """The samples as a list, or a DataError that names the id that occurs twice."""
    checked = list(samples)
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
