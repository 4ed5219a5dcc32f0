"""The evaluator with systems that answer, fail, hang and return wrong types."""

from __future__ import annotations

import time
from typing import Any

import pytest

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

    with pytest.raises(PlanError, match="'broken' failed on the sample 's0': ZeroDivisionError"):
        AueporaEvaluator(Echo(), EvaluationPlan([Broken()])).run(dataset_of(2))
