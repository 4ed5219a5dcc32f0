"""Whether two texts contradict each other, as far as their words and numbers show it.

A score from 0 to 1 for a premise and a hypothesis, without a model: the best pair of sentences about the same
thing, of which one negates, reverses the direction, uses an opposite word or gives another number. It sees no
implication, and two numbers may both be right: an entailment model in its place sees more.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

from ...core.metrics_base import metric, skip
from ...core.types import SampleScore
from ...text.content_words import content_words, without_marks
from ...text.sentences import sentences
from ...text.tokens import stemmed_word, words
from ..entailment import SUPPORTS, Support
from .grounding import GroundingMetric, hits, word_places
from .numbers import quantities

_T = TypeVar("_T")
# Sentences are compared pair by pair: the time grows with the square.
MAX_SENTENCES = 40
# Shares of the shorter sentence's words that the other one has: a conflict counts fully, or not at all.
_SAME_TOPIC, _LEAST_TOPIC = 0.5, 0.2

# How far each kind of conflict alone speaks for a contradiction.
_NEGATED, _REVERSED, _OPPOSITE, _OTHER_NUMBER, _YES_AND_NO = 0.5, 0.75, 0.75, 0.7, 0.8


def _stems(text: str) -> frozenset[str]:
    return frozenset(map(stemmed_word, text.split()))


_DIRECTIONS = {
    "up": _stems(
        "increase rise rose risen grow grew grown gain climb improve exceed surge jump higher up raise expand"
    ),
    "down": _stems(
        "decrease decline fall fell fallen drop lose lost loss losses reduce lower shrink plunge down worsen "
        "cut"
    ),
    "flat": _stems("stable unchanged flat steady constant"),
}
_OPPOSITES = tuple(
    (_stems(left), _stems(right))
    for left, right in (
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
)
# Words of a conflict are not words of the topic.
_CONFLICT_WORDS = frozenset().union(*_DIRECTIONS.values(), *(side for pair in _OPPOSITES for side in pair))
_NEGATIONS = frozenset(
    "not no never none cannot can't won't don't doesn't didn't isn't aren't wasn't weren't without neither "
    "nor nothing hardly".split()
)
_NAMED_NUMBER = re.compile(r"\b[A-Za-z]+[-&]?\d[\w.]*|(?<=\bS&P )\d+|\b(?:19|20)\d\d\b(?![\d.,]*\s?%)")
_YEAR, _QUARTER = (
    re.compile(r"\b(?:19|20)\d\d\b"),
    re.compile(r"\bq([1-4])\b|\b(first|second|third|fourth) quarter"),
)
# A day is part of the statement, not the period that it is about: 1 October 2009, October 1, 2009.
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
_DAY = re.compile(
    rf"\b\d{{1,2}}(?:st|nd|rd|th)? {_MONTH},? \d{{4}}\b|\b{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}\b"
)
_QUARTERS = {"first": "1", "second": "2", "third": "3", "fourth": "4"}
# "did not really fall": a negation and the next three words, one of which may be a direction.
_NOT_THIS_WAY = re.compile(r"(?:\b(?:not|never|no|without|hardly|cannot)|n't)((?: (?!only\b)[a-z-]++){1,3}+)")
_NEGATIVE_RETURNS = re.compile(r"\bnegative\s+(?:returns?|growth)\b", re.IGNORECASE)


class _Said(NamedTuple):
    """What a sentence says, as far as this module can read it."""

    topic: frozenset[str]
    # Those that it leaves open: one, or, negated, the other two; none if it is ambiguous.
    directions: frozenset[str]
    words: frozenset[str]
    negated: bool
    answer: str  # "yes", "no" or ""
    percentages: frozenset[float]
    amounts: frozenset[float]
    years: frozenset[str]
    quarters: frozenset[str]


def lexical_contradiction(premise: str, hypothesis: str) -> float:
    """Return how far two texts contradict each other: 0 not at all, 1 plainly.

    >>> lexical_contradiction("Revenue grew 17% last year.", "Revenue declined 5% last year.") > 0.6
    True
    >>> lexical_contradiction("Revenue grew 17% last year.", "Revenue grew 17% in the past year.")
    0.0
    """
    first, second = (
        [_read(sentence) for sentence in sentences(text)[:MAX_SENTENCES]] for text in (premise, hypothesis)
    )
    return max((_conflict(a, b) for a in first for b in second), default=0.0)


_NEAREST = 3  # document sentences that a sentence of the answer is compared with


@metric("lexical_consistency")
class LexicalConsistency(GroundingMetric):
    """How much of each sentence of the answer one sentence of the documents has and does not contradict.

    For each sentence of the answer, the best of the three document sentences nearest to it: the share of its
    content words that this sentence has, times 1 - how far the two contradict each other by a negation, a
    direction (rose, fell), an opposite word, or other numbers. The mean over the sentences that have content
    words. Implications are not seen, and names that changed places hardly.
    """

    listed = False

    def support(self, answer: str, documents: Sequence[str]) -> float | SampleScore:
        texts = list(dict.fromkeys(sentence for text in documents for sentence in sentences(text)))
        places = word_places(set(words(text, stemmed=True)) for text in texts)
        values = []
        for sentence in sentences(answer):
            if content := content_words(sentence, stemmed=True):
                nearest = hits(content, places).most_common(_NEAREST)
                agreeing = (
                    shared / len(content) * (1 - _conflict(_read(texts[place]), _read(sentence)))
                    for place, shared in nearest
                )
                values.append(max(agreeing, default=0.0))
        return sum(values) / len(values) if values else skip("the answer has no content words")


def consistent_support(premise: str, hypothesis: str) -> float:
    """Return how far a text supports a claim by its words and does not contradict it: lexical_consistency.

    >>> consistent_support("The Annet moors at the pier.", "The Annet does not moor at the pier.")
    0.5
    """
    score = LexicalConsistency().support(without_marks(hypothesis), [premise])
    return score if isinstance(score, float) else 0.0


@SUPPORTS.add("consistent")
def _consistent() -> Support:
    return consistent_support


def clash(first: str, second: str) -> tuple[bool, bool]:
    """Return whether one of two sentences negates, and whether they use opposite words or directions."""
    a, b = _read(first), _read(second)
    return a.negated != b.negated, _differ(a.directions, b.directions) or _have_opposites(a, b)


def _conflict(a: _Said, b: _Said) -> float:
    shorter = min(len(a.topic), len(b.topic))
    shared = len(a.topic & b.topic) / shorter if shorter else 0.0
    if shared < _LEAST_TOPIC:
        return 0.0
    signs = [
        _NEGATED * (a.negated != b.negated),
        _REVERSED * _differ(a.directions, b.directions),
        _OPPOSITE * _have_opposites(a, b),
        _OTHER_NUMBER * _other_numbers(a, b),
        _YES_AND_NO * ({a.answer, b.answer} == {"yes", "no"}),
    ]
    # Signs are taken as independent: each leaves a share of the doubt.
    spared = math.prod(1 - sign for sign in signs)
    return round((1 - spared) * min(1.0, shared / _SAME_TOPIC), 4)


def _other_numbers(a: _Said, b: _Said) -> bool:
    """Return whether the numbers differ; those of two years or of two quarters may."""
    if _differ(a.years, b.years) or _differ(a.quarters, b.quarters):
        return False
    return _differ(a.percentages, b.percentages) or _differ(a.amounts, b.amounts)


def _have_opposites(a: _Said, b: _Said) -> bool:
    """Return whether each has words of one side of a pair of opposites, and not of the same one."""
    for left, right in _OPPOSITES:
        sides = [(bool(said.words & left), bool(said.words & right)) for said in (a, b)]
        if sides in ([(True, False), (False, True)], [(False, True), (True, False)]):
            return True
    return False


def _differ(a: frozenset[_T], b: frozenset[_T]) -> bool:
    """Return whether both sides have something and share nothing: an added number does not contradict."""
    return bool(a and b and not a & b)


@lru_cache(maxsize=4096)
def _read(sentence: str) -> _Said:
    plain = sentence.replace("’", "'")
    tokens = re.findall(r"[\w'$%.-]+", plain.lower())
    stems = frozenset(stemmed_word(word) for word in words(plain))
    directions, flipped = _open_directions(plain, stems)
    negations = sum(word.strip(".,-") in _NEGATIONS for word in tokens)
    first = tokens[0].strip(".,-") if tokens else ""
    topic = content_words(plain, stemmed=True)
    numbers = quantities(_NAMED_NUMBER.sub(" ", plain))
    return _Said(
        topic=frozenset(word for word in topic if not word.isdigit()) - _CONFLICT_WORDS,
        directions=directions,
        words=stems,
        negated=negations > flipped,  # "did not fall" says which way it went, and denies nothing else
        answer=first if first in ("yes", "no") else "",
        percentages=frozenset(round(q.value, 9) for q in numbers if q.scale == 0.01),
        amounts=frozenset(round(q.value, 6) for q in numbers if q.scale != 0.01),
        years=frozenset(_YEAR.findall(_DAY.sub(" ", plain.lower()))),
        quarters=frozenset(number or _QUARTERS[word] for number, word in _QUARTER.findall(plain.lower())),
    )


def _open_directions(sentence: str, stems: frozenset[str]) -> tuple[frozenset[str], bool]:
    """Return the directions that a sentence leaves open, and whether a negation turned it around."""
    if _NEGATIVE_RETURNS.search(sentence):
        return frozenset({"down"}), False
    named = [name for name, listed in _DIRECTIONS.items() if stems & listed]
    if len(named) != 1:
        return frozenset(), False
    listed = _DIRECTIONS[named[0]]
    for match in _NOT_THIS_WAY.finditer(" ".join(sentence.lower().split())):
        if any(stemmed_word(word) in listed for word in match[1].split()):
            return frozenset(_DIRECTIONS) - {named[0]}, True
    return frozenset(named), False
