"""Metrics that ask a model: in parallel, with the call policy, and journaled."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from auepora_eval import (
    METRICS,
    AueporaEvaluator,
    CallPolicy,
    EvaluationResultsStorage,
    EvaluationSample,
    RunStoppedError,
    SampleMetric,
    SystemOutputs,
    ThreadExecutor,
    metric,
)
from tests.builders import a_dataset, a_sample
from tests.stable import stable_bytes

SIZE = 12


class Judge(SampleMetric):
    """Scores an answer as a model would: slowly, and sometimes not at all."""

    name = "judge"
    target = "tone"  # type: ignore[assignment]
    requires = ("reference_answer",)
    asks_a_model = True

    def __init__(self, seconds: float = 0.0, fails: str = "") -> None:
        self.seconds, self.fails = seconds, fails
        self.asked: list[str] = []
        self.most_at_once = self._at_once = 0
        self._lock = threading.Lock()

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float:
        with self._lock:
            self.asked.append(sample.sample_id)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        time.sleep(self.seconds)
        with self._lock:
            self._at_once -= 1
        if sample.sample_id == self.fails:
            raise ConnectionError("the model is away")
        return int(sample.sample_id) % 3 / 2


def system(query: str) -> str:
    if query == "q 5":
        raise RuntimeError("no luck")
    return query


SAMPLES = a_dataset(
    *(a_sample(str(n), f"q {n}", reference="x" if n != 7 else None) for n in range(SIZE)), name="d"
)
pytestmark = pytest.mark.filterwarnings("ignore::auepora_eval.core.plan.PartialCoverageWarning")


def test_the_executor_makes_the_calls() -> None:
    judge = Judge(0.05)
    run = AueporaEvaluator(system, [judge, "exact_match"], executor=ThreadExecutor(concurrency=4)).run(
        SAMPLES
    )
    assert judge.most_at_once > 1
    # Neither a sample that failed nor one without the field is asked about.
    assert sorted(judge.asked, key=int) == [str(n) for n in range(SIZE) if n not in (5, 7)]
    coverage = run["judge"].coverage
    assert (coverage.scored, coverage.skipped, coverage.failed) == (10, 1, 1)
    assert [score.value for score in run["judge"].scores][:5] == [0.0, 0.5, 1.0, 0.0, 0.5]


@pytest.fixture
def asked_in() -> Iterator[list[tuple[str, str]]]:
    """Register a metric that asks, and yield about which samples and in which threads it did."""
    calls: list[tuple[str, str]] = []

    @metric("asking_base", target="tone", asks_a_model=True)
    def asking_base(sample: EvaluationSample, output: SystemOutputs) -> float:
        calls.append((sample.sample_id, threading.current_thread().name))
        return int(sample.sample_id) % 3 / 2

    yield calls
    METRICS._things.pop("asking_base")


def test_metrics_of_another_metric_that_asks(asked_in: list[tuple[str, str]]) -> None:
    """Drops and rates compare scores of several samples: the executor asks for each of them, once."""
    dataset = a_dataset(
        *(a_sample(str(n), f"q {n}", labels={"noise_ratio": n % 2 / 2}) for n in range(4)),
        a_sample("4", "q 4", labels={"variant_of": "1", "scenario": "typo"}),
    )
    names = [f"{name}[asking_base]" for name in ("noise_drop", "noise_accuracy@0.5", "variant_drop")]
    run = AueporaEvaluator(lambda query: query, names, executor=ThreadExecutor(concurrency=2)).run(dataset)
    assert sorted(asked_in) == [(str(n), thread) for n, (_, thread) in enumerate(sorted(asked_in))]
    assert all(thread.startswith("auepora-") for _, thread in asked_in)
    # 0, .5, 1, 0 and .5: samples 0 and 2 are without noise, 1 and 3 with it; 4 is a variant of 1.
    assert [run[name].value for name in names] == [0.5 - 0.25, 0.25, 0.0]


def test_a_call_that_fails_is_a_failed_score() -> None:
    run = AueporaEvaluator(system, [Judge(fails="2")]).run(SAMPLES)
    failed = run["judge"].scores[2]
    assert (failed.value, failed.failed) == (None, True)
    assert failed.reason == "ConnectionError: the model is away"
    assert run["judge"].if_failed is not None


def test_the_policy_retries_and_times_out() -> None:
    judge = Judge(fails="2")
    policy = CallPolicy(retries=1, retry_on=("ConnectionError",), longest_wait=0.001)
    AueporaEvaluator(system, [judge], policy=policy).run(SAMPLES)
    assert judge.asked.count("2") == 2
    slow = AueporaEvaluator(system, [Judge(seconds=5)], policy=CallPolicy(timeout=0.01)).run(
        a_dataset(SAMPLES._samples[0])
    )
    assert "no answer within 0.01 s" in slow["judge"].scores[0].reason


def test_a_resumed_run_does_not_ask_again(tmp_path: Path) -> None:
    expected = AueporaEvaluator(system, [Judge()]).run(SAMPLES, evaluation_id="x")
    storage = EvaluationResultsStorage(tmp_path)
    first = Judge()

    def stop_after_four(sample: EvaluationSample, output: SystemOutputs) -> float:
        if len(first.asked) == 4:
            evaluator.stop()
        return Judge.score(first, sample, output)

    first.score = stop_after_four  # type: ignore[method-assign]
    evaluator = AueporaEvaluator(system, [first])
    with pytest.raises(RunStoppedError):
        evaluator.run(SAMPLES, storage=storage, evaluation_id="x")
    assert len(first.asked) < 10
    second = Judge()
    run = AueporaEvaluator(system, [second]).run(SAMPLES, storage=storage, evaluation_id="x", resume=True)
    assert set(first.asked).isdisjoint(second.asked)
    assert len(first.asked) + len(second.asked) == 10
    assert list(run["judge"].scores) == list(expected["judge"].scores)
    elsewhere = EvaluationResultsStorage(tmp_path / "whole")
    AueporaEvaluator(system, [Judge()]).run(SAMPLES, storage=elsewhere, evaluation_id="x")
    assert stable_bytes(storage.load_results("x")) == stable_bytes(elsewhere.load_results("x"))


def test_an_output_that_was_called_again_is_scored_again(tmp_path: Path) -> None:
    storage, broken = EvaluationResultsStorage(tmp_path), [True]

    def flaky(query: str) -> str:
        if query == "q 5" and broken:
            raise RuntimeError("no luck")
        return query

    AueporaEvaluator(flaky, [Judge()]).run(SAMPLES, storage=storage, evaluation_id="x")
    broken.clear()
    judge = Judge()
    record = storage.record(
        AueporaEvaluator(flaky, [judge]), SAMPLES, evaluation_id="x", resume=True, retry_failed=True
    )
    from auepora_eval.core.runner import evaluate

    run = evaluate(record.evaluator, record)
    assert judge.asked == ["5"]
    assert run["judge"].coverage.scored == 11
