"""A task and its raw record: one line of offline_dataset.jsonl, in the shape of seed 000's generator."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.fingerprint import canonical_json
from .chunks import Chunk

NAMESPACE = uuid.UUID("5c3f0f0a-7c0e-5d6b-9d7e-2f6a1f1c9b10")
EXCERPT = 200
NO_ANSWER = "The documents do not say."

_PROMPTS = {
    "qa": "Answer the question from the numbered passages alone. Say so if they do not hold the answer.",
    "summaries": "Follow the instruction, using the numbered passages alone.",
    "citations": "Follow the instruction. Cite passages by their number in square brackets, such as [1].",
}


@dataclass(frozen=True)
class Shown:
    """A passage as a task shows it; `edited` is its text with a fact changed."""

    chunk: Chunk
    score: float | None = None
    edited: str | None = None

    @property
    def id(self) -> str:
        """The passage's id; that of an edited copy is its own, and in no corpus: each edit has another."""
        if self.edited is None:
            return self.chunk.id
        return f"{self.chunk.id}~edited-{hashlib.sha256(self.edited.encode()).hexdigest()[:8]}"

    @property
    def text(self) -> str:
        """The text that is shown."""
        return self.chunk.text if self.edited is None else self.edited


@dataclass(frozen=True)
class Task:
    """What is asked, expected and shown; `gold` are the ids of the passages that hold the answer.

    `closed` means that the passages shown are all there is: the answer must not come from the whole corpus.
    """

    task_type: str
    family: str
    instruction: str
    expected: str
    document: str
    source_path: str
    shown: tuple[Shown, ...]
    gold: tuple[str, ...]
    labels: dict[str, Any]
    span: tuple[int, int] | None = None
    spans: tuple[tuple[int, int], ...] = ()
    alternatives: tuple[str, ...] = ()
    checks: dict[str, Any] = field(default_factory=dict)
    closed: bool = False
    cluster: str = ""

    @property
    def task_id(self) -> str:
        """A UUID made from the content: the same task has the same id in every run."""
        content = [
            self.task_type,
            self.instruction,
            self.expected,
            self.document,
            self.span,
            [shown.id for shown in self.shown],
            self.labels,
        ]
        return str(uuid.uuid5(NAMESPACE, canonical_json(content).decode("utf-8")))


def raw_record(task: Task, *, run_id: str, document_index: int, task_index: int) -> dict[str, Any]:
    """The task as a record: instruction, expected response, what was retrieved for it, where it is from."""
    rendered = [_rendered(shown, ordinal) for ordinal, shown in enumerate(task.shown, start=1)]
    retrieved = [
        _retrieved(shown, ordinal, text)
        for ordinal, (shown, text) in enumerate(zip(task.shown, rendered, strict=True), start=1)
    ]
    return {
        "task_id": task.task_id,
        "task_type": task.task_type,
        "instruction": task.instruction,
        "expected_response": task.expected,
        "rag": {
            "prompt": _prompt(task, rendered),
            "contexts": rendered,
            "sources": [_source(shown.chunk) for shown in task.shown],
            "scores": [shown.score for shown in task.shown],
            "citations": [{key: entry[key] for key in _CITED} for entry in retrieved],
            "retrieved": retrieved,
        },
        "metadata": {
            **_metadata(task),
            "document_index": document_index,
            "task_index": task_index,
            "generator_model": "rules",
            "generator_run_id": run_id,
        },
    }


def _metadata(task: Task) -> dict[str, Any]:
    found: dict[str, Any] = {
        "source_path": task.source_path,
        "document": task.document,
        "family": task.family,
        "require_citations": task.task_type == "citations",
        "selected_chunk_ids": list(task.gold),
        "retrieved_chunk_ids": [shown.id for shown in task.shown],
        "retrieved_section_titles": [shown.chunk.section for shown in task.shown],
        "labels": task.labels,
        "cluster": task.cluster or task.task_id,
        "checks": task.checks,
    }
    if task.span is not None:
        found["answer_span"] = {"document": task.document, "start": task.span[0], "end": task.span[1]}
    if task.spans:
        found["summary_spans"] = [
            {"document": task.document, "start": start, "end": end} for start, end in task.spans
        ]
    if task.alternatives:
        found["alternatives"] = list(task.alternatives)
    if task.closed:
        found["closed_context"] = True
    return found


_CITED = (
    "id",
    "source_path",
    "page",
    "section_title",
    "token_start",
    "token_end",
    "score",
    "excerpt",
    "rendered_context",
)


def _retrieved(shown: Shown, ordinal: int, rendered: str) -> dict[str, Any]:
    chunk = shown.chunk
    entry: dict[str, Any] = {
        "id": shown.id,
        "text": shown.text,
        "source_path": chunk.source_path,
        "page": chunk.page,
        "section_title": chunk.section,
        "token_start": chunk.token_start,
        "token_end": chunk.token_end,
        "score": shown.score,
        "similarity_score": shown.score,
        "reranker_score": None,
        "excerpt": shown.text[:EXCERPT],
        "rendered_context": rendered,
        "ordinal": ordinal,
        "document": chunk.document,
        "start": chunk.start,
        "end": chunk.end,
    }
    if shown.edited is not None:
        entry["counterfactual_of"] = chunk.id
    return entry


def _rendered(shown: Shown, ordinal: int) -> str:
    """`[1] Section: Gameplay | Page 3` and the text below it."""
    chunk = shown.chunk
    parts = []
    if chunk.section or chunk.title:
        parts.append(f"Section: {chunk.section or chunk.title}")
    if chunk.page is not None:
        parts.append(f"Page {chunk.page}")
    return f"[{ordinal}] {' | '.join(parts)}\n{shown.text}" if parts else f"[{ordinal}] {shown.text}"


def _source(chunk: Chunk) -> str:
    return chunk.source_path if chunk.page is None else f"{chunk.source_path}#page={chunk.page}"


def _prompt(task: Task, rendered: Sequence[str]) -> str:
    word = "Question" if task.task_type == "qa" else "Instruction"
    passages = "\n\n".join(rendered)
    return f"{_PROMPTS[task.task_type]}\n\nPassages:\n{passages}\n\n{word}: {task.instruction}\nAnswer:"


def corpus_record(chunk: Chunk) -> dict[str, Any]:
    """A passage as a document of corpus.jsonl; start and end count the characters of its source."""
    return {
        "doc_id": chunk.id,
        "text": chunk.text,
        "metadata": {
            "title": chunk.title,
            "source": chunk.document,
            "start": chunk.start,
            "end": chunk.end,
            "source_path": chunk.source_path,
            "page": chunk.page,
            "section_title": chunk.section,
            "token_start": chunk.token_start,
            "token_end": chunk.token_end,
        },
    }
