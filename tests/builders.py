"""Small nouns for tests: a test names only what it is about."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.calls.policy import CallPolicy
from auepora_eval.core.dataset import EvaluationDataset, Fingerprint, InMemoryDataset
from auepora_eval.core.metrics_base import SampleMetric
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.core.scores import Batch, Scores
from auepora_eval.core.scoring import RunRecord, Tally, score_record
from auepora_eval.core.types import (
    Document,
    EvaluationRun,
    EvaluationSample,
    Failure,
    Response,
    RetrievedDocument,
    SystemOutputs,
)
from auepora_eval.errors import EvaluationError
from auepora_eval.io.jsonl import save_records
from auepora_eval.io.results.document import query_results, results_head
from auepora_eval.read.records import prediction_record


def plan(folder: Path | str = ".", /, **keys: object) -> tuple[str, str]:
    """Write a plan file with these keys into a folder; return the flag that names it."""
    content = json.dumps(keys)
    path = Path(folder, f"plan-{hashlib.sha256(content.encode()).hexdigest()[:8]}.config.json")
    path.write_text(content, encoding="utf-8")
    return "--config", str(path)


def a_document(doc_id: str, grade: float | None = None, text: str = "") -> Document:
    return Document(doc_id, text or f"text of {doc_id}", {} if grade is None else {"relevance": grade})


def a_sample(
    sample_id: str = "1",
    query: str = "a query",
    *,
    relevant: Iterable[str] | dict[str, float] | None = None,
    reference: str | None = None,
    alternatives: list[str] | None = None,
    cluster: str | None = None,
    **fields: Any,
) -> EvaluationSample:
    """relevant="ab" means the documents a and b; {"a": 2} grades them."""
    docs = None
    if relevant is not None:
        grades = relevant if isinstance(relevant, dict) else dict.fromkeys(relevant)
        docs = [a_document(doc_id, grade) for doc_id, grade in grades.items()]
    answer = None
    if reference is not None:
        answer = Response(reference, metadata={"alternatives": alternatives} if alternatives else {})
    metadata = {} if cluster is None else {"cluster": cluster}
    return EvaluationSample(
        sample_id, query, relevant_docs=docs, reference_answer=answer, metadata=metadata, **fields
    )


def an_output(retrieved: Iterable[str] = (), answer: str = "", **fields: Any) -> SystemOutputs:
    """retrieved="ab" means that a was found at rank 1 and b at rank 2."""
    hits = [RetrievedDocument(a_document(doc_id), 1 / rank, rank) for rank, doc_id in enumerate(retrieved, 1)]
    return SystemOutputs(hits, Response(answer), **fields)


def a_failure(kind: str = "RuntimeError", message: str = "no luck") -> SystemOutputs:
    return SystemOutputs([], Response(""), error=Failure(kind, message))


def run_without_answers(evaluator: AueporaEvaluator, dataset: EvaluationDataset, **how: Any) -> EvaluationRun:
    """Return the run of a system that fails on every sample, which the error has."""
    with pytest.raises(EvaluationError) as caught:
        evaluator.run(dataset, **how)
    assert isinstance(caught.value.run, EvaluationRun)
    return caught.value.run


def quick_scores(
    metric: SampleMetric, samples: list[EvaluationSample], outputs: list[SystemOutputs]
) -> tuple[float, Scores]:
    """Return a metric's value and scores without its interval, which takes most of the time of `compute`."""
    scores = metric.score_batch(Batch(samples, outputs))
    rows = scores.rows()
    return float(metric.aggregate(rows)) if len(rows) else math.nan, scores


def a_dataset(*samples: EvaluationSample, name: str = "small") -> InMemoryDataset:
    return InMemoryDataset(name, list(samples))


