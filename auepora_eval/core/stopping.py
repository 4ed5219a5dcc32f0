"""How a run ended that was to stop as soon as its verdict is clear."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

GoalKind = Literal["at least", "at most", "better", "no worse"]
ClearVerdict = Literal["yes", "no", "not clear", "better", "worse", "no worse", "cannot tell"]


@dataclass(frozen=True)
class Goal:
    """What is to become clear of a metric: its value against a limit, or its change from a baseline's.

    `limit` is the value of "at least" and "at most", and the margin of "no worse"; "better" has 0.
    """

    metric: str
    kind: GoalKind
    limit: float = 0.0

    @property
    def is_of_baseline(self) -> bool:
        return self.kind in ("better", "no worse")


@dataclass(frozen=True)
class GoalOutcome:
    """What became clear. `value` is the metric's, or the candidate's less the baseline's where it is of one.

    The interval holds at whatever moment the run stopped, for all goals together; failed answers are in it as
    the lowest and as the highest that they could have been. `value`, None if nothing was scored, is without.
    """

    metric: str
    kind: GoalKind
    limit: float
    verdict: ClearVerdict
    value: float | None
    interval: tuple[float, float]
    scored: int
    failed: int


@dataclass(frozen=True)
class Stopping:
    """What the run was to find out, on how many samples it stands, and whether it stopped before the last."""

    stopped_early: bool
    samples_used: int
    samples_in_dataset: int
    dataset_sha256: str  # of the whole dataset; the run has only the samples that it used
    largest_cluster: int
    alpha: float
    seed: int
    goals: list[GoalOutcome]
    baseline_id: str | None = None

    def __post_init__(self) -> None:
        if self.largest_cluster < 1 or not 0 <= self.samples_used <= self.samples_in_dataset:
            raise ValueError("a run uses no more samples than there are, and a cluster has at least one")
