"""How much of the variance of scores is the judge's own: the same questions, asked several times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...core.scores import Batch, as_columns
from ...stats.arrays import Array
from ..metric import JudgedMetric


def repeats_in_words(metrics: Sequence[JudgedMetric], batch: Batch) -> str:
    """Return how far a judge agrees with itself, by a metric for each time that it was asked."""
    columns = [as_columns(metric.score_batch(batch)).values for metric in metrics]
    scores = np.array(columns).T
    whole = scores[np.isfinite(scores).all(axis=1)]
    samples = f"{len(whole):,} answers, asked {len(metrics)} times each"
    if not len(whole):
        return f"{samples}: no answer has a score each time."
    same = float((np.ptp(whole, axis=1) == 0).mean())
    noise = judge_share(whole)
    of_judge = "" if noise is None else f"; {noise:.0%} of the variance is the judge's own"
    return f"{samples}: {same:.0%} have the same score each time{of_judge}."


def judge_share(scores: Array) -> float | None:
    """Return the share of the variance of scores by (samples, repeats) that is between the repeats.

    The parts are those of an analysis of variance with random effects, none below 0. None for fewer than two
    samples or repeats, and where all scores are equal.
    """
    if min(scores.shape) < 2:
        return None
    judge = float(scores.var(axis=1, ddof=1).mean())
    sample = max(0.0, float(scores.mean(axis=1).var(ddof=1)) - judge / scores.shape[1])
    return judge / (judge + sample) if judge + sample else None
