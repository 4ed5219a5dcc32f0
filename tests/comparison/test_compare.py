"""Comparison of two runs: verdicts by hand."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.comparison.compare import compare_runs
from auepora_eval.comparison.tables import comparison_table
from auepora_eval.comparison.words import comparison_in_plain_words
from auepora_eval.core.dataset import InMemoryDataset
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.core.types import EvaluationRun, MetricResult, SampleScore, TargetCategory
from auepora_eval.errors import PlanError
from auepora_eval.metrics.parse import parse_metrics
from tests.builders import a_dataset, a_sample, an_output

KINDS = ("0", "1", "skipped", "failed", "missing")
PLAN = EvaluationPlan(parse_metrics("recall@1,token_f1,bleu,mean_latency"))


def world(size: int = 40) -> InMemoryDataset:
    return a_dataset(
        *(a_sample(f"s{n}", f"q {n}", relevant="a", reference="the light is white") for n in range(size))
    )


def run_with(hits: Any, name: str = "x", size: int = 40, failing: tuple[int, ...] = ()) -> EvaluationRun:
    """A system that finds the document, and says the right words, for the questions in `hits`."""

    def system(query: str) -> Any:
        number = int(query.split()[1])
        if number in failing:
            raise RuntimeError("down")
        right = number in hits
        words = "the light is white" if right else "no"
        return an_output("ab" if right else "ba", words, timings={"end_to_end": 0.1 if right else 0.2})

    system.__name__ = name
    return AueporaEvaluator(system, PLAN).run(world(size))


def verdicts(a: EvaluationRun, b: EvaluationRun) -> dict[str, str]:
    return {metric.name: metric.verdict for metric in compare_runs(a, b).metrics}


def test_a_clear_difference_is_seen_in_both_directions() -> None:
    few, many = run_with(range(10), "few"), run_with(range(35), "many")
    for pair, verdict in (((few, many), "better"), ((many, few), "worse")):
        found = verdicts(*pair)
        assert found.pop("mean_latency[end_to_end]") == "inconclusive"  # one run each
        assert set(found.values()) == {verdict}
    recall = compare_runs(few, many).metrics[0]
    assert (recall.effect.wins, recall.effect.ties, recall.effect.losses, recall.pairs) == (25, 15, 0, 40)
    assert recall.effect.change == pytest.approx(25 / 40)
    assert recall.effect.interval is not None
    assert recall.effect.interval[0] < recall.effect.change < recall.effect.interval[1]


def test_five_wins_are_not_enough_and_the_words_say_what_would_be() -> None:
    comparison = compare_runs(run_with(range(10), "old"), run_with(range(15), "new"))
    recall = comparison.metrics[0]
    assert recall.test.p == pytest.approx(2 / 32)
    assert recall.verdict == "inconclusive"
    assert recall.power.samples_needed is not None
    assert recall.power.samples_needed > 40
    assert "needs more questions: about 70 for" in " ".join(comparison_in_plain_words(comparison))


def test_equal_runs_are_the_same() -> None:
    comparison = compare_runs(run_with(range(10)), run_with(range(10)))
    assert {metric.verdict for metric in comparison.metrics} == {"same"}
    assert comparison_in_plain_words(comparison)[0].startswith("No change in finding the right documents")


def test_a_system_that_crashes_on_its_hard_questions_is_not_better() -> None:
    honest = run_with(range(20), "honest")
    crashing = run_with(range(20), "crashing", failing=tuple(range(20, 40)))
    assert crashing.result("recall@1").value > honest.result("recall@1").value
    recall, _, _, latency = compare_runs(honest, crashing).metrics
    assert (recall.verdict, recall.candidate, recall.coverage.failed_candidate) == ("same", 0.5, 20)
    assert (latency.pairs, latency.coverage.unmatched) == (
        20,
        20,
    )  # seconds have no worst
    assert "0.5000 (20 failed)" in comparison_table(compare_runs(honest, crashing)).to_markdown()


def test_bleu_is_compared_as_the_corpus_metric_that_it_is() -> None:
    a, b = run_with(range(10)), run_with(range(30))
    bleu = compare_runs(a, b, resamples=3_000).metrics[2]
    assert bleu.test.method == "swap, 3000 resamples, seed 0"
    assert bleu.baseline == pytest.approx(a.result("bleu").value)
    assert bleu.candidate == pytest.approx(b.result("bleu").value)
    assert bleu.candidate != pytest.approx(np.mean([s.value for s in b.result("bleu").scores]))


def test_other_data_is_refused_and_a_metric_computed_otherwise_is_left_out() -> None:
    with pytest.raises(PlanError, match="different data"):
        compare_runs(run_with(range(3), size=10), run_with(range(3), size=11))
    a, b = run_with(range(3)), run_with(range(3))
    b.result("bleu").details["signature"] = {"metric": "bleu", "tok": "intl"}
    comparison = compare_runs(a, b)
    assert "not computed alike" in comparison.not_compared["bleu"]
    assert "tok intl" in comparison.not_compared["bleu"]
    assert [one.name for one in comparison.metrics] == [one.name for one in a.results if one.name != "bleu"]
    allowed = compare_runs(a, b, allow_mismatch=True)
    assert allowed["bleu"].name == "bleu"
    assert "bleu: it was not computed alike" in allowed.mismatches[0]


@settings(max_examples=60, deadline=None)
@given(
    pairs=st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from(KINDS)), min_size=1, max_size=12),
    seed=st.integers(0, 9),
)
def test_the_join_is_the_plain_loop(pairs: list[tuple[str, str]], seed: int) -> None:
    """Scores in another order, missing, skipped or failed: pair by pair, as one would count by hand."""
    samples = [a_sample(f"s{n}", relevant="a") for n in range(len(pairs))]
    known = {"0": 0.0, "1": 1.0, "failed": 0.0}  # a failure is the worst answer
    both = [(known[a], known[b]) for a, b in pairs if a in known and b in known]
    alone = sum((a in known) != (b in known) for a, b in pairs)

    def run(side: int) -> EvaluationRun:
        scores = [
            SampleScore(
                None if kind in ("skipped", "failed") else float(kind), "", (), f"s{n}", kind == "failed"
            )
            for n, kind in enumerate(pair[side] for pair in pairs)
            if kind != "missing"
        ]
        if side:
            random.Random(seed).shuffle(scores)
        result = MetricResult("recall@1", TargetCategory.RETRIEVAL_RELEVANCE, 0.5, {}, scores)
        return EvaluationRun(f"r{side}", "s", "d", "f", [result], samples, [])

    comparison = compare_runs(run(0), run(1))
    # Two failures are no measurement.
    if not any(a in known and b in known and {a, b} != {"failed"} for a, b in pairs):
        assert comparison.not_compared == {"recall@1": "no sample was scored in both"}
        return
    [found] = comparison.metrics
    counted = (found.effect.wins, found.effect.losses, found.pairs, found.coverage.unmatched)
    assert counted == (sum(b > a for a, b in both), sum(b < a for a, b in both), len(both), alone)
    assert found.effect.change == pytest.approx(sum(b - a for a, b in both) / len(both))


@pytest.mark.parametrize("name", ["mrr", "bleu"])
def test_clusters_are_one_fact_each(name: str) -> None:
    """Forty samples in five clusters, all five better: p cannot be below 2 / 32, whatever the test."""

    def run(right: bool) -> EvaluationRun:
        def system(query: str) -> Any:
            return an_output("ab" if right else "ba", "the light is white" if right else "the light is on")

        samples = [
            a_sample(f"s{n}", f"q {n}", relevant="a", reference="the light is white", cluster=str(n % 5))
            for n in range(40)
        ]
        return AueporaEvaluator(system, EvaluationPlan(parse_metrics(name))).run(a_dataset(*samples))

    found = compare_runs(run(False), run(True)).metrics[0]
    assert found.test.p == pytest.approx(2 / 32, abs=0.02)
    assert found.verdict == "inconclusive"
