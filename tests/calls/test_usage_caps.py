"""Caps on tokens and money hold whatever way a system tells what it used, and say so where it does not."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from auepora_eval.calls.policy import CallPolicy, Spent, UncountedUsageWarning
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.core.systems.call import EXECUTORS
from auepora_eval.core.types import EvaluationSample, SystemOutputs
from auepora_eval.errors import RunStoppedError
from tests.builders import a_dataset, a_sample, an_output

SAMPLES = a_dataset(*(a_sample(f"s{n}") for n in range(12)))


class Telling:
    """A system whose answers say this of themselves."""

    def __init__(self, *extras: dict[str, Any]) -> None:
        self.extras, self.calls = extras, 0

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
        self.calls += 1
        return an_output("a", "fine", extra=self.extras[(self.calls - 1) % len(self.extras)])


def calls_made(
    policy: CallPolicy, *extras: dict[str, Any], executor: str = "serial"
) -> tuple[int, list[str]]:
    """How often the system was called, and what was said of it."""
    system = Telling(*extras)
    evaluator = AueporaEvaluator(
        system, EvaluationPlan([]), executor=EXECUTORS.get(executor)(concurrency=1), policy=policy
    )
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            evaluator.run(SAMPLES)
        except RunStoppedError:
            assert system.calls < 12
    assert {warning.category for warning in said} <= {UncountedUsageWarning}
    return system.calls, [str(warning.message) for warning in said]


@pytest.mark.parametrize(
    "extra",
    [
        {"input_tokens": 1000},
        {"total_tokens": 1000},
        {"input_tokens": 600, "total_tokens": 1000},
        {"input_tokens": 10, "output_tokens": 1, "total_tokens": 1000},  # it thought, too
        {"input_tokens": 600, "output_tokens": 400, "total_tokens": 10},
        {"input_tokens": np.int64(600), "output_tokens": np.int32(400)},
        {"total_tokens": np.float32(1000)},
    ],
    ids=str,
)
def test_a_budget_of_tokens_holds_however_they_are_told(extra: dict[str, Any]) -> None:
    assert calls_made(CallPolicy(max_tokens=1500), extra)[0] == 2


# What is told, the prices of 1,000 tokens; what it costs, and what is not known of that.
COSTS: list[tuple[dict[str, Any], tuple[float | None, float | None], float, bool]] = [
    ({"input_tokens": 1000, "output_tokens": 500}, (1.0, 2.0), 2.0, False),
    ({"total_tokens": 1000}, (1.0, 1.0), 1.0, False),
    ({"total_tokens": 1000}, (1.0, 2.0), 0.0, True),
    ({"total_tokens": 1000, "input_tokens": 600}, (1.0, 2.0), 1.4, False),
    ({"input_tokens": 1000}, (1.0, 2.0), 1.0, True),
    ({"input_tokens": 1000}, (1.0, None), 1.0, False),
    ({"input_tokens": 1000, "output_tokens": 500}, (1.0, None), 1.0, True),
    ({"input_tokens": 1000, "output_tokens": 0}, (1.0, None), 1.0, False),
    ({}, (1.0, 1.0), 0.0, True),
    ({"input_tokens": "many", "output_tokens": True, "total_tokens": -1}, (1.0, 1.0), 0.0, True),
]


@pytest.mark.parametrize(("extra", "prices", "cost", "is_short"), COSTS, ids=str)
def test_a_cost_is_of_what_is_told(
    extra: dict[str, Any], prices: tuple[float | None, float | None], cost: float, is_short: bool
) -> None:
    policy = CallPolicy(max_cost=9, price_input=prices[0], price_output=prices[1])
    spent = Spent()
    spent.add(extra, policy)
    assert (spent.cost(policy), spent.uncounted) == (cost, is_short)


@pytest.mark.parametrize("executor", ["serial", "threads", "async"])
def test_a_cap_that_cannot_be_held_says_so_at_once(executor: str) -> None:
    calls, said = calls_made(CallPolicy(max_tokens=1500), {}, executor=executor)
    assert calls == 12
    assert said == [
        "The tokens of an answer, or their price, are not all known, so limits of tokens and cost cannot be "
        "enforced exactly. The run continues. To limit it in any case, set --budget-calls (max_calls).",
    ]
