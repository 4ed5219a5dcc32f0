"""Experiments in which answers fail, are lost, or take their time: nobody gains by crashing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.experiment import report as tables
from auepora_eval.experiment.experiment import analyse_experiment, assigned_variant, run_variant
from auepora_eval.experiment.report import experiment_results
from auepora_eval.io.config.experiment import SPLIT, GuardRail
from auepora_eval.runs.evaluation import predictions_at
from auepora_eval.runs.store.storage import EvaluationResultsStorage
from tests.builders import an_output, save_predictions
from tests.experiment.experimenting import EXPERIMENT, outcome, system, world


def test_rails_count_failures_as_the_worst(tmp_path: Path) -> None:
    """What b answers is all right: 1.0 of 36, but 0.6 of 60."""
    guarded = replace(EXPERIMENT, guard_rails=(GuardRail("token_f1", "min", 0.9),))
    found = outcome(tmp_path, guarded, system(5), system(60, failing=24))
    assert found.runs["b"].result("token_f1").value == 1.0
    assert found.value("token_f1", "b") == pytest.approx(0.6)
    assert [check.holds for check in found.verdict.rails] == [True, False]
    # The tables show what is tested: the values differ by the difference.
    variants, pairs, _ = tables.experiment_tables(tables.experiment_results(found))
    rows = {row[0]: row[1:] for row in variants.rows}
    assert [cell.split()[0] for cell in rows["token_f1"]] == ["1.0000", "0.6000"]
    assert (rows["samples"], rows["failed"]) == (["60", "60"], ["0", "24"])
    assert [row[2] for row in pairs.rows if row[0] == "token_f1"] == ["-0.4000"]
    assert tables.outcome_notes(found) == ["Failed answers count as the worst of a metric."]
    assert "token_f1 is 0.6, at least 0.9 is required (24 of 60 failed and count as the worst)" in (
        found.verdict.reason
    )


def test_a_failure_rate_that_grows_breaks_a_rail_on_increases(tmp_path: Path) -> None:
    """A failed call counts as the slowest: (36 x 0.1 + 24 x 0.4) / 60 = 0.22 s; a has 0.4 s once in 60."""

    def sometimes_slow(query: str) -> Any:
        return system(5, seconds=0.4 if query == "q 0" else 0.1)(query)

    guarded = replace(EXPERIMENT, guard_rails=(GuardRail("mean_latency", "max_increase", 0.5),))
    found = outcome(tmp_path, guarded, sometimes_slow, system(60, failing=24))
    assert found.value("mean_latency[end_to_end]", "a") == pytest.approx(0.105)
    assert found.value("mean_latency[end_to_end]", "b") == pytest.approx(0.22)
    assert "109.5% worse (critical): 0.105 s before, 0.22 s now; a loss of 50.0% is allowed" in (
        found.verdict.reason
    )


TIMES = {"mean_latency": (0.25, 0.25), "p50_latency": (0.25, 0.25), "throughput": (4.0, 2.0)}


@pytest.mark.parametrize("how", ["paired", SPLIT])
@pytest.mark.parametrize("metric", TIMES)
def test_times_of_one_run_each_make_no_winner(tmp_path: Path, how: str, metric: str) -> None:
    """Every second question takes 0.4 s instead of 0.1 s. b crashes on those, which makes it no faster."""

    def timed(query: str) -> Any:
        return system(60, seconds=0.4 if int(query.split()[1]) % 2 else 0.1)(query)

    def crashing(query: str) -> Any:
        if int(query.split()[1]) % 2:
            raise RuntimeError("out of memory")
        return timed(query)

    found = outcome(tmp_path, replace(EXPERIMENT, primary_metric=metric, assignment=how), timed, crashing)
    assert found.verdict.winner == "none"
    assert "one run each is not enough to compare times" in found.verdict.reason
    (test,) = [one for one in found.tests if one.metric == found.primary]
    assert (test.better, test.is_tested, sum(test.samples)) == (None, False, 120 if how == "paired" else 60)
    assert found.sides["b"].failed == (30 if how == "paired" else found.tallies["b"].failed) > 0
    if how == "paired":
        assert [found.value(found.primary, name) for name in "ab"] == pytest.approx(TIMES[metric])
    document = experiment_results(found)["primary_metric_results"]
    assert document["p_value"] is None
    assert document["tests"]["a_vs_b"]["p_adjusted"] is None


def test_a_margin_on_times_cannot_be_kept(tmp_path: Path) -> None:
    guarded = replace(EXPERIMENT, guard_rails=(GuardRail("mean_latency", "margin", 10.0),))
    found = outcome(tmp_path, guarded, system(20), system(45)).verdict
    assert found.winner == "none"
    assert "cannot be ruled out: one run each" in found.reason


@pytest.mark.parametrize("how", ["paired", SPLIT])
def test_where_everything_failed_nothing_was_measured(tmp_path: Path, how: str) -> None:
    found = outcome(
        tmp_path, replace(EXPERIMENT, assignment=how), system(60, failing=60), system(60, failing=60)
    )
    assert found.verdict.winner == "none"
    total = 120 if how == "paired" else 60
    assert found.verdict.reason == f"nothing was measured by recall@1: all {total} answers failed."
    assert (found.is_measured("recall@1"), found.value("recall@1", "a")) == (False, None)
    assert experiment_results(found)["primary_metric_results"]["means"] == {"a": None, "b": None}


@pytest.mark.parametrize(("size", "holds"), [(4, False), (130, False), (150, True)])
def test_few_samples_that_are_alike_rule_nothing_out(tmp_path: Path, size: int, holds: bool) -> None:
    """A margin of 0.02 takes 139 samples of which none differs; of split samples about as many each."""
    guarded = replace(EXPERIMENT, min_sample_size=1, guard_rails=(GuardRail("token_f1", "margin", 0.02),))
    found = outcome(tmp_path / "paired", guarded, system(0), system(1000), size=size)
    assert [check.holds for check in found.verdict.rails] == [holds]
    split = replace(guarded, assignment=SPLIT)  # half of them each, not exactly
    found = outcome(tmp_path / "split", split, system(0), system(1000), size=2 * size + 20 * holds)
    assert [check.holds for check in found.verdict.rails] == [holds]


def test_one_loss_seen_does_not_rule_out_that_there_are_more(tmp_path: Path) -> None:
    """Split samples of 0 and 1: by the spread that was seen one loss in 150 would rule out one in 50."""
    guarded = replace(EXPERIMENT, assignment=SPLIT, guard_rails=(GuardRail("exact_match", "margin", 0.02),))
    shares = {"a": 0.5, "b": 0.5}
    size = next(n for n in range(300, 400) if assigned_variant("test", f"sample s{n - 1}", shares) == "b")
    found = outcome(tmp_path, guarded, system(0), system(1000, words=size - 1), size=size)
    lost = [side.rows.shape[0] - side.rows[:, 0].sum() for side in found.every_side["exact_match"].values()]
    assert lost == [0, 1]
    assert [check.holds for check in found.verdict.rails] == [False]


def test_no_difference_has_no_sign(tmp_path: Path) -> None:
    reason = outcome(tmp_path, EXPERIMENT, system(20), system(20)).verdict.reason
    assert "(no difference, p = 1.000" in reason
    assert "-0" not in reason


def test_predictions_that_are_not_there_count_as_failed(tmp_path: Path) -> None:
    """b's file lacks two lines of five."""
    dataset, storage = world(400), EvaluationResultsStorage(tmp_path / "runs")
    split = replace(EXPERIMENT, assignment=SPLIT)
    for variant, kept in zip(split.variants, (5, 3), strict=True):
        path = tmp_path / f"{variant.variant_id}.jsonl"
        chosen = [sample for number, sample in enumerate(dataset) if number % 5 < kept]
        save_predictions(chosen, [an_output("ab", "white light") for _ in chosen], path)
        run_variant(split, variant, predictions_at(path), dataset, storage)
    found = analyse_experiment(split, storage)
    assert found.unpredicted("a") == 0
    assert found.unpredicted("b") == found.sides["b"].failed > 60
    assert found.verdict.winner == "a"  # what is not there counts as the worst
    assert any("no line for" in note for note in tables.outcome_notes(found))
