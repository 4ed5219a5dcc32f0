"""The tests of the textbooks, against scipy and statsmodels."""

from __future__ import annotations

import math

import numpy as np
import pytest
import statsmodels.api as sm  # type: ignore[import-untyped]

from auepora_eval.stats.intervals import mean_error


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
