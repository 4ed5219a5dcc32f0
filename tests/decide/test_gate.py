"""The gate: verdicts that can be checked by hand."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.cli.main import main
from auepora_eval.comparison.compare import compare_runs
from auepora_eval.core.types import EvaluationRun
from auepora_eval.decide.figures import GatedRun
from auepora_eval.decide.gate import GateReport, RuleResult, gate_run
from auepora_eval.errors import PlanError
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.decide.gated import a_run, declining

EIGHT_OF_TEN = [1.0] * 8 + [0.0] * 2


def only(report: GateReport, kind: str, name: str = "") -> RuleResult:
    found = [one for one in report.verdicts if one.rule.kind == kind and one.rule.name in (name, "")]
    assert len(found) == 1
    return found[0]


def judged(rules: dict[str, Any], run: EvaluationRun, **how: Any) -> tuple[str, int]:
    report = gate_run(run, rules, resamples=500, **how)
    return report.verdicts[0].outcome, report.exit_code


@pytest.mark.parametrize(
    ("rules", "outcome", "code"),
    [
        pytest.param({"min": {"hit@5": 0.8}}, "passed", 0, id="reached exactly"),
        pytest.param({"min": {"hit@5": 0.81}}, "failed", 1, id="not reached"),
        pytest.param({"min": {"hit@5": {"limit": 0.8, "on": "bound"}}}, "failed", 1, id="from 0.43"),
        pytest.param(
            {"min": {"hit@5": {"limit": 0.43, "on": "bound"}}}, "passed", 0, id="the bound is above"
        ),
        pytest.param({"max": {"hit@5": 0.8}}, "passed", 0, id="no more"),
        pytest.param({"max": {"hit@5": 0.9}, "on": "bound"}, "failed", 1, id="up to 1"),
        pytest.param({"min": {"mrr": 0.1}}, "missing", 3, id="not in the run"),
        pytest.param({"max_failed": 0.0}, "passed", 0, id="nothing failed"),
    ],
)
def test_rules_without_a_baseline(rules: dict[str, Any], outcome: str, code: int) -> None:
    assert judged(rules, a_run("new", {"hit@5": EIGHT_OF_TEN})) == (outcome, code)


def test_failures_that_could_turn_a_verdict_make_it_unclear() -> None:
    run = a_run("new", {"hit@5": [*EIGHT_OF_TEN, None, None]}, failed=2)  # 8/10, or 8/12 to 10/12
    assert judged({"min": {"hit@5": 0.8}}, run) == ("inconclusive", 3)
    assert judged({"min": {"hit@5": 0.6}}, run) == ("passed", 0)
    assert judged({"min": {"hit@5": 0.82}}, run) == ("failed", 1)  # a crash is no excuse
    assert judged({"min": {"hit@5": 0.8}, "if_inconclusive": "pass"}, run) == ("inconclusive", 0)
    assert judged({"min": {"hit@5": 0.8}, "if_inconclusive": "fail"}, run) == ("inconclusive", 1)
    assert judged({"min": {"mrr": 0.8}, "if_inconclusive": "pass"}, run) == ("missing", 3)
    assert judged({"max_failed": 0.1}, run) == ("missing", 3)
    assert judged({"max_failed": 0.17}, run) == ("passed", 0)


def timed_run(answered: list[float], failed: int) -> EvaluationRun:
    """A run whose answers took these seconds; the calls before them failed."""
    times = [None] * failed + answered
    run = a_run("new", dict.fromkeys(("mean_latency", "latency@0.5", "latency@0.95"), times), failed=failed)
    for output, seconds in zip(run.outputs, times, strict=True):
        output.timings.update({} if seconds is None else {"end_to_end": seconds})
    return run


NEARLY_ALL_FAILED = timed_run([0.1] * 5, failed=95)
ONE_FAILED = timed_run([0.1] * 99, failed=1)
TIME_LIMITS = [
    # A call that failed has no time. Counted as the slowest, it moves a quantile only if there are enough.
    ("mean_latency", NEARLY_ALL_FAILED, "inconclusive"),
    ("latency@0.5", NEARLY_ALL_FAILED, "inconclusive"),
    ("latency@0.95", NEARLY_ALL_FAILED, "inconclusive"),
    ("latency_stats.mean", NEARLY_ALL_FAILED, "inconclusive"),
    ("latency_stats.p50", NEARLY_ALL_FAILED, "inconclusive"),
    ("latency_stats.p95", NEARLY_ALL_FAILED, "inconclusive"),
    ("latency_stats.max", NEARLY_ALL_FAILED, "inconclusive"),
    ("mean_latency", ONE_FAILED, "inconclusive"),
    ("latency@0.5", ONE_FAILED, "passed"),
    ("latency@0.95", ONE_FAILED, "passed"),
    ("latency_stats.mean", ONE_FAILED, "inconclusive"),
    ("latency_stats.p95", ONE_FAILED, "passed"),
    ("latency_stats.max", ONE_FAILED, "inconclusive"),
]


@pytest.mark.parametrize(("name", "run", "outcome"), TIME_LIMITS)
def test_a_limit_of_time_does_not_pass_by_failing(name: str, run: EvaluationRun, outcome: str) -> None:
    limit = 1000.0 if name.startswith("latency_stats") else 1.0
    verdict = gate_run(run, {"max": {name: limit}}).verdicts[0]
    assert verdict.outcome == outcome
    assert "failed" in verdict.why
    assert verdict.failed == (95 if run is NEARLY_ALL_FAILED else 1)
    # A limit that the answered calls alone do not keep is not kept.
    assert gate_run(run, {"max": {name: limit / 100}}).verdicts[0].outcome == "failed"


@pytest.mark.parametrize("name", ["mean_latency", "latency@0.95", "latency_stats.mean", "latency_stats.p95"])
def test_a_loss_of_time_is_not_hidden_by_failures(name: str) -> None:
    before = timed_run([0.2] * 100, failed=0)
    rules = {"max_loss": {name: 0.1}}
    verdict = gate_run(NEARLY_ALL_FAILED, rules, baseline=before).verdicts[0]
    assert verdict.outcome == "inconclusive"
    assert gate_run(timed_run([0.1] * 100, failed=0), rules, baseline=before).verdicts[0].outcome == "passed"


@pytest.mark.parametrize("rule", ["max_loss", "margin"])
@pytest.mark.parametrize(("before", "now"), [((1, 2, 3), ()), ((), (1, 2, 3))])
def test_a_value_that_does_not_exist_keeps_no_limit_of_loss(
    rule: str, before: tuple[int, ...], now: tuple[int, ...]
) -> None:
    """Of a system that never declines there is no precision of declining: not even an infinite one."""
    rules = {rule: {"abstention_precision": {"limit": 0.1, "on": "value"}}}
    report = gate_run(declining("new", *now), rules, baseline=declining("old", *before))
    verdict = only(report, rule, "abstention_precision")
    assert (verdict.outcome, report.exit_code) == ("inconclusive", 3)
    assert "it has no value in one of the runs" in verdict.why
    alike = gate_run(
        declining("new", 1, 2), {"max_loss": {"abstention_precision": 0.1}}, baseline=declining("old", 1, 2)
    )
    assert only(alike, "max_loss", "abstention_precision").outcome == "passed"


def test_a_failure_stays_a_failure_beside_what_cannot_be_judged() -> None:
    report = gate_run(a_run("new", {"hit@5": EIGHT_OF_TEN}), {"min": {"hit@5": 0.9, "mrr": 0.1}})
    assert (report.outcome, report.exit_code) == ("failed", 1)
    assert [one.outcome for one in report.problems] == ["failed", "missing"]


def test_what_the_calls_took_can_be_limited() -> None:
    usage = {"memory_mb": {"mean": 90.0, "peak": 120.0, "std": None}, "cpu_percent": {"mean": None}}
    run = a_run("new", {"hit@5": [1.0, 0.0]}, resource_usage=usage, seconds=3.0)
    for place, output in enumerate(run.outputs):
        output.timings["end_to_end"] = 0.1 + place
        output.extra["total_tokens"] = 50
    limits = {"memory_mb.peak": 100.0, "cpu_percent.mean": 70.0, "latency_stats.max": 1101.0}
    limits |= {"total_tokens": 100.0, "total_evaluation_time_seconds": 2.9}
    outcomes = {one.rule.name: one.outcome for one in gate_run(run, {"max": limits}).verdicts}
    assert outcomes == {
        "memory_mb.peak": "failed",
        "cpu_percent.mean": "missing",
        "latency_stats.max": "passed",
        "total_tokens": "passed",
        "total_evaluation_time_seconds": "failed",
    }


def two(lost: int, won: int, size: int = 100) -> dict[str, EvaluationRun]:
    """A baseline that hits half the time, and a candidate with so many losses and wins."""
    half = size // 2
    before = [1.0] * half + [0.0] * half
    now = [0.0] * lost + [1.0] * (half - lost) + [1.0] * won + [0.0] * (half - won)
    return {"run": a_run("new", {"hit@5": now}), "baseline": a_run("old", {"hit@5": before})}


@pytest.mark.parametrize(
    ("lost", "won", "outcome"),
    [
        pytest.param(0, 0, "passed", id="the same"),
        pytest.param(5, 0, "passed", id="McNemar 2/32"),
        pytest.param(6, 0, "failed", id="McNemar 2/64"),
        pytest.param(0, 6, "passed", id="better"),
    ],
)
def test_no_regression_is_mcnemar_for_hits(lost: int, won: int, outcome: str) -> None:
    report = gate_run(**_named(two(lost, won)), rules={"no_regression": ["hit@5"]})
    verdict = only(report, "no_regression", "hit@5")
    assert verdict.outcome == outcome
    assert verdict.p_value == pytest.approx(min(1.0, 2 / 2 ** (lost + won)) if lost + won else 1.0)


def _named(runs: dict[str, EvaluationRun]) -> dict[str, Any]:
    return {"candidate": runs["run"], "baseline": runs["baseline"]}


@pytest.mark.parametrize(
    ("lost", "won", "margin", "outcome"),
    [
        pytest.param(0, 0, 0.03, "passed", id="no sample differs: at worst -0.0278"),
        pytest.param(0, 0, 0.027, "inconclusive", id="no sample differs, smaller margin"),
        pytest.param(1, 0, 0.03, "inconclusive", id="one loss: 0.19 by the binomial"),
        pytest.param(1, 0, 0.05, "passed", id="one loss: 0.037 by the binomial"),
        pytest.param(5, 5, 0.1, "passed", id="ruled out"),
        pytest.param(5, 5, 0.03, "inconclusive", id="too few samples for so small a margin"),
        pytest.param(6, 3, 0.03, "failed", id="the best guess is the margin"),
        pytest.param(9, 3, 0.03, "failed", id="beyond the margin"),
    ],
)
def test_a_margin_has_to_be_ruled_out(lost: int, won: int, margin: float, outcome: str) -> None:
    runs = two(lost, won)
    report = gate_run(**_named(runs), rules={"margin": {"hit@5": margin}})
    verdict = only(report, "margin", "hit@5")
    assert verdict.outcome == outcome
    assert verdict.p_value is not None
    assert (verdict.p_value < 0.025) == (outcome == "passed")
    [compared] = compare_runs(runs["baseline"], runs["run"], margin={"hit@5": margin}).metrics
    assert compared.margin.p == verdict.p_value
    assert (outcome == "passed") == compared.margin.within


def test_the_family_of_no_regression_is_its_own_rules() -> None:
    rng = np.random.default_rng(0)
    scores = {f"recall@{k}": rng.random(60).tolist() for k in range(1, 5)}
    worse = {name: np.clip(np.array(values) - 0.03, 0, 1).tolist() for name, values in scores.items()}
    a, b = a_run("old", scores), a_run("new", {**worse, "recall@1": scores["recall@2"]})
    everything = gate_run(b, {"no_regression": "all"}, baseline=a)
    theirs = {one.name: one.test.p_adjusted for one in compare_runs(a, b).metrics}
    ours = {one.rule.name: one.p_value for one in everything.verdicts if one.rule.kind == "no_regression"}
    assert ours == pytest.approx(theirs)
    alone = only(gate_run(b, {"no_regression": ["recall@3"]}, baseline=a), "no_regression", "recall@3")
    assert alone.p_value == pytest.approx(
        next(one.test.p for one in compare_runs(a, b).metrics if one.name == "recall@3")
    )


def test_margins_are_not_corrected_for_each_other() -> None:
    """A gate of margins passes only if all do: each is tested at alpha, whatever stands beside it."""
    rng = np.random.default_rng(1)
    before = rng.random(80)
    now = np.clip(before - 0.01 + rng.normal(0, 0.05, 80), 0, 1)
    scores = {"recall@5": before.tolist(), "mrr": before.tolist(), "ndcg@5": before.tolist()}
    changed = {name: now.tolist() for name in scores}
    a, b = a_run("old", scores), a_run("new", changed)
    alone = gate_run(b, {"margin": {"recall@5": 0.02}}, baseline=a)
    beside = gate_run(b, {"margin": 0.02}, baseline=a)
    assert len([one for one in beside.verdicts if one.rule.kind == "margin"]) == 3
    assert only(alone, "margin", "recall@5").p_value == only(beside, "margin", "recall@5").p_value


@pytest.mark.parametrize(
    ("name", "before", "now", "limit", "outcome"),
    [
        pytest.param("recall@5", 0.5, 0.46, 0.1, "passed", id="8% of the recall"),
        pytest.param("recall@5", 0.5, 0.4, 0.1, "failed", id="20%"),
        pytest.param("recall@5", 0.5, 0.3, 0.1, "failed", id="40%"),
        pytest.param("recall@5", 0.5, 0.2, 0.1, "failed", id="60%"),
        pytest.param("recall@5", 0.5, 0.9, 0.0, "passed", id="a gain is no loss"),
        pytest.param("mean_latency", 1.0, 1.2, 0.1, "failed", id="slower"),
        pytest.param("mean_latency", 1.0, 0.2, 0.1, "passed", id="faster"),
        pytest.param("recall@5", 0.0, 0.2, 0.1, "inconclusive", id="a share of nothing"),
        pytest.param("recall@5", 0.0, 0.0, 0.0, "passed", id="nothing, as before"),
    ],
)
def test_losses_as_shares(name: str, before: float, now: float, limit: float, outcome: str) -> None:
    a, b = a_run("old", {name: [before] * 9}), a_run("new", {name: [now] * 9})
    assert gate_run(b, {"max_loss": {name: limit}}, baseline=a).verdicts[0].outcome == outcome


def test_a_loss_by_the_worse_end_of_its_interval() -> None:
    rng = np.random.default_rng(2)
    before = rng.random(50)
    a = a_run("old", {"recall@5": before.tolist()})
    b = a_run("new", {"recall@5": np.clip(before + rng.normal(0, 0.2, 50), 0, 1).tolist()})
    value, bound = (
        gate_run(b, {"max_loss": {"recall@5": 0.05}, "on": on}, baseline=a).verdicts[0]
        for on in ("value", "bound")
    )
    assert (value.outcome, bound.outcome) == ("passed", "failed")
    assert value.change_interval == bound.change_interval
    interval = bound.change_interval
    assert interval is not None
    assert bound.baseline is not None
    assert f"{-interval[0] / bound.baseline:.1%} worse" in bound.why
    usage = {"memory_mb": {"peak": 100.0}}
    for run in (a, b):
        run.resource_usage = usage if run is a else {"memory_mb": {"peak": 101.0}}
    rules = {"max_loss": {"memory_mb.peak": {"limit": 0.05, "on": "bound"}}}
    assert gate_run(b, rules, baseline=a).verdicts[0].outcome == "inconclusive"


def test_a_tenth_of_the_scores_may_be_gone() -> None:
    before = a_run("old", {"recall@5": [0.5] * 20, "mrr": [0.5] * 20})
    for lost, outcome in ((2, "passed"), (3, "failed")):
        now = a_run("new", {"recall@5": [0.5] * 20, "mrr": [0.5] * (20 - lost) + [None] * lost})
        report = gate_run(now, {"no_regression": ["recall@5"]}, baseline=before)
        verdict = only(report, "max_count_drop")
        assert (verdict.outcome, verdict.value, verdict.baseline) == (outcome, 20 - lost, 20)
    assert "3 have none now: failed" in verdict.why


def test_a_baseline_alone_means_no_regression_but_for_times() -> None:
    a = a_run("old", {"recall@5": [0.5] * 9, "mean_latency": [0.1] * 9, "latency@0.9": [0.1] * 9})
    report = gate_run(a_run("new", {"recall@5": [0.5] * 9}), baseline=a)
    assert [one.rule.title for one in report.verdicts] == ["no_regression recall@5", "max_count_drop"]
    assert len([note for note in report.notes if "times depend on the machine" in note]) == 1


@pytest.mark.parametrize("scores", [[1.0, 1.0], [0.9, 0.91]])
def test_two_samples_never_pass_on_the_bound(scores: list[float]) -> None:
    """Whatever two samples score, the interval covers the whole scale."""
    for metric in ("hit@5", "recall@5"):
        report = gate_run(a_run("new", {metric: scores}), {"min": {metric: 0.05}, "on": "bound"})
        assert report.outcome == "failed"


def test_a_metric_that_is_gone_cannot_be_judged() -> None:
    a = a_run("old", {"recall@5": [0.5] * 9, "mrr": [0.5] * 9})
    report = gate_run(a_run("new", {"recall@5": [0.5] * 9}), baseline=a)
    assert (only(report, "no_regression", "mrr").outcome, report.exit_code) == ("missing", 3)
    mine = a_run("old", {"recall@5": [0.5] * 9})
    mine.results[0].name = "mine"
    # The stored scores of a mean are enough; those of another aggregate are not.
    assert gate_run(mine, {"no_regression": ["mine"]}, baseline=replace(mine)).exit_code == 0
    mine.results[0].value = 0.9
    verdict = gate_run(mine, {"no_regression": ["mine"]}, baseline=replace(mine)).verdicts[0]
    assert verdict.outcome == "missing"
    assert "its metric is not registered" in verdict.why
    a.seconds = 3.0
    rules = {"margin": {"total_evaluation_time_seconds": 1}}
    assert "Use max_loss" in gate_run(a, rules, baseline=replace(a)).verdicts[0].fix


def test_a_gate_without_a_rule_or_without_its_baseline_is_refused() -> None:
    run = a_run("new", {"recall@5": [0.5]})
    with pytest.raises(PlanError, match="there is no rule"):
        gate_run(run)
    with pytest.raises(PlanError, match="'margin recall@5' needs a baseline"):
        gate_run(run, {"margin": {"recall@5": 0.1}})


@settings(max_examples=30, deadline=None)
@given(
    gains=st.lists(st.sampled_from([-0.5, -0.1, 0.0, 0.1, 0.4]), min_size=2, max_size=30),
    margin=st.sampled_from([0.01, 0.1, 0.3]),
)
def test_the_gate_and_the_comparison_say_the_same(gains: list[float], margin: float) -> None:
    a = a_run("old", {"recall@5": [0.5] * len(gains)})
    b = a_run("new", {"recall@5": [0.5 + gain for gain in gains]})
    compared = compare_runs(a, b, margin=margin, resamples=500).metrics[0]
    rules = {"no_regression": ["recall@5"], "margin": {"recall@5": margin}}
    report = gate_run(b, rules, baseline=a, resamples=500)
    assert (only(report, "no_regression", "recall@5").outcome == "failed") == (compared.verdict == "worse")
    assert (only(report, "margin", "recall@5").outcome == "passed") == compared.margin.within


@pytest.mark.parametrize(
    ("size", "metrics", "outcome"),
    [
        pytest.param(1, 1, "inconclusive", id="one sample"),
        pytest.param(5, 1, "inconclusive", id="five: p is 2/32 at best"),
        pytest.param(6, 1, "failed", id="six: 2/64"),
        pytest.param(6, 2, "inconclusive", id="six and Holm over two metrics"),
        pytest.param(7, 2, "failed", id="seven and two"),
    ],
)
def test_a_collapse_that_cannot_be_shown_does_not_pass(size: int, metrics: int, outcome: str) -> None:
    names = ["hit@5", "hit@3"][:metrics]
    before, now = (a_run(f"of {one}", dict.fromkeys(names, [one] * size)) for one in (1.0, 0.0))
    report = gate_run(now, {"no_regression": names}, baseline=before)
    verdict = only(report, "no_regression", "hit@5")
    assert verdict.outcome == outcome
    assert report.exit_code == (3 if outcome == "inconclusive" else 1)
    if outcome == "inconclusive":
        assert f"Measure at least {6 if metrics == 1 else 7} samples" in verdict.fix
        assert (
            gate_run(now, {"no_regression": names, "if_inconclusive": "pass"}, baseline=before).exit_code == 0
        )


@pytest.mark.parametrize("rules", [{"no_regression": ["mean_latency"]}, {"margin": {"mean_latency": 0.01}}])
def test_one_run_each_cannot_tell_about_times(rules: dict[str, Any]) -> None:
    a, b = (a_run(name, {"mean_latency": [seconds] * 50}) for name, seconds in (("old", 0.1), ("new", 0.9)))
    verdict = gate_run(b, rules, baseline=a).verdicts[0]
    assert (verdict.outcome, verdict.p_value) == ("inconclusive", None)
    assert "0.1 s before, 0.9 s now; one run each is not enough" in verdict.why
    assert gate_run(b, {"max_loss": {"mean_latency": 0.5}}, baseline=a).exit_code == 1


def test_what_is_proposed_for_a_run_in_memory_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run = a_run("new", {"hit@5": EIGHT_OF_TEN})
    fix = gate_run(run, {"min": {"hit@5": 0.9}}).verdicts[0].fix
    store, command = re.fullmatch(r'.*: run\.save\("(.*)"\), then auepora (.*)', fix).groups()  # type: ignore[union-attr]
    run.save(store)
    assert main(shlex.split(command)) == 0
    assert "hit@5 0.0000" in capsys.readouterr().out


def test_a_run_is_not_its_own_baseline(tmp_path: Path) -> None:
    storage = EvaluationResultsStorage(tmp_path)
    run, equal = a_run("r", {"hit@5": [1.0] * 40}), a_run("r", {"hit@5": [1.0] * 40})
    storage.save_run(run)
    stored = [GatedRun.stored(storage, name) for name in ("r", str(tmp_path / "r.results.json"))]
    for one, other in ((run, run), (GatedRun.of(run), run), (stored[0], stored[1])):
        with pytest.raises(PlanError, match="r is its own baseline"):
            gate_run(one, baseline=other)
    assert gate_run(equal, baseline=run, resamples=200).outcome == "passed"