def small_world() -> tuple[list[EvaluationSample], list[SystemOutputs]]:
    """Ten samples that between them have what every metric needs, and a system that is not always right.

    s1-s5 are plain questions; n1-n3 are s2 with more and more noise; u1 has no answer; c1 has a false
    document. The last sample of the list is a plain one.
    """
    timings = {"end_to_end": 0.5, "retrieval": 0.2, "generation": 0.3, "ttft": 0.1}

    def took(seconds: float) -> dict[str, float]:
        return {**timings, "end_to_end": seconds}

    def noisy(sample_id: str, ratio: float) -> EvaluationSample:
        labels = {"scenario": "noise", "variant_of": "s2", "noise_ratio": ratio, "answerable": True}
        return a_sample(
            sample_id, "How many boats?", relevant="c", reference="three boats", cluster="s2", labels=labels
        )

    plain = {"scenario": "base", "answerable": True}
    first = a_sample(
        "s1", "Where does the Annet moor?", relevant={"a": 2, "b": 1}, reference="at the north pier"
    )
    first.labels = {
        **plain,
        "nuggets": [
            {"text": "north pier", "importance": "vital", "assignment": "support"},
            {"text": "Annet", "importance": "okay", "assignment": "partial_support"},
        ],
        "claims": {
            "answer_in_reference": [True, False],
            "reference_in_answer": [True],
            "answer_in_documents": [[True, False, False], [False, False, False]],
            "reference_in_documents": [[True, False, False]],
        },
    }
    first.candidate_docs = [a_document("a", 2), a_document("b", 1), a_document("z", 0), a_document("y", 0)]
    first.relevant_docs = [
        Document(
            "a",
            "The Annet moors at the north pier.",
            {
                "relevance": 2,
                "source": "a",
                "subtopics": ["pier"],
                "spans": [{"start": 20, "end": 33, "text": "the north pier"}],
            },
        ),
        Document(
            "b", "The south pier is closed.", {"relevance": 1, "source": "b", "subtopics": ["closed", "pier"]}
        ),
    ]
    samples = [
        first,
        a_sample(
            "s2",
            "How many boats are there?",
            relevant="c",
            reference="three boats",
            cluster="s2",
            labels=plain,
        ),
        a_sample(
            "s3", "Who keeps the light?", relevant="de", reference="Ansel Brae", cluster="light", labels=plain
        ),
        a_sample(
            "s4",
            "Who keeps the lamp?",
            relevant="de",
            reference="Ansel Brae",
            cluster="light",
            labels={"scenario": "paraphrase", "variant_of": "s3", "answerable": True},
        ),
        noisy("n1", 0.0),
        noisy("n2", 0.4),
        noisy("n3", 0.8),
        a_sample("u1", "What does a gull weigh?", labels={"scenario": "unanswerable", "answerable": False}),
        a_sample(
            "c1",
            "When was the lamp built?",
            relevant="f",
            reference="in 1911",
            cluster="s5",
            labels={
                "scenario": "counterfactual",
                "variant_of": "s5",
                "answerable": True,
                "true_answer": "1911",
                "fake_answer": "1944",
            },
        ),
        a_sample("s5", "When was it built?", relevant="f", reference="in 1911", cluster="s5", labels=plain),
    ]
    outputs = [
        an_output(
            "abz",
            "The Annet moors at the north pier.",
            timings=took(0.5),
            extra={"output_tokens": 9, "cost_usd": 0.002},
        ),
        an_output("xyc", "three", timings=took(0.7), extra={"cost_usd": 0.001}),
        an_output("dxe", "Ansel Brae", timings=took(0.1)),
        an_output("xyz", "nobody knows", timings=took(1.9)),
        an_output("cx", "three boats", timings=took(0.4)),
        an_output("xc", "three boats", timings=took(0.4)),
        an_output("xyc", "a dozen gulls", timings=took(0.6)),
        an_output("pq", "The documents do not say.", timings=took(0.3)),
        an_output("fx", "It was built in 1944.", timings=took(0.2), extra={"closed_book": "in 1911"}),
        an_output("", "", timings=took(0.4)),
    ]
    outputs[8].response.structured = {"factual_error": True}  # it suspects the document and repeats it
    labelled = {"s1": ("accurate", "accurate"), "s2": ("hallucination", "accurate")}
    labelled |= {"s3": ("accurate", "hallucination"), "s4": ("hallucination", "hallucination")}
    labelled |= {"c1": ("contradiction", "contradiction"), "s5": ("hallucination", "hallucination")}
    for sample, output in zip(samples, outputs, strict=True):
        if sample.sample_id in labelled:
            true, predicted = labelled[sample.sample_id]
            sample.labels = {**sample.labels, "ground_truth_label": true}
            output.extra = {**output.extra, "predicted_label": predicted}
    outputs[0].retrieved[0].doc = Document(
        "a", "The Annet moors at the north pier.", {"source": "a", "start": 0, "end": 34}
    )
    samples[0].metadata["citations"] = [{"file_name": "a", "start_char": 20, "end_char": 33}]
    outputs[0].response.metadata["citations"] = [{"file_name": "a", "start_char": 0, "end_char": 33}]
    return samples, outputs


def run_to_results(run: EvaluationRun) -> dict[str, Any]:
    """A run as the whole document that is stored, its rows included."""
    scores = {result.name: result.scores for result in run.results if result.scores}
    pairs = zip(run.samples, run.outputs, strict=True)
    outputs = Fingerprint().add(prediction_record(sample.sample_id, output) for sample, output in pairs)
    head = results_head(run, Tally().add(run.outputs), outputs.hexdigest())
    return {**head, "query_results": list(query_results(run.samples, run.outputs, scores))}


def save_predictions(
    samples: Iterable[EvaluationSample], outputs: Iterable[SystemOutputs], path: Path
) -> None:
    """Write outputs as predictions; `load_predictions` reads them back."""
    pairs = zip(samples, outputs, strict=True)
    save_records((prediction_record(sample.sample_id, output) for sample, output in pairs), path)


def scored_run(
    plan: EvaluationPlan,
    samples: list[EvaluationSample],
    outputs: list[SystemOutputs],
    *,
    system_name: str = "s",
    dataset_name: str = "d",
    evaluation_id: str | None = None,
    seed: int = 0,
) -> EvaluationRun:
    """Return the run of outputs that are there already: no system is called."""
    record = RunRecord(InMemoryDataset(dataset_name, samples), plan, system_name, evaluation_id)
    for sample, output in zip(samples, outputs, strict=True):
        record.keep(sample, output)
    return score_record(record, plan, system_name=system_name, top_k=5, seed=seed, configuration={})


def one_output(
    system: Any, sample: EvaluationSample | None = None, *, top_k: int = 5, policy: CallPolicy | None = None
) -> SystemOutputs:
    """What a run keeps of one call of a system: its output, or one with the error."""
    evaluator = AueporaEvaluator(system, EvaluationPlan([]), top_k=top_k, policy=policy)
    ((_, output),) = evaluator.outputs([sample or a_sample("s1")])
    return output
