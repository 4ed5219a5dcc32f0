"""The n-grams of a text: of its characters, or of its tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any


def ngrams(tokens: Sequence[Any], n: int) -> Counter[Any]:
    """Return the n-grams of a sequence with their counts; substrings of a string, tuples of a list."""
    if isinstance(tokens, str):
        return Counter([tokens[start : start + n] for start in range(len(tokens) - n + 1)])
    return Counter(zip(*(tokens[start:] for start in range(n)), strict=False))


def shared_ngrams(given: Sequence[Any], gold: Sequence[Any], n: int) -> int:
    """Return how many n-grams two sequences share, repeats counted."""
    return (ngrams(given, n) & ngrams(gold, n)).total()
