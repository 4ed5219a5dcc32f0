"""Margins where samples come in clusters, and where rare losses stand beside noise: counted and simulated."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from auepora_eval.stats.margins import (
    bounded_margin_p,
    non_inferiority_test,
    paired_margin_test,
    units_to_rule_out,
    unseen_loss,
    unseen_loss_p,
)

ERROR = 2.6  # standard errors of a count


@pytest.mark.parametrize("lost", [0, 1, 2, 3])
def test_lost_clusters_are_counted_as_clusters(lost: int) -> None:
    """145 clusters of two: at a loss of 0.03, two lost ones or fewer are seen 19 times in a hundred."""
    clusters = [number // 2 for number in range(290)]
    gains = np.where(np.array(clusters) < lost, -1.0, 0.0)
    found = paired_margin_test(gains, 0.03, 1.0, clusters=clusters)
    assert found.p_value == pytest.approx(binom.cdf(lost, 145, 0.03), abs=0.015)
    assert found.method.endswith("145 clusters")


def test_a_lost_cluster_may_be_larger_than_the_average() -> None:
    """Ten clusters of one and ten of three: a sample taken at random is in one of 2.5, the average is 2."""
    clusters = [*range(10), *(10 + number // 3 for number in range(30))]
    found = paired_margin_test(np.zeros(40), 0.1, 1.0, clusters=clusters).p_value
    lost = 0.1 / (0.1 + 0.9 * 2.5 / 2)  # such a share of clusters; the others gain the margin
    assert found == pytest.approx((1 - lost) ** 20)
    assert found > 0.9**20


def test_how_many_units_rule_out_a_loss_that_none_of_them_shows() -> None:
    for margin, reach, largest in ((0.02, 1.0, 1.0), (0.05, 1.0, 1.5), (2.0, 100.0, 3.0)):
        units = units_to_rule_out(margin, reach, largest)
        assert unseen_loss_p(units, 0.0, margin, reach, largest) < 0.05
        assert unseen_loss_p(units - 1, 0.0, margin, reach, largest) > 0.05
        assert unseen_loss(units, reach, largest) < margin < unseen_loss(units - 1, reach, largest)


@settings(max_examples=60, deadline=None)
@given(
    losses=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12),
    margin=st.sampled_from([0.02, 0.1, 0.3]),
    size=st.sampled_from([1, 2, 5]),
)
def test_who_lost_is_never_surer_than_who_did_not(losses: list[float], margin: float, size: int) -> None:
    gains = np.zeros(60)
    gains[: len(losses)] = -np.array(losses)
    clusters = None if size == 1 else [number // size for number in range(60)]
    alike = paired_margin_test(np.zeros(60), margin, 1.0, clusters=clusters).p_value
    assert paired_margin_test(gains, margin, 1.0, clusters=clusters).p_value >= alike - 1e-12


@pytest.mark.parametrize(
    ("units", "size", "margin", "noise"),
    [
        pytest.param(145, 2, 0.03, 0.0, id="whole clusters"),
        pytest.param(137, 2, 0.03, 0.002, id="whole clusters beside next to nothing"),
        pytest.param(100, 3, 0.05, 0.1, id="whole clusters beside noise"),
        pytest.param(1000, 1, 0.005, 0.02, id="samples of a thousand different gains"),
        pytest.param(820, 1, 0.005, 0.002, id="samples beside next to nothing"),
    ],
)
def test_rare_total_losses_keep_alpha_where_t_does_not(
    units: int, size: int, margin: float, noise: float
) -> None:
    rng, pairs = np.random.default_rng(3), 400
    clusters = [number // size for number in range(units * size)]
    passed, by_t = 0, 0
    for number in range(pairs):
        lost = np.repeat(rng.random(units) < margin, size)
        gains = np.where(lost, -1.0, np.clip(rng.normal(0, noise, units * size), -1, 1))
        named = clusters if size > 1 else None
        if non_inferiority_test(gains, margin, clusters=named).p_value < 0.05:
            by_t += 1
            drawn = bounded_margin_p(gains, margin, 1.0, clusters=named, draws=1_000, seed=number)
            passed += drawn < 0.05
    assert passed / pairs <= 0.05 + ERROR * math.sqrt(0.05 * 0.95 / pairs)
    assert by_t / pairs > 0.06


def test_thousands_of_different_gains_are_those_of_a_t_test() -> None:
    rng = np.random.default_rng(0)
    clusters = np.repeat(np.arange(1_000), rng.integers(1, 6, 1_000))
    gains = np.clip(rng.normal(-0.035, 0.3, len(clusters)), -1, 1)
    by_t = non_inferiority_test(gains, 0.05, clusters=clusters.tolist()).p_value
    found = paired_margin_test(gains, 0.05, 1.0, clusters=clusters.tolist()).p_value
    assert by_t <= found <= by_t + 0.02
