"""Runs that go on: what is asked again, what is not, and what comes from the cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.errors import InterruptedRunError
from auepora_eval.metrics.parse import parse_metrics
from auepora_eval.store.cache import CallCache
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import a_dataset, a_sample

WORLD = a_dataset(*(a_sample(f"s{n}", f"q{n}", reference="yes") for n in range(6)))


class System:
    """Answers yes; the queries of `fails` raise what they are told to."""

    name = "yes"

    def __init__(self, **fails: type[Exception]) -> None:
        self.fails, self.asked = fails, list[str]()

    def run(self, sample: Any, *, top_k: int = 5) -> str:
        self.asked.append(sample.query)
        if sample.query in self.fails:
            raise self.fails[sample.query]("no")
        return "yes"


def an_evaluator(system: Any, metrics: str = "exact_match", **options: Any) -> AueporaEvaluator:
    return AueporaEvaluator(system, EvaluationPlan(parse_metrics(metrics)), **options)


def stopped_run(storage: EvaluationResultsStorage, **fails: type[Exception]) -> None:
    """A run of all samples that was stopped before its results were written."""
    evaluator = an_evaluator(System(**fails))
    evaluator.on_output = lambda sample, output: evaluator.stop() if sample.sample_id == "s5" else None
    with pytest.raises(InterruptedRunError):
        evaluator.run(WORLD, evaluation_id="x", storage=storage)


@pytest.mark.parametrize(
    ("retry_failed", "asked"),
    [(False, ["q2"]), (True, ["q2", "q4"])],
    ids=["passing failures", "all failures"],
)
def test_what_failed_is_tried_again(tmp_path: Path, retry_failed: bool, asked: list[str]) -> None:
    storage = EvaluationResultsStorage(tmp_path)
    stopped_run(storage, q2=TimeoutError, q4=LookupError)
    system = System()
    done = storage.evaluate(
        an_evaluator(system), WORLD, evaluation_id="x", resume=True, retry_failed=retry_failed
    )
    assert system.asked == asked
    assert len(asked) == 2 - storage.load_tally("x").failed
    assert done.evaluation_id == "x"
    assert len(storage.load_run("x").outputs) == 6


def cached(folder: Path, system: System, identity: str = "1", **options: Any) -> int:
    storage = EvaluationResultsStorage(folder)
    with CallCache(folder / "cache.db", identity) as cache:
        name = storage.free_id("x")
        storage.evaluate(an_evaluator(system), WORLD, evaluation_id=name, cache=cache, **options)
        return cache.used


def test_answers_are_used_again_and_failures_are_not(tmp_path: Path) -> None:
    assert cached(tmp_path, System(q3=LookupError)) == 0
    again = System()
    assert cached(tmp_path, again) == 5
    assert again.asked == ["q3"]
    other = System()
    assert cached(tmp_path, other, identity="2") == 0
    assert len(other.asked) == 6
    assert cached(tmp_path, System()) == 6
    outputs = EvaluationResultsStorage(tmp_path).load_run("x-2").outputs
    assert [output.extra.get("cached", False) for output in outputs] == [True, True, True, False, True, True]
