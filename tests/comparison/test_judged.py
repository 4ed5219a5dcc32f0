"""Comparisons of judged metrics: corrected for the errors of the judge, or open where it cannot tell."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from auepora_eval.comparison.compare import compare_runs
from auepora_eval.comparison.ranking import rank_runs
from auepora_eval.comparison.words import comparison_in_plain_words
from auepora_eval.core.types import EvaluationRun
from auepora_eval.judges.ask import Asking
from auepora_eval.judges.trust.probes import probe
from tests.judges.functions import ALWAYS_YES, noisy
from tests.judges.judged_runs import METRIC, a_calibration, judged_run, labels_of, truths

FEW, MANY = [1.0] * 40 + [0.0] * 60, [1.0] * 60 + [0.0] * 40


def test_error_rates_that_are_the_same_divide_the_change() -> None:
    plain = compare_runs(judged_run("a", FEW), judged_run("b", MANY)).metrics[0]
    found = compare_runs(judged_run("a", FEW, a_calibration()), judged_run("b", MANY, a_calibration()))
    metric = found.metrics[0]
    assert metric.effect.change == pytest.approx(0.2 / 0.7)
    assert [metric.baseline, metric.candidate] == pytest.approx([0.2 / 0.7, 0.4 / 0.7])
    assert metric.test.p == plain.test.p, "judged rates are equal if and only if true ones are"
    assert metric.effect.interval is not None
    assert plain.effect.interval is not None
    low, high = metric.effect.interval
    assert high - low > (plain.effect.interval[1] - plain.effect.interval[0]) / 0.7
    assert low <= 0.2 / 0.7 <= high
    assert any("sensitivity 45 of 50 and specificity 40 of 50" in note for note in found.notes)


def test_an_uncalibrated_judge_is_named() -> None:
    found = compare_runs(judged_run("a", FEW), judged_run("b", MANY))
    assert found.metrics[0].effect.change == pytest.approx(0.2)
    assert f"{METRIC}: uncalibrated judge: the change is one of judged scores" in found.notes


def test_a_ranking_is_corrected_too() -> None:
    runs = [
        judged_run(name, scores, a_calibration())
        for name, scores in zip("abc", (FEW, MANY, FEW), strict=True)
    ]
    ranking = rank_runs(runs)
    assert ranking.pairs[0].metrics[0].effect.change == pytest.approx(0.2 / 0.7)
    assert any("sensitivity 45 of 50" in note for note in ranking.notes)


def test_a_judge_that_cannot_tell_decides_nothing() -> None:
    coin = a_calibration((28, 50), (30, 50))  # 0.56 + 0.60 - 1
    found = compare_runs(judged_run("a", FEW, coin), judged_run("b", [1.0] * 100, coin))
    metric = found.metrics[0]
    assert metric.verdict == "inconclusive"
    assert metric.test.p is None
    assert "this judge cannot tell" in metric.test.not_tested
    assert sum("this judge cannot tell" in text for text in comparison_in_plain_words(found)) == 1


def test_a_degraded_judge_decides_nothing() -> None:
    probes = probe(Asking(ALWAYS_YES))
    metric = compare_runs(
        judged_run("a", FEW, a_calibration(), probes=probes), judged_run("b", MANY, a_calibration())
    ).metrics[0]
    assert metric.verdict == "inconclusive"
    assert "failed the probes" in metric.test.not_tested


def a_pair(
    rates: tuple[float, float], labels: int, *, se: tuple[float, float] = (0.9, 0.9), seed: int = 1
) -> tuple[EvaluationRun, EvaluationRun]:
    rng = random.Random(seed)
    runs = []
    for name, rate, sensitivity in zip("ab", rates, se, strict=True):
        people = truths(rate, 400, rng)
        scores = noisy(people, rng, se=sensitivity)
        runs.append(judged_run(name, scores, None, labels_of([float(each) for each in people], labels)))
    return runs[0], runs[1]


def test_labels_of_both_runs_correct_a_judge_that_favours_one_system() -> None:
    """The systems are equally good, but the judge misses a third of what the second one gets right."""
    pair = a_pair((0.8, 0.8), 200, se=(0.95, 0.6))
    judged = [replace(run, results=[without_labels(run)]) for run in pair]
    assert compare_runs(*judged).metrics[0].verdict == "worse"
    found = compare_runs(*pair)
    metric = found.metrics[0]
    assert metric.verdict == "inconclusive"
    assert metric.effect.interval is not None
    assert metric.effect.interval[0] <= 0.0 <= metric.effect.interval[1]
    assert metric.candidate - metric.baseline == pytest.approx(metric.effect.change)
    assert "200 labels of both runs" in metric.test.method
    assert any("the judged scores differ by -0.2" in note for note in found.notes)


def without_labels(run: EvaluationRun):  # type: ignore[no-untyped-def]
    result = run.results[0]
    return replace(result, details={**result.details, "judge": {}})


def test_a_real_difference_is_found_with_labels() -> None:
    metric = compare_runs(*a_pair((0.5, 0.8), 150)).metrics[0]
    assert metric.verdict == "better"
    assert metric.effect.interval is not None
    assert metric.effect.interval[0] < 0.3 < metric.effect.interval[1]


def test_a_metric_of_another_judge_is_left_out_by_name() -> None:
    a, b = judged_run("a", FEW), judged_run("b", MANY)
    for run, model in ((a, "small"), (b, "large")):
        run.results[0].details["signature"] = {"metric": METRIC, "judge": [f"support/{model}@3f9a/label"]}
    assert "another judge in each run: support/small@3f9a" in compare_runs(a, b).not_compared[METRIC]
    for run in (a, b):
        run.results[0].details["signature"] = {
            "metric": METRIC,
            "judge": ["support/m"],
            "models": [run.evaluation_id],
        }
    assert "support/m as a and support/m as b" in compare_runs(a, b).not_compared[METRIC]
    assert compare_runs(a, b, allow_mismatch=True).mismatches
