"""Spans: sums by hand, the best assignment by trying all, and what a tool of old made of it."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.metrics.citations.sources import (
    GOOD,
    Place,
    assigned,
    jaccard,
    overlapping,
    tolerant_jaccard,
)

spans = st.tuples(st.integers(0, 60), st.integers(1, 40)).map(lambda pair: (pair[0], pair[0] + pair[1]))
places = st.lists(
    st.builds(Place, st.sampled_from("ab"), st.sampled_from([None, 1, 2]), spans), max_size=5, unique=True
)


@pytest.mark.parametrize(
    ("gold", "cited", "exact", "tolerant"),
    [
        pytest.param((100, 200), (100, 200), 1.0, 1.0, id="equal"),
        pytest.param((100, 200), (150, 250), 50 / 150, 50 / 150, id="half-open: 50 of 150"),
        pytest.param((100, 200), (95, 208), 100 / 113, 1.0, id="both ends snap"),
        pytest.param((100, 200), (89, 200), 100 / 111, 100 / 111, id="11 is beyond the tolerance"),
        pytest.param((100, 200), (90, 200), 100 / 110, 1.0, id="10 is within"),
        pytest.param((100, 200), (200, 300), 0.0, 0.0, id="side by side"),
        pytest.param((100, 104), (104, 108), 0.0, 0.0, id="near, but not a character in common"),
        pytest.param((100, 104), (103, 300), 1 / 200, 4 / 200, id="one end snaps"),
        pytest.param((100, 200), (150, 140), 0.0, 0.0, id="no span"),
    ],
)
def test_two_spans(gold: tuple[int, int], cited: tuple[int, int], exact: float, tolerant: float) -> None:
    assert jaccard(gold, cited) == pytest.approx(exact)
    assert tolerant_jaccard(gold, cited) == pytest.approx(tolerant)


@given(spans, spans)
def test_jaccard_counts_characters(one: tuple[int, int], other: tuple[int, int]) -> None:
    left, right = set(range(*one)), set(range(*other))
    assert jaccard(one, other) == pytest.approx(len(left & right) / len(left | right))
    assert jaccard(one, other) == jaccard(other, one)


@given(spans, spans, st.integers(0, 15))
def test_tolerance_only_gives(gold: tuple[int, int], cited: tuple[int, int], tolerance: int) -> None:
    exact, tolerant = jaccard(gold, cited), tolerant_jaccard(gold, cited, tolerance)
    assert exact <= tolerant + 1e-12
    assert tolerant <= tolerant_jaccard(gold, cited, tolerance + 1) + 1e-12
    assert tolerant_jaccard(gold, cited, 0) == pytest.approx(exact)


@given(places, places)
@settings(deadline=None)
def test_the_assignment_is_the_best_of_all(gold: list[Place], cited: list[Place]) -> None:
    pairs = overlapping(gold, cited)
    chosen = assigned(pairs)
    assert len({match.gold for match in chosen}) == len({match.cited for match in chosen}) == len(chosen)
    worth = {(pair.gold, pair.cited): pair.tolerant for pair in pairs}
    slots = [*range(len(cited)), *([-1] * len(gold))]
    best = (
        max(
            sum(worth.get(pair, 0.0) for pair in enumerate(order)) for order in permutations(slots, len(gold))
        )
        if len(slots) < 8
        else None
    )
    if best is not None:
        assert sum(match.tolerant for match in chosen) == pytest.approx(best)
    for match in chosen:
        one, other = gold[match.gold], cited[match.cited]
        assert one.file == other.file
        assert None in (one.page, other.page) or one.page == other.page
        assert match.exact <= match.tolerant + 1e-12
        assert match.exact < 1.0 or match.tolerant >= GOOD  # a perfect match is a good one


@given(places, places, st.integers(0, 20))
def test_pairs_have_the_jaccards_of_their_spans(
    gold: list[Place], cited: list[Place], tolerance: int
) -> None:
    for left, right, exact, tolerant in overlapping(gold, cited, tolerance):
        one, other = gold[left].span, cited[right].span
        assert one is not None
        assert other is not None
        assert (exact, tolerant) == (jaccard(one, other), tolerant_jaccard(one, other, tolerance))
