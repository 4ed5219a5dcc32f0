"""Judged runs made of scores: a metric, what a judge scored, what people say, and how good the judge is."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

from auepora_eval.core.types import EvaluationRun
from auepora_eval.judges.trust.calibration import Estimate, JudgeCalibration, Rate
from auepora_eval.judges.trust.record import ProbeReport, with_judge
from tests.decide.gated import a_run

METRIC = "hit@5"  # any share: what a judge scored is decided by what is stored with it


def a_calibration(se: tuple[int, int] = (45, 50), sp: tuple[int, int] = (40, 50)) -> JudgeCalibration:
    """The calibration of a judge with these error rates."""
    return JudgeCalibration(
        identity="support/noisy",
        date="2026-11-17",
        labels=se[1] + sp[1],
        threshold=0.5,
        auroc=Estimate(0.85, (0.78, 0.92)),
        kappa=Estimate(0.7, (0.56, 0.84)),
        calibration_error=0.05,
        sensitivity=Rate(*se),
        specificity=Rate(*sp),
        slope=1.0,
        intercept=0.0,
    )


def judged_run(
    name: str,
    scores: Sequence[float],
    calibration: JudgeCalibration | None = None,
    labels: Mapping[str, float] | None = None,
    *,
    probes: ProbeReport | None = None,
    is_share: bool = True,
) -> EvaluationRun:
    """A run whose only metric was judged."""
    run = a_run(name, {METRIC: list(scores)})
    results = [
        with_judge(result, calibration, [probes] if probes else [], labels=labels, is_share=is_share)
        for result in run.results
    ]
    return replace(run, results=results)


def labels_of(people: Sequence[float], count: int) -> dict[str, float]:
    """The labels of the first samples."""
    return {f"s{place}": float(value) for place, value in enumerate(people[:count])}


def truths(rate: float, size: int, rng: random.Random) -> list[bool]:
    return [rng.random() < rate for _ in range(size)]
