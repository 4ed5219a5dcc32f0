"""Numbers and sentences of a comparison that said something else than what was measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest

import auepora_eval as ae
from auepora_eval.comparison.compare import compare_runs
from auepora_eval.comparison.power import power_from_runs
from auepora_eval.comparison.words import comparison_in_plain_words
from auepora_eval.core.dataset import InMemoryDataset
from auepora_eval.core.types import EvaluationRun, EvaluationSample, SystemOutputs
from auepora_eval.core.verdict import Verdict
from auepora_eval.decide.gate import gate_run
from auepora_eval.metrics.parse import parse_metric
from tests.builders import a_dataset, a_failure, a_sample, an_output
from tests.comparison.test_resting_on_few import _change as token_f1_by

Answer = Callable[[int], str]


def questions(size: int = 48) -> InMemoryDataset:
    """One in six has no answer."""
    return a_dataset(
        *(
            a_sample(f"s{n}", f"q {n}", reference=f"right{n}", labels={"answerable": n % 6 != 0})
            for n in range(size)
        )
    )


def run_of(name: str, answer: Answer, metrics: str, dataset: InMemoryDataset | None = None) -> EvaluationRun:
    def system(query: str) -> str:
        return answer(int(query.split()[1]))

    system.__name__ = name
    return ae.evaluate(system, dataset or questions(), metrics=metrics)


def right(n: int) -> str:
    return f"It is right{n}."


def declining(_: int) -> str:
    return "I don't know."


def crashing(every: int) -> Answer:
    def answer(n: int) -> str:
        if n % every == 1:
            raise RuntimeError("no luck")
        return right(n)

    return answer


BOTH = (("a", right), ("b", declining))


def words(a: EvaluationRun, b: EvaluationRun) -> str:
    return " ".join(comparison_in_plain_words(compare_runs(a, b)))


def test_no_change_of_nothing_is_detectable() -> None:
    """Leaving out one answer of a system that always declines does not move its balanced accuracy."""
    name = "abstention_balanced_accuracy"
    a, b = (run_of(system, answer, name) for system, answer in BOTH)
    metric = compare_runs(a, b)[name]
    assert (metric.power.detectable, metric.power.too_few) == (None, False)
    with pytest.raises(ae.PlanError, match="no metric of the run has two scores that differ"):
        power_from_runs(a, b)


def test_who_crashes_is_not_said_to_decline() -> None:
    a, b = (run_of(name, answer, "over_refusal_rate") for name, answer in (("a", right), ("b", crashing(2))))
    assert "over_refusal_rate is 0.60, compared with 0.00" in words(a, b)


@pytest.mark.usefixtures("own_metrics")
def test_a_metric_that_failed_everywhere_is_not_the_same() -> None:
    @ae.metric
    def in_letters_of_no_bounds(sample: EvaluationSample, output: SystemOutputs) -> float:
        return float(len(output.response.text))

    runs = [run_of(name, answer, "in_letters_of_no_bounds,token_f1") for name, answer in BOTH]
    assert runs[0].results[0].coverage.failed == 48
    compared = compare_runs(*runs)
    assert compared.not_compared == {"in_letters_of_no_bounds": "no sample was scored in both"}
    assert [one.name for one in compared.metrics] == ["token_f1"]


def test_the_interval_of_a_mean_of_runs_is_not_that_of_their_samples() -> None:
    """One slow run: the mean throughput of both lay far outside the interval of all samples together."""

    def timed(name: str, seconds: float) -> EvaluationRun:
        samples = [a_sample(f"s{n}") for n in range(30)]
        outputs = [an_output(timings={"end_to_end": seconds}) for _ in samples]
        result = parse_metric("throughput").compute(samples, outputs)
        return EvaluationRun(name, name, "d", "f", [result], samples, outputs)

    baseline, candidate = (
        [timed(f"{side}{n}", s) for n, s in enumerate(times)]
        for side, times in (("a", (0.001, 1.0)), ("b", (0.002, 1.5)))
    )
    metric = compare_runs(baseline, candidate)["throughput"]
    assert metric.baseline == pytest.approx((1000 + 1) / 2)
    assert (metric.baseline_interval, metric.candidate_interval) == (None, None)


def test_rounding_has_no_effect_size() -> None:
    """The same numbers added up in another order differ in their last bits."""
    metric = token_f1_by([1e-13] * 20)["token_f1"]
    assert metric.effect.change != 0
    assert (metric.effect.wins, metric.effect.losses, metric.effect.d) == (0, 0, None)


@pytest.mark.parametrize(
    ("gains", "warned"),
    [
        pytest.param([-0.95] * 15, False, id="a third lost nearly all: nothing that rare undoes it"),
        pytest.param([-0.1] * 7, True, id="a seventh lost little"),
    ],
)
def test_a_caution_is_about_changes_that_may_not_have_been_seen(gains: Sequence[float], warned: bool) -> None:
    half = [max(-0.5, gain) for gain in gains]
    assert (token_f1_by(half, size=40)["token_f1"].rests_on is not None) is warned


def test_the_worst_of_a_margin_has_the_sign_of_the_change_and_ends_with_the_scale() -> None:
    a, b = (run_of(name, answer, "over_refusal_rate") for name, answer in BOTH)
    why = gate_run(b, {"margin": {"over_refusal_rate": 0.1}}, baseline=a).verdicts[0].why
    assert why.startswith("the best estimate is a loss of 0.1 or more: +1 [")
    assert why.endswith("at worst +1")


def test_a_drop_in_scores_has_the_reason_of_the_scores_that_are_gone() -> None:
    """Most samples never had a number; those that lost their score failed."""
    answers = {"a": lambda n: "It is 7." if n % 3 == 0 else "It is.", "b": crashing(1)}

    def failing(n: int) -> str:
        if n % 6 == 0:
            raise RuntimeError("no luck")
        return answers["a"](n)

    dataset = a_dataset(*(a_sample(f"s{n}", f"q {n}", reference="7") for n in range(48)))

    def run(name: str, answer: Answer) -> EvaluationRun:
        def system(query: str) -> tuple[list[tuple[str, str]], str]:
            return [("d", "7 of them")], answer(int(query.split()[1]))

        system.__name__ = name
        return ae.evaluate(system, dataset, metrics="number_support")

    report = gate_run(run("b", failing), {"max_count_drop": 0.1}, baseline=run("a", answers["a"]))
    assert "8 have none now: failed" in report.verdicts[0].why


def test_a_metric_that_one_system_never_gives_is_looked_for_in_its_run() -> None:
    a, b = (run_of(name, answer, "answered_accuracy") for name, answer in BOTH)
    found = gate_run(b, {"no_regression": ["answered_accuracy"]}, baseline=a).verdicts[0]
    assert found.why == "answered_accuracy cannot be compared: no sample was scored in both"
    assert "auepora show" in found.fix


def test_answered_accuracy_is_that_of_answers_that_contain_the_reference() -> None:
    """A whole sentence is never exactly the reference."""
    assert run_of("a", right, "answered_accuracy").results[0].value == 1.0


@pytest.mark.parametrize("metric", ["bleu", "chrf", "chrfpp"])
def test_long_answers_that_fail_cost_as_much_as_long_wrong_ones(metric: str) -> None:
    """As an answer of the length of the reference, a failure beside long answers cost next to nothing."""
    gold, more = "the ferry leaves at noon today", " ".join(f"word{n}" for n in range(60))
    samples = [a_sample(f"s{n}", reference=gold) for n in range(20)]
    right, wrong = (
        [an_output(answer=f"{gold} {more}")] * 10,
        [an_output(answer=f"so {more} is not it at all")] * 10,
    )
    failed = parse_metric(metric).compute(samples, [*right, *[a_failure()] * 10])
    assert failed.if_failed is not None
    assert failed.if_failed[0] is not None
    assert failed.if_failed[0] <= 1.05 * parse_metric(metric).compute(samples, [*right, *wrong]).value


def test_who_always_declines_is_not_robust_to_noise() -> None:
    """A system that is never right loses nothing to noise: that is no measurement."""
    dataset = a_dataset(
        *(
            a_sample(f"s{n}", f"q {n}", reference=f"right{n}", labels={"noise_ratio": 0.8 * (n % 2)})
            for n in range(40)
        )
    )

    def misled(n: int) -> str:
        return "wrong" if n % 2 else right(n)

    metrics = "noise_drop,noise_slope,noise_retention"
    a, b = (run_of(name, answer, metrics, dataset) for name, answer in (("a", misled), ("b", declining)))
    assert [one.value for one in a.results] == pytest.approx([1.0, -1.25, 0.0])
    assert all(math.isnan(one.value) for one in b.results)
    assert {one.verdict for one in compare_runs(a, b).metrics} == {Verdict.INCONCLUSIVE}
