"""Tests of difference: exact cases by hand, scipy as the judge, false alarms counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy.stats import binomtest, permutation_test

from auepora_eval.stats.significance import PairedTest, paired_swap_test, sign_flip_tests


def paired_permutation_test(a: ArrayLike, b: ArrayLike, **settings: Any) -> PairedTest:
    differences = np.asarray(b, dtype=np.float64) - np.asarray(a, dtype=np.float64)
    return sign_flip_tests(differences.reshape(-1, 1), **settings)[0]


def test_few_pairs_are_enumerated() -> None:
    # Five wins of one: 2 of the 32 ways to flip the signs are as extreme, so p = 1/16.
    assert paired_permutation_test([0] * 5, [1] * 5).p_value == pytest.approx(2 / 32)


def test_for_0_and_1_it_is_the_exact_mcnemar_test() -> None:
    a, b = [1, 1, 0, 0, 0, 0, 0, 1], [0, 0, 1, 1, 1, 1, 1, 1]  # 2 losses, 5 wins, 1 tie
    assert paired_permutation_test(a, b).p_value == pytest.approx(binomtest(2, 7).pvalue)
    assert binomtest(2, 7).pvalue == pytest.approx(0.453125)


@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a = rng.random(60)
    b = a + rng.normal(0.03, 0.1, 60)
    ours = paired_permutation_test(a, b, resamples=20_000).p_value
    theirs = permutation_test(
        (a, b),
        lambda x, y, axis: (y - x).mean(axis=axis),
        permutation_type="samples",
        n_resamples=20_000,
        rng=np.random.default_rng(1),
    ).pvalue
    assert ours == pytest.approx(theirs, abs=0.012)


def test_p_is_never_zero() -> None:
    a = np.zeros(200)
    assert paired_permutation_test(a, a + 1, resamples=999).p_value == pytest.approx(1 / 1000)


def test_the_p_of_a_swap_is_never_zero_either() -> None:
    a = np.zeros((60, 1))
    swap = paired_swap_test(a, a + 1, lambda rows: rows[..., 0].mean(axis=-1), resamples=199)
    assert swap.p_value == pytest.approx(1 / 200)


def test_flips_that_tie_up_to_rounding_count() -> None:
    # 0.1 + 0.2 differs from 0.3 in the last bit: both flips of these three are as extreme as what was seen.
    result = paired_permutation_test([0.0, 0.0, 0.0], [0.1, 0.2, -0.3 + 1e-17])
    assert result.p_value == 1.0


def test_equal_systems_do_not_differ() -> None:
    result = paired_permutation_test([0.1, 0.5], [0.1, 0.5])
    assert (result.p_value, result.statistic) == (1.0, 0.0)


def test_clusters_are_flipped_together() -> None:
    rng = np.random.default_rng(0)
    shift = np.repeat(rng.normal(0, 1, 6), 20)  # 120 samples, but only six independent facts
    a = rng.random(120)
    naive = paired_permutation_test(a, a + shift + 0.4).p_value
    honest = paired_permutation_test(
        a, a + shift + 0.4, clusters=np.repeat(np.arange(6), 20).tolist()
    ).p_value
    assert naive < 0.01 < honest


def test_false_alarms_come_as_often_as_alpha_says() -> None:
    rng = np.random.default_rng(11)
    alarms = sum(
        paired_permutation_test(rng.random(25), rng.random(25), resamples=400, seed=n).p_value < 0.05
        for n in range(400)
    )
    assert 0.02 <= alarms / 400 <= 0.08


def test_the_swap_test_of_a_mean_is_the_sign_flip_test() -> None:
    rng = np.random.default_rng(2)
    a = rng.random((40, 1))
    b = a + rng.normal(0.05, 0.1, (40, 1))
    swap = paired_swap_test(a, b, lambda rows: rows[..., 0].mean(axis=-1), resamples=20_000)
    flip = paired_permutation_test(a[:, 0], b[:, 0], resamples=20_000)
    assert swap.p_value == pytest.approx(flip.p_value, abs=0.012)
    assert paired_swap_test(a, a, lambda rows: rows[..., 0].mean(axis=-1)).p_value == 1.0


@pytest.mark.parametrize("shift", [0.0, 0.005, 0.01])
def test_very_many_pairs_need_no_draws(shift: float) -> None:
    """The normal form says what 2,000 flips, drawn here, say."""
    rng = np.random.default_rng(5)
    differences = rng.normal(shift, 1, 21_000)
    ours = paired_permutation_test(np.zeros(21_000), differences)
    assert ours.method == "sign flip, normal form, 21000 units"
    signs = 1 - 2 * rng.integers(0, 2, (1_500, 21_000), dtype=np.int8).astype(np.float32)
    drawn = signs @ differences.astype(np.float32)
    assert ours.p_value == pytest.approx((np.abs(drawn) >= abs(differences.sum())).mean(), abs=0.03)


def test_a_binary_metric_is_mcnemar_however_many_there_are() -> None:
    a, b = np.zeros(60_000), np.ones(60_000)
    a[:29_800], b[:29_800] = 1.0, 0.0  # 29,800 losses, 30,200 wins
    ours = paired_permutation_test(a, b)
    assert ours.method == "sign flip, 10000 resamples, seed 0"
    assert ours.p_value == pytest.approx(binomtest(29_800, 60_000).pvalue, abs=0.01)


def test_one_huge_difference_among_many_is_not_called_normal() -> None:
    rng = np.random.default_rng(0)
    b = 1e-6 * rng.random(21_000)
    b[0] = 1.0
    assert "resamples" in paired_permutation_test(np.zeros(21_000), b, resamples=199).method


@pytest.mark.parametrize("kind", ["many values", "few values"])
@pytest.mark.parametrize("seed", range(3))
def test_both_ways_to_flip_agree_with_scipy(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    d = rng.normal(0.03, 0.3, 150) if kind == "many values" else rng.choice([-1, 0, 0.5, 1], 150) - 0.05
    theirs = permutation_test(
        (d, np.zeros(150)),
        lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples",
        n_resamples=4_000,
        vectorized=True,
        rng=np.random.default_rng(9),
    )
    assert paired_permutation_test(np.zeros(150), d).p_value == pytest.approx(theirs.pvalue, abs=0.03)


def test_columns_do_not_know_of_each_other() -> None:
    """Alone or beside others, in any block: the same seed gives a column the same p-value."""
    rng = np.random.default_rng(3)
    columns = np.stack(
        [rng.normal(0.02, 0.2, 300), rng.choice([-1.0, 0.0, 1.0], 300), rng.normal(0, 1, 300)], axis=1
    )
    together = sign_flip_tests(columns)
    for place in range(3):
        assert together[place].p_value == sign_flip_tests(columns[:, [place]])[0].p_value
    assert sign_flip_tests(columns, seed=1)[0] != together[0]


def test_a_pair_that_is_not_there_does_not_count() -> None:
    rng = np.random.default_rng(4)
    whole = rng.normal(0.1, 1, 200)
    with_gaps = np.concatenate([whole, np.full(50, np.nan)]).reshape(-1, 1)
    found = sign_flip_tests(with_gaps)[0]
    assert found.statistic == pytest.approx(whole.mean())
    assert found.p_value == pytest.approx(paired_permutation_test(np.zeros(200), whole).p_value, abs=0.02)
    nothing = sign_flip_tests(np.full((3, 1), np.nan))[0]
    assert nothing.p_value == 1.0


def test_a_swap_of_very_many_is_normal() -> None:
    rng = np.random.default_rng(7)
    a = rng.random((21_000, 1))
    b = a + rng.normal(0.001, 0.1, (21_000, 1))
    swap = paired_swap_test(a, b, lambda rows: rows[..., 0].mean(axis=-1))
    flip = paired_permutation_test(a[:, 0], b[:, 0])
    assert swap.method.startswith("swap, normal")
    assert swap.p_value == pytest.approx(flip.p_value, abs=0.05)
    sure = paired_swap_test(a, a + 1, lambda rows: rows[..., 0].mean(axis=-1))
    assert 0 < sure.p_value < 1e-9
