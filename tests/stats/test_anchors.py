"""The anchors: known values of statistics, each checked by hand or by the reference tool beside it.

Whoever changes a formula fails here first. The random tests against the same tools are in the files beside.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats
from statsmodels.regression.linear_model import OLS  # type: ignore[import-untyped]

from auepora_eval.stats import intervals
from auepora_eval.stats.calibration import prediction_powered_mean, true_rate
from auepora_eval.stats.intervals import mean_error

A = np.array([0.1, 0.4, 0.35, 0.8, 0.6, 0.2, 0.9, 0.5, 0.7, 0.3])
B = np.array([0.3, 0.5, 0.30, 0.9, 0.9, 0.4, 0.8, 0.6, 0.9, 0.45])


def test_plus_two() -> None:
    """A share: one right and one wrong answer more, Student's t, and n - 1 in the variance."""
    interval = intervals.mean_interval(np.array([1.0] * 4 + [0.0] * 3), bounds=(0.0, 1.0))
    assert interval is not None
    values = np.array([1.0] * 5 + [0.0] * 4)
    half = scipy_stats.t.ppf(0.975, 6) * values.std(ddof=1) / 3
    assert interval[:2] == pytest.approx((5 / 9 - half, 5 / 9 + half))


def test_clusters_of_one_are_samples() -> None:
    plain, clustered = (intervals.mean_interval(A, clusters=c) for c in (None, list(range(10))))
    assert plain is not None
    assert clustered is not None
    assert clustered[:2] == pytest.approx(plain[:2])


def test_standard_errors() -> None:
    assert mean_error(A).error == pytest.approx(float(A.std(ddof=1)) / math.sqrt(10))
    paired = mean_error(B - A).error
    correlated = float(np.corrcoef(A, B)[0, 1])
    a, b = mean_error(A).error, mean_error(B).error
    assert paired == pytest.approx(math.sqrt(a * a + b * b - 2 * correlated * a * b))


def test_the_clustered_error_is_that_of_statsmodels() -> None:
    clusters = [0, 0, 0, 1, 1, 2, 3, 3, 4, 4]
    by_hand = math.sqrt(sum(float((A - A.mean())[np.array(clusters) == c].sum()) ** 2 for c in range(5))) / 10
    ours = mean_error(A, clusters=clusters).error
    assert ours == pytest.approx(by_hand * math.sqrt(5 / 4), abs=1e-15)  # the factor G / (G - 1)
    model = OLS(A, np.ones(10)).fit(
        cov_type="cluster", cov_kwds={"groups": np.array(clusters), "df_correction": False}
    )
    # statsmodels' own small-sample factor for one regressor is G / (G - 1) * (n - 1) / (n - 1).
    assert ours == pytest.approx(float(model.bse[0]), rel=1e-12)


# ppi_py 0.2.3 on `labels_and_judge(scale)`: weight, value, low, high. Its wheel brings a package `tests`
# and needs numba, so it is no dependency of these tests. The tuned weight is proportional to 1 / scale: at
# 0.8489 it is the 0.8008 at which the two are known to agree.
PPI_PY = {
    (1.0, 1.0): (1.0, 0.598853751, 0.563859868, 0.633847635),
    (1.0, None): (0.679805361, 0.598525053, 0.571032217, 0.626017890),
    (0.8489, 1.0): (1.0, 0.598698639, 0.568664809, 0.628732468),
    (0.8489, None): (0.800807352, 0.598525053, 0.571032217, 0.626017890),
}


def labels_and_judge(scale: float) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    truth = rng.beta(3, 2, 360)
    said = scale * (truth + 0.1 + rng.normal(0, 0.1, 360))
    return truth[:60], said[:60], said[60:]


@pytest.mark.parametrize(("scale", "weight"), PPI_PY)
def test_prediction_powered_mean(scale: float, weight: float | None) -> None:
    y, f, rest = labels_and_judge(scale)
    ours = prediction_powered_mean(y, f, rest, weight=weight)
    limits = [ours.value + sign * scipy_stats.norm.ppf(0.975) * ours.error for sign in (-1, 1)]
    assert [ours.weight, ours.value, *limits] == pytest.approx(PPI_PY[scale, weight], abs=1e-8)
    tuned = np.cov(y, f, ddof=0)[0, 1] / ((1 + 60 / 300) * np.var([*f, *rest], ddof=1))
    used = tuned if weight is None else weight
    error = math.sqrt(used**2 * rest.var() / 300 + (y - used * f).var() / 60)
    by_hand = used * rest.mean() + (y - used * f).mean()
    assert (ours.value, ours.error) == pytest.approx((by_hand, error))


def test_rogan_and_gladen() -> None:
    assert true_rate(0.75, 0.9, 0.8) == pytest.approx(0.785714, abs=5e-7)
