"""What a task maker makes: a question or statement, its answer, and where exactly the answer stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from .chunks import CutDocument


@dataclass(frozen=True, slots=True)
class Candidate:
    """A question before it is checked. `answer` is document.text[start:end], character for character.

    `evidence` is the span of the sentence that holds it; `kind` is what an answer looks like: number, date,
    name, place, list or text. `told` is the question in the order of a statement, for a paraphrase.
    """

    family: str
    question: str
    answer: str
    document: str
    start: int
    end: int
    evidence: tuple[int, int]
    kind: str
    told: str = ""
    alternatives: tuple[str, ...] = ()
    topic: str = ""


TaskMaker = Callable[[CutDocument, Random], Iterator[Candidate]]
