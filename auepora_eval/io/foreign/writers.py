"""Datasets and answers written for other tools: TREC, BEIR, ragas, DeepEval, Label Studio."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ...core.dataset import EvaluationDataset
from ...core.types import EvaluationSample, SystemOutputs, gold_documents
from ...errors import DataError, warn_user
from ..json.documents import write_document
from ..jsonl import save_records
from .beir import save_beir
from .outputs import predictions_of
from .trec import save_qrels, save_run

Pair = tuple[EvaluationSample, SystemOutputs | None]
Record = dict[str, Any]


def save_with_answers(
    form: str, dataset: EvaluationDataset, target: Path, outputs: Path | None, *, force: bool = False
) -> None:
    """Write a dataset for another tool, with the answers of a file or of the dataset itself."""
    answers: Mapping[str, SystemOutputs] = dataset.outputs
    if outputs is not None:
        ids = [sample.sample_id for sample in dataset]
        predictions = predictions_of(outputs)
        predictions.check_known_samples(set(ids))
        answers = dict(zip(ids, predictions.outputs(ids), strict=True))
    WRITERS[form](dataset, answers, target, force)
    failed = sum(output.error is not None for output in answers.values())
    if failed and form != "beir":
        missing = "is missing: its call" if failed == 1 else "are missing: their calls"
        warn_user(f"{target.name}: {failed} of {len(answers)} answers {missing} failed.")


def _trec(
    dataset: EvaluationDataset, answers: Mapping[str, SystemOutputs], target: Path, force: bool
) -> None:
    """Write the answers as a run, or the judgements if there are none."""
    if not answers:
        save_qrels(dataset, target, force=force)
    else:
        save_run(answers.items(), target, force=force)


def _beir(
    dataset: EvaluationDataset, answers: Mapping[str, SystemOutputs], target: Path, force: bool
) -> None:
    save_beir(dataset, target, force=force)


def _ragas(
    dataset: EvaluationDataset, answers: Mapping[str, SystemOutputs], target: Path, force: bool
) -> None:
    save_records(map(_ragas_record, _pairs(dataset, answers)), target, force=force)


def _ragas_record(pair: Pair) -> Record:
    sample, output = pair
    gold, hits = gold_documents(sample), None if output is None else output.retrieved
    record: Record = {
        "user_input": sample.query,
        "reference": None if sample.reference_answer is None else sample.reference_answer.text,
        "reference_contexts": [doc.text for doc in gold] if gold and all(doc.text for doc in gold) else None,
        "reference_context_ids": [doc.doc_id for doc in gold] or None,
        "response": None if output is None else output.response.text,
    }
    if hits is not None:
        if all(hit.doc.text for hit in hits):
            record["retrieved_contexts"] = [hit.doc.text for hit in hits]
        record["retrieved_context_ids"] = [hit.doc.doc_id for hit in hits]
    # An empty answer is written, as it is an answer; ragas leaves out what is not there.
    return {name: value for name, value in record.items() if value is not None}


def _deepeval(
    dataset: EvaluationDataset, answers: Mapping[str, SystemOutputs], target: Path, force: bool
) -> None:
    write_document([_deepeval_record(pair) for pair in _pairs(dataset, answers)], target, force=force)


def _deepeval_record(pair: Pair) -> Record:
    sample, output = pair
    return {
        "input": sample.query,
        "actual_output": None if output is None else output.response.text,
        "expected_output": None if sample.reference_answer is None else sample.reference_answer.text,
        "context": [_sourced(doc.doc_id, doc.text) for doc in gold_documents(sample)] or None,
        "retrieval_context": None
        if output is None
        else [_sourced(hit.doc.doc_id, hit.doc.text) for hit in output.retrieved],
        "name": sample.sample_id,
    }


def _sourced(doc_id: str, text: str) -> str:
    # The form in which DeepEval keeps the source of a context.
    return f"deepeval_source={doc_id},deepeval_context={text}"


def _label_studio(
    dataset: EvaluationDataset, answers: Mapping[str, SystemOutputs], target: Path, force: bool
) -> None:
    if not answers:
        what = "annotators judge answers, and there are none."
        raise DataError(dataset.name, what, fix="Name their file: --outputs FILE.")
    pairs = _pairs(dataset, answers)
    tasks = [{"data": _task(sample, output)} for sample, output in pairs if output is not None]
    write_document(tasks, target, force=force)


def _task(sample: EvaluationSample, output: SystemOutputs) -> Record:
    """Return the data of a task, for the template "Evaluate RAG with Human Feedback"."""
    return {
        "sample_id": sample.sample_id,
        "question": sample.query,
        "answer": output.response.text,
        "similar_docs": [{"id": hit.doc.doc_id, "body": hit.doc.text} for hit in output.retrieved],
    }


def _pairs(dataset: EvaluationDataset, answers: Mapping[str, SystemOutputs]) -> Iterator[Pair]:
    for sample in dataset:
        output = answers.get(sample.sample_id)
        yield sample, None if output is None or output.error is not None else output


Writer = Callable[[EvaluationDataset, Mapping[str, SystemOutputs], Path, bool], None]
WRITERS: Mapping[str, Writer] = {
    "trec": _trec,
    "beir": _beir,
    "ragas": _ragas,
    "deepeval": _deepeval,
    "label-studio": _label_studio,
}
