"""What a language model is asked for: the plan of the calls, the form of the replies, their checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from ..calls.chat import Prompt, Reply, as_material, fence_of, parse_strictly
from ..calls.http import BadReplyError
from ..text.content_words import content_words, numbers
from ..text.tokens import words
from .passages import Chunk, CutDocument

# Replies and their checks.

# The least share of a task's content words that must be in its source.
LEAST_SUPPORT = {"qa": 0.75, "summaries": 0.7}
# Characters of a text or quote: longer ones are a model that repeats itself.
_LONGEST = 6_000
_SPEAKS_OF_THE_TEXT = re.compile(
    r"\b(?:the|this|that|these|those|above|following|given|provided)\s+"
    r"(?:passage|text|document|excerpt|article|context|material)s?\b|\bpassages?\s+\d",
    re.IGNORECASE,
)


class QaTask(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A question, its answer, and the quote with the answer."""

    question: str
    answer: str
    passage: int
    evidence: str


class Quote(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A quote from a passage."""

    passage: int
    quote: str


class SummaryTask(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A reference summary and the sentences it is based on."""

    instruction: str
    summary: str
    evidence: list[Quote]


AnyTask = TypeVar("AnyTask", QaTask, SummaryTask)


class RejectedError(ValueError):
    """A rejected task. The message up to its colon is the reason in the report."""


class Evidence(msgspec.Struct, frozen=True):
    """A quoted span, document.text[start:end], with the number and the id of its passage in the call."""

    passage: int
    chunk: str
    start: int
    end: int


class AcceptedTask(msgspec.Struct, frozen=True):
    """An accepted task: instruction, reference, the spans it is based on, and the share of words in them."""

    instruction: str
    response: str
    support: float
    evidence: list[Evidence]


def checked_qa(task: QaTask, chunks: Sequence[Chunk]) -> AcceptedTask:
    """Return the task if its evidence is in the source and its answer in the evidence."""
    _check_text("question", task.question, least=8)
    _check_text("answer", task.answer, least=1)
    if not task.question.rstrip().endswith(("?", "？")):
        raise RejectedError("the question does not end with a question mark")
    if _SPEAKS_OF_THE_TEXT.search(task.question):
        raise RejectedError("the question speaks of the passage or text instead of its subject")
    question_words = set(content_words(task.question, stemmed=True))
    answer_words = set(content_words(task.answer, stemmed=True))
    if not answer_words:
        raise RejectedError("the answer has no word or number that could be looked up")
    if answer_words <= question_words:
        raise RejectedError("the question already says the answer")
    evidence = _located([Quote(task.passage, task.evidence)], chunks)
    if len(words(task.evidence)) < 4:
        raise RejectedError("the evidence is shorter than four words")
    chunk = chunks[evidence[0].passage - 1]
    headings = f"{chunk.title} {chunk.section_title}"
    if question_words and not question_words & set(words(f"{headings} {chunk.text}", stemmed=True)):
        raise RejectedError("no word of the question is in the passage")
    share = _check_support("qa", "answer", task.answer, f"{headings} {task.evidence}")
    return AcceptedTask(task.question.strip(), task.answer.strip(), share, evidence)


def checked_summary(task: SummaryTask, chunks: Sequence[Chunk]) -> AcceptedTask:
    """Return the task if its quotes are in the source and the summary is a shorter version of them."""
    _check_text("instruction", task.instruction, least=8)
    _check_text("summary", task.summary, least=20)
    source = " ".join(chunk.text for chunk in chunks)
    length, whole = len(words(task.summary)), len(words(source))
    if length < 8 or length > max(40, whole // 2):
        raise RejectedError(f"too short or too long: the summary has {length} words, the passages {whole}")
    evidence = _located(task.evidence, chunks)
    share = _check_support("summaries", "summary", task.summary, source)
    return AcceptedTask(task.instruction.strip(), task.summary.strip(), share, evidence)


class Tasks(msgspec.Struct, Generic[AnyTask], forbid_unknown_fields=True):
    """A reply: several tasks of one type."""

    tasks: list[AnyTask]


# The form of a reply and the check of each task in it, by the type of the tasks. Prompts: generate_NAME.md.
KINDS: dict[str, tuple[Any, Callable[..., AcceptedTask]]] = {
    "qa": (Tasks[QaTask], checked_qa),
    "summaries": (Tasks[SummaryTask], checked_summary),
}


def find_quote(quote: str, text: str) -> tuple[int, int] | None:
    """Return the span of a quote in a text, ignoring white space between words, or None.

    >>> find_quote("north  pier", "at the north\\npier")
    (7, 17)
    """
    parts = quote.split()
    if not parts or len(quote) > _LONGEST:
        return None
    match = re.search(r"\s+".join(map(re.escape, parts)), text)
    return match.span() if match else None


def _located(quotes: Iterable[Quote], chunks: Sequence[Chunk]) -> list[Evidence]:
    """Return the spans of quotes in the passages; those that the model named need not be right."""
    evidence: list[Evidence] = []
    for quote in quotes:
        # The passage that the model named comes first; sort is stable.
        numbered = sorted(enumerate(chunks, start=1), key=lambda item: item[0] != quote.passage)
        spans = ((number, chunk, find_quote(quote.quote, chunk.text)) for number, chunk in numbered)
        number, chunk, span = next((place for place in spans if place[2]), (0, None, None))
        if chunk is None or span is None:
            raise RejectedError(f"the evidence is not in the passages letter by letter: {quote.quote[:80]!r}")
        evidence.append(Evidence(number, chunk.id, chunk.start + span[0], chunk.start + span[1]))
    if not evidence:
        raise RejectedError("no evidence is quoted")
    return evidence


def _check_support(task_type: str, what: str, claim: str, source: str) -> float:
    """Return the share of a claim's content words in the source; reject too few, or another number."""
    foreign = [number for number in numbers(claim) if number not in set(numbers(source))]
    if foreign:
        raise RejectedError(f"the {what} has a number that its source lacks: {foreign[0]}")
    said = content_words(claim, stemmed=True)
    source_words = set(words(source, stemmed=True))
    share = sum(word in source_words for word in said) / len(said) if said else 0.0
    if share < LEAST_SUPPORT[task_type]:
        missing = [word for word in said if word not in source_words][:5]
        raise RejectedError(f"the {what} uses words that its source does not: {', '.join(missing)}")
    return round(share, 3)


def _check_text(what: str, text: str, *, least: int) -> None:
    if not least <= len(text.strip()) <= _LONGEST:
        raise RejectedError(f"too short or too long: the {what}")
    if not text.replace("\n", " ").replace("\t", " ").isprintable():
        raise RejectedError(f"control characters: in the {what}")


# The plan: which passages each call has, and how many tasks it asks for.


PER_DOCUMENT = {"qa": 4, "summaries": 1}  # tasks of each type
# Passages of a call, and their characters.
_CHUNKS, _CHARACTERS = 6, 9_600


@dataclass
class Call:
    """One call: which tasks, how many, about which passages; and what came of it, if it was made."""

    task_type: str
    count: int
    chunks: list[Chunk]
    document_index: int
    prompt: Prompt
    reply: Reply | None = None
    failed: str = ""  # the kind of the failure
    accepted: list[AcceptedTask] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)  # reasons

    def messages(self) -> list[dict[str, str]]:
        """Return the filled prompt: the passages are material between fences, not instructions."""
        passages = as_material(
            [
                {"passage": number, "title": chunk.title, "section": chunk.section_title, "text": chunk.text}
                for number, chunk in enumerate(self.chunks, start=1)
            ]
        )
        return self.prompt.filled(fence=fence_of(passages), passages=passages, count=str(self.count))

    @property
    def schema(self) -> dict[str, Any]:
        """The form of a reply."""
        return msgspec.json.schema(KINDS[self.task_type][0])

    def answer(self, reply: Reply) -> None:
        """Take the good tasks of a reply, at most as many as were asked for, and why the others are not."""
        kind, check = KINDS[self.task_type]
        accepted: dict[str, AcceptedTask] = {}  # by instruction
        self.reply, tasks = reply, []
        try:
            tasks = parse_strictly(reply.text, kind).tasks
        except BadReplyError as error:
            self.rejected.append(f"not the form asked for: {error}")
        for task in tasks[: self.count]:
            try:
                passed = check(task, self.chunks)
            except RejectedError as error:
                self.rejected.append(str(error))
            else:
                accepted.setdefault(passed.instruction, passed)
        self.accepted = list(accepted.values())


def planned_calls(
    documents: Sequence[CutDocument], wanted: Mapping[str, int], prompts: Mapping[str, Prompt]
) -> list[Call]:
    """Return the calls to make: groups of neighbouring passages, spread over each document.

    `wanted` is the number of tasks of each type per document.
    """
    calls = []
    for index, document in enumerate(documents):
        groups = _groups(document.chunks)
        for task_type, count in wanted.items():
            used = min(len(groups), count)
            for turn in range(used):
                chunks = groups[turn * len(groups) // used]
                share = count // used + (turn < count % used)
                calls.append(Call(task_type, share, chunks, index, prompts[task_type]))
    return calls


def _groups(chunks: Sequence[Chunk]) -> list[list[Chunk]]:
    """Return neighbouring passages, as many as one call may have."""
    groups: list[list[Chunk]] = []
    space = 0
    for chunk in chunks:
        if not groups or len(groups[-1]) == _CHUNKS or len(chunk.text) > space:
            groups.append([])
            space = _CHARACTERS
        groups[-1].append(chunk)
        space -= len(chunk.text)
    return groups
