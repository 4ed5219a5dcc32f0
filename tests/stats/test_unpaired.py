"""Systems that were asked apart: Welch with clusters, sample sizes, sample ratios, each against an oracle."""

from __future__ import annotations

import math

import numpy as np
import pytest
import statsmodels.api as sm  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.power import NormalIndPower  # type: ignore[import-untyped]

from auepora_eval.stats.power import sample_size
from auepora_eval.stats.significance import (
    normal_difference,
    sample_ratio_p,
    two_shares_margin_p,
    welch_difference,
)

scores = st.lists(st.floats(0, 1, allow_subnormal=False), min_size=2, max_size=30)


@settings(max_examples=50, deadline=None)
@given(a=scores, b=scores)
def test_welch_agrees_with_scipy(a: list[float], b: list[float]) -> None:
    # Where nearly all values are equal, scipy says that it has lost precision.
    if min(np.std(a), np.std(b)) < 1e-6:
        return
    ours, theirs = welch_difference(a, b), stats.ttest_ind(b, a, equal_var=False)
    limits = theirs.confidence_interval(0.95)
    assert ours.p_value == pytest.approx(theirs.pvalue)
    assert [ours.low, ours.high] == pytest.approx([limits.low, limits.high])
    assert ours.freedom == pytest.approx(theirs.df)


def test_clusters_have_the_robust_error_of_each_side() -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(20), 5)
    a, b = (rng.normal(size=20)[groups] + rng.normal(size=100) for _ in range(2))
    ours = welch_difference(a, b, clusters_a=list(groups), clusters_b=list(groups))

    def squared_error(values: np.ndarray) -> float:
        # Their correction is G/(G-1) * (n-1)/(n-k); with one column the second factor is 1.
        fit = sm.OLS(values, np.ones((100, 1))).fit(cov_type="cluster", cov_kwds={"groups": groups})
        return float(fit.bse[0] ** 2)

    assert ours.error == pytest.approx(math.sqrt(squared_error(a) + squared_error(b)))
    assert ours.error > welch_difference(a, b).error


@pytest.mark.parametrize(
    ("a", "b", "p_value"),
    [
        pytest.param([1.0], [1.0, 2.0], math.nan, id="one score"),
        pytest.param([1.0, 1.0], [1.0, 1.0], 1.0, id="all equal"),
        pytest.param([1.0, 1.0], [2.0, 2.0], 0.0, id="no spread"),
    ],
)
def test_welch_at_its_limits(a: list[float], b: list[float], p_value: float) -> None:
    assert welch_difference(a, b).p_value == pytest.approx(p_value, nan_ok=True)


def test_values_with_known_errors() -> None:
    found = normal_difference(1.0, 3.0, 11.0, 4.0)
    assert found.error == 5.0
    assert found.p_value == pytest.approx(2 * stats.norm.sf(2))
    assert math.isnan(normal_difference(1.0, math.nan, 2.0, 1.0).p_value)


@pytest.mark.parametrize("effect", [0.1, 0.2, 0.5, -0.8])
@pytest.mark.parametrize(("alpha", "power"), [(0.05, 0.8), (0.01, 0.9)])
def test_samples_of_two_groups_agree_with_statsmodels(effect: float, alpha: float, power: float) -> None:
    theirs = NormalIndPower().solve_power(effect, alpha=alpha, power=power)
    assert sample_size(effect, math.sqrt(2), alpha=alpha, power=power, by="z") == math.ceil(theirs - 1e-6)


def test_no_effect_needs_no_number_of_samples() -> None:
    assert sample_size(0.0, 1.0) is None


@given(counts=st.lists(st.integers(1, 1000), min_size=2, max_size=5))
@settings(deadline=None)  # the first call loads scipy
def test_the_sample_ratio_agrees_with_scipy(counts: list[int]) -> None:
    shares = [n + 1 for n in range(len(counts))]
    expected = [sum(counts) * share / sum(shares) for share in shares]
    assert sample_ratio_p(counts, shares) == pytest.approx(stats.chisquare(counts, expected).pvalue)


def test_a_sample_ratio_without_samples_is_not_known() -> None:
    assert math.isnan(sample_ratio_p([0, 0], [0.5, 0.5]))
    with pytest.raises(ValueError, match="above 0"):
        sample_ratio_p([1, 1], [1.0, 0.0])


@settings(max_examples=50, deadline=None)
@given(data=st.data(), size_a=st.integers(3, 80), size_b=st.integers(3, 80), margin=st.floats(0.01, 0.4))
def test_a_margin_of_shares_has_the_errors_of_the_likeliest_shares_at_the_margin(
    data: st.DataObject, size_a: int, size_b: int, margin: float
) -> None:
    """The oracle looks for these on a grid."""
    hits_a, hits_b = data.draw(st.integers(0, size_a)), data.draw(st.integers(0, size_b))
    low = np.linspace(1e-9, 1 - margin - 1e-9, 100_001)
    high = low + margin
    likely = hits_b * np.log(low) + (size_b - hits_b) * np.log1p(-low)
    likely += hits_a * np.log(high) + (size_a - hits_a) * np.log1p(-high)
    b = low[likely.argmax()]
    variance = b * (1 - b) / size_b + (b + margin) * (1 - b - margin) / size_a
    gap = hits_b / size_b - hits_a / size_a + margin
    expected = stats.norm.sf(gap / np.sqrt(variance))
    assert two_shares_margin_p(hits_a, size_a, hits_b, size_b, margin) == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("size", [100, 150, 300])
@pytest.mark.parametrize("share", [1.0, 0.98, 0.9])
def test_a_margin_of_shares_is_seldom_ruled_out_where_it_is_lost(size: int, share: float) -> None:
    """All outcomes counted, each with its chance: at a loss of just the margin, 5 in 100 and little more."""
    first, second = (stats.binom(size, p) for p in (share, share - 0.02))
    error = sum(
        first.pmf(a) * second.pmf(b)
        for a in range(int(first.ppf(1e-4)), size + 1)
        for b in range(int(second.ppf(1e-4)), size + 1)
        if two_shares_margin_p(a, size, b, size, 0.02) < 0.05
    )
    assert error < 0.062


def test_a_margin_of_shares_of_nothing_is_not_known() -> None:
    assert math.isnan(two_shares_margin_p(0, 0, 3, 4, 0.1))
