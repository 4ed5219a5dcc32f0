"""Correlations: scipy as the judge of values, weights as repeats, intervals that cover."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from auepora_eval.stats.correlation import KINDS, Kind, _weighted, correlation

SCIPY: dict[Kind, Any] = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}
PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=30)


@pytest.mark.filterwarnings("ignore")  # scipy warns of constant input
@pytest.mark.parametrize("kind", KINDS)
@given(pairs=PAIRS, scale=st.sampled_from([1e-9, 1.0, 1e9]), shift=st.sampled_from([0.0, 1e3]))
@settings(max_examples=80, deadline=None)
def test_scipy_agrees(kind: Kind, pairs: list[tuple[int, int]], scale: float, shift: float) -> None:
    x, y = np.array(pairs, dtype=float).T
    expected = float(SCIPY[kind](x, y).statistic)
    found = correlation(x * scale + shift * scale, y, kind)
    assert found.value == pytest.approx(expected, nan_ok=True, abs=1e-9)
    assert found.samples == len(pairs)


@pytest.mark.parametrize("kind", KINDS)
@given(pairs=PAIRS, data=st.data())
@settings(max_examples=40, deadline=None)
def test_a_weight_is_how_often_a_sample_counts(kind: Kind, pairs: Any, data: Any) -> None:
    x, y = np.array(pairs, dtype=float).T
    draws = data.draw(
        st.lists(st.lists(st.integers(0, 3), min_size=len(x), max_size=len(x)), min_size=1, max_size=5)
    )
    draws = [draw for draw in draws if sum(draw) >= 2]
    stacked = _weighted(x, y, kind)(np.array(draws, dtype=float).reshape(-1, len(x)))
    for draw, value in zip(draws, stacked, strict=True):
        repeated = correlation(np.repeat(x, draw), np.repeat(y, draw), kind)
        assert float(value) == pytest.approx(repeated.value, nan_ok=True, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_an_interval_like_fishers_where_that_holds(kind: Kind) -> None:
    rng = np.random.default_rng(5)
    x, y = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], size=400).T
    found = correlation(x, y, kind)
    variance = {
        "pearson": 1 / 397,
        "spearman": (1 + found.value**2 / 2) / 397,  # Bonett & Wright 2000
        "kendall": 0.437 / 396,  # Fieller 1957
    }[kind]
    half = 1.959964 * math.sqrt(variance)
    fisher = [math.tanh(math.atanh(found.value) + sign * half) for sign in (-1, 1)]
    assert found.interval is not None
    assert found.interval[:2] == pytest.approx(fisher, abs=0.02)


def test_many_pairs_have_a_closed_form() -> None:
    rng = np.random.default_rng(6)
    x, y = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], size=1_500).T
    found = correlation(x, y, "kendall")
    assert found.value == pytest.approx(float(stats.kendalltau(x, y).statistic))
    assert found.interval is not None
    assert found.interval.method == "Fieller's z"
    assert correlation(x, y, "kendall", clusters=list(range(750)) * 2).interval is None


@pytest.mark.parametrize("kind", KINDS)
def test_samples_of_one_cluster_are_left_out_together(kind: Kind) -> None:
    rng = np.random.default_rng(7)
    x, y = (np.repeat(rng.random(25), 4) for _ in range(2))
    alone = correlation(x, y, kind).interval
    together = correlation(x, y, kind, clusters=list(np.repeat(range(25), 4))).interval
    assert alone is not None
    assert together is not None
    assert together.high - together.low > 1.5 * (alone.high - alone.low)
