"""Two runs of which one fails: what failures do to corpus metrics, and how they are counted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import auepora_eval as ae
from auepora_eval.comparison.compare import MetricComparison, compare_runs
from auepora_eval.comparison.pairs import Pairs
from auepora_eval.core.metrics_base import METRICS, SampleMetric
from auepora_eval.core.scores import Batch
from auepora_eval.core.types import (
    EvaluationRun,
    EvaluationSample,
    MetricResult,
    SampleScore,
    SystemOutputs,
    TargetCategory,
)
from auepora_eval.metrics.parse import parse_metric
from tests.builders import a_failure, a_sample, an_output

SIZE = 40
LEFT = "abcdefgh"


def reference(number: int) -> str:
    return " ".join(f"{letter}{number}" for letter in LEFT)


def questions(**labels: Any) -> list[EvaluationSample]:
    return [a_sample(f"s{n}", reference=reference(n), labels=labels) for n in range(SIZE)]


def run_of(
    name: str, outputs: list[SystemOutputs], *metrics: str, samples: list[EvaluationSample] | None = None
) -> EvaluationRun:
    samples = questions() if samples is None else samples
    results = [parse_metric(metric).compute(samples, outputs) for metric in metrics]
    return EvaluationRun(name, name, "d", "f", results, samples, outputs)


def answered(hard: str, *, crashing: bool = False) -> list[SystemOutputs]:
    """Right answers, but to every fourth question, which is answered by `hard` or not at all."""
    return [
        an_output(answer=reference(n)) if n % 4 else a_failure() if crashing else an_output(answer=hard)
        for n in range(SIZE)
    ]


def compared(a: list[SystemOutputs], b: list[SystemOutputs], metric: str) -> MetricComparison:
    return compare_runs(run_of("a", a, metric), run_of("b", b, metric), resamples=200).metrics[0]


def difference(a: list[SystemOutputs], b: list[SystemOutputs], metric: str) -> float:
    """The same without a test."""
    samples = {sample.sample_id: sample for sample in questions()}
    found = Pairs(samples, *(scored(side, metric) for side in (a, b)))
    values = [float(found.known.aggregate(rows)) for rows in found.used()[:2]]
    return values[1] - values[0]


def scored(outputs: list[SystemOutputs], name: str) -> MetricResult:
    metric = parse_metric(name)
    scores = metric.score_batch(Batch(questions(), outputs))
    return MetricResult(name, metric.target, math.nan, dict(scores.coverage().as_details()), scores)


texts = st.lists(st.sampled_from("abcdz"), max_size=7).map(" ".join)


@pytest.mark.parametrize("metric", ["bleu", "chrf", "chrfpp"])
@given(pairs=st.lists(st.tuples(texts, texts), min_size=2, max_size=5), failed=st.sets(st.integers(0, 4)))
@settings(max_examples=25, deadline=None)
def test_the_low_bound_is_below_any_answer_as_long_as_its_reference(
    metric: str, pairs: list[tuple[str, str]], failed: set[int]
) -> None:
    pairs = [(answer[: len(right)], f"{right} e".strip()) for answer, right in pairs]
    samples = [a_sample(str(n), reference=right) for n, (_, right) in enumerate(pairs)]
    outputs = [an_output(answer=answer) for answer, _ in pairs]
    given_up = [a_failure() if n in failed else output for n, output in enumerate(outputs)]
    known = parse_metric(metric)
    bounds = known.bounds_if_failed(known.score_batch(Batch(samples, given_up)))
    value = float(known.aggregate(known.score_batch(Batch(samples, outputs)).rows()))
    assert bounds is None or bounds[0] is None or bounds[0] <= value + 1e-9


def test_answers_that_are_scored_by_each_other_are_no_better_for_failing() -> None:
    """Every answer comes twice. Who crashes on the second ones is left with different ones."""
    twice = [an_output(answer=reference(n // 2)) for n in range(SIZE)]
    crashing = [a_failure() if n % 2 else output for n, output in enumerate(twice)]
    found = compared(twice, crashing, "self_bleu")
    assert found.candidate < found.baseline  # lower is better
    assert (found.verdict, found.test.p) == ("inconclusive", None)
    assert "some of the better run failed" in found.test.not_tested
    back = compared(crashing, twice, "self_bleu")
    assert (back.verdict, back.test.p) == ("inconclusive", None)


def test_run_to_run_counts_failures_as_the_table_does() -> None:
    """Three runs each; in the last of b ten of forty fail: 1, 1 and 0.75."""
    right = [an_output(answer=reference(n)) for n in range(SIZE)]
    before = [run_of(f"a{n}", right, "exact_match", "bleu") for n in range(3)]
    now = [
        *(run_of(f"b{n}", right, "exact_match", "bleu") for n in range(2)),
        run_of("b2", answered("", crashing=True), "exact_match", "bleu"),
    ]
    exact, bleu = compare_runs(before, now, resamples=200).metrics
    assert exact.run_to_run is not None
    assert exact.run_to_run.candidate == (1.0, 1.0, 0.75)
    assert exact.run_to_run.candidate_sd == pytest.approx(0.25 / 3**0.5)
    assert exact.candidate == pytest.approx(sum(exact.run_to_run.candidate) / 3)
    assert bleu.run_to_run is not None
    assert bleu.run_to_run.candidate[2] < 75


UNCONCERNED: dict[str, dict[str, Any]] = {
    "recall@5": {"relevant_docs": [{"doc_id": "a", "metadata": {"relevance": 0}}]},
    "ndcg": {"relevant_docs": [{"doc_id": "a", "metadata": {"relevance": 0}}]},
    "mrr[level=2]": {"relevant_docs": ["a"]},
    "bpref": {"relevant_docs": [{"doc_id": "a", "metadata": {"relevance": 0}}]},
    "span_recall@5": {"relevant_docs": ["a"]},
    "subtopic_recall@5": {"relevant_docs": ["a"]},
    "kendall_tau": {"candidate_docs": ["a"]},
    "pairwise_accuracy": {"candidate_docs": ["a"]},
    "numeric_match": {"reference_answer": "blue"},
    "citation_span_exact": {"metadata": {"citations": [{"file_name": "a"}]}},
    "rejection_rate": {"labels": {"answerable": True}},
}


@pytest.mark.parametrize("name", UNCONCERNED)
def test_a_failed_call_counts_only_where_an_answer_could(name: str) -> None:
    """A sample that the metric skips for every answer is skipped if its call failed, too."""
    sample = ae.load_dataset([{"sample_id": "1", "query": "q", **UNCONCERNED[name]}])
    metric = parse_metric(name)
    answered, failed = (
        metric.compute(list(sample), [output]).coverage for output in (an_output("a", "22"), a_failure())
    )
    assert (answered.scored, answered.skipped, answered.failed) == (0, 1, 0)
    assert failed == answered


def timed(seconds: float, failed: int, repeat: int) -> list[SystemOutputs]:
    """Answers of about so many seconds, of which the last calls fail."""
    return [
        a_failure()
        if n >= SIZE - failed
        else an_output(timings={"end_to_end": seconds + 0.001 * (n + repeat)})
        for n in range(SIZE)
    ]


@pytest.mark.parametrize(
    ("failed", "verdicts"),
    [
        (0, ["better", "better", "better"]),
        # One call of forty decides nothing about a median, but a mean of seconds has no worst.
        (1, ["inconclusive", "better", "inconclusive"]),
        (30, ["inconclusive", "inconclusive", "inconclusive"]),
    ],
)
def test_failed_calls_do_not_make_a_system_faster(failed: int, verdicts: list[str]) -> None:
    names = ("mean_latency", "latency@0.5", "throughput")
    before = [run_of(f"a{n}", timed(1.0, 0, n), *names) for n in range(3)]
    now = [run_of(f"b{n}", timed(0.5, failed, n), *names) for n in range(3)]
    assert [one.verdict for one in compare_runs(before, now, resamples=200).metrics] == verdicts
    # The other way round it is the baseline that looks faster.
    assert [one.verdict for one in compare_runs(now, before, resamples=200).metrics] == [
        "worse" if verdict == "better" else verdict for verdict in verdicts
    ]


@dataclass
class Hits(SampleMetric):
    """Hits over tries of all answers, to which one that failed adds nothing: a metric of somebody's own."""

    name = "hits"
    target = TargetCategory.GENERATION_CORRECTNESS
    of_sums = True

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> SampleScore:
        expected = sample.reference_answer
        hit = float(expected is not None and output.response.text == expected.text)
        return SampleScore(hit, parts=(hit, 1.0))

    def score_if_failed(self, sample: EvaluationSample, *, high: bool) -> SampleScore:
        return SampleScore(float(high), parts=(float(high), float(high)))

    def aggregate(self, rows: Any) -> Any:
        sums = rows.sum(axis=-2)
        return sums[..., 1] / sums[..., 2]


def test_no_metric_that_is_added_gains_by_crashing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it counts its failed answers they would lift it from 30 of 40 to 30 of 30."""
    monkeypatch.setitem(METRICS._things, "hits", Hits)
    bad, crashing = answered("z"), answered("z", crashing=True)
    assert difference(bad, crashing, "hits") == 0.0
    assert difference(crashing, bad, "hits") == 0.0
    assert difference(bad, answered(""), "hits") == 0.0
