"""Choosing what to annotate, and the mean that is estimated from what was chosen."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from auepora_eval.people.items import chosen
from auepora_eval.people.task import Item
from auepora_eval.stats.sampling import sampled_mean
from tests.people.tasks import an_item


def items(count: int) -> list[Item]:
    """Items of three slices: one in ten is hard, the others easy or medium; one metric rises, one is flat."""
    return [
        an_item(
            number,
            slices={"level": "hard" if number % 10 == 0 else ("easy", "medium")[number % 2]},
            scores={"rising": number / (count - 1), "flat": 0.5},
            runs=("one" if number < count // 4 else "two",),
        )
        for number in range(count)
    ]


def test_random_takes_each_item_with_the_same_chance() -> None:
    picked = chosen(items(100), "random", 10, seed=0)
    assert len({item.sample_id for item in picked}) == 10
    assert {item.chance for item in picked} == {0.1}
    assert [item.item_id for item in picked] == [str(number) for number in range(1, 11)]
    assert picked == chosen(items(100), "random", 10, seed=0)
    assert picked != chosen(items(100), "random", 10, seed=1)


@pytest.mark.parametrize(
    ("how", "count", "expected"),
    [
        ("slice:level", 9, {"hard": 3, "easy": 3, "medium": 3}),
        ("slice:level", 60, {"hard": 10, "easy": 25, "medium": 25}),
    ],
)
def test_slices_get_the_same_number_as_far_as_they_have_it(
    how: str, count: int, expected: dict[str, int]
) -> None:
    picked = chosen(items(100), how, count, seed=0)
    assert Counter(item.slices["level"] for item in picked) == expected
    sizes = Counter(item.slices["level"] for item in items(100))
    for item in picked:
        level = item.slices["level"]
        assert item.chance == pytest.approx(expected[level] / sizes[level])


def test_runs_get_the_same_number() -> None:
    picked = chosen(items(100), "run", 10, seed=0)
    assert Counter(item.runs[0] for item in picked) == {"one": 5, "two": 5}


def test_disagree_takes_where_two_metrics_differ_most() -> None:
    picked = chosen(items(101), "disagree:rising,flat", 4, seed=0)
    assert {item.sample_id for item in picked} == {"q0", "q1", "q99", "q100"}


def test_a_mean_with_equal_chances_is_the_mean() -> None:
    mean = sampled_mean(np.array([1.0, 1, 0, 1] * 10), np.full(40, 0.1), 400)
    assert mean is not None
    assert mean.value == pytest.approx(0.75)
    assert (mean.low, mean.high) == pytest.approx((0.60, 0.87), abs=0.02)  # by Wilson 0.60 to 0.86
    assert sampled_mean(np.array([1.0]), np.array([0.1]), 10) is None


def test_the_interval_covers() -> None:
    """Half of the items have a tenth of the chance, and another share of yes."""
    rng = np.random.default_rng(7)
    repeats, total, truth = 300, 400, 0.6
    covered = 0
    for _ in range(repeats):
        rare = np.arange(total) % 2 == 0
        labels = (rng.random(total) < np.where(rare, 0.9, 0.3)).astype(float)
        chances = np.where(rare, 0.05, 0.25)
        there = rng.random(total) < chances
        mean = sampled_mean(labels[there], chances[there], total)
        assert mean is not None
        covered += mean.low <= truth <= mean.high
    assert covered / repeats > 0.92
