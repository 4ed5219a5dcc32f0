"""The tests of the textbooks, against scipy and statsmodels."""

from __future__ import annotations

import math

import numpy as np
import pytest
import statsmodels.api as sm  # type: ignore[import-untyped]
from scipy.stats import ttest_rel

from auepora_eval.stats.intervals import mean_error
from auepora_eval.stats.significance import paired_t_test


@pytest.mark.parametrize("seed", range(8))
def test_scipy_says_the_same(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 120))
    a = rng.random(n)
    b = a + rng.normal(0.03, 0.1, n)
    paired = ttest_rel(b, a)
    assert paired_t_test(a, b)[:2] == pytest.approx((paired.pvalue, paired.statistic))


@pytest.mark.parametrize("seed", range(4))
def test_clustered_errors_are_those_of_statsmodels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    clusters = rng.integers(0, 12, 90)
    values = rng.random(12)[clusters] + rng.normal(0, 0.2, 90)
    fit = sm.OLS(values, np.ones(90)).fit(
        cov_type="cluster", cov_kwds={"groups": clusters, "use_correction": False}
    )
    groups = len(set(clusters.tolist()))
    expected = float(fit.bse[0]) * math.sqrt(groups / (groups - 1))
    assert mean_error(values, clusters=clusters.tolist()).error == pytest.approx(expected, rel=1e-13)
    assert mean_error(values, clusters=clusters.tolist()).freedom == groups - 1
    alone = values.std(ddof=1) / math.sqrt(90)
    assert mean_error(values, clusters=list(range(90))).error == pytest.approx(alone)


def test_edges() -> None:
    assert math.isnan(paired_t_test([1.0], [2.0]).p_value)
    assert paired_t_test([1.0, 2.0], [1.0, 2.0]).p_value == 1.0
    assert paired_t_test([1.0, 2.0], [2.0, 3.0]).p_value == 0.0
    assert math.isnan(mean_error([]).error)
    with pytest.raises(ValueError, match="two equal lists"):
        paired_t_test([1.0], [1.0, 2.0])
