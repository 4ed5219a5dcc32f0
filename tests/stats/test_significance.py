"""Tests of difference: exact cases by hand, scipy as the judge, false alarms counted."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, permutation_test

from auepora_eval.stats.significance import holm, paired_permutation_test, paired_swap_test


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


@pytest.mark.parametrize("shift", [0.0, 0.02, 0.04])
@pytest.mark.parametrize("kind", ["smooth", "halves"])
def test_many_pairs_need_no_draws(shift: float, kind: str) -> None:
    """The normal form says what 4,000 flips, drawn here, say."""
    rng = np.random.default_rng(5)
    steps = rng.choice([-1.0, -0.5, 0.5, 1.0], 2500, p=[0.25 - shift / 4] * 2 + [0.25 + shift / 4] * 2)
    differences = rng.normal(shift, 1, 2500) if kind == "smooth" else steps
    ours = paired_permutation_test(np.zeros(2500), differences)
    assert ours.method == "sign flip, normal form, 2500 units"
    signs = rng.integers(0, 2, size=(4000, 2500), dtype=np.int8) * np.float32(2) - 1
    drawn = np.abs(signs @ differences) >= abs(differences.sum()) - 1e-6
    assert ours.p_value == pytest.approx(drawn.mean(), abs=0.03)


def test_a_binary_metric_in_normal_form_is_mcnemar() -> None:
    a, b = np.zeros(6000), np.ones(6000)
    a[:2900], b[:2900] = 1.0, 0.0  # 2900 losses, 3100 wins
    ours = paired_permutation_test(a, b)
    assert ours.method == "sign flip, normal form, 6000 units"
    assert ours.p_value == pytest.approx(binomtest(2900, 6000).pvalue, rel=1e-3)


def test_one_huge_difference_among_many_is_not_called_normal() -> None:
    a = np.zeros(3000)
    b = np.full(3000, 1e-6)
    b[0] = 1.0
    assert "draws" in paired_permutation_test(a, b, resamples=999).method


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


@pytest.mark.parametrize(("a", "b"), [([1.0], [1.0, 2.0]), ([], [])])
def test_unpaired_scores_are_refused(a: list[float], b: list[float]) -> None:
    with pytest.raises(ValueError, match="paired scores"):
        paired_permutation_test(a, b)


def test_holm_anchor() -> None:
    assert holm([0.2, 0.001, 0.021, 0.012, 0.04]) == pytest.approx([0.2, 0.005, 0.063, 0.048, 0.08])
    assert holm([]) == []
