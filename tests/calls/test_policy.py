"""Retries, limits, budgets and the breaker, on a clock that needs no waiting."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auepora_eval.calls.asking import Caller
from auepora_eval.calls.policy import CallClock, CallPolicy, Limits, Pace
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.rag_interface import as_system
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.core.systems.call import EXECUTORS, SystemCall
from auepora_eval.core.types import EvaluationSample, SystemOutputs
from auepora_eval.errors import CallError, DataError, RunStoppedError
from tests.builders import a_dataset, a_sample, an_output, one_output


class Time:
    """A clock that goes on when somebody sleeps."""

    def __init__(self, chance: float = 1.0) -> None:
        self.now, self.slept = 0.0, list[float]()
        self.clock = CallClock(lambda: self.now, self.sleep, lambda: chance)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class Failing:
    """Raises these, one after the other, then answers; sync or async."""

    def __init__(self, *errors: BaseException, extra: dict[str, Any] | None = None) -> None:
        self.errors, self.calls, self.extra = list(errors), 0, extra or {}

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return an_output("a", "fine", extra=self.extra)


class FailingAsync(Failing):
    async def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:  # type: ignore[override]
        return super().run(sample, top_k=top_k)


def called(system: Any, policy: CallPolicy, sample: EvaluationSample | None = None) -> SystemOutputs:
    return one_output(system, sample, policy=policy)


def caller(system: Any, policy: CallPolicy) -> Caller[EvaluationSample, SystemOutputs]:
    return Caller(SystemCall(as_system(system), 5), Limits(policy))


both = pytest.mark.parametrize("kind", [Failing, FailingAsync])
DOWN = CallError("bad day", kind="http_5xx", status=500)


@both
def test_what_may_pass_is_tried_again_and_each_failed_attempt_is_a_record(kind: type[Failing]) -> None:
    time_ = Time()
    system = kind(TimeoutError("slow"), ConnectionResetError("gone"), DOWN)
    output = called(system, CallPolicy(retries=4, clock=time_.clock))
    assert output.error is None
    assert output.response.text == "fine"
    assert time_.slept == [0.5, 1.0, 2.0]  # full jitter, at its longest
    records = output.extra["attempts"]
    assert [(r["attempt"], r["kind"], r["type"], r["message"]) for r in records] == [
        (1, "timeout", "TimeoutError", "slow"),
        (2, "connection", "ConnectionResetError", "gone"),
        (3, "http_5xx", "CallError", "bad day"),
    ]
    assert all(0 <= record["seconds"] < 1 for record in records)
    assert output.timings["end_to_end"] < 1  # of the attempt that was answered, without the waits


@both
@pytest.mark.parametrize(
    "error",
    [
        DataError("the answer", "is not a text."),
        KeyError("a bug"),
        CallError("no money", kind="rate_limited", status=429, lasting=True),
    ],
)
def test_what_would_fail_again_is_not_tried_again(kind: type[Failing], error: Exception) -> None:
    system = kind(error)
    output = called(system, CallPolicy(retries=5))
    assert system.calls == 1
    assert output.error is not None
    assert output.error.type == type(error).__name__
    assert len(output.extra["attempts"]) == 1
    assert output.timings == {}  # crashing is not answering fast


@given(st.integers(1, 1000), st.lists(st.floats(0, 90), min_size=1, max_size=300))
def test_no_minute_has_more_than_its_limit(limit: int, pauses: list[float]) -> None:
    pace, now, sent = Pace(limit), 0.0, list[float]()
    for pause in pauses:
        now += pause
        sent.append(now + pace.reserve(now, 1))
    assert all(b >= a for a, b in pairwise(sent))
    for place, start in enumerate(sent[: max(0, len(sent) - limit)]):
        assert sent[place + limit] >= start + 60 - 1e-6


def test_tokens_a_minute_are_reserved_by_what_calls_used_so_far() -> None:
    time_ = Time()
    system = Failing(extra={"input_tokens": 80, "output_tokens": 20})
    call = caller(system, CallPolicy(tokens_per_minute=6_000, clock=time_.clock))
    for _ in range(4):
        call(a_sample())
    assert time_.now == pytest.approx(3.0)  # 100 tokens take a second each


@pytest.mark.parametrize("name", ["serial", "threads", "async"])
@pytest.mark.parametrize(
    ("budget", "reason", "answered"),
    [
        ({"max_calls": 5}, "the budget of 5 calls is used up", 5),
        ({"max_tokens": 300}, "tokens were used, of a budget of 300", 3),
        ({"max_cost": 0.02, "price_input": 0.1, "price_output": 0.1}, "US dollars were spent", 2),
    ],
)
def test_a_spent_budget_stops_the_run_and_keeps_what_is_finished(
    name: str, budget: dict[str, Any], reason: str, answered: int
) -> None:
    kept: list[str] = []
    evaluator = AueporaEvaluator(
        Failing(extra={"input_tokens": 90, "output_tokens": 10}),
        EvaluationPlan([]),
        executor=EXECUTORS.get(name)(concurrency=1),
        policy=CallPolicy(**budget),
        on_output=lambda sample, output: kept.append(sample.sample_id),
    )
    with pytest.raises(RunStoppedError, match=reason):
        evaluator.run(a_dataset(*(a_sample(f"s{n}") for n in range(20))))
    assert kept == [f"s{n}" for n in range(answered)]


def test_a_budget_is_kept_to_by_retries_too() -> None:
    system = Failing(*[DOWN] * 100)
    call = caller(system, CallPolicy(retries=50, max_calls=7, clock=Time().clock))
    with pytest.raises(RunStoppedError):
        call(a_sample())
    assert system.calls == 7


def test_the_breaker_stops_after_failures_in_a_row_only() -> None:
    class Every:
        def __init__(self, bad: set[int]) -> None:
            self.bad, self.asked = bad, 0

        def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
            self.asked += 1
            if int(sample.sample_id) in self.bad:
                raise ConnectionError("no route")
            return an_output("a", "fine")

    dataset = a_dataset(*(a_sample(str(n)) for n in range(40)))
    policy = CallPolicy(breaker_after=4)
    scattered = AueporaEvaluator(Every({0, 1, 2, 10, 11, 12}), EvaluationPlan([]), policy=policy).run(dataset)
    assert sum(output.error is not None for output in scattered.outputs) == 6
    down = Every(set(range(10, 40)))
    with pytest.raises(RunStoppedError, match="4 samples failed in a row, the last one with ConnectionError"):
        AueporaEvaluator(down, EvaluationPlan([]), policy=policy).run(dataset)
    assert down.asked == 14


@pytest.mark.parametrize(
    "wrong", [{"timeout": 0}, {"retries": -1}, {"breaker_after": 0}, {"requests_per_minute": float("nan")}]
)
def test_a_policy_that_means_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=next(iter(wrong))):
        CallPolicy(**wrong)
