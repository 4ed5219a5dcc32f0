"""No system gains by retrieving nothing: a run and the same answers without documents, on every metric."""

from __future__ import annotations

import functools
import math
from dataclasses import replace

import numpy as np
import pytest

import auepora_eval as ae
from auepora_eval.comparison.pairs import Pairs
from auepora_eval.core.metrics_base import SampleMetric
from auepora_eval.core.scores import Batch, Scores
from auepora_eval.core.types import (
    EvaluationSample,
    MetricResult,
    RetrievedDocument,
    SystemOutputs,
    TargetCategory,
)
from auepora_eval.metrics.parse import parse_metric
from tests.builders import a_document, a_sample, an_output, small_world
from tests.judges.oracles import EVERY_METRIC

# Diversity is not defined for fewer than two documents; judged@k says how far other metrics can be trusted.
NOT_ABOUT_QUALITY = {TargetCategory.DIVERSITY}, {"judged"}


def _is_about_quality(metric: SampleMetric) -> bool:
    targets, names = NOT_ABOUT_QUALITY
    return metric.target not in targets and metric.name_template.base not in names


EVERY = list(filter(_is_about_quality, EVERY_METRIC))


@functools.cache
def world() -> tuple[list[EvaluationSample], list[SystemOutputs]]:
    """Four small worlds; in every second one the answers are those to other questions, so invented."""
    samples: list[EvaluationSample] = []
    outputs: list[SystemOutputs] = []
    for number in range(4):
        own, answered = small_world()
        if number % 2:
            responses = [output.response for output in answered]
            for output, response in zip(answered, [*responses[1:], responses[0]], strict=True):
                output.response = response
        for sample in own:
            base = sample.labels.get("variant_of")
            labels = {**sample.labels, **({"variant_of": f"{base}.{number}"} if base else {})}
            samples.append(replace(sample, sample_id=f"{sample.sample_id}.{number}", labels=labels))
        outputs += answered
    return samples, outputs


def scores_of(metric: SampleMetric, without: set[int]) -> Scores:
    """Score the world; the outputs at these places have no documents."""
    samples, outputs = world()
    changed = [
        replace(output, retrieved=[]) if place in without else output for place, output in enumerate(outputs)
    ]
    return metric.score_batch(Batch(samples, changed))


def ways_to_retrieve_nothing(scores: Scores, *, higher_is_better: bool) -> list[set[int]]:
    """For the answers with the worst scores, for those with the best, and for all."""
    values = scores.values * (1 if higher_is_better else -1)
    scored = np.flatnonzero(np.isfinite(values))
    by_score = scored[np.argsort(values[scored], kind="stable")].tolist()
    some = len(scored) // 3 + 1
    return [set(by_score[:some]), set(by_score[-some:]), set(range(len(values)))]


@pytest.mark.parametrize("metric", EVERY, ids=lambda metric: metric.name)
def test_retrieving_nothing_gains_nothing(metric: SampleMetric) -> None:
    before = scores_of(metric, set())
    if not len(before.rows()):
        pytest.skip("the small world has nothing for this metric")
    samples = {sample.sample_id: sample for sample in world()[0]}
    for places in ways_to_retrieve_nothing(before, higher_is_better=metric.higher_is_better):
        after = scores_of(metric, places)
        lost = set(after.notes) - set(before.notes)
        assert not lost, [after.notes[place] for place in lost]
        pairing = Pairs(samples, _result(metric, before), _result(metric, after))
        for rows_before, rows_after in ((before.rows(), after.rows()), pairing.used()[:2]):
            change = float(metric.aggregate(rows_after)) - float(metric.aggregate(rows_before))
            gain = change if metric.higher_is_better else -change
            assert math.isnan(gain) or gain <= 1e-9


def _result(metric: SampleMetric, scores: Scores) -> MetricResult:
    return MetricResult(metric.name, metric.target, math.nan, dict(scores.coverage().as_details()), scores)


def test_compare_says_worse_of_a_system_that_retrieves_nothing_for_its_inventions() -> None:
    samples = [a_sample(str(n), query=f"Where is ship {n}?") for n in range(20)]
    document = RetrievedDocument(a_document("d", text="The ship lies at the north pier."), 1.0, 1)
    true, invented = "The ship lies at the north pier.", "A dragon sank every north pier ferry."

    def system(retrieves_for_inventions: bool) -> ae.EvaluationRun:
        def answer(sample: EvaluationSample) -> SystemOutputs:
            is_true = int(sample.sample_id) % 2 == 0
            output = an_output(answer=true if is_true else invented)
            output.retrieved = [document] if is_true or retrieves_for_inventions else []
            return output

        return ae.evaluate(answer, samples, metrics="grounding_overlap,citation_hallucination_rate")

    honest, sly = system(True), system(False)
    assert sly["grounding_overlap"].value == pytest.approx(0.5)
    assert sly["grounding_overlap"].coverage.scored == 20
    comparison = ae.compare(honest, sly)
    assert comparison["grounding_overlap"].verdict == "worse"


@pytest.mark.parametrize("retrieved", ["", "d"])
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("grounding_overlap", "the answer declines"),
        ("best_sentence_overlap", "the answer declines"),
        ("citation_hallucination_rate", "the answer makes no claims"),
        ("citation_factual_consistency", "the answer makes no claims"),
    ],
)
def test_a_refusal_is_counted_as_not_applicable(name: str, reason: str, retrieved: str) -> None:
    outputs = [an_output("d", "text of d"), an_output(retrieved, "I don't know.")]
    result = parse_metric(name).compute([a_sample("1"), a_sample("2")], outputs)
    assert result.coverage.skipped == 1
    assert result.scores[1].reason == reason
