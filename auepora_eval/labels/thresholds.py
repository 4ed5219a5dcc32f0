"""From which score on an answer counts as accurate, by scenario; for the scores of any detector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..core.types import EvaluationSample, Failure, Response, SystemOutputs
from ..errors import DataError, did_you_mean
from ..io.documents import read_document
from ..io.label_set import ScoredSample
from ..text.label_terms import (
    ACCURATE,
    CONTRADICTION,
    DEFAULT_SCENARIO,
    FHRI_SCENARIO,
    HALLUCINATION,
    PREDICTED_LABEL,
)

# The thresholds that the annotation guide was written against. A score must be above its threshold.
SCENARIO_FHRI_THRESHOLDS: Mapping[str, float] = {
    "numeric_kpi": 0.80,
    "intraday": 0.80,
    "directional": 0.75,
    "regulatory": 0.75,
    "fundamentals": 0.70,
    "multi_ticker": 0.70,
    "news": 0.70,
    "crypto": 0.70,
    "advice": 0.55,
    "portfolio_advice": 0.55,
    DEFAULT_SCENARIO: 0.65,
}
_MAX_BYTES = 1_000_000  # such a file has 2 KB at most: anything far larger is another file


def read_thresholds(path: str | Path) -> dict[str, float]:
    """Return the thresholds of a YAML or JSON file, {scenario: threshold}, over those of the guide."""
    where = Path(path).name
    own = read_document(Path(path), max_bytes=_MAX_BYTES)
    if not isinstance(own, dict):
        raise DataError(where, "it has no thresholds.", fix="Write one line per scenario: news: 0.6")
    for scenario, threshold in own.items():
        if not isinstance(threshold, int | float) or not 0 <= threshold <= 1:
            what = f"{threshold!r:.60} is not a number from 0 to 1."
            raise DataError(f"{where}: {scenario:.60}", what, fix="Write one line per scenario: news: 0.6")
    return {**SCENARIO_FHRI_THRESHOLDS, **own}


def scenario_of(sample: EvaluationSample) -> str:
    """Return the scenario of a sample, or `default` if it has none."""
    scenario = sample.labels.get(FHRI_SCENARIO)
    return DEFAULT_SCENARIO if scenario in (None, "") else str(scenario)


def threshold_of(sample: EvaluationSample, thresholds: Mapping[str, float]) -> float:
    """Return the threshold of a sample's scenario; DataError if that is unknown or misspelt."""
    scenario = scenario_of(sample)
    if scenario not in thresholds:
        others = f"Use {', '.join(thresholds)} or null, or give its threshold in a file (--thresholds)."
        raise DataError(
            f"sample {sample.sample_id!r:.80}",
            f"the scenario {scenario!r:.60} has no threshold.",
            fix=did_you_mean(scenario, thresholds, others),
        )
    return thresholds[scenario]


def labels_by_score(
    samples: Sequence[EvaluationSample],
    scores: Sequence[ScoredSample],
    thresholds: Mapping[str, float] = SCENARIO_FHRI_THRESHOLDS,
) -> list[SystemOutputs]:
    """Return the labels that the scenarios' thresholds make of a detector's scores.

    What the detector called a contradiction stays one. A sample without a score is a failure.
    """
    return [_by_score(sample, one, thresholds) for sample, one in zip(samples, scores, strict=True)]


def _by_score(
    sample: EvaluationSample, scored: ScoredSample, thresholds: Mapping[str, float]
) -> SystemOutputs:
    threshold = threshold_of(sample, thresholds)
    if scored.contradiction:
        label = CONTRADICTION
    elif scored.score is None:
        return SystemOutputs([], Response(""), error=Failure("NoScore", "the detector gave no score"))
    else:
        label = ACCURATE if scored.score > threshold else HALLUCINATION
    decision = {"score": scored.score, "scenario": scenario_of(sample), "threshold": threshold}
    return SystemOutputs([], Response(""), extra={PREDICTED_LABEL: label, "decision": decision})
