"""Margins of a gate, a comparison and an experiment: what few samples or clusters do not rule out."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from auepora_eval.comparison.compare import compare_runs
from auepora_eval.core.types import EvaluationRun
from auepora_eval.decide.gate import gate_run
from auepora_eval.decide.gate_report import RuleResult
from auepora_eval.metrics.parse import parse_metric
from tests.builders import a_sample, an_output

RIGHT = "white light from the north pier"
WORSE = "white light from a north pier"
WRONG = "dark"
OTHER = "dark grey fog over southern hills"


def said(name: str, answers: Sequence[str], metrics: Sequence[str], size: int = 1) -> EvaluationRun:
    """A run of these answers, in clusters of this size; every second sample is noisy."""
    samples = [
        a_sample(
            f"s{number}",
            reference=RIGHT,
            cluster=f"c{number // size}" if size > 1 else None,
            labels={"noise_ratio": float(number % 2)},
        )
        for number in range(len(answers))
    ]
    outputs = [an_output(answer=answer) for answer in answers]
    results = [parse_metric(metric).compute(samples, outputs) for metric in metrics]
    return EvaluationRun(name, name, "made", "same", results, samples, outputs)


def margin_verdict(
    before: Sequence[str], now: Sequence[str], metric: str, margin: float, size: int = 1
) -> RuleResult:
    """What a gate says; a comparison has to say the same."""
    a, b = (said(name, answers, [metric], size) for name, answers in (("old", before), ("new", now)))
    [verdict] = [
        one
        for one in gate_run(b, {"margin": {metric: margin}}, baseline=a).verdicts
        if one.rule.kind == "margin"
    ]
    [compared] = compare_runs(a, b, margin={metric: margin}).metrics
    assert compared.margin.p == verdict.p_value
    assert compared.margin.within == (verdict.outcome == "passed")
    return verdict


@pytest.mark.parametrize(
    ("lost", "outcome"), [(0, "passed"), (1, "inconclusive"), (2, "inconclusive"), (5, "failed")]
)
def test_two_lost_clusters_of_145_do_not_rule_out_three_in_a_hundred(lost: int, outcome: str) -> None:
    now = [WRONG] * (2 * lost) + [RIGHT] * (290 - 2 * lost)
    verdict = margin_verdict([RIGHT] * 290, now, "exact_match", 0.03, size=2)
    assert verdict.outcome == outcome


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_two_lost_answers_of_300_do_not_rule_out_two_in_a_hundred_of_bleu(lost: int) -> None:
    """By t alone one or two of them passed."""
    before = [RIGHT, WORSE] * 150
    whole, less = (
        said("x", answers, ["bleu"]).results[0].value for answers in (before, [OTHER] * 6 + before[6:])
    )
    margin = whole - less
    verdict = margin_verdict(before, [OTHER] * lost + before[lost:], "bleu", margin)
    assert verdict.outcome == "inconclusive"


@pytest.mark.parametrize("metric", ["token_f1", "bleu", "noise_drop[token_f1]"])
@pytest.mark.parametrize("size", [1, 2])
def test_who_is_alike_is_as_sure_as_who_is_a_little_worse(metric: str, size: int) -> None:
    before = [RIGHT] * 8 + [WRONG] * 4
    margin = 5.0 if metric == "bleu" else 0.05
    alike = margin_verdict(before, before, metric, margin, size)
    worse = margin_verdict(before, [RIGHT, WORSE, *before[2:]], metric, margin, size)
    assert alike.outcome == worse.outcome == "inconclusive"
    assert alike.p_value is not None
    assert worse.p_value is not None
    assert alike.p_value <= worse.p_value
    assert "cannot be ruled out: no sample differs among 12 pairs" in alike.why


def test_enough_samples_that_are_alike_rule_a_loss_out() -> None:
    assert margin_verdict([RIGHT] * 56, [RIGHT] * 56, "bleu", 5.0).outcome == "passed"
    assert margin_verdict([RIGHT] * 55, [RIGHT] * 55, "bleu", 5.0).outcome == "inconclusive"
    assert margin_verdict([RIGHT] * 112, [RIGHT] * 112, "token_f1", 0.05, size=2).outcome == "passed"
    open_verdict = margin_verdict([RIGHT] * 110, [RIGHT] * 110, "token_f1", 0.05, size=2)
    assert "among 110 pairs in 55 clusters (a loss of up to 0.05018 can go unseen" in open_verdict.why
    assert open_verdict.fix.startswith("About 112 samples would rule it out")
