"""Verdicts that fail: they say nothing about the system, in every command that compares runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import auepora_eval as ae
from auepora_eval.cli.main import main
from auepora_eval.comparison.compare import MetricComparison, compare_runs
from auepora_eval.comparison.power import power_from_runs
from auepora_eval.comparison.ranking import rank_runs
from auepora_eval.core.types import EvaluationRun
from auepora_eval.decide.gate import gate_run
from auepora_eval.decide.trend import metric_trend
from auepora_eval.errors import BadOutputError, ScoringError
from auepora_eval.judges.question import Question
from auepora_eval.store.storage import EvaluationResultsStorage

SIZE = 25
METRIC = "judged_faithfulness"
SAMPLES = [{"sample_id": f"s{n}", "query": f"number {n}", "reference_answer": "x"} for n in range(SIZE)]


def system(query: str) -> dict[str, Any]:
    passage = {"doc_id": "a", "text": f"It is {query}.", "rank": 1}
    return {"response": {"text": f"It is {query}."}, "retrieved": [passage]}


def crashing(query: str) -> dict[str, Any]:
    if int(query.rpartition(" ")[2]) < 12:
        raise RuntimeError("down")
    return system(query)


def judged(name: str, *, oops: int = 0, of: Any = system) -> EvaluationRun:
    """A run whose judge gives no verdict on the first samples."""

    def judge(question: Question) -> str:
        return "oops" if int(question.material["claim"].rpartition(" ")[2].rstrip(".")) < oops else "yes"

    run = ae.evaluate(of, SAMPLES, metrics=f"token_f1,{METRIC}", judge=judge)
    run.evaluation_id = name
    return run


@pytest.fixture(scope="module")
def runs() -> tuple[EvaluationRun, EvaluationRun]:
    return judged("one"), judged("two", oops=12)


def test_a_failed_verdict_is_not_a_lost_sample(runs: tuple[EvaluationRun, EvaluationRun]) -> None:
    compared = ae.compare(*runs)
    metric: MetricComparison = compared[METRIC]
    assert (metric.verdict, metric.baseline, metric.candidate) == ("inconclusive", 1.0, 1.0)
    assert (metric.coverage.failed_candidate, metric.coverage.unmeasured_candidate) == (0, 12)
    assert metric.effect.bounds == (-12 / SIZE, 0.0)
    assert f"{METRIC} could not score 12 of 25 answers of two; they are left out." in str(compared)
    assert "With them, the difference could be anything from -0.4800 to 0.0000." in " ".join(
        str(compared).split()
    )
    assert "counts as wrong" not in str(compared)


def test_a_failed_call_still_is() -> None:
    metric = compare_runs(judged("one"), judged("two", of=crashing))[METRIC]
    assert (metric.verdict, metric.candidate) == ("worse", 13 / SIZE)
    assert (metric.coverage.failed_candidate, metric.coverage.unmeasured_candidate) == (12, 0)


@pytest.mark.parametrize("rule", ["no_regression", "margin", "max_loss"])
def test_a_gate_is_not_decided_by_failed_verdicts(
    runs: tuple[EvaluationRun, EvaluationRun], rule: str
) -> None:
    rules: dict[str, Any] = {rule: [METRIC] if rule == "no_regression" else {METRIC: 0.2}}
    for baseline, candidate in (runs, runs[::-1]):
        report = gate_run(candidate, {**rules, "max_failed": 0.99}, baseline=baseline)
        verdict = next(one for one in report.verdicts if one.rule.name == METRIC)
        assert (verdict.outcome, report.exit_code) == ("inconclusive", 3)
        assert "12 of 25 answers of two could not be scored (48.0%)" in verdict.why
        assert "auepora judge runs/two --judge" in verdict.fix
        assert "--resume" not in verdict.fix
        assert all(one.outcome != "failed" for one in report.verdicts)


def test_a_limit_is_not_missed_by_failed_verdicts() -> None:
    one_wrong = judged("two", oops=12)
    rules = {"min": {METRIC: 0.5}, "allow_uncalibrated": True, "max_failed": 0.99}
    verdict = gate_run(one_wrong, rules).verdicts[0]
    assert verdict.outcome == "passed"  # 13 of 25 are enough
    verdict = gate_run(one_wrong, {**rules, "min": {METRIC: 0.9}}).verdicts[0]
    assert (verdict.outcome, verdict.fix[:11]) == ("inconclusive", "Judge again")


def test_too_many_failed_verdicts_are_judged_again_not_run_again(
    runs: tuple[EvaluationRun, EvaluationRun],
) -> None:
    report = gate_run(runs[1], {"min": {METRIC: 0.1}, "allow_uncalibrated": True, "max_failed": 0.01})
    assert "auepora judge runs/two --judge" in report.verdicts[-1].fix


def test_rankings_trends_and_power_leave_failed_verdicts_out(
    runs: tuple[EvaluationRun, EvaluationRun], tmp_path: Path
) -> None:
    ranking = rank_runs([*runs, judged("three")])
    standings = next(one for one in ranking.metrics if one.name == METRIC).standings
    assert [one.value for one in standings] == [1.0, 1.0, 1.0]
    assert any("could not score 12 of 25 answers" in note for note in ranking.notes)
    storage = EvaluationResultsStorage(tmp_path)
    for run in runs:
        storage.save_run(run)
    [line] = metric_trend(storage, METRIC).lines
    assert [(point.value, point.failed, point.failures_counted) for point in line.points] == [
        (1.0, 0, False),
        (1.0, 12, False),
    ]
    stored = [storage.load_run(run.evaluation_id, texts=False) for run in runs]
    assert compare_runs(*stored)[METRIC].verdict == "inconclusive"
    assert storage.compare_results(["one", "two"])["metrics_comparison"][METRIC] == {"one": 1.0, "two": 1.0}
    assert power_from_runs(stored[1]).metrics


def test_the_command_and_its_json_agree(
    runs: tuple[EvaluationRun, EvaluationRun], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for run in runs:
        run.save(tmp_path / f"{run.evaluation_id}.results.json")
    assert main(["gate", "two", "--baseline", "one", "--out", str(tmp_path)]) == 3
    assert "judge two --judge" in " ".join(capsys.readouterr().out.split())
    assert main(["compare", "one", "two", "--json", "--out", str(tmp_path)]) == 0
    metric = next(one for one in json.loads(capsys.readouterr().out)["metrics"] if one["name"] == METRIC)
    assert (metric["verdict"], metric["unmeasured_candidate"]) == ("inconclusive", 12)


@pytest.mark.usefixtures("own_metrics")
def test_any_metric_that_cannot_score_is_the_same_case() -> None:
    @ae.metric("own_reader", target="generation_correctness")
    def own_reader(sample: Any, output: Any) -> float:
        if output.extra.get("broken"):
            raise ScoringError("the service of the metric is down")
        if output.extra.get("unusable"):
            raise BadOutputError("the system returned something unusable")
        return 1.0

    def run_of(name: str, **extra: bool) -> EvaluationRun:
        def answer(query: str) -> dict[str, Any]:
            return {**system(query), "extra": extra if int(query.rpartition(" ")[2]) < 12 else {}}

        run = ae.evaluate(answer, SAMPLES, metrics=[own_reader()])
        run.evaluation_id = name
        return run

    whole = run_of("whole")
    assert compare_runs(whole, run_of("broken", broken=True))["own_reader"].verdict == "inconclusive"
    assert compare_runs(whole, run_of("unusable", unusable=True))["own_reader"].verdict == "worse"


def test_a_reason_that_is_a_sentence_ends_once() -> None:
    def judge(question: Question) -> str:
        raise RuntimeError("No key was sent.")

    with_judge = ae.evaluate(system, SAMPLES[:1], metrics=METRIC, judge=judge)
    assert with_judge[METRIC].notes[0].endswith("RuntimeError: No key was sent.")
