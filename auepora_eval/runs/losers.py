"""The samples that the candidate lost most on, with what was asked and what both systems said."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..core.types import EvaluationRun
from .compare import Comparison, MetricComparison
from .storage import chosen_samples, stored_predictions


@dataclass(frozen=True)
class Text:
    """What was asked, and the answer; None where there was none."""

    query: str
    answer: str | None


@dataclass(frozen=True)
class LostSample:
    """One sample with both answers and both scores; a text that is not known is None."""

    metric: str
    unit: str
    sample_id: str
    query: str | None
    baseline_answer: str | None
    candidate_answer: str | None
    baseline: float
    candidate: float


def lost_most(comparison: Comparison) -> MetricComparison | None:
    """The metric to look at first: the surest loss, or else the first that lost any sample."""
    losing = [metric for metric in comparison.metrics if metric.losers]
    worse = [metric for metric in losing if (metric.difference < 0) == metric.higher_is_better]
    return min(worse, key=lambda metric: metric.p_value, default=next(iter(losing), None))


def lost_samples(
    metric: MetricComparison, baseline: Mapping[str, Text], candidate: Mapping[str, Text], count: int
) -> list[LostSample]:
    """The first `count` losers of a metric with their texts, as far as these are known."""
    found = []
    for loser in metric.losers[:count]:
        ours, theirs = baseline.get(loser.sample_id), candidate.get(loser.sample_id)
        asked = ours or theirs
        found.append(
            LostSample(
                metric.name,
                metric.unit,
                loser.sample_id,
                asked.query if asked else None,
                ours.answer if ours else None,
                theirs.answer if theirs else None,
                loser.baseline,
                loser.candidate,
            )
        )
    return found


def texts_of(run: EvaluationRun, ids: Container[str]) -> dict[str, Text]:
    """The texts of some samples of a run in memory."""
    return {
        sample.sample_id: Text(sample.query, None if output.error else output.response.text)
        for sample, output in zip(run.samples, run.outputs, strict=False)
        if sample.sample_id in ids
    }


def stored_texts(results_file: Path, ids: Iterable[str]) -> dict[str, Text]:
    """The texts of some samples of a stored run, by its results file; the others are passed over."""
    wanted = set(ids)
    answers: dict[str, str | None] = {}
    for _, record in stored_predictions(results_file):
        sample_id, response = record.get("sample_id"), record.get("response")
        if isinstance(sample_id, str) and sample_id in wanted:
            text = response.get("text") if isinstance(response, dict) else None
            answers[sample_id] = text if isinstance(text, str) and not record.get("error") else None
    return {
        sample.sample_id: Text(sample.query, answers.get(sample.sample_id))
        for sample in chosen_samples(results_file, wanted)
    }
