"""The specification's own script and metric, as printed there."""

from __future__ import annotations

import dataclasses
import inspect

import pytest

from auepora_eval.core import dataset as dataset_module
from auepora_eval.core import metrics_base, plan, rag_interface, runner, types
from auepora_eval.core.dataset import InMemoryDataset
from auepora_eval.core.metrics_base import Metric
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.rag_interface import RAGSystem
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.core.types import (
    Document,
    EvaluationSample,
    MetricResult,
    RetrievedDocument,
    SystemOutputs,
    TargetCategory,
)
from auepora_eval.io.jsonl import load_jsonl_dataset
from auepora_eval.metrics.additional import MeanLatency
from auepora_eval.metrics.generation_text import RougeLAnswer
from auepora_eval.metrics.retrieval_basic import RecallAtK
from auepora_eval.reporting.tables import results_to_dict, results_to_markdown
from tests.builders import small_world

SCRIPT = """
from auepora_eval.core.types import EvaluationSample, Document, Response
from auepora_eval.core.dataset import InMemoryDataset
from auepora_eval.core.rag_interface import RAGSystem, SystemOutputs
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.metrics.retrieval_basic import RecallAtK
from auepora_eval.metrics.generation_text import RougeLAnswer


class MyRAGSystem(RAGSystem):
    def __init__(self, retriever, llm):
        self.retriever = retriever
        self.llm = llm

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
        retrieved = self.retriever.retrieve(sample.query, top_k=top_k)
        context = "\\n\\n".join(r.doc.text for r in retrieved)
        prompt = f"Question: {sample.query}\\n\\nContext:\\n{context}\\n\\nAnswer:"
        answer_text = self.llm(prompt)

        resp = Response(text=answer_text)
        return SystemOutputs(retrieved=retrieved, response=resp)


# Build dataset
samples = [
    EvaluationSample(
        sample_id="1",
        query="Who wrote the paper 'Attention Is All You Need'?",
        relevant_docs=[Document(doc_id="d1", text="... Vaswani et al ...")],
        reference_answer=Response(text="Ashish Vaswani et al."),
    ),
]

dataset = InMemoryDataset(name="toy", samples=samples)

# Build EvaluationPlan
plan = EvaluationPlan(metrics=[RecallAtK(k=5), RougeLAnswer()])

# Run evaluation
evaluator = AueporaEvaluator(system=MyRAGSystem(retriever, llm), plan=plan, top_k=5)
results = evaluator.evaluate(dataset)

for r in results:
    print(r.name, r.value, r.details)
"""


class OneHit:
    def retrieve(self, query: str, *, top_k: int = 5) -> list[RetrievedDocument]:
        return [RetrievedDocument(Document("d1", "... Vaswani et al ..."), 1.0, 1)]


def test_usage_script_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names = {"retriever": OneHit(), "llm": lambda prompt: "Vaswani et al.", "__name__": "script"}
    exec(compile(SCRIPT, "usage", "exec"), names)  # noqa: S102 - the script above, nothing else
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("recall@5 1.0 {")
    assert second.startswith("rougeL_answer 0.857142")


class SeedRecallAtK(Metric):
    """Written exactly as in the specification."""

    def __init__(self, k: int):
        self.k = k
        self.name = f"recall@{k}"
        self.target = TargetCategory.RETRIEVAL_RELEVANCE

    def required_fields(self) -> list[str]:
        return ["relevant_docs"]

    def compute(self, samples: list[EvaluationSample], outputs: list[SystemOutputs]) -> MetricResult:
        assert len(samples) == len(outputs)
        scores: list[float] = []

        for sample, out in zip(samples, outputs):  # noqa: B905
            if not sample.relevant_docs:
                continue

            gold_ids: set[str] = {d.doc_id for d in sample.relevant_docs}
            if not gold_ids:
                continue

            topk = out.retrieved[: self.k]
            retrieved_ids: set[str] = {r.doc.doc_id for r in topk}

            hit = len(gold_ids & retrieved_ids) / len(gold_ids)
            scores.append(hit)

        value = sum(scores) / len(scores) if scores else 0.0
        return MetricResult(
            name=self.name, target=self.target, value=value, details={"num_samples": len(scores)}
        )


