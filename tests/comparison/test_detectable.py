"""The smallest change that could be seen: one figure in compare, power and gate, that keeps its promise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from auepora_eval.comparison.compare import compare_runs
from auepora_eval.comparison.power import power_from_runs
from auepora_eval.decide.gate import gate_run
from auepora_eval.stats.significance import sign_flip_test
from tests.comparison.test_power import a_run


def hits(lost: int, won: int, pairs: int) -> tuple[Any, Any]:
    """The 0/1 scores of two systems: so many pairs lost by the second, so many won, the others right."""
    before, after = np.ones(pairs), np.ones(pairs)
    after[:lost] = 0.0
    before[lost : lost + won] = 0.0
    return before, after


def seen_by_all(a: Any, b: Any, names: list[str]) -> list[dict[str, float | None]]:
    """What compare, power and gate give as the smallest change that is seen, by metric."""
    compared = compare_runs(a, b, resamples=500).metrics
    planned = power_from_runs(a, b).metrics
    gated = gate_run(b, {"no_regression": names}, baseline=a, resamples=500).verdicts
    return [
        {one.name: one.power.detectable for one in compared},
        {one.name: one.detectable for one in planned},
        {one.rule.name: one.detectable for one in gated if one.rule.kind == "no_regression"},
    ]


@pytest.mark.parametrize(("lost", "won"), [(0, 0), (1, 0), (2, 1), (12, 9), (30, 30)])
@pytest.mark.parametrize("others", [0, 3])
def test_one_figure_for_all_who_ask(lost: int, won: int, others: int) -> None:
    before, after = hits(lost, won, 150)
    rng = np.random.default_rng(0)
    more: dict[str, Any] = {f"ndcg_{k}": rng.random(150) for k in range(1, others + 1)}
    a = a_run("a", hit_5=before, **more)
    moved: dict[str, Any] = {name: np.clip(one + 0.1, 0, 1) for name, one in more.items()}
    b = a_run("b", hit_5=after, **moved)
    compared, planned, gated = seen_by_all(a, b, ["hit@5", *(f"ndcg@{k}" for k in range(1, others + 1))])
    assert set(compared) == set(planned) == set(gated)
    for name, size in compared.items():
        assert size is not None
        assert planned[name] == pytest.approx(size, rel=1e-9)
        assert gated[name] == pytest.approx(size, rel=1e-9)


@pytest.mark.parametrize(("whole", "won"), [(True, 0), (False, 0), (False, 3)])
def test_clusters_count_as_the_test_counts_them(whole: bool, won: int) -> None:
    """Two samples a cluster, three clusters lost, as a whole or by half: others are taken to be lost so."""
    clusters = [f"c{n // 2}" for n in range(240)]

    def both(lost: int, won: int) -> tuple[Any, Any]:
        before, after = np.ones(240), np.ones(240)
        step = 1 if whole else 2
        after[0 : 2 * lost : step] = 0.0
        before[2 * lost : 2 * (lost + won) : step] = 0.0
        return before, after

    before, after = both(3, won)
    a, b = a_run("a", clusters, hit_5=before), a_run("b", clusters, hit_5=after)
    compared, planned, gated = seen_by_all(a, b, ["hit@5"])
    assert compared == gated
    size = planned["hit@5"]
    assert size is not None
    assert compared["hit@5"] == pytest.approx(size)
    share = size / (1.0 if whole else 0.5)
    rng = np.random.default_rng(3)
    significant = []
    for _ in range(200):
        counts = rng.multinomial(120, [won / 120 + share, won / 120, 1 - 2 * won / 120 - share])
        first, second = both(counts[0], counts[1])
        test = sign_flip_test(second - first, clusters=clusters, resamples=1_000, levels=())
        significant.append(test.p_value < 0.05)
    assert np.mean(significant) >= 0.75
