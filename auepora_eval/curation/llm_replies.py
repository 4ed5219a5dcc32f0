"""What a language model may reply with, and whether its source says the same.

A reply is read as an exact form, and nothing is believed: evidence must stand in its passage letter by letter
(white space aside), and the words and numbers of an answer must stand in the evidence. That is a check of
words, not of truth: it does not see a negation, nor two things that changed places.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ..metrics.content import content_words, numbers, without_marks
from ..metrics.sentences import sentences
from ..metrics.text import words
from .chunks import Chunk

LEAST_SUPPORT = {"qa": 0.75, "summaries": 0.7, "citations": 0.6}
_LONGEST = 6_000
_MARK = re.compile(r"\[(\d{1,3})\]")
_MARK_AFTER_STOP = re.compile(r"([.!?])\s*((?:\[\d{1,3}\]\s*)+)(?=\s|$)")
_OTHER_MARK = re.compile(r"\[\d+\s*[,;–-]\s*\d+")
_SPEAKS_OF_THE_TEXT = re.compile(
    r"\b(?:the|this|that|these|those|above|following|given|provided)\s+"
    r"(?:passage|text|document|excerpt|article|context|material)s?\b|\bpassages?\s+\d",
    re.IGNORECASE,
)


class QaTask(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A question, its answer, and where the answer stands."""

    question: str
    answer: str
    passage: int
    evidence: str


