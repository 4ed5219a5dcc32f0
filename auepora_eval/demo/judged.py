"""A small model judges claims whose answers are known: what `auepora demo --judge` shows."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice

from ..judges.asking import verdicts_on
from ..judges.judge import Judge, Judging
from ..judges.local_model import NAME, local_model
from ..judges.names import JudgeOptions, judge_named
from ..judges.question import Judgement, Question, kind_named
from ..judges.trust.calibration import FEWEST_LABELS, JudgeCalibration, calibrate
from .world import altered_claims

CLAIMS = 16
SECONDS = 40.0  # the last question may take a few more


@dataclass(frozen=True)
class JudgedClaims:
    """Claims with the verdicts of a judge, and how far they agree; no calibration if too few have a score."""

    model: str
    supported: list[bool]
    verdicts: list[Judgement]
    calibration: JudgeCalibration | None
    seconds: float

    def yes_of(self, supported: bool) -> tuple[int, int]:
        """Return how many of the right or of the wrong claims the judge supports, and how many there are."""
        of_kind = [
            one for is_so, one in zip(self.supported, self.verdicts, strict=True) if is_so == supported
        ]
        return sum(one.label == "yes" for one in of_kind), len(of_kind)

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON has it."""
        counts = {
            name: dict(zip(("yes", "claims"), self.yes_of(is_so), strict=True))
            for name, is_so in (("supported_claims", True), ("wrong_claims", False))
        }
        audit = None if self.calibration is None else str(self.calibration)
        return {"model": self.model, **counts, "audit": audit, "seconds": self.seconds}


def judged_by_local_model() -> JudgedClaims:
    """Ask the local model about the claims; MissingDependencyError if it is not installed."""
    with local_model() as name:
        judge = judge_named(name, JudgeOptions(mode="label", timeout=SECONDS))
        try:
            return judged_claims(judge)
        finally:
            judge.close()


def judged_claims(judge: Judge, *, count: int = CLAIMS, seconds: float = SECONDS) -> JudgedClaims:
    """Ask a judge about at most `count` claims, half of them wrong, and stop when the time is over."""
    # Without a quote: it takes a third of the time, and a model of this size invents its quotes.
    kind = replace(kind_named("support"), quoted="", quote_for=())
    judging, start = Judging(judge), time.monotonic()
    supported, verdicts = [], []
    for passage, claim, is_supported in islice(altered_claims(), count):
        if time.monotonic() - start > seconds:
            break
        supported.append(is_supported)
        verdicts += verdicts_on(judging, [Question(kind, {"passage": passage, "claim": claim})])
    scores = [verdict.score for verdict in verdicts]
    calibration = None
    if sum(score is not None for score in scores) >= FEWEST_LABELS:
        date = datetime.now(UTC).date().isoformat()
        calibration = calibrate(judge.identity(kind), scores, [float(one) for one in supported], date=date)
    return JudgedClaims(NAME, supported, verdicts, calibration, time.monotonic() - start)
