"""Whether two texts contradict each other, as far as their words and numbers show it.

A score from 0 to 1 for a premise and a hypothesis, without a model: the best pair of sentences about the same
thing, of which one negates, reverses the direction, uses an opposite word or gives another number. It sees no
implication, and two numbers may both be right: an entailment model in its place sees more.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from .content import content_words
from .numbers import quantities
from .sentences import sentences
from .text import stemmed_word, words

MAX_SENTENCES = 40
_SAME_TOPIC = (
    0.5  # share of the shorter sentence's words that the other one has, from which a conflict counts whole
)
_LEAST_TOPIC = 0.2

# How far each kind of conflict alone speaks for a contradiction.
_NEGATED, _REVERSED, _OPPOSITE, _OTHER_NUMBER, _YES_AND_NO = 0.5, 0.75, 0.75, 0.7, 0.8

_UP = "increase rise rose risen grow grew grown gain climb improve exceed surge jump higher up raise expand"
_DOWN = (
    "decrease decline fall fell fallen drop lose lost loss losses reduce lower shrink plunge down worsen cut"
)
_FLAT = "stable unchanged flat steady constant"
_OPPOSITES = (
    ("outperform", "underperform"),
    ("exceed beat surpass meet met", "miss disappoint short"),
    ("buy", "sell hold"),
    ("high elevated", "low moderate"),
    ("positive", "negative"),
    ("safe", "risky dangerous unsafe"),
    ("legal lawful allowed permitted", "illegal unlawful prohibited forbidden banned"),
    ("always guaranteed certain", "never uncertain"),
    ("true correct right", "false incorrect wrong"),
    ("possible", "impossible"),
    ("taxable", "exempt"),
    ("cheap undervalued", "expensive overvalued"),
    ("bullish", "bearish"),
    ("profit", "loss losses"),
    ("insured protected", "uninsured unprotected"),
    ("centralized", "decentralized"),
    ("before", "after"),
    ("more", "less fewer"),
)
_NEGATIONS = frozenset(
    "not no never none cannot can't won't don't doesn't didn't isn't aren't wasn't weren't without neither "
    "nor nothing hardly".split()
)
_NAMED_NUMBER = re.compile(r"\b[A-Za-z]+[-&]?\d[\w.]*|(?<=\bS&P )\d+|\b(?:19|20)\d\d\b(?![\d.,]*\s?%)")
_NEGATIVE_RETURNS = re.compile(r"\bnegative\s+(?:returns?|growth)\b", re.IGNORECASE)


class _Said(NamedTuple):
    """What a sentence says, as far as this module can read it."""

    topic: frozenset[str]
    directions: frozenset[str]
    words: frozenset[str]
    negated: bool
    answer: str  # "yes", "no" or ""
    percentages: frozenset[float]
    amounts: frozenset[float]


def lexical_contradiction(premise: str, hypothesis: str) -> float:
    """How far two texts contradict each other: 0 not at all, 1 plainly.

    >>> lexical_contradiction("Revenue grew 17% last year.", "Revenue declined 5% last year.") > 0.6
    True
    >>> lexical_contradiction("Revenue grew 17% last year.", "Revenue grew 17% in the past year.")
    0.0
    """
    first, second = (
        [_read(sentence) for sentence in sentences(text)[:MAX_SENTENCES]] for text in (premise, hypothesis)
    )
    return max((_conflict(a, b) for a in first for b in second), default=0.0)


def _conflict(a: _Said, b: _Said) -> float:
    shorter = min(len(a.topic), len(b.topic))
    shared = len(a.topic & b.topic) / shorter if shorter else 0.0
    if shared < _LEAST_TOPIC:
        return 0.0
    signs = [
        _NEGATED * (a.negated != b.negated),
        _REVERSED * _opposed(a.directions, b.directions),
        _OPPOSITE * any(_opposed_words(a.words, b.words, pair) for pair in _opposites()),
        _OTHER_NUMBER * (_differ(a.percentages, b.percentages) or _differ(a.amounts, b.amounts)),
        _YES_AND_NO * ({a.answer, b.answer} == {"yes", "no"}),
    ]
    spared = 1.0
    for sign in signs:
        spared *= 1 - sign
    return round((1 - spared) * min(1.0, shared / _SAME_TOPIC), 4)


def _opposed(a: frozenset[str], b: frozenset[str]) -> bool:
    """One direction against another; a sentence that names both says nothing."""
    return len(a) == 1 == len(b) and a != b


def _opposed_words(a: frozenset[str], b: frozenset[str], pair: tuple[frozenset[str], frozenset[str]]) -> bool:
    left, right = pair
    return bool(
        (a & left and b & right and not a & right and not b & left)
        or (a & right and b & left and not a & left and not b & right)
    )


def _differ(a: frozenset[float], b: frozenset[float]) -> bool:
    """Numbers on both sides and none in common: a text that adds a number does not contradict."""
    return bool(a and b and not a & b)


@lru_cache(maxsize=4096)
def _read(sentence: str) -> _Said:
    plain = sentence.replace("’", "'")
    tokens = re.findall(r"[\w'$%.-]+", plain.lower())
    stems = frozenset(stemmed_word(word) for word in words(plain))
    up, down, flat = _directions()
    found = {name for name, listed in (("up", up), ("down", down), ("flat", flat)) if stems & listed}
    if _NEGATIVE_RETURNS.search(plain):
        found = {"down"}
    first = tokens[0].strip(".,-") if tokens else ""
    numbers = quantities(_NAMED_NUMBER.sub(" ", plain))
    known = up | down | flat | frozenset(word for pair in _opposites() for side in pair for word in side)
    return _Said(
        topic=frozenset(word for word in content_words(plain, stemmed=True) if not word.isdigit()) - known,
        directions=frozenset(found),
        words=stems,
        negated=bool(_NEGATIONS & {word.strip(".,-") for word in tokens}),
        answer=first if first in ("yes", "no") else "",
        percentages=frozenset(round(q.value, 9) for q in numbers if q.scale == 0.01),
        amounts=frozenset(round(q.value, 6) for q in numbers if q.scale != 0.01),
    )


@lru_cache(maxsize=1)
def _directions() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    up, down, flat = (frozenset(map(stemmed_word, listed.split())) for listed in (_UP, _DOWN, _FLAT))
    return up, down, flat


@lru_cache(maxsize=1)
def _opposites() -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
    return tuple(
        (frozenset(map(stemmed_word, left.split())), frozenset(map(stemmed_word, right.split())))
        for left, right in _OPPOSITES
    )
