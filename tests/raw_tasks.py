"""Raw tasks for tests: a test names only what it is about."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def a_raw_task(task_id: Any = "t1", kind: str = "qa", *, contexts: int = 2, **fields: Any) -> dict[str, Any]:
    """A task in the nested shape, as a generator writes it."""
    retrieved = [
        {"id": place, "text": f"text {place}", "source_path": "a.txt", "page": place, "ordinal": place}
        for place in range(1, contexts + 1)
    ]
    return {
        "task_id": task_id,
        "task_type": kind,
        "instruction": "How many boats?",
        "expected_response": "Three boats [2].",
        "rag": {
            "prompt": "You are an assistant.",
            "contexts": [f"[{place}] Page {place}\ntext {place}" for place in range(1, contexts + 1)],
            "sources": [f"a.txt#page={place}" for place in range(1, contexts + 1)],
            "scores": [0.5] * contexts,
            "citations": [
                {"id": entry["id"], "source_path": "a.txt", "page": entry["page"]} for entry in retrieved
            ],
            "retrieved": retrieved,
        },
        "metadata": {"source_path": "a.txt", "selected_chunk_ids": [2]},
        **fields,
    }


def a_flat_task(task_id: str = "f1", kind: str = "qa", **fields: Any) -> dict[str, Any]:
    """The same in the flat shape."""
    return {
        "task_id": task_id,
        "task_type": kind,
        "question": "How many boats?",
        "answer": "Three boats [1].",
        "rag_prompt": "You are an assistant.",
        "contexts": ["first", "second"],
        "sources": ["a.txt", "b.txt"],
        **fields,
    }


def write_tasks(path: Path, tasks: Iterable[dict[str, Any] | str]) -> Path:
    """Tasks a line; a text is written as it is."""
    lines = (task if isinstance(task, str) else json.dumps(task) for task in tasks)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def records(path: Path) -> list[dict[str, Any]]:
    """What a JSON Lines file holds, read by the plainest of readers."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
