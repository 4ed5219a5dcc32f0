"""Tests of difference: exact cases by hand, scipy as the judge, false alarms counted."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import permutation_test

from auepora_eval.stats.arrays import Array
from auepora_eval.stats.significance import paired_swap_test, sign_flip_test


def mean(rows: Array) -> Array:
    return np.asarray(rows[..., 0].mean(axis=-1))


def ratio(rows: Array) -> Array:
    return np.asarray(rows[..., 0].sum(axis=-1) / rows[..., 1].sum(axis=-1))


@pytest.mark.parametrize(("units", "p_value"), [(5, 1 / 16), (8, 1 / 128), (14, 2**-13)])
def test_few_pairs_are_enumerated(units: int, p_value: float) -> None:
    # All rise: of the 2**n ways to flip the signs two are as extreme.
    result = sign_flip_test(np.ones(units), resamples=10)
    assert result.p_value == p_value
    assert result.resamples == 0


def test_only_pairs_that_differ_are_enumerated() -> None:
    gains = np.concatenate([np.zeros(500), np.full(10, -0.5)])
    test = sign_flip_test(gains)
    assert test.p_value == 2 / 2**10
    assert test.statistic == pytest.approx(-5 / 510)
    assert test.method == "sign flip, exact, 10 units"


@pytest.mark.parametrize("kind", ["many values", "few values"])
@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_scipy(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    gains = rng.normal(0.03, 0.3, 150) if kind == "many values" else rng.choice([-1, 0, 0.5, 1], 150) - 0.05
    theirs = permutation_test(
        (gains, np.zeros(150)),
        lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples",
        n_resamples=4_000,
        vectorized=True,
        rng=np.random.default_rng(9),
    )
    assert sign_flip_test(gains).p_value == pytest.approx(theirs.pvalue, abs=0.03)


def test_p_is_never_zero() -> None:
    assert sign_flip_test(np.ones(200), resamples=999, levels=()).p_value == pytest.approx(1 / 1000)
    a = np.zeros((60, 1))
    assert paired_swap_test(a, a + 1, mean, resamples=199, levels=()).p_value == pytest.approx(1 / 200)


def test_flips_that_tie_up_to_rounding_count() -> None:
    # 0.1 + 0.2 differs from 0.3 in the last bit: both flips of these three are as extreme as what was seen.
    assert sign_flip_test(np.array([0.1, 0.2, -0.3 + 1e-17])).p_value == 1.0


def test_clusters_are_flipped_together() -> None:
    rng = np.random.default_rng(0)
    gains = np.repeat(rng.normal(0, 1, 6), 20) + 0.4  # 120 samples, but only six independent facts
    clusters = np.repeat(np.arange(6), 20).tolist()
    assert sign_flip_test(gains).p_value < 0.01 < sign_flip_test(gains, clusters=clusters).p_value


def test_false_alarms_come_as_often_as_alpha_says() -> None:
    rng = np.random.default_rng(11)
    alarms = sum(
        sign_flip_test(rng.normal(0, 1, 25), resamples=400, levels=(), seed=n).p_value < 0.05
        for n in range(400)
    )
    assert 0.02 <= alarms / 400 <= 0.08


@pytest.mark.parametrize("of_sums", [True, False])
def test_swaps_of_few_are_enumerated_whatever_the_seed(of_sums: bool) -> None:
    """Ten of ten answers fall from 1 to 0: two of 1,024 ways to swap are as extreme."""
    a, b = np.ones((10, 2)), np.tile([0.0, 1.0], (10, 1))
    results = {paired_swap_test(a, b, ratio, of_sums=of_sums, seed=seed) for seed in range(5)}
    assert results == {(2 / 1_024, -1.0, "swap, exact, 10 units", 0)}


def test_the_swap_test_of_a_mean_is_the_sign_flip_test() -> None:
    rng = np.random.default_rng(2)
    a = rng.random((40, 1))
    b = a + rng.normal(0.05, 0.1, (40, 1))
    flip = sign_flip_test((b - a)[:, 0], resamples=20_000)
    for of_sums in (True, False):
        swap = paired_swap_test(a, b, lambda rows: rows[..., 0].sum(axis=-1), of_sums=of_sums)
        assert swap.p_value == pytest.approx(flip.p_value, abs=0.012)


def gains_with_p(p_value: float) -> Array:
    """Sixty differences whose sign-flip test has about this p-value."""
    gains = np.random.default_rng(5).normal(0, 1, 60)
    z = {0.05: 2.0, 0.02: 2.4}[p_value]
    return np.asarray(gains - gains.mean() + z * gains.std() / np.sqrt(60))


def test_more_are_drawn_where_the_verdict_would_depend_on_the_seed() -> None:
    near = [sign_flip_test(gains_with_p(0.05), seed=seed) for seed in range(12)]
    assert min(test.resamples for test in near) > 10_000
    assert len({test.p_value < 0.05 for test in near}) == 1
    clear = sign_flip_test(gains_with_p(0.02))
    assert clear.resamples == 10_000
    assert clear.could_change(clear.p_value)
    assert not clear.could_change(0.05)
    assert sign_flip_test(gains_with_p(0.02), levels=(clear.p_value,)).resamples > 10_000


@pytest.mark.parametrize("shift", [0.0, 0.005, 0.01])
def test_very_many_pairs_need_no_resamples(shift: float) -> None:
    """The normal form says what 1,500 flips, drawn here, say."""
    rng = np.random.default_rng(5)
    gains = rng.normal(shift, 1, 21_000)
    ours = sign_flip_test(gains)
    assert ours.method == "sign flip, normal form, 21000 units"
    signs = 1 - 2 * rng.integers(0, 2, (1_500, 21_000), dtype=np.int8).astype(np.float32)
    drawn = signs @ gains.astype(np.float32)
    assert ours.p_value == pytest.approx((np.abs(drawn) >= abs(gains.sum())).mean(), abs=0.03)
    rows = np.stack([gains, np.ones(21_000)], axis=1)
    swap = paired_swap_test(rows * [0, 1], rows, ratio, of_sums=True)
    assert swap.method == "swap, normal form, 21000 units"
    assert swap.p_value == pytest.approx(ours.p_value, abs=1e-3)


def test_many_samples_that_move_nothing_do_not_differ_significantly() -> None:
    """So the corpus BLEU of answers of two words, which have no four in a row: 0 whatever they say."""
    rows = np.random.default_rng(1).random((21_000, 1))
    swap = paired_swap_test(rows, rows[::-1], lambda some: np.zeros(some.shape[:-2]), of_sums=True)
    assert (swap.p_value, swap.statistic) == (1.0, 0.0)
