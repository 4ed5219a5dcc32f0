"""Are two words one word, spelt in two ways?"""

from __future__ import annotations

_SIMILAR = 80.0  # rapidfuzz's ratio: "watter" and "water" have 91, "increase" and "decrease" 75
_SHORTEST = 4


def spelt_alike(word: str, other: str) -> bool:
    """Whether one of two words may be a slip of the pen for the other: boat and baot, not 2018 and 2019."""
    from rapidfuzz import fuzz
    from rapidfuzz.distance import OSA

    if min(len(word), len(other)) < _SHORTEST or any(c.isdigit() for c in word + other):
        return False
    return fuzz.ratio(word, other) >= _SIMILAR or OSA.distance(word, other, score_cutoff=1) <= 1
