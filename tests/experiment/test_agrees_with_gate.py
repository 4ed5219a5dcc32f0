"""On the same two runs, an experiment, a gate and a comparison report the same numbers."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from auepora_eval.comparison.compare import compare_runs
from auepora_eval.gate.gate import gate_run
from auepora_eval.io.config.experiment import GuardRail
from tests.experiment.experimenting import EXPERIMENT, outcome, system

MARGIN = 0.02


@pytest.mark.parametrize("words", [60, 59, 57, 40])
def test_a_margin_rail_and_a_gate_rule_agree(tmp_path: Path, words: int) -> None:
    """One to twenty of sixty answers are lost; the rail once asked for 2 samples, the gate for 149."""
    guarded = replace(EXPERIMENT, guard_rails=(GuardRail("token_f1", "margin", MARGIN),))
    found = outcome(tmp_path, guarded, system(20), system(45, words=words))
    [check] = found.verdict.rails
    report = gate_run(found.runs["b"], {"margin": {"token_f1": MARGIN}}, baseline=found.runs["a"])
    rule = next(one for one in report.verdicts if one.rule.kind == "margin")
    assert check.holds is (rule.outcome == "pass")
    assert rule.why in check.reason
    assert re.findall(r"About ([\d,]+) samples", check.reason) == re.findall(
        r"About ([\d,]+) samples", rule.fix
    )


@pytest.mark.parametrize("hits", [22, 25, 45])
def test_the_primary_metric_is_compared_as_compare_does(tmp_path: Path, hits: int) -> None:
    found = outcome(tmp_path, EXPERIMENT, system(20), system(hits))
    runs = [replace(run, results=[run.result("recall@1")]) for run in (found.runs["a"], found.runs["b"])]
    compared = compare_runs(*runs)["recall@1"]
    ours = found.tests[0].comparison
    assert (ours.test, ours.effect, ours.power, ours.verdict) == (
        compared.test,
        compared.effect,
        compared.power,
        compared.verdict,
    )
