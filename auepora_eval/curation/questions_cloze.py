"""Sentences with a blank: for facts whose sentence is too involved to be turned into a question."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .asking import Reading
from .candidates import Candidate
from .clauses import is_labelled
from .english import AUXILIARIES, DATE, LEANING, verbs
from .questions_numbers import amounts
from .sentences import tidy

BLANK = "____"
_VAGUE = re.compile(
    r"The \w+ ?,|The (?:first|second|third|last|other|two|three|former|latter|others)\b (?:was|is|were|are)\b"
    r"|[A-Z][a-z]+(?:ed|ing) "
)
_RANGE = re.compile(
    r"\d ?(?:to|and|–|-) ?$|--? $|\b(?:from|between) \S+(?: \S+)? (?:to|and) $", re.IGNORECASE
)
_STANDS_ALONE = re.compile(
    r" ?[.,;]| (?:and|but|in|on|at|by|with|to|from|for|as|after|before|when|where|because|the)\b|$"
)


def with_a_blank(reading: Reading) -> Iterator[Candidate]:
    """The sentence with its one date, or its one amount, left out."""
    text = reading.text
    words = text.split()
    if reading.sentence.is_item or is_labelled(text) or not 8 <= len(words) <= 32 or not text.endswith("."):
        return
    if not any(
        word in AUXILIARIES or (word in verbs() and verbs()[word].form != "base") for word in words[1:]
    ):
        return  # a caption, not a sentence
    if words[0].lower().strip(",:;.") in LEANING - {
        "in",
        "on",
        "at",
        "by",
        "since",
        "during",
        "from",
        "after",
    }:
        return
    target = _target(text)
    if target is None:
        return
    kind, start, end = target
    sentence = f"{text[:start]}{BLANK}{text[end:]}"
    if not reading.vocabulary.has_name(" ".join(sentence.split()[1:])) or not _names_enough(
        reading, sentence
    ):
        return
    subject = reading.clause.subject if reading.clause else " ".join(words[1:5])
    source = "" if reading.vocabulary.has_name(subject) else tidy(reading.topic)
    according = f', according to "{source}"' if source else ""
    question = f'Fill in the blank{according}: "{tidy(sentence)}"'
    whole = reading.document.source
    first, last = reading.sentence.start + start, reading.sentence.start + end
    yield Candidate(
        "cloze",
        question,
        whole.text[first:last],
        whole.name,
        first,
        last,
        (reading.sentence.start, reading.sentence.end),
        kind,
        topic=source or subject,
    )


def _target(text: str) -> tuple[str, int, int] | None:
    """What is left out: the only date, or the only amount."""
    dates, numbers = list(DATE.finditer(text)), amounts(text)
    if len(dates) == 1 and _RANGE.search(text[: dates[0].start()]):
        return None
    if len(dates) == 1 and _STANDS_ALONE.match(text, dates[0].end()):
        return "date", dates[0].start(), dates[0].end()
    if len(numbers) == 1 and not dates:
        amount = numbers[0]
        if re.match(r" ?(?:to|and|or|–|-) ?[$€£]?\d", text[amount.end :]):
            return None  # one end of a range
        if amount.kind == "count" and not text[amount.start].isdigit():
            return None  # a small number in words is guessed too easily
        end = amount.end if amount.kind == "count" else amount.noun_end
        return "number", amount.start, end
    return None


def _names_enough(reading: Reading, sentence: str) -> bool:
    """At least two names beyond the first word: a sentence about something that can be told apart."""
    names = [word for word in sentence.split()[1:] if reading.vocabulary.is_name(word)]
    odd = (
        re.search(r"[\"“”()\[\]]", sentence)
        or ":" in " ".join(sentence.split()[:4])
        or _VAGUE.match(sentence)
    )
    return len(names) >= 2 and not odd
