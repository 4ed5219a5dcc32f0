"""False facts by rule: the answer in the gold text, replaced by another value of its kind."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from random import Random

from ..core.types import Document
from ..metrics.robustness.counterfactual import holds_answer
from .checks import size_of
from .documents import Case, Corpus

_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
_UNIT = r"(?: (?!and\b|of\b|in\b|to\b|or\b|at\b|on\b)[a-z]+)?"
_KINDS = {  # the first that fits the whole value is its kind
    "date": re.compile(rf"\b\d{{1,2}} (?:{_MONTH})(?: \d{{4}})?\b|\b(?:{_MONTH})(?: \d{{1,2}},)? \d{{4}}\b"),
    "year": re.compile(r"\b(?:1[5-9]|20)\d\d\b"),
    "amount": re.compile(rf"(?<![\d.,$])\$?\d[\d,]*(?:\.\d+)?%?{_UNIT}"),
    "code": re.compile(r"\b[A-Z]{1,4}-\d+\b"),
    "name": re.compile(r"\b[A-Z][a-z'-]+(?: [A-Z][a-z'-]+){1,2}\b"),
}
_ONE_NAME = re.compile(r"[A-Z][\w'-]+(?: [A-Z][\w'-]+)*")
_WANTED = re.compile(r"(?i)\b(who|whom|when|where|how \w+|(?:what|which|name the)(?: \w+)?)\b")
_CLOSE = (0.2, 5.0)  # another amount is of similar size


class Facts:
    """The values that can be put in: answers to other questions first, then those of the corpus."""

    def __init__(self, corpus: Corpus, cases: Iterable[Case]) -> None:
        self._corpus = corpus
        self._answers = [
            (_asked_for(case.sample.query), text)
            for case in cases
            for group in case.required
            for text in group
        ]

    @cached_property
    def _values(self) -> dict[str, list[str]]:
        texts = [doc.text for doc in self._corpus.documents]
        return {
            kind: sorted({match[0] for text in texts for match in shape.finditer(text)})
            for kind, shape in _KINDS.items()
        }

    def other(self, value: str, query: str, text: str, chance: Random) -> str | None:
        """Return another value of the same kind that the text does not hold; None if there is none."""
        kind = _kind_of(value)
        if kind is None and not _ONE_NAME.fullmatch(value):
            return None
        wanted = _asked_for(query)
        alike = [
            other
            for asked, other in self._answers
            if asked == wanted and _kind_of(other) == kind and other[:1].isupper() == value[:1].isupper()
        ]
        for pool in (alike, self._values.get(kind or "", [])):
            fits = sorted({other for other in pool if _fits(value, other, kind, text)})
            if fits:
                return chance.choice(fits)
        return None


def _asked_for(query: str) -> str:
    """Return the words that say what kind of answer is wanted: "who", "which year", "how many"."""
    found = _WANTED.search(query)
    return found[1].lower() if found else ""


def _kind_of(value: str) -> str | None:
    return next((kind for kind, shape in _KINDS.items() if shape.fullmatch(value)), None)


def _fits(value: str, other: str, kind: str | None, text: str) -> bool:
    if holds_answer(text, other) or holds_answer(value, other) or len(other.split()) != len(value.split()):
        return False
    if kind != "amount":
        return True
    one, two = size_of(value), size_of(other)
    is_close = bool(one and two and one != two and _CLOSE[0] <= two / one <= _CLOSE[1])
    return is_close and value.partition(" ")[2] == other.partition(" ")[2]  # with the same unit


def falsified(case: Case, facts: Facts, chance: Random) -> tuple[list[Document], str] | str:
    """Return the gold with another value wherever the answer is in it, and that value; or why not."""
    if len(case.answers) != 1:
        return "the answer has several parts"
    text = case.gold_text
    stated = {form for form in case.answers[0] if holds_answer(text, form)}
    if not stated:
        return "the answer is not in the gold text"
    for form in sorted(stated, key=len, reverse=True):  # "27 days" before "27"
        shape = re.compile(rf"(?<![\w.,-]){re.escape(form)}(?![\w-]|[.,]\d)", re.IGNORECASE)
        found = shape.search(text)
        fake = facts.other(found[0] if found else form, case.sample.query, text, chance)
        if fake is None:
            continue
        edited = [replace(doc, text=shape.sub(fake.replace("\\", r"\\"), doc.text)) for doc in case.gold]
        after = "\n".join(doc.text for doc in edited)
        is_true = holds_answer(after, case.answers) or holds_answer(fake, case.answers)
        if not is_true and holds_answer(after, fake):
            return edited, fake
    return "no other value of its kind, or the true one is left"
