"""Tasks with their contexts, and their raw records: lines of offline_dataset.jsonl and corpus.jsonl."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from ..builder.corpus import SourceDocument
from ..core.dataset import canonical_json
from .passages import Chunk, Hit, Span

Record = dict[str, Any]
# Task ids are derived from it: another value would change the id of every task.
NAMESPACE = uuid.UUID("5c3f0f0a-7c0e-5d6b-9d7e-2f6a1f1c9b10")
EXCERPT = 200  # characters of a passage
_PROMPTS = {
    "qa": "Answer the question from the numbered passages alone. Say so if they do not hold the answer.",
    "summaries": "Follow the instruction, using the numbered passages alone.",
    "citations": "Follow the instruction. Cite passages by their number in square brackets, such as [1].",
}


@dataclass(frozen=True)
class Task:
    """An instruction, the expected response and the context. `gold` are the ids of the answering passages.

    `closed` means that the task must be answered from its own passages, not from the whole corpus.
    """

    task_type: str
    family: str
    instruction: str
    expected: str
    source: SourceDocument
    context: tuple[Hit, ...]
    gold: tuple[str, ...]
    labels: Mapping[str, object]
    span: Span | None = None
    spans: tuple[Span, ...] = ()
    alternatives: tuple[str, ...] = ()
    checks: Mapping[str, object] = field(default_factory=dict)
    closed: bool = False
    cluster: str = ""

    @cached_property
    def task_id(self) -> str:
        """Return a UUID of the content: the same task has the same id in every run."""
        asked = [self.task_type, self.instruction, self.expected, self.source.name, self.span]
        content = [*asked, [chunk.id for chunk, _ in self.context], self.labels]
        return str(uuid.uuid5(NAMESPACE, canonical_json(content).decode("utf-8")))


def raw_record(
    task: Task, *, run_id: str, document_index: int, task_index: int, more: Mapping[str, object] | None = None
) -> Record:
    """Return the task as a record: instruction, expected response, context and provenance.

    `more` is added to the metadata.
    """
    retrieved = [_retrieved(*hit, ordinal) for ordinal, hit in enumerate(task.context, start=1)]
    rendered = [entry["rendered_context"] for entry in retrieved]
    word = "Question" if task.task_type == "qa" else "Instruction"
    prompt = [
        _PROMPTS[task.task_type],
        "Passages:\n" + "\n\n".join(rendered),
        f"{word}: {task.instruction}\nAnswer:",
    ]
    about = {"document_index": document_index, "task_index": task_index, "generator_model": "rules"}
    return {
        "task_id": task.task_id,
        "task_type": task.task_type,
        "instruction": task.instruction,
        "expected_response": task.expected,
        "rag": {
            "prompt": "\n\n".join(prompt),
            "contexts": rendered,
            "sources": [chunk.source for chunk, _ in task.context],
            "scores": [score for _, score in task.context],
            "citations": [{key: entry[key] for key in _CITED} for entry in retrieved],
            "retrieved": retrieved,
        },
        "metadata": {**_metadata(task), **about, "generator_run_id": run_id, **(more or {})},
    }


@lru_cache(maxsize=8)  # the tasks of a document follow each other
def _sha256(text: str) -> str:
    """Return the hash by which `dataset check --corpus` sees that the source was changed since."""
    return hashlib.sha256(text.encode()).hexdigest()


def _metadata(task: Task) -> Record:
    name = task.source.name
    spans = [{"document": name, "start": start, "end": end} for start, end in task.spans]
    optional = {
        "answer_span": task.span and {"document": name, "start": task.span[0], "end": task.span[1]},
        "summary_spans": spans,
        "alternatives": list(task.alternatives),
        "closed_context": task.closed,
    }
    return {
        "source_path": task.source.source_path,
        "document": name,
        "source_sha256": _sha256(task.source.text),
        "family": task.family,
        "require_citations": task.task_type == "citations",
        "selected_chunk_ids": list(task.gold),
        "retrieved_chunk_ids": [chunk.id for chunk, _ in task.context],
        "retrieved_section_titles": [chunk.section_title for chunk, _ in task.context],
        "labels": task.labels,
        "cluster": task.cluster or task.task_id,
        "checks": task.checks,
        **{key: value for key, value in optional.items() if value},
    }


_CITED = "id source_path page section_title token_start token_end score excerpt rendered_context".split()


def _retrieved(chunk: Chunk, score: float | None, ordinal: int) -> Record:
    fields = asdict(chunk)
    title, edited_from = fields.pop("title"), fields.pop("edited_from")
    section, page = chunk.section_title or title, chunk.page
    parts = [f"Section: {section}"] * bool(section) + [f"Page {page}"] * (page is not None)
    place = " | ".join(parts) + "\n" if parts else ""
    scores = {"score": score, "similarity_score": score, "reranker_score": None}
    shown = {"excerpt": chunk.text[:EXCERPT], "rendered_context": f"[{ordinal}] {place}{chunk.text}"}
    return {**fields, **scores, **shown, "ordinal": ordinal} | (
        {"counterfactual_of": edited_from} if edited_from else {}
    )


def corpus_record(chunk: Chunk) -> Record:
    """Return a passage as a document of corpus.jsonl. start and end are character offsets of its source."""
    fields = asdict(chunk)
    del fields["edited_from"]
    return {
        "doc_id": fields.pop("id"),
        "text": fields.pop("text"),
        "metadata": {"source": fields.pop("document"), **fields},
    }
