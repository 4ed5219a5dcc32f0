"""Questions that were asked several times: slices and regressions count them once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from auepora_eval.comparison.compare import Regression, compare_runs, lost_samples
from auepora_eval.comparison.tables import lost_title, slice_table
from auepora_eval.core.types import EvaluationRun
from auepora_eval.core.verdict import Verdict
from tests.comparison.test_compare_more import scored
from tests.decide.gated import a_run


def repeats(name: str, *values: Sequence[float | None]) -> list[EvaluationRun]:
    return [scored(each, f"{name}{place}") for place, each in enumerate(values)]


def test_eight_questions_asked_three_times_are_few() -> None:
    old, new = repeats("a", *[[1.0] * 8] * 3), repeats("b", *[[1.0] * 4 + [0.0] * 4] * 3)
    for run in (*old, *new):
        run.samples = [replace(sample, labels={"kind": "x"}) for sample in run.samples]
    [one] = compare_runs(old, new, by=["kind"], resamples=200).slices
    assert (one.questions, one.pairs, one.few) == (8, 24, True)
    assert slice_table([one]).rows[0][2] == "8*"


def test_a_question_is_lost_once_by_the_mean_of_its_repeats() -> None:
    """By hand: s0 loses 1 and 0, s1 gains in the mean, s2 loses 1 twice, s3 was not answered again."""
    old = repeats("a", [1.0, 1.0, 1.0, 0.5], [1.0, 0.0, 1.0, None])
    new = repeats("b", [1.0, 0.5, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0])
    [metric] = compare_runs(old, new, resamples=200).metrics
    assert metric.regressions == (
        Regression("s2", 1.0, 0.0),
        Regression("s0 (repeat 2)", 1.0, 0.5),
        Regression("s3", 0.5, 0.0),
    )
    assert (metric.effect.losses, metric.questions_lost) == (5, 3)
    assert (
        lost_title(lost_samples(metric, {}, {}, 2))
        == "Largest regressions on recall@1 (2 of the 3 samples that got worse)"
    )


def test_of_a_metric_of_which_less_is_better() -> None:
    old = [a_run(f"a{n}", {"over_refusal_rate": [0.0, 1.0]}) for n in range(2)]
    new = [a_run(f"b{n}", {"over_refusal_rate": [1.0, 0.0]}) for n in range(2)]
    [metric] = compare_runs(old, new, resamples=200).metrics
    assert metric.regressions == (Regression("s0", 0.0, 1.0),)


def test_slices_of_metrics_that_count_in_other_numbers() -> None:
    """A point of 100 is less than a tenth of 1: what may be chance goes by its p-value, not by its digits."""
    rng = np.random.default_rng(1)
    size = 40
    bleu, f1 = rng.uniform(20, 80, size), rng.uniform(0.2, 0.8, size)
    noise = rng.normal(0, 1, size)
    noise -= noise.mean()
    old = a_run("old", {"rougeL_answer": (bleu / 100).tolist(), "token_f1": f1.tolist()})
    new = a_run(
        "new",
        {
            "rougeL_answer": (bleu / 100 + 0.1 * noise - 0.004).tolist(),  # a larger step, more noise
            "token_f1": (f1 + 0.005 * noise - 0.001).tolist(),
        },
    )
    for run in (old, new):
        run.samples = [replace(sample, labels={"kind": "x"}) for sample in run.samples]
    slices = compare_runs(old, new, by=["kind"]).slices
    assert {one.verdict for one in slices} == {"inconclusive"}
    assert [one.metric for one in slices] == ["token_f1", "rougeL_answer"]
    assert slices[0].gain == pytest.approx(-0.001)
    assert slices[0].p_value < slices[1].p_value


def test_sure_losses_go_by_their_share_of_what_can_be_lost() -> None:
    """0.3 of 2 (tone goes from -1 to 1) is less than 0.2 of 1."""
    from auepora_eval.comparison.slices import _worst_first

    old = a_run("old", {"recall@5": [1.0] * 40})
    new = a_run("new", {"recall@5": [0.5] * 40})
    for run in (old, new):
        run.samples = [replace(sample, labels={"kind": "x"}) for sample in run.samples]
    [one] = compare_runs(old, new, by=["kind"], resamples=2_000).slices
    assert one.verdict == "worse"
    tone, share = replace(one, gain=-0.3), replace(one, gain=-0.2)
    assert _worst_first(share, 1.0) < _worst_first(tone, 2.0)
    assert _worst_first(tone, 2.0) < _worst_first(replace(share, verdict=Verdict.INCONCLUSIVE), 1.0)
