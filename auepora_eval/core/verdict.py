"""The answers to "is it better?" and "may it pass?", and how a run stopped once that was clear."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal


class Verdict(StrEnum):
    """What two measurements of one quantity show, with the direction of "better" taken into account.

    BETTER and WORSE are significant differences. NO_WORSE means that a loss of the margin is ruled out, SAME
    that every sample has a pair and none differs, and INCONCLUSIVE that the difference may be chance.
    """

    BETTER = "better"
    WORSE = "worse"
    NO_WORSE = "no worse"
    SAME = "same"
    INCONCLUSIVE = "inconclusive"

    @property
    def is_significant(self) -> bool:
        """Whether the difference is more than chance explains."""
        return self in (Verdict.BETTER, Verdict.WORSE)

    @classmethod
    def of_gain(cls, gain: float) -> Verdict:
        """Return the verdict on a significant gain: positive is better."""
        return cls.BETTER if gain > 0 else cls.WORSE


class Outcome(StrEnum):
    """Whether a rule lets something pass: a rule of a gate, a goal of early stopping, a guardrail.

    INCONCLUSIVE means that the data do not decide it, MISSING that what it is about was not measured.
    """

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"
    MISSING = "missing"


# How a run ended that was to stop as soon as its outcome is clear.

GoalKind = Literal["at least", "at most", "better", "no worse"]


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
    outcome: Outcome
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
