"""Samples with their outputs, and whatever several metrics need to know about them, found out once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from .scores import Note, alone
from .types import EvaluationSample, SystemOutputs

T = TypeVar("T")


class Batch:
    """The samples and outputs that a plan's metrics score."""

    def __init__(self, samples: Sequence[EvaluationSample], outputs: Sequence[SystemOutputs]) -> None:
        if len(samples) != len(outputs):
            raise ValueError(f"{len(samples)} samples but {len(outputs)} outputs; pair them first")
        self.samples = samples
        self.outputs = outputs
        self._known: dict[Hashable, Any] = {}

    def __len__(self) -> int:
        return len(self.samples)

    def once(self, find_out: Callable[[Batch], T], *key: Hashable) -> T:
        """The result of a function of this batch, computed at its first use.

        `key` tells apart what one function finds out in several ways (stemmed or not).
        """
        name = (find_out, *key)
        if name not in self._known:
            self._known[name] = find_out(self, *key)
        found: T = self._known[name]
        return found

    def unscorable(self, requires: tuple[str, ...], *, scores_failures: bool = False) -> dict[int, Note]:
        """The places that lack a required field (skipped), then those where the system failed."""
        found: dict[int, Note] = self.once(_unscorable, requires, scores_failures)  # type: ignore[arg-type]
        return found

    def sample_ids(self) -> list[str]:
        """The id of each sample."""
        return self.once(_sample_ids)

    def clusters(self) -> list[Hashable] | None:
        """The cluster of each sample; None where no sample names one."""
        return self.once(_clusters)


def has_field(sample: EvaluationSample, name: str) -> bool:
    """Whether a sample has something under "relevant_docs", "labels.scenario", ...; empty is nothing."""
    thing: Any = sample
    for part in name.split("."):
        thing = thing.get(part) if isinstance(thing, dict) else getattr(thing, part, None)
        if thing is None or (isinstance(thing, list | dict | str) and not thing):
            return False
    return True


def _unscorable(batch: Batch, requires: tuple[str, ...], scores_failures: bool) -> dict[int, Note]:
    notes = {
        place: Note(f"{output.error.type}: {output.error.message}", failed=True)
        for place, output in enumerate(batch.outputs)
        if output.error is not None and not scores_failures
    }
    for name in reversed(requires):
        note = Note(f"the sample has no {name}")
        if "." in name:
            lacking = [n for n, sample in enumerate(batch.samples) if not has_field(sample, name)]
        else:  # the same, without looking for dots a million times
            lacking = [n for n, sample in enumerate(batch.samples) if not getattr(sample, name)]
        notes.update(dict.fromkeys(lacking, note))
    return notes


def _sample_ids(batch: Batch) -> list[str]:
    return [sample.sample_id for sample in batch.samples]


def _clusters(batch: Batch) -> list[Hashable] | None:
    return cluster_names(batch.samples)


def cluster_names(samples: Sequence[EvaluationSample]) -> list[Hashable] | None:
    """The cluster of each sample: its `metadata["cluster"]`, or itself; None where no sample names one."""
    if not any("cluster" in sample.metadata for sample in samples):
        return None
    return [
        str(sample.metadata["cluster"]) if "cluster" in sample.metadata else alone(sample.sample_id)
        for sample in samples
    ]


def shared_or_none(clusters: list[Hashable] | None) -> list[Hashable] | None:
    """The clusters, or None where no two samples share one: then they are independent."""
    return None if clusters is None or len(set(clusters)) == len(clusters) else clusters
