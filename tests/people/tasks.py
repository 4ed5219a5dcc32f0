"""Small annotation tasks for tests."""

from __future__ import annotations

from pathlib import Path

from auepora_eval.people.task import Item, Kind, Passage, Task, create_task, labels_of


def an_item(number: int, **fields: object) -> Item:
    facts: dict[str, object] = {
        "item_id": str(number),
        "sample_id": f"q{number}",
        "query": f"question {number}?",
        "text": f"answer {number}",
        "documents": (Passage(f"d{number}", f"text of document {number}"),),
        "runs": ("run",),
        **fields,
    }
    return Item(**facts)  # type: ignore[arg-type]


def a_task(kind: Kind = "answers", *, people: tuple[str, ...] = ("ada",), **fields: object) -> Task:
    facts: dict[str, object] = {
        "kind": kind,
        "question": "Is it supported?",
        "labels": labels_of(kind),
        "runs": ("one", "two") if kind == "pairs" else ("run",),
        "dataset": "small",
        "people": people,
        "out_of": 10,
        **fields,
    }
    return Task(**facts)  # type: ignore[arg-type]


def stored_task(
    folder: Path,
    count: int = 4,
    kind: Kind = "answers",
    *,
    people: tuple[str, ...] = ("ada",),
    **fields: object,
) -> tuple[Task, list[Item]]:
    """Write a task of numbered items to a folder."""
    extra = {"second": "another answer"} if kind == "pairs" else {}
    items = [an_item(number, **extra) for number in range(1, count + 1)]
    task = a_task(kind, people=people, **{"out_of": count, **fields})
    create_task(folder, task, items)
    return task, items
