"""The evaluator with systems that answer, fail, hang and return wrong types."""

from __future__ import annotations

import time
from typing import Any

import pytest

from auepora_eval.calls.policy import CallPolicy
from auepora_eval.core.dataset import InMemoryDataset
from auepora_eval.core.metrics_base import Metric, SampleMetric
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.rag_interface import RAGSystem
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.core.systems.call import EXECUTORS
from auepora_eval.core.types import (
    Document,
    EvaluationSample,
    MetricResult,
    Response,
    RetrievedDocument,
    SystemOutputs,
)
from auepora_eval.errors import DataError, PlanError, TooManyFailuresError
from auepora_eval.metrics.parse import parse_metrics
from tests.builders import a_dataset, a_sample, an_output, run_without_answers

PLAN = EvaluationPlan(parse_metrics("recall@5,mrr,token_f1,mean_latency"))
EXECUTOR_NAMES = ("serial", "threads", "async")


def dataset_of(size: int = 12) -> InMemoryDataset:
    return a_dataset(
        *(a_sample(f"s{n}", f"query {n}", relevant=f"{n % 3}", reference=f"answer {n}") for n in range(size))
    )


class Echo(RAGSystem):
    """Answers every query, one of four wrongly; later samples finish first."""

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
        number = int(sample.query.split()[1])
        time.sleep(0.002 * (12 - number))
        return an_output("012"[:top_k], f"answer {number - (number % 4 == 0)}")


@pytest.mark.parametrize("name", EXECUTOR_NAMES)
def test_failing_call_is_an_output_with_its_error(name: str) -> None:
    def system(query: str) -> Any:
        if query.endswith(("3", "7")):
            raise ConnectionError(f"no route\nfor {query}")
        return an_output("012", query.replace("query", "answer"))

    run = AueporaEvaluator(system, PLAN, executor=EXECUTORS.get(name)(concurrency=3)).run(dataset_of())
    assert [s.sample_id for s, o in zip(run.samples, run.outputs, strict=True) if o.error] == ["s3", "s7"]
    failure = run.outputs[3].error
    assert failure is not None
    assert (failure.type, failure.message) == ("ConnectionError", "no route for query 3")
    recall = run.result("recall@5")
    assert recall.details["num_total"] == 12
    assert (recall.details["num_samples"], recall.details["num_failed"]) == (10, 2)
    assert recall.details["bounds_if_failed"] == [pytest.approx(10 / 12), 1.0]


@pytest.mark.parametrize("name", EXECUTOR_NAMES)
def test_hung_call_times_out(name: str) -> None:
    def system(query: str) -> str:
        if query == "query 1":
            time.sleep(30)
        return "answer"

    start = time.perf_counter()
    executor, policy = EXECUTORS.get(name)(concurrency=2), CallPolicy(timeout=0.3)
    run = AueporaEvaluator(system, EvaluationPlan([]), executor=executor, policy=policy).run(dataset_of(4))
    assert time.perf_counter() - start < 5
    errors = [output.error for output in run.outputs]
    assert [error is not None for error in errors] == [False, True, False, False]
    assert errors[1] is not None
    assert (errors[1].type, errors[1].message) == ("TimeoutError", "no answer within 0.3 s")


def test_plan_is_validated_before_the_first_call() -> None:
    calls: list[str] = []
    dataset = a_dataset(a_sample("1"), a_sample("2"))

    def system(query: str) -> str:
        calls.append(query)
        return "x"

    evaluator = AueporaEvaluator(system, PLAN)
    with pytest.raises(
        PlanError, match="Dataset missing required field 'relevant_docs' for metric 'recall@5'"
    ):
        evaluator.evaluate(dataset)
    assert calls == []


def test_max_failures_stops_early() -> None:
    calls: list[str] = []

    def system(query: str) -> str:
        calls.append(query)
        raise RuntimeError("down")

    with pytest.raises(TooManyFailuresError, match="3 of 3 calls failed, more than the 2 allowed") as caught:
        AueporaEvaluator(system, PLAN, max_failures=2).run(dataset_of())
    assert len(calls) == 3
    assert "RuntimeError: down" in str(caught.value)


def test_duplicate_sample_ids_are_errors() -> None:
    with pytest.raises(DataError, match="'s1' occurs twice"):
        AueporaEvaluator(Echo(), EvaluationPlan([])).run(a_dataset(a_sample("s1"), a_sample("s1")))


def test_duplicate_metric_names_are_errors() -> None:
    plan = EvaluationPlan(parse_metrics("recall@5,recall@5"))
    with pytest.raises(PlanError, match=r"recall@5 more than once"):
        AueporaEvaluator(Echo(), plan).run(dataset_of())


def hits(*ranks: Any) -> list[RetrievedDocument]:
    return [RetrievedDocument(Document(f"d{n}", ""), 0.5, rank) for n, rank in enumerate(ranks)]


@pytest.mark.parametrize("ranks", [(1, 1), (1, 2, 2), (1, "2"), (1.0, 2.0), (True, 2)])
def test_ranks_that_do_not_order_the_documents_fail_the_sample(ranks: tuple[Any, ...]) -> None:
    evaluator = AueporaEvaluator(lambda query: (hits(*ranks), "x"), EvaluationPlan([]))
    run = run_without_answers(evaluator, dataset_of(1))
    error = run.outputs[0].error
    assert error is not None
    assert "1, 2, 3" in error.message


