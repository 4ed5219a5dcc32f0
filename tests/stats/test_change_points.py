"""Change points: found where they are, and not where there are none."""

from __future__ import annotations

import numpy as np
import pytest

from auepora_eval.stats import change_points
from auepora_eval.stats.change_points import changes_of_samples, changes_of_values


def places(found: list[change_points.ChangePoint]) -> list[int]:
    return [one.place for one in found]


def answers(rates: list[float], samples: int, seed: int) -> np.ndarray:
    """0/1 scores of samples, some hard and some easy, in runs of these levels."""
    rng = np.random.default_rng(seed)
    hard = rng.random((samples, 1))
    return (hard + rng.normal(0, 0.1, (samples, len(rates))) < np.array(rates)).astype(float)


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        pytest.param([0.5] * 6 + [0.8] * 5, [6], id="a step up"),
        pytest.param([0.8] * 10 + [0.4], [10], id="the last run"),
        pytest.param([0.3] * 5 + [0.6] * 5 + [0.9] * 5, [5, 10], id="two steps"),
        pytest.param([0.4] * 5 + [0.8] * 5 + [0.4] * 5, [5, 10], id="up and down again"),
        pytest.param([0.5, 0.9], [1], id="two runs"),
        pytest.param([0.5], [], id="one run"),
    ],
)
def test_steps_are_found(levels: list[float], expected: list[int]) -> None:
    assert places(changes_of_samples(answers(levels, 200, seed=1))) == expected


def test_a_system_that_answers_the_same_every_night_never_changes() -> None:
    one_night = answers([0.5], 100, seed=2)
    assert changes_of_samples(np.repeat(one_night, 12, axis=1)) == []


def test_the_normal_form_agrees_with_the_shuffles(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    scores = rng.random((300, 2)) + np.array([0.0, 0.05])  # two runs have one cut
    (shuffled,) = changes_of_samples(scores, alpha=0.999)
    monkeypatch.setattr(change_points, "_NORMAL_ABOVE", 0)
    (normal,) = changes_of_samples(scores, alpha=0.999)
    assert normal.p_value == pytest.approx(shuffled.p_value, abs=0.02)
    assert 0.001 < normal.p_value < 0.5


def test_samples_of_a_cluster_count_once() -> None:
    """Twenty copies of five questions are five questions."""
    few = answers([0.4, 0.4, 0.75, 0.75], 5, seed=3)
    copies, names = np.repeat(few, 20, axis=0), [n for n in range(5) for _ in range(20)]
    assert changes_of_samples(copies)
    assert not changes_of_samples(copies, clusters=names)


def test_a_sample_without_a_score_is_left_out() -> None:
    scores = answers([0.5] * 6 + [0.8] * 5, 200, seed=1)
    scores[:50, 3] = np.nan
    assert places(changes_of_samples(scores)) == [6]
    assert changes_of_samples(np.full((5, 4), np.nan)) == []


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param([1.0, 1.1, 0.9, 1.0, 2.0, 2.1, 1.9, 2.0], [4], id="a step"),
        pytest.param([1.0, 1.2, 0.8, 1.1, 0.9, 1.0], [], id="noise"),
        pytest.param([1.0, 2.0], [], id="two runs cannot tell noise from change"),
        pytest.param([1.0] * 5, [], id="all equal"),
        pytest.param([1.0] * 4 + [2.0] * 4, [4], id="no noise at all"),
    ],
)
def test_values_that_waver(values: list[float], expected: list[int]) -> None:
    assert places(changes_of_values(values)) == expected


# Of 200 rows without a change 10 are expected to have a mark, and 20 or more in one of 400 such tests.
ROWS, MOST = 200, 20


@pytest.mark.parametrize(
    ("samples", "runs", "rate"),
    [
        pytest.param(40, 5, 0.5, id="few runs"),
        pytest.param(40, 12, 0.03, id="scores that are rarely 1"),
    ],
)
def test_false_marks_of_samples_are_as_rare_as_stated(samples: int, runs: int, rate: float) -> None:
    rng = np.random.default_rng(samples + runs)
    rows = ((rng.random((samples, runs)) < rate).astype(float) for _ in range(ROWS))
    assert sum(bool(changes_of_samples(row, seed=n)) for n, row in enumerate(rows)) < MOST


@pytest.mark.parametrize("runs", [3, 8])
def test_false_marks_of_values_are_as_rare_as_stated(runs: int) -> None:
    rng = np.random.default_rng(runs)
    assert sum(bool(changes_of_values(rng.normal(size=runs).tolist())) for _ in range(ROWS)) < MOST


def test_scores_are_a_table() -> None:
    with pytest.raises(ValueError, match=r"\(samples, runs\)"):
        changes_of_samples(np.zeros(3))
