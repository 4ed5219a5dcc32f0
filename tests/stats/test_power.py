"""Power: the anchors of the textbooks, statsmodels as judge, and a simulation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from statsmodels.stats.power import TTestIndPower, TTestPower  # type: ignore[import-untyped]

from auepora_eval.stats.power import (
    cluster_design_effect,
    minimum_detectable_effect,
    power_of,
    sample_size,
    sd_of_difference,
)


def test_anchors() -> None:
    assert sample_size(0.2, 1.0) == 199
    assert sample_size(0.2, 1.0, by="z") == 197
    assert minimum_detectable_effect(0.3, 100) == pytest.approx(0.084, abs=5e-4)


@pytest.mark.parametrize("effect", [0.05, 0.2, 0.5, 1.5])
@pytest.mark.parametrize("power", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_statsmodels_says_the_same(effect: float, power: float, alpha: float) -> None:
    judge = TTestPower()
    needed = judge.solve_power(effect_size=effect, alpha=alpha, power=power)
    found = sample_size(effect, 1.0, alpha=alpha, power=power)
    assert found is not None
    assert found == pytest.approx(math.ceil(needed), abs=0 if found < 5_000 else 3)
    for n in (5, 40, 300):
        expected = judge.power(effect, n, alpha)
        if math.isfinite(expected):  # NaN where the tail on the other side is too thin for it
            assert power_of(effect, 1.0, n, alpha=alpha) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("effect", [0.1, 0.3, 1.0])
def test_two_groups_as_statsmodels_has_them(effect: float) -> None:
    """There the effect is in sds of a score; the difference of two scores has an sd of sqrt(2) of those."""
    judge = TTestIndPower()
    sd = sd_of_difference(1.0, 1.0)
    assert sd == pytest.approx(math.sqrt(2))
    needed = judge.solve_power(effect_size=effect, alpha=0.05, power=0.8)
    assert sample_size(effect, sd, groups=2) == math.ceil(needed)
    for n in (10, 60):
        assert power_of(effect, sd, n, groups=2) == pytest.approx(judge.power(effect, n, 0.05), abs=1e-6)
        seen = minimum_detectable_effect(sd, n, by="t", groups=2)
        assert judge.power(seen, n, 0.05) == pytest.approx(0.8, abs=1e-6)


def test_the_difference_of_two_systems_varies_less_on_the_same_samples() -> None:
    rng = np.random.default_rng(0)
    scores = rng.multivariate_normal([0, 0], [[0.09, 0.06], [0.06, 0.16]], 200_000)
    expected = sd_of_difference(0.3, 0.4, correlation=0.5)
    assert (scores[:, 1] - scores[:, 0]).std() == pytest.approx(expected, rel=0.01)
    assert expected < sd_of_difference(0.3, 0.4) == pytest.approx(0.5)
    with pytest.raises(ValueError, match="correlation"):
        sd_of_difference(1.0, 1.0, correlation=2.0)


@pytest.mark.parametrize("n", [3, 20, 400])
def test_the_detectable_effect_has_the_power(n: int) -> None:
    effect = minimum_detectable_effect(0.4, n, by="t")
    assert power_of(effect, 0.4, n) == pytest.approx(0.8, abs=1e-6)
    assert effect >= minimum_detectable_effect(0.4, n)
    assert power_of(minimum_detectable_effect(0.4, n), 0.4, n, by="z") == pytest.approx(0.8, abs=1e-4)


def test_clusters_cost_what_their_design_effect_says() -> None:
    assert cluster_design_effect(5, 0.25) == 2.0
    assert cluster_design_effect(5, -1) == 1.0
    alone, clustered = sample_size(0.1, 1.0, by="z"), sample_size(0.1, 1.0, design_effect=2.0, by="z")
    assert alone is not None
    assert clustered == pytest.approx(2 * alone, abs=1)
    widened = minimum_detectable_effect(1.0, 100, design_effect=4)
    assert widened == pytest.approx(2 * minimum_detectable_effect(1.0, 100))


def test_several_answers_a_question() -> None:
    """n = (z + z)² (ω² + σ_A²/K_A + σ_B²/K_B) / δ², checked by simulating it."""
    sd = math.sqrt(0.01 + 0.04 / 2 + 0.09 / 3)
    n = sample_size(0.05, sd, by="z")
    assert n == math.ceil((1.959964 + 0.841621) ** 2 * 0.06 / 0.05**2)
    rng = np.random.default_rng(3)
    true = rng.normal(0.05, 0.1, (2_000, n))
    a = rng.normal(0, 0.2, (2_000, n, 2)).mean(axis=-1)
    b = true + rng.normal(0, 0.3, (2_000, n, 3)).mean(axis=-1)
    difference = b - a
    z = difference.mean(axis=1) / difference.std(axis=1, ddof=1) * math.sqrt(n)
    assert (np.abs(z) > 1.959964).mean() == pytest.approx(0.8, abs=0.03)


def test_edges() -> None:
    assert sample_size(0.0, 1.0) is None
    assert sample_size(1e-9, 1.0) is None
    assert sample_size(0.1, 0.0) == 2
    assert power_of(0.1, 1.0, 1) == 0.0
    assert power_of(0.5, 0.0, 10) == 1.0
    assert power_of(5.0, 0.01, 100) == 1.0
    assert minimum_detectable_effect(1.0, 1, by="t") == math.inf


@pytest.mark.parametrize(
    "wrong",
    [{"sd": -1.0}, {"sd": math.nan}, {"alpha": 0.0}, {"power": 1.0}, {"power": 0.01}, {"design_effect": 0.0}],
)
def test_nonsense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not"):
        sample_size(**{"effect": 0.1, "sd": 1.0, **wrong})
