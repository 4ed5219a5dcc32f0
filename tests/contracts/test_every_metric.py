"""The contract of every registered metric."""

from __future__ import annotations

import functools
import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.core.metrics_base import SampleMetric
from auepora_eval.core.scores import Batch, Scores
from auepora_eval.core.types import Document, EvaluationSample, SystemOutputs, TargetCategory
from auepora_eval.io.results.document import metric_entry
from auepora_eval.metrics.parse import parse_metric
from tests.builders import a_failure, a_sample, an_output, small_world
from tests.judges.oracles import EVERY_METRIC, with_judge

every_metric = pytest.mark.parametrize("metric", EVERY_METRIC, ids=lambda metric: metric.name)


@every_metric
def test_small_dataset_is_scored(metric: SampleMetric) -> None:
    result = metric.compute(*small_world())
    low, high = metric.bounds
    assert low <= result.value <= high
    assert result.details["num_samples"] > 0
    assert isinstance(result.target, TargetCategory)


@every_metric
@given(order=st.permutations(range(10)))
@settings(max_examples=6, deadline=None)
def test_order_of_samples_does_not_matter(metric: SampleMetric, order: list[int]) -> None:
    samples, outputs = small_world()
    shuffled = metric.compute([samples[i] for i in order], [outputs[i] for i in order])
    assert shuffled.value == pytest.approx(_value_in_order(metric.name), nan_ok=True)


@functools.cache
def _value_in_order(name: str) -> float:
    return with_judge(parse_metric(name)).compute(*small_world()).value


@every_metric
@given(cuts=st.sets(st.integers(1, 11)), failed=st.sets(st.integers(0, 11), max_size=3))
@settings(max_examples=8, deadline=None)
def test_score_does_not_depend_on_the_batch(metric: SampleMetric, cuts: set[int], failed: set[int]) -> None:
    if metric.whole_batch:
        return  # it says so, and gets all samples at once
    samples, outputs = small_world()
    samples = [*samples, EvaluationSample("bare", "a query"), EvaluationSample("", "")]
    outputs = [a_failure() if n in failed else output for n, output in enumerate([*outputs, *outputs[:2]])]
    whole = metric.score_batch(Batch(samples, outputs))
    ends = [0, *sorted(cuts), 12]
    joined = Scores.joined(
        [metric.score_batch(Batch(samples[a:b], outputs[a:b])) for a, b in itertools.pairwise(ends)]
    )
    assert _bits(joined) == _bits(whole)


def _bits(scores: Scores) -> tuple[object, ...]:
    """All that scores hold: a run may be cut into chunks in any way, and no bit of it may change."""
    rows = scores.if_failed or ()
    return (
        list(scores.sample_ids),
        scores.values.tobytes(),
        None if scores.parts is None else _without_padding(scores),
        scores.notes,
        scores.clusters,
        [array.tobytes() for array in rows],
    )


def _without_padding(scores: Scores) -> list[bytes]:
    """The parts where something was scored; elsewhere they count for nothing."""
    assert scores.parts is not None
    return [row.tobytes() for place, row in enumerate(scores.parts) if place not in scores.notes]


@every_metric
def test_name_round_trip(metric: SampleMetric) -> None:
    assert parse_metric(metric.name) == metric


@every_metric
def test_metric_describes_itself(metric: SampleMetric) -> None:
    text = type(metric).__doc__ or ""
    assert len(text.strip().splitlines()[0]) > 20
    assert isinstance(metric.higher_is_better, bool)
    assert metric.bounds[0] < metric.bounds[1]
    assert metric.required_fields() == list(metric.requires)