@pytest.mark.parametrize("k", [1, 2, 3, 10])
def test_specification_metric_gives_the_same_value(k: int) -> None:
    samples, outputs = small_world()
    seed, ours = SeedRecallAtK(k).compute(samples, outputs), RecallAtK(k).compute(samples, outputs)
    assert ours.value == pytest.approx(seed.value)
    assert ours.details["num_samples"] == seed.details["num_samples"]


@pytest.mark.filterwarnings("ignore:9 of 10 samples have relevant_docs")
def test_specification_metric_in_a_plan() -> None:
    class Canned(RAGSystem):
        def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
            return dict(zip((s.sample_id for s in samples), outputs, strict=True))[sample.sample_id]

    samples, outputs = small_world()
    metric = SeedRecallAtK(3)
    metric.name = "my_recall"
    evaluator = AueporaEvaluator(Canned(), EvaluationPlan([metric, RecallAtK(3)]))
    mine, ours = evaluator.evaluate(InMemoryDataset("small", samples))
    assert mine.value == pytest.approx(ours.value)
    assert "| my_recall |" in results_to_markdown([mine, ours])


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (types.Document, ["doc_id", "text", "metadata"]),
        (types.RetrievedDocument, ["doc", "score", "rank"]),
        (types.Response, ["text", "structured", "metadata"]),
        (types.SystemOutputs, ["retrieved", "response", "timings", "extra"]),
        (types.MetricResult, ["name", "target", "value", "details"]),
        (
            types.EvaluationSample,
            "sample_id query relevant_docs candidate_docs reference_answer labels metadata".split(),
        ),
        (plan.EvaluationPlan, ["metrics"]),
    ],
)
def test_fields_come_first_and_in_order(kind: type, fields: list[str]) -> None:
    assert [field.name for field in dataclasses.fields(kind)][: len(fields)] == fields


@pytest.mark.parametrize(
    ("function", "parameters"),
    [
        (rag_interface.RAGSystem.run, "(self, sample, *, top_k=5)"),
        (rag_interface.RAGSystemProtocol.run, "(self, sample, *, top_k=5)"),
        (rag_interface.Retriever.retrieve, "(self, query, *, top_k=5)"),
        (rag_interface.Generator.generate, "(self, query, context_docs)"),
        (rag_interface.SimpleRAGSystem.__init__, "(self, retriever, generator)"),
        (dataset_module.InMemoryDataset.__init__, "(self, name, samples, *, info=None, documents=())"),
        (load_jsonl_dataset, "(path, name=None)"),
        (metrics_base.Metric.compute, "(self, samples, outputs)"),
        (metrics_base.Metric.required_fields, "(self)"),
        (plan.EvaluationPlan.validate_dataset, "(self, samples)"),
        (plan.EvaluationPlan.grouped_by_target, "(self)"),
        (runner.AueporaEvaluator.evaluate, "(self, dataset)"),
        (RecallAtK.__init__, "(self, k, *, level=None)"),
        (MeanLatency.__init__, "(self, timing_key='end_to_end')"),
        (results_to_dict, "(results)"),
        (results_to_markdown, "(results, *, columns=8)"),
    ],
)
def test_signatures(function: object, parameters: str) -> None:
    """What is added to the specification is keyword-only and has a default."""
    signature = inspect.signature(function)  # type: ignore[arg-type]
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    assert str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty)) == parameters


def test_all_ten_targets() -> None:
    retrieval = ["RETRIEVAL_RELEVANCE", "RETRIEVAL_ACCURACY"]
    generation = ["GENERATION_RELEVANCE", "GENERATION_FAITHFULNESS", "GENERATION_CORRECTNESS"]
    further = "LATENCY DIVERSITY NOISE_ROBUSTNESS NEGATIVE_REJECTION COUNTERFACTUAL_ROBUSTNESS"
    assert [target.name for target in TargetCategory] == [*retrieval, *generation, *further.split()]


def test_names_of_the_specification() -> None:
    assert RecallAtK(k=5).name == "recall@5"
    assert RougeLAnswer().name == "rougeL_answer"
    assert MeanLatency().name == "mean_latency[end_to_end]"
