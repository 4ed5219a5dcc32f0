"""Questions that were asked several times: slices and regressions count them once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from auepora_eval.comparison.compare import Regression, compare_runs
from auepora_eval.comparison.regressions import lost_samples
from auepora_eval.comparison.tables import lost_title, slice_table
from auepora_eval.core.types import EvaluationRun
from tests.comparison.test_margins_and_repeats import scored
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