@every_metric
def test_sample_without_required_fields_is_skipped(metric: SampleMetric) -> None:
    samples, outputs = small_world()
    more = metric.compute([*samples, EvaluationSample("bare", "")], [*outputs, an_output()])
    before = metric.compute(samples, outputs)
    assert more.details["num_total"] == 11
    if metric.scores_failures and more.scores[-1].value is not None:
        return  # every call counts, whatever its sample has: nothing to lack
    assert more.value == pytest.approx(before.value, nan_ok=True)
    assert more.scores[-1].value is None
    assert more.scores[-1].reason
    assert not more.scores[-1].failed


@every_metric
def test_failure_is_counted_and_bounds_the_value(metric: SampleMetric) -> None:
    samples, outputs = small_world()
    full = metric.compute(samples, outputs)
    place = max(n for n, score in enumerate(full.scores) if score.value is not None)
    failed = metric.compute(samples, [*outputs[:place], a_failure(), *outputs[place + 1 :]])
    if metric.scores_failures:
        assert failed.details["num_failed"] == 0
        assert failed.details["num_samples"] == full.details["num_samples"]
        return
    assert failed.details["num_failed"] == 1
    assert failed.details["num_total"] == failed.details["num_samples"] + failed.details["num_skipped"] + 1
    low, high = failed.details["bounds_if_failed"]
    assert low - 1e-9 <= full.value <= (math.inf if high is None else high) + 1e-9
    assert full.details["bounds_if_failed"] is None


@every_metric
def test_value_is_nan_if_all_failed(metric: SampleMetric) -> None:
    samples, _ = small_world()
    result = metric.compute(samples, [a_failure()] * 10)
    if metric.scores_failures:
        assert result.value in metric.bounds
        assert result.details["num_samples"] == 10
        return
    assert math.isnan(result.value)
    assert result.details["num_failed"] > 0
    assert result.details["confidence_interval"] is None


@every_metric
def test_value_is_nan_without_samples(metric: SampleMetric) -> None:
    result = metric.compute([], [])
    assert math.isnan(result.value)
    assert result.details["num_total"] == 0


@every_metric
def test_lists_of_unequal_length_are_errors(metric: SampleMetric) -> None:
    samples, outputs = small_world()
    with pytest.raises(ValueError, match="10 samples but 4 outputs"):
        metric.compute(samples, outputs[:4])


@every_metric
def test_aggregate_of_a_stack_equals_single_aggregates(metric: SampleMetric) -> None:
    rows = Scores.of(metric.compute(*small_world()).scores).rows()
    draws = np.random.default_rng(0).integers(len(rows), size=(7, len(rows)))
    stacked = metric.aggregate(rows[draws])
    assert stacked.shape == (7,)
    assert stacked == pytest.approx([float(metric.aggregate(rows[draw])) for draw in draws], nan_ok=True)


@every_metric
def test_interval_contains_the_value(metric: SampleMetric) -> None:
    samples, outputs = small_world()
    twenty = [(s, o) for _ in range(4) for s, o in zip(samples, outputs, strict=True)]
    for sample, _ in twenty:
        sample.metadata.clear()
    result = metric.compute([s for s, _ in twenty], [o for _, o in twenty])
    interval = result.details["confidence_interval"]
    assert interval is None or interval[0] <= result.value <= interval[1]
    without = ("not estimable", "all resamples equal")
    assert interval is not None or result.details["interval_method"] in without


@every_metric
def test_result_json_round_trip(metric: SampleMetric) -> None:
    samples, outputs = small_world()
    for result in (metric.compute(samples, outputs), metric.compute(samples, [a_failure()] * 10)):
        entry = json.loads(json.dumps(metric_entry(result), allow_nan=False))
        assert entry["target"] == metric.target.name
        assert (entry["value"] is None) == math.isnan(result.value)
        assert entry["details"]["signature"]["metric"] == metric.name


@every_metric
def test_scoring_changes_no_input_and_is_repeatable(metric: SampleMetric) -> None:
    samples, outputs = small_world()
    first = metric.compute(samples, outputs)
    assert metric.compute(samples, outputs) == first
    assert (samples, outputs) == small_world()


