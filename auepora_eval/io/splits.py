"""Split files (`qa_pairs.jsonl`, `summaries.jsonl`, `citations.jsonl`) as datasets, and raw tasks too.

What a record becomes:

    task_id -> sample_id                    question or instruction -> query
    reference_answer or _summary -> reference_answer.text
    retrieved -> candidate_docs             metadata.selected_chunk_ids -> relevant_docs, flagged `circular`
    task_type -> labels["task_type"]        metadata.labels -> labels
    rag_prompt, contexts, sources, retrieved, citations, answer_citations -> metadata["split"]
    metadata -> metadata

A question that the documents do not answer (metadata.labels.answerable is false) has no right answer: its
reference is a stock phrase, kept under metadata["split"], and reference_answer is None.

The chunks that a generator was shown are no independent judgement of what is relevant to its question:
that is what `circular` says. Where a manifest lies beside the file or in the folder above, its version and
hash come along, and a file that is not the one that the manifest describes is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ..core.dataset import DescribedDataset, EvaluationDataset
from ..core.types import Document, EvaluationSample, Response
from ..errors import DataError
from .jsonl import read_records, save_records
from .manifest import Snapshot
from .manifest_search import manifest_of
from .names import stem
from .raw_tasks import TaskError, read_task, record_line, split_record
from .split_records import (
    QA,
    SUMMARIES,
    QaRecord,
    SplitRecord,
    SummaryRecord,
    asked_and_expected,
    is_raw_record,
    is_split_record,
    read_split_record,
)

__all__ = ["OneKind", "is_raw_record", "is_split_record", "load_split", "read_split", "save_split"]

_OF_A_SPLIT = "split"
_ENVELOPE = ("rag_prompt", "contexts", "sources", "retrieved", "citations", "answer_citations")


def load_split(path: str | Path) -> DescribedDataset:
    """Load a split, or raw tasks; a record that is not one, or an id that comes again, is an error."""
    path = Path(path)
    found = manifest_of(path)
    samples = [_sample(record) for _, record in read_split(path)]
    return DescribedDataset(stem(path), samples, info=_info(path, *found) if found else {})


def read_split(path: Path) -> Iterator[tuple[str, SplitRecord]]:
    """("file.jsonl:17", record) for each record of a split; raw tasks are read as what they would become."""
    places: dict[str, str] = {}
    kind = OneKind()
    for where, raw in read_records(path):
        record = kind.read(raw, where)
        if record.task_id in places:
            what = f"{record.task_id!r:.80} was used already, at {places[record.task_id]}."
            raise DataError(f"{where}: $.task_id", what, fix="Scores are matched by id: give each its own.")
        places[record.task_id] = where
        yield where, record


class OneKind:
    """Reads the records of one file: all of one split, or all raw tasks, as the first of them is."""

    def __init__(self) -> None:
        self._is_raw: bool | None = None
        self._task_type: str | None = None

    def read(self, record: dict[str, Any], where: str) -> SplitRecord:
        """A record of a split; a raw task is read as what it would become."""
        if self._is_raw is None:
            self._is_raw = "rag" in record or not is_split_record(record)
        if self._is_raw:
            return read_split_record(_from_raw_task(record, where), where)
        read = read_split_record(record, where, self._task_type)
        self._task_type = read.task_type
        return read


def _from_raw_task(raw: dict[str, Any], where: str) -> dict[str, Any]:
    try:
        task = read_task(msgspec.json.encode(raw), where)
        built: dict[str, Any] = msgspec.json.decode(record_line(split_record(task)))
    except TaskError as error:
        raise DataError(where, error.what) from error
    return built


def _info(path: Path, snapshot: Snapshot, name: str) -> dict[str, Any]:
    manifest = snapshot.manifest
    return {
        "dataset_id": stem(path),
        "name": f"{name} split",
        "version": manifest.version,
        "created_at": manifest.generated_at_utc,
        "metadata": {
            "split": name,
            "manifest_sha256": snapshot.sha256,
            "split_sha256": manifest.splits[name].sha256,
            "source_sha256": manifest.source.sha256,
        },
    }


def _sample(record: SplitRecord) -> EvaluationSample:
    asked, expected = asked_and_expected(type(record))
    split = {name: getattr(record, name) for name in _ENVELOPE if hasattr(record, name)}
    if _OF_A_SPLIT in record.metadata:
        split["metadata"] = {_OF_A_SPLIT: record.metadata[_OF_A_SPLIT]}
    candidates = _candidates(record)
    given = record.metadata.get("labels")
    labels = given if isinstance(given, dict) else {}
    reference: Response | None = Response(getattr(record, expected), metadata=_alternatives(record))
    if labels.get("answerable") is False:
        split["reference"], reference = getattr(record, expected), None
    return EvaluationSample(
        record.task_id,
        getattr(record, asked),
        relevant_docs=_selected(record, candidates) or None,
        candidate_docs=list(candidates.values()) or None,
        reference_answer=reference,
        labels={**labels, "task_type": record.task_type},
        metadata={**record.metadata, _OF_A_SPLIT: split},
    )


def _alternatives(record: SplitRecord) -> dict[str, Any]:
    """Further right answers, where the generator knew some."""
    given = record.metadata.get("alternatives")
    texts = isinstance(given, list) and all(isinstance(text, str) for text in given)
    return {"alternatives": given} if given and texts else {}


def _candidates(record: SplitRecord) -> dict[str, Document]:
    """What was retrieved, by id; the contexts by their sources, where there is nothing else."""
    documents: dict[str, Document] = {}
    for place, chunk in enumerate(record.retrieved):
        identifier, text = chunk.get("id"), chunk.get("text")
        source = record.sources[place] if place < len(record.sources) else ""
        name = source if identifier is None else str(identifier)
        if name and name not in documents:
            about = {key: value for key, value in chunk.items() if key not in ("id", "text")}
            missing = {} if isinstance(text, str) else {"text_missing": True}
            documents[name] = Document(name, text if isinstance(text, str) else "", {**about, **missing})
    if not record.retrieved:
        for place, (context, source) in enumerate(zip(record.contexts, record.sources, strict=True), start=1):
            text = context.removeprefix(f"[{place}]").lstrip()
            documents.setdefault(source, Document(source, text, {"ordinal": place}))
    return documents


def _selected(record: SplitRecord, candidates: dict[str, Document]) -> list[Document]:
    """The chunks that the question was made from."""
    chosen = record.metadata.get("selected_chunk_ids")
    names = [str(name) for name in chosen if isinstance(name, str | int)] if isinstance(chosen, list) else []
    documents = []
    for name in dict.fromkeys(names):
        known = candidates.get(name)
        text, about = ("", {"text_missing": True}) if known is None else (known.text, known.metadata)
        documents.append(Document(name, text, {**about, "circular": True}))
    return documents


def save_split(dataset: EvaluationDataset, path: str | Path, *, force: bool = False) -> None:
    """Write a dataset as a split; every sample needs a reference answer, and all are of one type."""
    save_records(_records(dataset), Path(path), force=force)


def _records(dataset: EvaluationDataset) -> Iterator[dict[str, Any]]:
    first: str | None = None
    for sample in dataset:
        record = _record(sample, dataset.name)
        first = first or record["task_type"]
        if record["task_type"] != first:
            raise DataError(
                f"{dataset.name}: sample {sample.sample_id!r:.80}",
                f"it is of the type {record['task_type']!r:.40}, and those before it of {first!r:.40}.",
                fix="A split holds one type: save each in a file of its own.",
            )
        yield record


def _record(sample: EvaluationSample, dataset: str) -> dict[str, Any]:
    metadata = dict(sample.metadata)
    split = metadata.pop(_OF_A_SPLIT, None)
    split = split if isinstance(split, dict) else {}
    metadata.update(split.get("metadata") or {})
    reference = split.get("reference") if sample.reference_answer is None else sample.reference_answer.text
    if not isinstance(reference, str) or not reference.strip():
        raise DataError(
            f"{dataset}: sample {sample.sample_id!r:.80}",
            "it has no reference answer, which each record of a split must have.",
            fix="Leave it out, or choose another format.",
        )
    labels = {name: value for name, value in sample.labels.items() if name != "task_type"}
    if labels and metadata.get("labels") != labels:
        metadata["labels"] = labels
    if sample.relevant_docs and "selected_chunk_ids" not in metadata:
        metadata["selected_chunk_ids"] = [doc.doc_id for doc in sample.relevant_docs]
    kind = str(sample.labels.get("task_type") or QA)
    envelope = {**_envelope(sample), **{name: split[name] for name in _ENVELOPE if name in split}}
    if kind == SUMMARIES:
        del envelope["answer_citations"]
    asked, expected = asked_and_expected(SummaryRecord if kind == SUMMARIES else QaRecord)
    texts = {asked: sample.query, expected: reference}
    return {"task_id": sample.sample_id, "task_type": kind, **texts, **envelope, "metadata": metadata}


def _envelope(sample: EvaluationSample) -> dict[str, Any]:
    """The shared fields, for a sample that did not come from a split."""
    documents = sample.candidate_docs or sample.relevant_docs or []
    known = [doc for doc in documents if not doc.metadata.get("text_missing")]
    return {
        "rag_prompt": "",
        "contexts": [f"[{place}] {doc.text}" for place, doc in enumerate(known, start=1)],
        "sources": [str(doc.metadata.get("source_path") or doc.doc_id) for doc in known],
        "retrieved": [{"id": doc.doc_id, "text": doc.text, **doc.metadata} for doc in known],
        "citations": [],
        "answer_citations": [],
    }
