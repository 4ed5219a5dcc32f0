"""Experiments: who goes where, who wins, and what keeps a leader from winning."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from auepora_eval.core.runner import AueporaEvaluator, InterruptedRunError
from auepora_eval.errors import StorageError
from auepora_eval.experiment.experiment import (
    OtherVariantError,
    analyse_experiment,
    assigned_samples,
    assigned_variant,
    experiment_plan,
    run_experiment,
    run_variant,
)
from auepora_eval.experiment.report import experiment_results, save_experiment
from auepora_eval.io.config.experiment import SPLIT, GuardRail, Variant
from auepora_eval.io.schema.validate import DataFormatValidator
from auepora_eval.runs.evaluation import OutputCache
from auepora_eval.runs.store.storage import EvaluationResultsStorage
from auepora_eval.stats.significance import welch_difference
from tests.experiment.experimenting import EXPERIMENT, outcome, system, world

HALVES = {"a": 0.5, "b": 0.5}


# Who goes where


@given(unit=st.text(max_size=20), names=st.sets(st.text(min_size=1, max_size=5), min_size=2, max_size=5))
def test_a_sample_goes_to_one_variant_whatever_the_order(unit: str, names: set[str]) -> None:
    shares = dict.fromkeys(sorted(names), 1 / len(names))
    backwards = dict(reversed(shares.items()))
    assert assigned_variant("e", unit, shares) == assigned_variant("e", unit, backwards) in names


def test_where_a_sample_goes_does_not_change_between_versions() -> None:
    """Written down once: whoever changes the hash moves the samples of experiments that go on."""
    assert "".join(assigned_variant("e", f"s{n}", HALVES) for n in range(16)) == "bbabbbbbabbabaab"


@pytest.mark.parametrize("shares", [HALVES, {"a": 0.1, "b": 0.9}, {"a": 0.2, "b": 0.3, "c": 0.5}])
def test_the_shares_come_out(shares: dict[str, float]) -> None:
    counts = Counter(assigned_variant("salt", f"s{n}", shares) for n in range(20_000))
    expected = [20_000 * share for share in shares.values()]
    assert chisquare([counts[name] for name in shares], expected).pvalue > 0.001


def test_two_experiments_divide_the_samples_independently() -> None:
    both = Counter(
        (assigned_variant("one", f"s{n}", HALVES), assigned_variant("two", f"s{n}", HALVES))
        for n in range(8_000)
    )
    assert chisquare(list(both.values())).pvalue > 0.001


def test_new_variants_and_new_samples_move_no_others() -> None:
    third = {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}
    for n in range(500):
        before, after = (assigned_variant("e", f"s{n}", shares) for shares in (HALVES, third))
        assert after in (before, "c")
    few, many = (assigned_samples(world(size), "e", "a", HALVES) for size in (50, 80))
    assert [s.sample_id for s in many if int(s.query.split()[1]) < 50] == [s.sample_id for s in few]
    assert len(few) + len(assigned_samples(world(50), "e", "b", HALVES)) == 50


def test_samples_of_a_cluster_go_together() -> None:
    dataset = world(30, cluster="talk")
    assert sorted(len(assigned_samples(dataset, "e", name, HALVES)) for name in "ab") == [0, 30]


# Who wins


def test_the_better_one_wins(tmp_path: Path) -> None:
    found = outcome(tmp_path, EXPERIMENT, system(20), system(45))
    assert (found.verdict.winner, found.verdict.missing_samples) == ("b", 0)
    test = found.tests[0]
    assert (test.metric, test.better, test.samples) == ("recall@1", "b", (60, 60))
    assert test.comparison.effect.change == pytest.approx(25 / 60)
    assert test.effect_size is not None
    assert test.comparison.effect.d is not None
    assert "b is better on recall@1 than a (+0.4167, p < 0.001)" in found.verdict.reason
    # The control may win too.
    assert outcome(tmp_path / "x", EXPERIMENT, system(45), system(20)).verdict.winner == "a"


RAILS = {
    "slow": (GuardRail("mean_latency", "max_increase", 0.5), "a loss of 50.0% is allowed"),
    "too slow": (GuardRail("mean_latency", "max", 0.15), "is 0.2 s, at most 0.15 s is required"),
    "fails": (GuardRail("failure_rate", "max", 0.05), "is 0.1, at most 0.05 is required"),
    "loses words": (GuardRail("token_f1", "margin", 0.05), "a loss of 0.05 or more"),
    "low": (GuardRail("token_f1", "min", 0.99), "at least 0.99 is required"),
}


@pytest.mark.parametrize("name", RAILS)
def test_a_guard_rail_vetoes_the_winner(tmp_path: Path, name: str) -> None:
    rail, reason = RAILS[name]
    guarded = replace(EXPERIMENT, guard_rails=(rail,))
    better = system(50, words=40, seconds=0.2, failing=6)
    found = outcome(tmp_path, guarded, system(20), better).verdict
    assert (found.winner, found.leader) == ("none", "b")
    assert "b is best on recall@1, but" in found.reason
    assert reason in found.reason


def test_a_guard_rail_that_holds_lets_the_winner_pass(tmp_path: Path) -> None:
    rails = tuple(
        GuardRail(metric, kind, 0.5) for metric, kind in (("token_f1", "margin"), ("mean_latency", "max"))
    )
    found = outcome(tmp_path, replace(EXPERIMENT, guard_rails=rails), system(20), system(45)).verdict
    assert (found.winner, [check.holds for check in found.rails]) == ("b", [True, True, True])
    assert "a loss of 0.5 or more is ruled out: no sample differs" in found.rails[1].reason


def test_what_the_data_cannot_rule_out_is_not_allowed(tmp_path: Path) -> None:
    """One answer of sixty is lost: a loss of 0.02 may be, or may not."""
    guarded = replace(EXPERIMENT, guard_rails=(GuardRail("token_f1", "margin", 0.02),))
    found = outcome(tmp_path, guarded, system(20), system(45, words=59)).verdict
    assert found.winner == "none"
    assert "a loss of 0.02 cannot be ruled out" in found.reason


@pytest.mark.parametrize(
    ("changes", "systems", "reason"),
    [
        pytest.param(
            {"min_sample_size": 100}, (20, 45), "60 samples .* 40 are missing", id="too few samples"
        ),
        pytest.param(
            {}, (20, 22), r"inconclusive on .*: b and a .*about \d+ samples per variant", id="inconclusive"
        ),
        pytest.param({"minimum_lead": 0.5}, (20, 45), r"by 0.4167, less than the 0.5", id="a small lead"),
        pytest.param({"alpha": 1e-9}, (20, 45), "inconclusive", id="a strict alpha"),
    ],
)
def test_nobody_wins(tmp_path: Path, changes: dict[str, Any], systems: tuple[int, int], reason: str) -> None:
    found = outcome(tmp_path, replace(EXPERIMENT, **changes), *map(system, systems)).verdict
    assert found.winner == "none"
    assert re.search(reason, found.reason)


def test_the_best_of_three_must_beat_both(tmp_path: Path) -> None:
    three = replace(EXPERIMENT, variants=tuple(Variant(name, share=1 / 3) for name in "abc"))
    found = outcome(tmp_path, three, system(20), system(44), system(45))
    assert found.verdict.winner == "none"
    assert "inconclusive on recall@1: c and b" in found.verdict.reason
    assert [(test.first, test.second, test.better) for test in found.tests[:3]] == [
        ("a", "b", "b"),
        ("a", "c", "c"),
        ("b", "c", None),
    ]
    # Holm over the three pairs of the primary metric alone.
    alone = found.tests[0].comparison.test.p
    assert alone is not None
    assert found.tests[0].comparison.test.p_adjusted == pytest.approx(min(1, 3 * alone), rel=0.6)


def test_a_crash_is_no_advantage(tmp_path: Path) -> None:
    """b answers only what it knows: of what it answered it has more right, of all it has less."""
    found = outcome(tmp_path, EXPERIMENT, system(40), system(60, failing=50))
    assert found.runs["b"].result("recall@1").value == 1.0
    assert found.verdict.winner == "a"


@pytest.mark.parametrize("test", ["auto", "t_test", "permutation"])
def test_the_test_that_was_asked_for(tmp_path: Path, test: str) -> None:
    found = outcome(tmp_path, replace(EXPERIMENT, statistical_test=test), system(20), system(45))
    assert ("paired t" in found.tests[0].comparison.test.method) is (test == "t_test")
    assert found.verdict.winner == "b"


# Split samples


def test_split_samples_are_tested_by_welch(tmp_path: Path) -> None:
    split = replace(EXPERIMENT, assignment=SPLIT)
    found = outcome(tmp_path, split, lambda query: {"answer": "no", "retrieved": []}, system(400), size=400)
    counts = {name: len(side.rows) for name, side in found.sides.items()}
    assert sum(counts.values()) == 400
    assert all(counts.values())
    assert found.tests[0].comparison.test.method.startswith("Welch")
    assert found.verdict.winner == "b"


def test_no_difference_is_seldom_called_one() -> None:
    """Of 300 experiments on split samples without a difference 15 are expected to be called, not 29."""
    rng = np.random.default_rng(3)
    called = 0
    for number in range(300):
        scores = rng.random(200) < 0.6
        chosen = [assigned_variant(f"e{number}", f"s{n}", HALVES) == "a" for n in range(200)]
        there = np.array(chosen)
        called += welch_difference(scores[there], scores[~there]).p_value < 0.05
    assert called < 29


# Files and going on


def test_the_document(tmp_path: Path) -> None:
    storage = EvaluationResultsStorage(tmp_path)
    guarded = replace(EXPERIMENT, guard_rails=(GuardRail("failure_rate", "max", 0.05),))
    found = outcome(tmp_path, guarded, system(20), system(45, failing=1))
    path = save_experiment(found, storage)
    assert path.name == "ab_test_test.results.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    assert DataFormatValidator().validate_evaluation_results(document) == []
    assert (document["winner"], document["status"], document["confidence_level"]) == ("b", "completed", 0.95)
    assert document["variant_samples"] == {"a": 60, "b": 60}
    assert document["statistical_tests"]["a_vs_b"]["better"] == "b"
    primary = document["primary_metric_results"]
    # What is tested counts the failure; what was answered is beside it.
    assert primary["means"] == {"a": pytest.approx(20 / 60), "b": pytest.approx(44 / 60)}
    assert primary["variant_results"]["b"]["value"] == pytest.approx(44 / 59)
    assert primary["significant"] is True
    assert set(document["secondary_metric_results"]) == {"token_f1"}
    assert set(document["guard_rail_metric_results"]) == {"failure_rate"}
    assert document["guard_rails"][0]["holds"] is True
    assert document["summary"]["failed_queries"] == 1
    with pytest.raises(StorageError, match="exists already"):
        save_experiment(found, storage)
    save_experiment(found, storage, force=True)
    assert experiment_results(found)["winner"] == "b"


def test_what_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    storage, dataset, asked = EvaluationResultsStorage(tmp_path), world(), []
    plan = experiment_plan(EXPERIMENT)
    a, b = EXPERIMENT.variants

    def counting(query: str) -> Any:
        asked.append(query)
        if len(asked) == 10:
            source.stop()
        return system(20)(query)

    source = AueporaEvaluator(counting, plan)
    with pytest.raises(InterruptedRunError):
        run_variant(EXPERIMENT, a, source, dataset, storage)
    assert len(asked) == 10
    go_on: dict[str, Any] = {"resume": True}
    assert run_variant(EXPERIMENT, a, AueporaEvaluator(counting, plan), dataset, storage, **go_on)
    assert len(asked) == 60
    assert not run_variant(EXPERIMENT, a, AueporaEvaluator(counting, plan), dataset, storage, **go_on)
    assert run_variant(EXPERIMENT, b, AueporaEvaluator(system(45), plan), dataset, storage, **go_on)
    assert len(asked) == 60
    assert analyse_experiment(EXPERIMENT, storage).verdict.winner == "b"


@pytest.mark.parametrize(
    ("variant", "size", "says"),
    [
        pytest.param(Variant("a", share=0.5, arguments={"depth": 2}), 60, "other settings", id="settings"),
        pytest.param(Variant("a", share=0.5), 50, "other samples", id="samples"),
    ],
)
def test_another_variant_is_not_gone_on_with(tmp_path: Path, variant: Variant, size: int, says: str) -> None:
    storage = EvaluationResultsStorage(tmp_path)
    evaluator = AueporaEvaluator(system(20), experiment_plan(EXPERIMENT))
    run_variant(EXPERIMENT, EXPERIMENT.variants[0], evaluator, world(), storage)
    with pytest.raises(StorageError, match=says):
        run_variant(EXPERIMENT, variant, evaluator, world(size), storage, resume=True)
    with pytest.raises(OtherVariantError, match=says):  # and not "go on with --resume", which would not help
        run_variant(EXPERIMENT, variant, evaluator, world(size), storage)


def test_metrics_that_came_later_are_scored_on_what_is_stored(tmp_path: Path) -> None:
    storage, asked = EvaluationResultsStorage(tmp_path), []

    def counting(query: str) -> Any:
        asked.append(query)
        return system(20, failing=3)(query)

    run_experiment(EXPERIMENT, world(), {"a": counting, "b": counting}, storage)
    more = replace(EXPERIMENT, secondary_metrics=("token_f1", "mrr"), guard_rails=())
    found = run_experiment(more, world(), {"a": counting, "b": counting}, storage, resume=True)
    assert len(asked) == 2 * 60
    logs = [path.read_text(encoding="utf-8") for path in tmp_path.glob("*.run/log.jsonl")]
    assert [log.count('"event":"sample.failed"') for log in logs] == [3, 3]
    # 17 of the first twenty find their document first, the forty others second.
    assert found.value("mrr", "a") == pytest.approx((17 + 40 / 2) / 60)
    assert found.tallies["a"].failed == 3


def test_with_a_cache_only_new_samples_are_asked(tmp_path: Path) -> None:
    storage, asked = EvaluationResultsStorage(tmp_path), []
    variant = EXPERIMENT.variants[0]

    def counting(query: str) -> Any:
        asked.append(query)
        return system(20)(query)

    for size in (40, 60):
        with OutputCache(tmp_path / "cache", ["counting"], 5) as cache:
            source = AueporaEvaluator(counting, experiment_plan(EXPERIMENT))
            run_variant(EXPERIMENT, variant, source, world(size), storage, force=True, cache=cache)
    assert len(asked) == 60
    assert len(storage.load_run("test-a").samples) == 60


@pytest.mark.parametrize("force", [False, True])
def test_a_run_of_another_experiment_is_not_replaced(tmp_path: Path, force: bool) -> None:
    """Variant b-c of experiment a, and variant c of a-b, have one name."""
    storage = EvaluationResultsStorage(tmp_path)
    source = AueporaEvaluator(system(20), experiment_plan(EXPERIMENT))
    one, other = (
        replace(EXPERIMENT, experiment_id=name, variants=(Variant(variant, share=1.0),))
        for name, variant in (("a", "b-c"), ("a-b", "c"))
    )
    run_variant(one, one.variants[0], source, world(), storage)
    with pytest.raises(StorageError, match="a-b-c is a run of variant 'b-c' of 'a'"):
        run_variant(other, other.variants[0], source, world(), storage, force=force)


def test_what_is_there_is_kept_unless_asked(tmp_path: Path) -> None:
    outcome(tmp_path, EXPERIMENT, system(20), system(45))
    with pytest.raises(StorageError, match="Resume it"):
        outcome(tmp_path, EXPERIMENT, system(20), system(45))