def _itself() -> list[object]:
    holder: list[object] = []
    holder.append(holder)
    return holder


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        pytest.param(SystemOutputs([], None), "is not text", id="no response"),  # type: ignore[arg-type]
        pytest.param(Response(None), "is not text", id="no text"),  # type: ignore[arg-type]
        pytest.param(None, "must be a string", id="nothing returned"),
        pytest.param({"verdict": "x"}, "'answer' and 'retrieved'", id="a dict of another library"),
        pytest.param(an_output(timings={"end_to_end": "fast"}), "seconds", id="a time that is a word"),
        pytest.param(an_output(extra={"trace": _itself()}), "JSON", id="a structure that holds itself"),
        pytest.param(([Document(5, "x")], "y"), "needs strings as id", id="a number as id"),  # type: ignore[arg-type]
    ],
)
def test_a_bad_output_fails_its_sample_not_the_run(raw: Any, says: str) -> None:
    run = AueporaEvaluator(lambda query: raw if query == "query 1" else "x", EvaluationPlan([])).run(
        dataset_of(3)
    )
    errors = [output.error for output in run.outputs]
    assert [error is not None for error in errors] == [False, True, False]
    assert errors[1] is not None
    assert says in errors[1].message


@pytest.mark.parametrize("name", EXECUTOR_NAMES)
def test_system_exit_fails_the_sample(name: str) -> None:
    def system(query: str) -> str:
        if query == "query 1":
            raise SystemExit(3)
        return "x"

    run = AueporaEvaluator(system, EvaluationPlan([]), executor=EXECUTORS.get(name)(concurrency=2)).run(
        dataset_of(3)
    )
    assert [output.error is not None for output in run.outputs] == [False, True, False]


def test_specification_metric_reports_failures() -> None:
    class Count(Metric):
        name, target = "count", PLAN.metrics[0].target

        def required_fields(self) -> list[str]:
            return []

        def compute(self, samples: Any, outputs: Any) -> MetricResult:
            return MetricResult(self.name, self.target, 1.0, {"num_samples": len(samples)})

    def system(query: str) -> str:
        if query == "query 1":
            raise RuntimeError("down")
        return "x"

    run = AueporaEvaluator(system, EvaluationPlan([Count()])).run(dataset_of(3))
    assert run.results[0].details == {"num_total": 3, "num_failed": 1, "num_samples": 3}
    assert run.outputs[1].timings == {}  # crashing is not answering fast


def test_clusters_reach_the_interval() -> None:
    def samples(cluster: bool) -> InMemoryDataset:
        return a_dataset(
            *(
                a_sample(str(n), f"query {n // 8}", relevant="0", cluster=str(n // 8) if cluster else None)
                for n in range(80)
            )
        )

    def system(query: str) -> Any:
        return an_output("0123456789"[int(query.split()[1]) % 4 :: -1] or "0", "x")

    plan = EvaluationPlan(parse_metrics("mrr"))

    def width(cluster: bool) -> tuple[float, str]:
        details = AueporaEvaluator(system, plan).run(samples(cluster)).results[0].details
        low, high = details["confidence_interval"]
        return high - low, details["interval_method"]

    assert width(True)[0] > 2 * width(False)[0]  # ten facts, not eighty
    assert "10 clusters" in width(True)[1]


def test_retrieved_documents_are_ordered_by_rank() -> None:
    outputs = SystemOutputs(hits(3, 1, 2), Response("x"))
    run = AueporaEvaluator(lambda sample: outputs, EvaluationPlan([])).run(dataset_of(2))
    assert [hit.doc.doc_id for hit in run.outputs[0].retrieved] == ["d1", "d2", "d0"]
    assert [hit.rank for hit in outputs.retrieved] == [3, 1, 2]  # the system's own object is left alone
    assert outputs.timings == {}


def test_end_to_end_timing_is_added_if_missing() -> None:
    own = AueporaEvaluator(lambda query: an_output(timings={"end_to_end": 9.0}), PLAN).run(dataset_of(1))
    filled = AueporaEvaluator(lambda query: an_output(), PLAN).run(dataset_of(1))
    assert own.outputs[0].timings["end_to_end"] == 9.0
    assert 0 <= filled.outputs[0].timings["end_to_end"] < 1


def test_cutoff_above_top_k_is_a_warning() -> None:
    with pytest.warns(UserWarning, match=r"recall@5: the system is asked for only 3 documents"):
        AueporaEvaluator(Echo(), EvaluationPlan(parse_metrics("recall@5")), top_k=3).run(dataset_of(2))


def test_a_bug_in_a_metric_is_not_a_low_score() -> None:
    class Broken(SampleMetric):
        name, target = "broken", PLAN.metrics[0].target

        def score(self, sample: EvaluationSample, output: SystemOutputs) -> float:
            return 1 / 0

    with pytest.raises(ZeroDivisionError):
        AueporaEvaluator(Echo(), EvaluationPlan([Broken()])).run(dataset_of(2))


def test_run_describes_its_settings() -> None:
    run = AueporaEvaluator(Echo(), PLAN, seed=3).run(dataset_of(3))
    again = AueporaEvaluator(Echo(), PLAN, seed=3).run(dataset_of(3))
    assert (run.system_name, run.dataset_name, run.seed, run.top_k) == ("Echo", "small", 3, 5)
    assert run.dataset_fingerprint == again.dataset_fingerprint
    assert run.dataset_fingerprint != AueporaEvaluator(Echo(), PLAN).run(dataset_of(4)).dataset_fingerprint
    assert set(run.environment) == {"python", "platform", "cpu_count", "memory_gb", "packages"}
    assert run.evaluation_id.startswith("echo-small-")