class Quote(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Words of a passage."""

    passage: int
    quote: str


class SummaryTask(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A reference summary and the sentences that it rests on."""

    instruction: str
    summary: str
    evidence: list[Quote]


class CitationTask(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """An answer with citation marks, and the sentences that they stand for."""

    instruction: str
    answer: str
    evidence: list[Quote]


class QaReply(msgspec.Struct, forbid_unknown_fields=True):
    """What is asked for by generate_qa.md."""

    tasks: list[QaTask]


class SummaryReply(msgspec.Struct, forbid_unknown_fields=True):
    """What is asked for by generate_summaries.md."""

    tasks: list[SummaryTask]


class CitationReply(msgspec.Struct, forbid_unknown_fields=True):
    """What is asked for by generate_citations.md."""

    tasks: list[CitationTask]


class RejectedError(ValueError):
    """A task that does not pass: the reason by which it is counted, and what to tell the model."""

    def __init__(self, reason: str, what: str) -> None:
        self.reason = reason
        super().__init__(what)


@dataclass(frozen=True)
class Evidence:
    """A quoted span, document.text[start:end]; `place` is the chunk's among those shown, from 0."""

    place: int
    start: int
    end: int


@dataclass(frozen=True)
class Accepted:
    """A task that passed: what is asked, the reference, and the spans that it rests on."""

    instruction: str
    response: str
    evidence: list[Evidence]
    support: float
    warnings: list[str] = field(default_factory=list)


def checked_qa(task: QaTask, chunks: Sequence[Chunk]) -> Accepted:
    """The task, if its evidence is in the source and its answer in the evidence."""
    _refuse_odd_text("question", task.question, least=8)
    _refuse_odd_text("answer", task.answer, least=1)
    if not task.question.rstrip().endswith(("?", "？")):
        raise RejectedError("no question mark", "the question does not end with a question mark")
    if _SPEAKS_OF_THE_TEXT.search(task.question):
        raise RejectedError(
            "speaks of the text", "the question speaks of the passage or text instead of its subject"
        )
    asked = set(content_words(task.question, stemmed=True))
    answered = set(content_words(task.answer, stemmed=True))
    if not answered:
        raise RejectedError(
            "answer not checkable", "the answer has no word or number that could be looked up"
        )
    if answered <= asked:
        raise RejectedError("answer in question", "the question already says the answer")
    evidence, warnings = _found(task.passage, task.evidence, chunks)
    if len(words(task.evidence)) < 4:
        raise RejectedError("evidence too short", "the evidence is shorter than four words")
    chunk = chunks[evidence.place]
    around = f"{chunk.title} {chunk.section} {chunk.text}"
    if asked and not asked & set(words(around, stemmed=True)):
        raise RejectedError("question off topic", "no word of the question is in the passage")
    share = _supported("qa", "answer", task.answer, f"{chunk.title} {chunk.section} {task.evidence}")
    return Accepted(task.question.strip(), task.answer.strip(), [evidence], share, warnings)


def checked_summary(task: SummaryTask, chunks: Sequence[Chunk]) -> Accepted:
    """The task, if its quotes are in the source and the summary says what they say, in fewer words."""
    _refuse_odd_text("instruction", task.instruction, least=8)
    _refuse_odd_text("summary", task.summary, least=20)
    source = " ".join(chunk.text for chunk in chunks)
    length, whole = len(words(task.summary)), len(words(source))
    if length < 8 or length > max(40, whole // 2):
        raise RejectedError("summary length", f"the summary has {length} words, the passages have {whole}")
    evidence, warnings = _all_found(task.evidence, chunks)
    share = _supported("summaries", "summary", task.summary, source)
    return Accepted(task.instruction.strip(), task.summary.strip(), evidence, share, warnings)


def checked_citations(task: CitationTask, chunks: Sequence[Chunk]) -> Accepted:
    """The task, if every sentence cites a passage that was shown, that was quoted, and that says so."""
    _refuse_odd_text("instruction", task.instruction, least=8)
    _refuse_odd_text("answer", task.answer, least=8)
    if _OTHER_MARK.search(task.answer):
        raise RejectedError(
            "mark form", "citations are written one by one, as [1][2], not as [1, 2] or [1-2]"
        )
    answer = _MARK_AFTER_STOP.sub(
        lambda match: f" {''.join(match[2].split())}{match[1]}", task.answer
    ).strip()
    evidence, warnings = _all_found(task.evidence, chunks)
    quoted = {span.place + 1 for span in evidence}
    shares = []
    for sentence in sentences(answer):
        cited = [int(number) for number in _MARK.findall(sentence)]
        if not cited:
            raise RejectedError("uncited sentence", f"a sentence cites nothing: {sentence[:80]!r}")
        for number in cited:
            if not 1 <= number <= len(chunks):
                raise RejectedError("mark out of range", f"there is no passage [{number}]")
            if number not in quoted:
                raise RejectedError(
                    "mark without quote", f"passage {number} is cited but not quoted in evidence"
                )
        source = " ".join(chunks[number - 1].text for number in cited)
        shares.append(_supported("citations", "answer", without_marks(sentence), source))
    return Accepted(task.instruction.strip(), answer, evidence, min(shares), warnings)


@dataclass(frozen=True)
class TaskKind:
    """A type of task: its prompt file, the form of its replies, its check."""

    prompt: str
    reply: Any
    check: Callable[[Any, Sequence[Chunk]], Accepted]


KINDS: dict[str, TaskKind] = {
    "qa": TaskKind("generate_qa", QaReply, checked_qa),
    "summaries": TaskKind("generate_summaries", SummaryReply, checked_summary),
    "citations": TaskKind("generate_citations", CitationReply, checked_citations),
}


def find_quote(quote: str, text: str) -> tuple[int, int] | None:
    """Where a quote stands in a text, whatever the white space between its words; None if it does not.

    >>> find_quote("north  pier", "at the north\\npier")
    (7, 17)
    """
    parts = quote.split()
    if not parts or len(quote) > _LONGEST:
        return None
    match = re.search(r"\s+".join(map(re.escape, parts)), text)
    return match.span() if match else None


def _found(number: int, quote: str, chunks: Sequence[Chunk]) -> tuple[Evidence, list[str]]:
    """The span of a quote in the passage it is said to be from; in another of those shown, with a warning."""
    named = [number - 1] if 1 <= number <= len(chunks) else []
    for place in [*named, *(place for place in range(len(chunks)) if place not in named)]:
        span = find_quote(quote, chunks[place].text)
        if span:
            start = chunks[place].start
            warning = f"the evidence stands in passage {place + 1}, not {number}"
            return Evidence(place, start + span[0], start + span[1]), [] if place in named else [warning]
    raise RejectedError(
        "evidence not found", f"the evidence is not in the passages letter by letter: {quote[:80]!r}"
    )


def _all_found(quotes: Iterable[Quote], chunks: Sequence[Chunk]) -> tuple[list[Evidence], list[str]]:
    found = [_found(quote.passage, quote.quote, chunks) for quote in quotes]
    if not found:
        raise RejectedError("no evidence", "no evidence is quoted")
    return [evidence for evidence, _ in found], [text for _, warnings in found for text in warnings]


def _supported(task_type: str, what: str, claim: str, source: str) -> float:
    """The share of a claim's content words that the source has; too few, or another number, is a reject."""
    foreign = [number for number in numbers(claim) if number not in set(numbers(source))]
    if foreign:
        raise RejectedError(
            "number not in source", f"the {what} has a number that its source lacks: {foreign[0]}"
        )
    said = content_words(claim, stemmed=True)
    known = set(words(source, stemmed=True))
    share = sum(word in known for word in said) / len(said) if said else 0.0
    if share < LEAST_SUPPORT[task_type]:
        missing = [word for word in said if word not in known][:5]
        raise RejectedError(
            "not supported",
            f"the {what} uses words that its source does not: {', '.join(missing) or 'all of them'}",
        )
    return share


def _refuse_odd_text(what: str, text: str, *, least: int) -> None:
    if not least <= len(text.strip()) <= _LONGEST:
        raise RejectedError(f"{what} length", f"the {what} is too short or too long")
    if not text.replace("\n", " ").replace("\t", " ").isprintable():
        raise RejectedError("unprintable", f"the {what} holds control characters")
