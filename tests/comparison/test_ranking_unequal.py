"""Runs that do not have the same metrics: only those that all have are compared, and tested together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from auepora_eval.comparison.compare import Comparison
from auepora_eval.comparison.ranking import rank_runs
from auepora_eval.comparison.tables import pair_table, ranking_in_words, ranking_table
from auepora_eval.core.types import EvaluationRun
from tests.decide.gated import a_run

HIGH, LOW = [1.0] * 12, [1.0] * 4 + [0.0] * 8


def runs_of(*metrics: list[str]) -> list[EvaluationRun]:
    """Three runs, of which the second is better on whatever it has."""
    scores = (LOW, HIGH, LOW)
    return [
        a_run(f"r{place}", dict.fromkeys(names, values))
        for place, (names, values) in enumerate(zip(metrics, scores, strict=True))
    ]


def p_of(pair: Comparison) -> list[tuple[str, float | None]]:
    return [(one.name, one.test.p_adjusted) for one in pair.metrics]


def test_what_one_of_them_lacks_costs_the_others_nothing() -> None:
    more = ["recall@5", "mrr", "hit@5", "ndcg@5"]
    unequal = rank_runs(runs_of(more, more, ["recall@5"]), resamples=500)
    alone = rank_runs(runs_of(["recall@5"], ["recall@5"], ["recall@5"]), resamples=500)
    assert [one.name for one in unequal.metrics] == ["recall@5"]
    assert [p_of(pair) for pair in unequal.pairs] == [p_of(pair) for pair in alone.pairs]
    assert pair_table(unequal).rows == pair_table(alone).rows
    assert unequal.notes == ["Not compared (not in r2): mrr, hit@5, ndcg@5"]
    assert alone.notes == []
    assert unequal.pairs[0].not_compared["mrr"] == "not in r2"


@pytest.mark.parametrize("order", [(60, 30, 20), (30, 60, 20), (20, 30, 60)])
def test_runs_on_parts_of_the_samples(order: tuple[int, int, int]) -> None:
    runs = [
        replace(a_run(f"first {size}", {"hit@5": [1.0, 0.0] * (size // 2)}), dataset_fingerprint=str(size))
        for size in order
    ]
    ranking = rank_runs(runs, resamples=100, allow_mismatch=True)
    assert [one.name for one in ranking.metrics] == ["hit@5"]
    assert len(ranking.pairs) == 3
    assert ranking.mismatches
    assert ranking_in_words(ranking)
    assert ranking_table(ranking).rows
