"""Pairs of questions whose answers must not contradict each other: samples with one contradiction_pair_id.

Each later member of a group is held against the nearest earlier one that was answered, in the order of the
file, whatever their labels are.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.label_terms import CONTRADICTION, PAIR
from ..core.types import EvaluationSample, SystemOutputs
from ..errors import ScoringError
from ..metrics.labels import predicted_label, true_label
from ..stats.intervals import Interval, mean_interval


class MissingPartnerWarning(UserWarning):
    """A sample that names a pair in which it is alone."""


def nearest_earlier(
    groups: Sequence[Hashable | None], answered: Sequence[bool] | None = None
) -> list[int | None]:
    """The place of the last one before it of the same group, for each; None for the first and for loners.

    Where `answered` is False, there is nothing to hold against: the one before that is the nearest.

    >>> nearest_earlier(["a", None, "a", "a"])
    [None, None, 0, 2]
    >>> nearest_earlier(["a", None, "a", "a"], [True, True, False, True])
    [None, None, 0, 0]
    """
    last: dict[Hashable, int] = {}
    found: list[int | None] = []
    for place, group in enumerate(groups):
        found.append(None if group is None else last.get(group))
        if group is not None and (answered is None or answered[place]):
            last[group] = place
    return found


def pairs_of(samples: Sequence[EvaluationSample]) -> list[str | None]:
    """The pair that each sample names, if it names one."""
    pairs = [sample.labels.get(PAIR) for sample in samples]
    return [None if pair is None else str(pair) for pair in pairs]


def warn_of_missing_partners(samples: Sequence[EvaluationSample]) -> list[str]:
    """The pairs that only one sample names, with a warning that names them."""
    sizes = Counter(pair for pair in pairs_of(samples) if pair is not None)
    alone = [pair for pair, size in sizes.items() if size == 1]
    if alone:
        more = f" and {len(alone) - 3} more" if len(alone) > 3 else ""
        warnings.warn(
            f"no partner for {', '.join(alone[:3])}{more}: a contradiction needs two answers.",
            MissingPartnerWarning,
            stacklevel=2,
        )
    return alone


@dataclass(frozen=True)
class PairAccuracy:
    """Of the pairs, how many were rightly called a contradiction or none."""

    pairs: int
    right: int
    contradictions: int
    found: int
    not_predicted: int
    interval: Interval | None

    @property
    def accuracy(self) -> float | None:
        return self.right / self.pairs if self.pairs else None

    def as_record(self) -> dict[str, Any]:
        return {
            "pairs": self.pairs,
            "right": self.right,
            "accuracy": self.accuracy,
            "confidence_interval": None if self.interval is None else [self.interval.low, self.interval.high],
            "contradictions": self.contradictions,
            "contradictions_found": self.found,
            "not_predicted": self.not_predicted,
        }


def pair_accuracy(
    samples: Sequence[EvaluationSample], outputs: Sequence[SystemOutputs]
) -> PairAccuracy | None:
    """Whether the later member of each pair was rightly called a contradiction; None without pairs.

    A pair without a prediction is a wrong one: nothing was found.
    """
    import numpy as np

    groups = pairs_of(samples)
    right: list[float] = []
    clusters: list[Hashable] = []
    contradictions = found = lost = 0
    for place, earlier in enumerate(nearest_earlier(groups)):
        if earlier is None:
            continue
        truth = true_label(samples[place]) == CONTRADICTION
        said = _says_contradiction(outputs[place])
        right.append(float(said is truth))
        clusters.append(groups[place])
        contradictions, found, lost = (
            contradictions + truth,
            found + (truth and said is True),
            lost + (said is None),
        )
    if not right:
        return None
    shared = clusters if len(set(clusters)) < len(clusters) else None
    interval = mean_interval(np.array(right), clusters=shared, bounds=(0.0, 1.0))
    return PairAccuracy(len(right), int(sum(right)), contradictions, found, lost, interval)


def _says_contradiction(output: SystemOutputs) -> bool | None:
    if output.error is not None:
        return None
    try:
        return predicted_label(output) == CONTRADICTION
    except ScoringError:
        return None
