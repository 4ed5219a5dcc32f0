"""Which calls to a language model make a test set: what each shows, and how many tasks it asks for."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..core.fingerprint import canonical_json
from ..errors import PlanError
from .chunks import Chunk, CutDocument
from .llm_replies import KINDS


@dataclass(frozen=True)
class Wanted:
    """How many tasks of each type a document gets, and how much of it a call shows."""

    per_document: dict[str, int] = field(default_factory=lambda: {"qa": 4, "summaries": 1, "citations": 1})
    chunks_a_call: int = 6
    characters_a_call: int = 9_600
    parse_retries: int = 2

    def __post_init__(self) -> None:
        unknown = [name for name in self.per_document if name not in KINDS]
        if unknown:
            raise PlanError(f"there is no task type {unknown[0]!r}. There are {', '.join(KINDS)}.")
        if self.chunks_a_call < 1 or self.characters_a_call < 1 or self.parse_retries < 0:
            raise PlanError("a call shows at least one chunk of at least one character, and is never undone.")


@dataclass(frozen=True)
class Call:
    """One call to make: which tasks, how many, about which chunks. Equal calls have equal keys."""

    key: str
    task_type: str
    count: int
    chunks: list[Chunk]
    document_index: int


def planned_calls(documents: Sequence[CutDocument], wanted: Wanted) -> list[Call]:
    """The calls to make: groups of neighbouring chunks, spread over each document."""
    calls = []
    for index, document in enumerate(documents):
        groups = _groups(document.chunks, wanted)
        for task_type, count in wanted.per_document.items():
            used = min(len(groups), count)
            for turn in range(used):
                chunks = groups[turn * len(groups) // used]
                share = count // used + (turn < count % used)
                calls.append(Call(_key(task_type, share, chunks), task_type, share, chunks, index))
    return calls


def _groups(chunks: Sequence[Chunk], wanted: Wanted) -> list[list[Chunk]]:
    """Neighbouring chunks, as many as one call may show."""
    groups: list[list[Chunk]] = []
    room = 0
    for chunk in chunks:
        if not groups or len(groups[-1]) == wanted.chunks_a_call or len(chunk.text) > room:
            groups.append([])
            room = wanted.characters_a_call
        groups[-1].append(chunk)
        room -= len(chunk.text)
    return groups


def _key(task_type: str, count: int, chunks: Sequence[Chunk]) -> str:
    shown = [[chunk.id, chunk.start, chunk.title, chunk.section, chunk.text] for chunk in chunks]
    return hashlib.sha256(canonical_json([task_type, count, shown])).hexdigest()
