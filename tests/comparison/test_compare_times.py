"""Times: all samples of a run share the state of the machine, so the run is what is counted."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_ind

from auepora_eval.comparison.compare import compare_runs
from auepora_eval.comparison.power import power_from_runs
from auepora_eval.comparison.ranking import rank_runs
from auepora_eval.comparison.words import comparison_in_plain_words
from auepora_eval.core.types import EvaluationRun
from auepora_eval.decide.gate import gate_run
from tests.decide.gated import a_run


def timed(name: str, shift: float, seed: int, size: int = 60) -> EvaluationRun:
    """A run on a machine that is slower by `shift` for all of it."""
    seconds = np.random.default_rng(seed).gamma(4, 0.01, size) + shift
    return a_run(name, {"mean_latency": seconds.tolist(), "hit@5": ([1.0, 0.0] * size)[:size]})


def test_one_run_each_tells_nothing_about_times() -> None:
    comparison = compare_runs(
        timed("a", 0.0, 0), timed("b", 0.1, 1), margin={"mean_latency[end_to_end]": 0.2}
    )
    latency, hits = comparison.metrics
    assert (latency.verdict, latency.test.p, latency.test.p_adjusted) == ("inconclusive", None, None)
    assert (latency.effect.interval, latency.power.samples_needed, latency.power.detectable) == (
        None,
        None,
        None,
    )
    assert (latency.margin.p, latency.margin.within) == (None, False)
    assert latency.effect.change == pytest.approx(0.1, abs=0.02)  # what was measured is shown all the same
    assert "one run each is not enough to compare times" in latency.test.not_tested
    assert hits.test.p_adjusted == hits.test.p  # a family of one


def test_repeats_are_tested_run_by_run() -> None:
    before = [timed(f"a{n}", 0.001 * n, n) for n in range(3)]
    now = [timed(f"b{n}", 0.05 + 0.001 * n, 10 + n) for n in range(3)]
    latency = compare_runs(before, now).metrics[0]
    sides = [[run.result("mean_latency[end_to_end]").value for run in runs] for runs in (before, now)]
    oracle = ttest_ind(sides[1], sides[0], equal_var=False)
    assert latency.test.p == pytest.approx(oracle.pvalue)
    assert latency.effect.interval == pytest.approx(oracle.confidence_interval())
    assert latency.verdict == "worse"
    assert latency.test.method.endswith("3 runs each")
    assert latency.test.not_tested == ""
    noisy = [timed(f"b{n}", shift, 10 + n) for n, shift in enumerate((0.0, 0.05, 0.1))]
    assert compare_runs(before, noisy).metrics[0].verdict == "inconclusive"


def test_false_alarms_of_repeats_stay_at_alpha() -> None:
    rng = np.random.default_rng(3)
    alarms = 0
    for number in range(60):
        sides = [
            [
                timed(f"{side}{n}", float(rng.normal(0, 0.02)), 100 * number + 10 * place + n, 20)
                for n in range(3)
            ]
            for place, side in enumerate("ab")
        ]
        alarms += compare_runs(*sides, resamples=100).metrics[0].verdict in ("better", "worse")
    assert alarms / 60 <= 0.05 + 2.6 * (0.05 * 0.95 / 60) ** 0.5


def test_a_failed_call_leaves_its_pair_out_of_both_runs() -> None:
    fast, slow = [0.1] * 20, [0.1] * 10 + [0.5] * 10
    before = [a_run(f"a{n}", {"mean_latency": [one + 0.001 * n for one in slow]}) for n in range(2)]
    now = [a_run(f"b{n}", {"mean_latency": [*fast[:10], *[None] * 10]}) for n in range(2)]
    latency = compare_runs(before, now).metrics[0]
    assert latency.baseline == pytest.approx(0.1005)  # not 0.3: the slow half failed


def test_ranks_know_no_sure_winner_by_one_time_each() -> None:
    ranking = rank_runs([timed(name, shift, 1) for name, shift in (("a", 0.0), ("b", 0.1), ("c", 0.2))])
    latency = ranking.metrics[0]
    assert [one.beats for one in latency.standings] == [(), (), ()]
    assert all(pair.metrics[0].test.p_adjusted is None for pair in ranking.pairs)


def costing(name: str, dollars: float, failed: int = 0) -> EvaluationRun:
    costs = [None if n < failed else dollars * (1 + n / 30) for n in range(30)]
    return a_run(name, {"cost": costs}, failed=failed)


def test_what_an_answer_costs_does_not_depend_on_the_machine() -> None:
    cheap, dear = costing("cheap", 0.001), costing("dear", 0.01)
    comparison = compare_runs(cheap, dear)
    assert comparison["cost"].verdict == "worse"
    assert comparison_in_plain_words(comparison)[0].startswith("dear system costs more: cost is")
    report = gate_run(dear, baseline=cheap)
    first = report.verdicts[0]
    assert (first.rule.title, first.outcome) == ("no_regression cost", "failed")
    assert [one.name for one in power_from_runs(cheap, dear).metrics] == ["cost"]


def test_no_system_is_cheaper_for_its_failed_calls() -> None:
    """A call that failed could have cost anything; of the dearer one that changes nothing."""
    cheap, dear = costing("cheap", 0.001, failed=1), costing("dear", 0.01)
    for runs in ((cheap, dear), (dear, cheap)):
        metric = compare_runs(*runs)["cost"]
        assert metric.verdict == "inconclusive"
        assert "there is no worst that they could count as" in metric.test.not_tested
    assert compare_runs(costing("cheap", 0.001), costing("dear", 0.01, failed=1))["cost"].verdict == "worse"
