"""No system gains by crashing: a run and the same run with failures, on every metric."""

from __future__ import annotations

import functools
import math
from dataclasses import replace

import numpy as np
import pytest

from auepora_eval.comparison import paired_tests
from auepora_eval.comparison.pairs import Pairs
from auepora_eval.core.metrics_base import SampleMetric
from auepora_eval.core.scores import Batch, as_columns
from auepora_eval.core.types import EvaluationSample, MetricResult, Response, SystemOutputs
from auepora_eval.metrics.parse import parse_metric
from tests.builders import a_failure, small_world
from tests.judges.oracles import EVERY_METRIC, with_judge

WORLDS = 8
SIZE = 10 * WORLDS
FORMS = ("label_macro_f1[supported=true]", "latency@0.5", "label_f1[accurate]", "noise_retention[token_f1]")


def _is_plain_mean(metric: SampleMetric) -> bool:
    return type(metric).aggregate is SampleMetric.aggregate and not metric.whole_batch


EVERY = [*EVERY_METRIC, *map(parse_metric, FORMS)]
OF_THE_WHOLE = [one for one in EVERY if not _is_plain_mean(one) and not one.scored_by_others]
SHARES = [one for one in EVERY if one.of_sums and math.isfinite(sum(one.bounds))]


def each(metrics: list[SampleMetric]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("metric", metrics, ids=lambda metric: metric.name)


@functools.cache
def world() -> tuple[list[EvaluationSample], list[SystemOutputs]]:
    """The small world many times over; in every second one the answers are those to the next, at length."""
    samples: list[EvaluationSample] = []
    outputs: list[SystemOutputs] = []
    for number in range(WORLDS):
        own, given = small_world()
        if number % 2:
            labels = [output.extra.get("predicted_label") for output in given]
            given = [*given[1:], given[0]]
            for output, label in zip(given, labels, strict=True):
                text = f"{output.response.text} {'and so on ' * (number + 2)}".strip()
                output.response = Response(text, output.response.structured, output.response.metadata)
                output.extra = {**output.extra, **({"predicted_label": "hallucination"} if label else {})}
        for sample in own:
            of = sample.labels.get("variant_of")
            labels_now = {**sample.labels, **({"variant_of": f"{of}.{number}"} if of else {})}
            samples.append(
                replace(
                    sample,
                    sample_id=f"{sample.sample_id}.{number}",
                    labels=labels_now,
                    metadata={key: value for key, value in sample.metadata.items() if key != "cluster"},
                )
            )
        outputs += given
    return samples, outputs


@functools.cache
def whole(name: str) -> MetricResult:
    return scored(with_judge(parse_metric(name)), world()[1])


def scored(metric: SampleMetric, outputs: list[SystemOutputs]) -> MetricResult:
    """The scores alone: intervals take longer than all the rest."""
    scores = metric.score_batch(Batch(world()[0], outputs))
    return MetricResult(metric.name, metric.target, math.nan, dict(scores.coverage().as_details()), scores)


def crashed(metric: SampleMetric, places: set[int]) -> MetricResult:
    given = [a_failure() if place in places else output for place, output in enumerate(world()[1])]
    return scored(metric, given)


def pairing(a: MetricResult, b: MetricResult) -> Pairs:
    return Pairs({sample.sample_id: sample for sample in world()[0]}, a, b)


def gain(metric: SampleMetric, found: Pairs) -> float:
    """How much the second is better."""
    rows_a, rows_b, _ = found.used()
    change = float(metric.aggregate(rows_b)) - float(metric.aggregate(rows_a))
    return change if metric.higher_is_better else -change


def ways_to_crash(metric: SampleMetric) -> list[set[int]]:
    """Anywhere, on the questions with the worst scores, with the best, and with the longest answers."""
    values = as_columns(whole(metric.name).scores).values * (1 if metric.higher_is_better else -1)
    scored = np.flatnonzero(np.isfinite(values))
    by_score = scored[np.argsort(values[scored], kind="stable")].tolist()
    lengths = [len(output.response.text) for output in world()[1]]
    rng = np.random.default_rng(len(metric.name))
    longest = sorted(scored.tolist(), key=lambda place: -lengths[place])
    some = len(scored) // 4 + 1
    return [
        set(rng.choice(SIZE, SIZE // 4, replace=False).tolist()),
        set(by_score[:some]),
        set(by_score[-some:]),
        set(longest[:some]),
        {by_score[0]},
        {longest[0]},
    ]


@each(EVERY)
def test_failing_gains_nothing(metric: SampleMetric) -> None:
    answered = whole(metric.name)
    for places in ways_to_crash(metric)[: 2 if _is_plain_mean(metric) else None]:
        failing = crashed(metric, places)
        found, mirrored = pairing(answered, failing), pairing(failing, answered)
        if not found.scored:
            continue
        if metric.scored_by_others:
            assert (
                not found.gains_by_failing
                or paired_tests.tested_pairs(found, seed=0, resamples=100).not_tested
            )
            continue
        change = gain(metric, found)
        assert math.isnan(change) or change <= 1e-9
        back = gain(metric, mirrored)
        assert math.isnan(back) or back >= -1e-9


@each(OF_THE_WHOLE)
def test_failing_on_more_samples_gains_nothing(metric: SampleMetric) -> None:
    """Both fail: on the same questions they are alike, and the one that fails on more is no better."""
    some = ways_to_crash(metric)[1]
    once, twice = crashed(metric, some), crashed(metric, some | ways_to_crash(metric)[0])
    alike = pairing(once, once)
    assert gain(metric, alike) == pytest.approx(0.0, nan_ok=True)
    change = gain(metric, pairing(once, twice))
    assert math.isnan(change) or change <= 1e-9


@each(OF_THE_WHOLE)
def test_failures_count_alike_on_both_sides(metric: SampleMetric) -> None:
    first, second = ways_to_crash(metric)[1:3]
    one, other = crashed(metric, first - second), crashed(metric, second - first)
    there, back = gain(metric, pairing(one, other)), gain(metric, pairing(other, one))
    assert there == pytest.approx(-back, nan_ok=True)


@each(SHARES)
def test_one_failure_changes_a_share_only_slightly(metric: SampleMetric) -> None:
    """A sum over a sum: an answer that fails has the weight of one answer, and not of all."""
    answered = whole(metric.name)
    rows = as_columns(answered.scores).rows()
    for places in ways_to_crash(metric)[-2:]:
        found = pairing(answered, crashed(metric, places))
        low, high = metric.bounds
        assert abs(gain(metric, found)) <= 6 / len(rows) * (high - low)
