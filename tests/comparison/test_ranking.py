"""Several runs: ranks, who beats whom, and the ways to print it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from auepora_eval.comparison.compare import compare_runs
from auepora_eval.comparison.ranking import best_of_the_others, rank_runs
from auepora_eval.comparison.tables import (
    ranking_in_words,
    statistical_analysis,
)
from auepora_eval.core.types import EvaluationRun
from tests.comparison.test_margins_and_repeats import scored
from tests.decide.gated import declining


def three(size: int = 80) -> list[EvaluationRun]:
    """A good system, one that is the same but for noise, and one that is clearly worse."""
    rng = np.random.default_rng(0)
    truth = rng.random(size)
    shifts = {"good": 0.0, "alike": -0.001, "bad": -0.3}
    return [
        scored((truth + shift + rng.normal(0, 0.05, size)).tolist(), name, "mrr")
        for name, shift in shifts.items()
    ]


def test_ranks_and_their_intervals() -> None:
    ranking = rank_runs(three())
    [metric] = ranking.metrics
    good, alike, bad = metric.standings
    assert {good.rank, alike.rank} == {1, 2}
    assert good.rank_interval == alike.rank_interval == (1, 2)
    assert (bad.rank, bad.rank_interval, bad.beats) == (3, (3, 3), ())
    assert good.beats == alike.beats == (2,)
    assert [one.best for one in metric.standings].count(True) == 1
    assert len(ranking.pairs) == 3
    assert "significantly better than 1 of 2" in ranking_in_words(ranking)


def test_the_pairs_are_corrected_together() -> None:
    runs = three()
    alone = compare_runs(runs[0], runs[2]).metrics[0]
    within = rank_runs(runs).pairs[1].metrics[0]
    assert within.test.p == alone.test.p
    assert alone.test.p_adjusted is not None
    assert within.test.p_adjusted == pytest.approx(3 * alone.test.p_adjusted)


def test_equal_runs_share_a_rank_and_go_by_their_ids() -> None:
    runs = three()
    runs[1] = replace(runs[0], evaluation_id="again")
    ranking = rank_runs(runs)
    assert [one.rank for one in ranking.metrics[0].standings] == [1, 1, 3]
    assert ranking.metrics[0].standings[0].rank_interval == (1, 2)
    assert ranking.systems == ["good", "again", "bad"]
    assert "Several share the best value on mrr." in ranking_in_words(ranking)


def test_a_run_without_a_value_is_not_the_best_of_the_others() -> None:
    """The precision of declining does not exist where nothing was declined."""
    declines = {"none": (), "wrongly": (0, 1), "rightly": (1, 3), "nothing": ()}
    runs = [replace(declining(name, *places), system_name=name) for name, places in declines.items()]
    for order in ([0, 3, 1, 2], [0, 1, 2, 3], [0, 2, 3, 1]):
        ranking = rank_runs([runs[place] for place in order])
        best, _ = best_of_the_others(ranking)
        assert ranking.systems[best] == "rightly"
        assert not any(one.best for one in ranking.metrics[0].standings)


def test_the_significance_tests_have_the_names_of_results_files() -> None:
    analysis = statistical_analysis(compare_runs(*three()[1:]))
    test = analysis["significance_tests"]["mrr"]
    assert list(test) == ["baseline_mean", "current_mean", "p_value", "significant", "effect_size"]
    assert test["significant"] is True
    assert test["effect_size"] < -1
    assert analysis["confidence_intervals"]["confidence_level"] == 0.95