@every_metric
def test_hostile_output_is_scored_or_skipped(metric: SampleMetric) -> None:
    samples, _ = small_world()
    hostile = ["\x00", "\ud800 lone", "🙂" * 1000, "<script>", "a" * 100_000] * 2
    outputs: list[SystemOutputs] = [
        an_output([text, "a", "a", ""], text, timings={"end_to_end": 1e300, "retrieval": 0.0})
        for text in hostile
    ]
    result = metric.compute(samples, outputs)
    for score in result.scores:
        assert score.value is not None or score.reason
        assert score.value is None or math.isfinite(score.value)


alike = st.lists(st.sampled_from("the Annet moors at 22 piers . not [1] 东京".split()), max_size=6).map(
    " ".join
)


@every_metric
@given(texts=st.lists(alike | st.text(max_size=40), min_size=4, max_size=4))
@settings(max_examples=40, deadline=None)
def test_any_text_is_scored_within_the_bounds_or_explained(metric: SampleMetric, texts: list[str]) -> None:
    """In the answer, in the reference and in the documents."""
    answer, reference, *documents = texts
    output = an_output("ab", answer)
    for hit, text in zip(output.retrieved, documents, strict=True):
        hit.doc = Document(hit.doc.doc_id, text)
    samples = [a_sample(name, reference=reference, relevant="a") for name in "12"]
    for score in metric.score_batch(Batch(samples, [output, output])):
        # What is beyond the bounds of a metric is no score, and its note says so.
        assert "the metric returned" not in score.reason
        assert score.value is not None or score.reason


@every_metric
def test_failure_of_another_target_has_no_bounds(metric: SampleMetric) -> None:
    samples, _ = small_world()
    for sample in samples:
        result = metric.compute([sample], [a_failure()])
        bounds = result.details["bounds_if_failed"]
        assert bounds is None or len(bounds) == 2


# Metrics that say how right an answer is. claim_noise_sensitivity counts wrong claims: a refusal has none.
OF_CORRECTNESS = [
    one
    for one in EVERY_METRIC
    if one.target is TargetCategory.GENERATION_CORRECTNESS and one.higher_is_better
]


@pytest.mark.parametrize("metric", OF_CORRECTNESS, ids=lambda metric: metric.name)
def test_declining_a_question_that_has_an_answer_is_wrong(metric: SampleMetric) -> None:
    nuggets = [{"text": "22 cars", "importance": "vital"}]
    checked = {"answer_in_reference": [], "reference_in_answer": [False]}
    sample = a_sample(reference="22 cars", labels={"answerable": True, "nuggets": nuggets})
    output = an_output("a", "I don't know.", extra={"claims": checked})
    result = metric.compute([sample], [output])
    assert result.coverage.scored == 1
    # By letters and by vectors any two texts are a little alike.
    is_vague = metric.name.startswith(("chrf", "semantic_similarity"))
    assert result.value <= metric.bounds[1] * (0.2 if is_vague else 0)


JUDGED = [one for one in EVERY_METRIC if one.needs_judge and not one.is_of_retrieval]


@pytest.mark.parametrize("metric", JUDGED, ids=lambda metric: metric.name)
def test_a_refusal_is_wrong_or_skipped_by_every_judged_metric_and_counted(metric: SampleMetric) -> None:
    """Wrong where the metric says how right answers are, skipped elsewhere, and always counted."""
    nuggets = [{"text": "22 cars", "importance": "vital"}]
    sample = a_sample(reference="22 cars", labels={"answerable": True, "nuggets": nuggets})
    result = metric.compute([sample], [an_output("a", "I don't know.")])
    score = result.scores[0]
    assert score.value == (0.0 if metric in OF_CORRECTNESS else None)
    assert (score.reason, score.failed) == ("the answer declines", False)
    assert result.details["num_declined"] == 1
    assert any("decline" in note for note in result.notes)
