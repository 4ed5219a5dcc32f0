"""How well cited places agree with the gold ones: one to one, file by file, in characters.

Spans are half-open: 10 to 20 are ten characters. Two places can match only in one file, and on one page where
both name one. A boundary that misses the gold one by no more than the tolerance counts as right ("snaps");
spans that share no character are different places, however near. Gold without a partner counts 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from .sources import Place

Span = tuple[int, int]
TOLERANCE = 10
GOOD = 0.8
OVERLAP = 0.5


class Match(NamedTuple):
    """A gold place and the cited one that was assigned to it, by their numbers, and how well they agree."""

    gold: int
    cited: int
    exact: float
    tolerant: float


def jaccard(one: Span, other: Span) -> float:
    """Characters in both spans / characters in either.

    >>> jaccard((100, 200), (150, 250))
    0.3333333333333333
    """
    shared = min(one[1], other[1]) - max(one[0], other[0])
    if shared <= 0:
        return 0.0
    return shared / (one[1] - one[0] + other[1] - other[0] - shared)


def tolerant_jaccard(gold: Span, cited: Span, tolerance: int = TOLERANCE) -> float:
    """Return the same, after each cited boundary within the tolerance was moved to the gold one.

    >>> tolerant_jaccard((100, 200), (95, 208))
    1.0
    """
    if min(gold[1], cited[1]) <= max(gold[0], cited[0]):
        return 0.0
    start = gold[0] if abs(cited[0] - gold[0]) <= tolerance else cited[0]
    end = gold[1] if abs(cited[1] - gold[1]) <= tolerance else cited[1]
    return jaccard(gold, (start, end))


def overlapping(gold: Sequence[Place], cited: Sequence[Place], tolerance: int = TOLERANCE) -> list[Match]:
    """Return every pair that has characters in common."""
    pairs = []
    for left, right in _same_page(gold, cited):
        one, other = gold[left].span, cited[right].span
        if one is None or other is None:
            continue
        # `jaccard` and `tolerant_jaccard` written out: there may be a million pairs.
        (first, last), (start, end) = one, other
        shared = (last if last < end else end) - (first if first > start else start)
        if shared <= 0:
            continue
        exact = shared / (last - first + end - start - shared)
        if -tolerance <= start - first <= tolerance or -tolerance <= end - last <= tolerance:
            pairs.append(Match(left, right, exact, tolerant_jaccard(one, other, tolerance)))
        else:
            pairs.append(Match(left, right, exact, exact))
    return pairs


def assigned(pairs: Sequence[Match]) -> list[Match]:
    """Return the one-to-one choice with the largest sum of tolerant Jaccards, then of exact ones."""
    if not pairs:
        return []
    of_gold, of_cited, exact, tolerant = zip(*pairs, strict=True)
    if len(set(of_gold)) == len(set(of_cited)) == len(pairs):
        return list(pairs)  # nobody competes for anything
    from scipy.optimize import linear_sum_assignment

    gold, rows = np.unique(of_gold, return_inverse=True)
    cited, columns = np.unique(of_cited, return_inverse=True)
    worth = np.zeros((len(gold), len(cited)))
    # Exact agreement only breaks ties: no sum of these differences reaches a real one.
    worth[rows, columns] = np.array(tolerant) + 1e-9 * np.array(exact)
    numbers = np.full(worth.shape, -1)
    numbers[rows, columns] = np.arange(len(pairs))
    chosen = numbers[linear_sum_assignment(worth, maximize=True)].tolist()
    return [pairs[number] for number in chosen if number >= 0]


def found(
    gold: Sequence[Place], cited: Sequence[Place], pairs: Sequence[Match], overlap: float = OVERLAP
) -> tuple[int, int]:
    """Return how many of each list have a partner in the other: same file and page, and enough overlap.

    `pairs` are those that overlap. A place without a span is the whole file, which has every span of it.
    """
    agreeing = [(pair.gold, pair.cited) for pair in pairs if pair.tolerant >= overlap]
    if any(place.span is None for place in (*gold, *cited)):
        for left, right in _same_page(gold, cited):
            if gold[left].span is None or cited[right].span is None:
                agreeing.append((left, right))
    return len({left for left, _ in agreeing}), len({right for _, right in agreeing})


def _same_page(gold: Sequence[Place], cited: Sequence[Place]) -> Iterator[tuple[int, int]]:
    by_file: dict[str, list[int]] = {}
    for number, place in enumerate(cited):
        by_file.setdefault(place.file, []).append(number)
    for left, (file, page, _) in enumerate(gold):
        for right in by_file.get(file, ()):
            if page is None or (other := cited[right].page) is None or page == other:
                yield left, right
