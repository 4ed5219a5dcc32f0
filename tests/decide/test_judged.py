"""Gates on judged metrics: no limits on an uncalibrated judge, nothing by a degraded one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from auepora_eval.cli.main import main
from auepora_eval.decide.gate import gate_run
from auepora_eval.decide.rules import rules_of
from auepora_eval.errors import DataError
from auepora_eval.judges.ask import Asking
from auepora_eval.judges.trust.probes import probe
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.judges.functions import ALWAYS_YES, ORACLE
from tests.judges.judged_runs import METRIC, a_calibration, judged_run

SEVENTY = [1.0] * 69 + [0.0] * 31  # 0.70 in truth, by a judge with Se 0.9 and Sp 0.8
AT_LEAST = {"min": {METRIC: 0.69}}


def outcome(rules: dict[str, Any], *args: Any, **how: Any) -> tuple[str, int]:
    report = gate_run(judged_run("run", SEVENTY, *args, **how), rules)
    return report.verdicts[0].outcome, report.exit_code


def test_limits_on_an_uncalibrated_judge_are_refused() -> None:
    report = gate_run(judged_run("run", SEVENTY), AT_LEAST)
    assert (report.verdicts[0].outcome, report.exit_code) == ("missing", 3)
    assert "uncalibrated judge" in report.verdicts[0].why
    assert "allow_uncalibrated: true" in report.verdicts[0].fix
    assert outcome({**AT_LEAST, "allow_uncalibrated": True}) == ("passed", 0)
    assert outcome({"min": {METRIC: 0.7}, "allow_uncalibrated": True}) == ("failed", 1)
    # "pass" is about doubt; that nothing is known of the judge is none.
    assert outcome({**AT_LEAST, "if_inconclusive": "pass"}) == ("missing", 3)


def test_limits_are_held_by_the_corrected_value() -> None:
    assert outcome({"min": {METRIC: 0.699}}, a_calibration()) == ("passed", 0)
    verdict = gate_run(judged_run("run", SEVENTY, a_calibration()), {"min": {METRIC: 0.71}}).verdicts[0]
    assert verdict.outcome == "failed"
    assert verdict.value == pytest.approx(0.7)
    assert "corrected by labels of people; the judged value is 0.69" in verdict.why
    assert outcome({"min": {METRIC: 0.5}, "on": "bound"}, a_calibration()) == ("passed", 0)
    assert outcome({"min": {METRIC: 0.65}, "on": "bound"}, a_calibration()) == ("failed", 1)


def test_a_value_that_the_labels_do_not_fit_is_not_used_silently() -> None:
    # A judge that says yes to 90 of 100 supported claims does not say yes to every claim of a run.
    calibration = a_calibration((90, 100), (100, 100))
    run = judged_run("run", [1.0] * 400, calibration)
    report = gate_run(run, AT_LEAST)
    assert (report.verdicts[0].outcome, report.exit_code) == ("missing", 3)
    assert "the labels do not fit this run" in report.verdicts[0].why
    allowed = gate_run(run, {**AT_LEAST, "allow_uncalibrated": True}).verdicts[0]
    assert allowed.outcome == "passed"
    assert "as the judge gave it; the value is not corrected by labels of people" in allowed.why


def test_a_judge_that_cannot_tell_passes_nothing() -> None:
    coin = a_calibration((28, 50), (30, 50))
    report = gate_run(judged_run("run", SEVENTY, coin), {**AT_LEAST, "allow_uncalibrated": True})
    assert report.exit_code == 3
    assert "this judge cannot tell" in report.verdicts[0].why


def test_a_degraded_judge_stops_every_rule_about_it() -> None:
    probes = probe(Asking(ALWAYS_YES))
    assert outcome(AT_LEAST, a_calibration(), probes=probes) == ("missing", 3)
    assert outcome({"min": {METRIC: 0.1}}, a_calibration(), probes=probe(Asking(ORACLE))) == ("passed", 0)
    baseline = judged_run("old", SEVENTY, a_calibration())
    for rules in ({"no_regression": [METRIC]}, {"margin": {METRIC: 0.2}}, {"max_loss": {METRIC: 0.5}}):
        report = gate_run(
            judged_run("new", SEVENTY, a_calibration(), probes=probes), rules, baseline=baseline
        )
        assert report.exit_code == 3, rules
        assert "failed the probes" in report.verdicts[0].why


def test_a_comparison_may_use_an_uncalibrated_judge_and_says_so() -> None:
    report = gate_run(judged_run("new", SEVENTY), baseline=judged_run("old", [1.0] * 100))
    assert report.verdicts[0].outcome == "failed"
    assert any("uncalibrated judge" in note for note in report.notes)


def test_error_rates_widen_a_margin() -> None:
    pair = [judged_run(name, SEVENTY * 4, a_calibration()) for name in ("old", "new")]
    plain = [judged_run(name, SEVENTY * 4) for name in ("old", "new")]
    rules = {"margin": {METRIC: 0.008}}
    assert gate_run(plain[1], rules, baseline=plain[0]).verdicts[0].outcome == "passed"
    assert gate_run(pair[1], rules, baseline=pair[0]).verdicts[0].outcome == "inconclusive"


def test_the_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(DataError, match="Expected"):
        rules_of({"allow_uncalibrated": "yes"})
    EvaluationResultsStorage(tmp_path).save_run(judged_run("run", SEVENTY))
    command = ["gate", "run", "--min", f"{METRIC}=0.5", "--out", str(tmp_path)]
    assert main(command) == 3
    assert "uncalibrated judge" in capsys.readouterr().out
    rules = tmp_path / "gate.yaml"
    rules.write_text("allow_uncalibrated: true\n", encoding="utf-8")
    assert main([*command, "--rules", str(rules)]) == 0
