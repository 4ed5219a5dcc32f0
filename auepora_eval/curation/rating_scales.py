"""Words that people rate with, from the worst to the best: is the order of these known?"""

from __future__ import annotations

import re
from collections.abc import Collection

# Words on one line mean the same degree.
_SCALES = tuple(
    {word: degree for degree, words in enumerate(scale) for word in words.split()}
    for scale in (
        (
            "very_poor terrible",
            "poor bad",
            "fair average acceptable adequate",
            "good",
            "very_good",
            "excellent",
        ),
        ("none", "very_low", "low", "medium moderate", "high", "very_high"),
        ("no", "partial partly partially", "yes"),
        ("strongly_disagree", "disagree", "neutral", "agree", "strongly_agree"),
    )
)
# fully_correct, mostly_correct, ...: a degree, and the same noun in all of them; incorrect is not_correct.
_DEGREES = {
    word: degree
    for degree, words in enumerate(
        (
            "not",
            "poorly barely",
            "partially partly somewhat",
            "moderately adequately",
            "mostly largely",
            "well",
            "fully completely entirely",
        )
    )
    for word in words.split()
}
_WITH_DEGREE = re.compile(rf"({'|'.join(sorted(_DEGREES, key=len, reverse=True))})_(.+)", re.DOTALL)
_NEGATED = re.compile(r"(?:in|un)(.+)", re.DOTALL)


def known_order(ratings: Collection[str]) -> list[str] | None:
    """The ratings from the worst to the best; None where the words do not tell.

    >>> known_order({"fully_correct", "incorrect", "mostly_correct"})
    ['incorrect', 'mostly_correct', 'fully_correct']
    >>> known_order({"good", "blue"}) is None
    True
    """
    places = _numbers(ratings) or _on_one_scale(ratings) or _by_degree(ratings)
    if places is None or len(set(places.values())) < len(places):
        return None
    return sorted(places, key=places.__getitem__)


def _numbers(ratings: Collection[str]) -> dict[str, float] | None:
    if not all(re.fullmatch(r"-?[0-9]{1,9}(\.[0-9]{1,9})?", rating) for rating in ratings):
        return None
    return {rating: float(rating) for rating in ratings}


def _on_one_scale(ratings: Collection[str]) -> dict[str, float] | None:
    for scale in _SCALES:
        if all(_plain(rating) in scale for rating in ratings):
            return {rating: scale[_plain(rating)] for rating in ratings}
    return None


def _by_degree(ratings: Collection[str]) -> dict[str, float] | None:
    found = {rating: _WITH_DEGREE.fullmatch(_plain(rating)) for rating in ratings}
    nouns = {match[2] for match in found.values() if match}
    if len(nouns) != 1:
        return None
    places: dict[str, float] = {}
    for rating, match in found.items():
        negated = _NEGATED.fullmatch(_plain(rating))
        if match:
            places[rating] = _DEGREES[match[1]]
        elif negated and negated[1] in nouns:
            places[rating] = _DEGREES["not"]
        else:
            return None
    return places


def _plain(rating: str) -> str:
    return re.sub(r"[\s-]+", "_", rating.strip().lower())
