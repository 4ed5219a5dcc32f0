"""Runs that stop when their verdict is clear: what decides, what is kept, and how often they are wrong."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from auepora_eval.comparison.compare import compare_runs
from auepora_eval.core.dataset import InMemoryDataset
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.core.systems.call import EXECUTORS
from auepora_eval.core.types import (
    EvaluationRun,
    EvaluationSample,
)
from auepora_eval.core.verdict import Goal, Stopping
from auepora_eval.decide.early_stop import StopRule
from auepora_eval.errors import InterruptedRunError, PlanError, StorageError
from auepora_eval.metrics.parse import parse_metrics
from auepora_eval.stats.intervals import METHOD
from auepora_eval.store.stopping import NO_METHOD, stopping_in_words
from auepora_eval.store.storage import EvaluationResultsStorage
from auepora_eval.store.verify import verify_run
from tests.builders import a_dataset, a_sample, an_output
from tests.stable import stable_bytes

METRICS = "exact_match,token_f1,mean_latency"


def world(size: int = 300, per_cluster: int = 1) -> InMemoryDataset:
    """Questions 0, 1, 2, ...; the right answer is yes."""
    clusters = [f"c{n // per_cluster}" if per_cluster > 1 else None for n in range(size)]
    return a_dataset(
        *(a_sample(f"s{n}", f"q {n}", reference="yes", cluster=c) for n, c in enumerate(clusters))
    )


class System:
    """Right where `right` says so of the question's number; fails where `fails` does."""

    name = "yes"

    def __init__(
        self, right: Any = lambda n: n % 10 < 9, fails: Any = lambda n: False, seconds: float = 0.0
    ) -> None:
        self._right, self._fails, self._seconds, self.asked = right, fails, seconds, list[str]()

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> Any:
        number = int(sample.query.split()[1])
        self.asked.append(sample.sample_id)
        time.sleep(self._seconds)
        if self._fails(number):
            raise LookupError("down")
        return an_output("", "yes" if self._right(number) else "no")


def evaluator(system: System | None = None, metrics: str = METRICS, **options: Any) -> AueporaEvaluator:
    return AueporaEvaluator(system or System(), EvaluationPlan(parse_metrics(metrics)), **options)


def stored(folder: Path, name: str, rule: StopRule | None, **options: Any) -> EvaluationRun:
    data = options.pop("data", None) or world()
    more = {key: options.pop(key) for key in ("resume", "force", "cache") if key in options}
    storage = EvaluationResultsStorage(folder)
    storage.evaluate(evaluator(**options), data, evaluation_id=name, stop_rule=rule, **more)
    return storage.load_run(name)


def at_least(limit: float, alpha: float = 0.05) -> StopRule:
    return StopRule((Goal("exact_match", "at least", limit),), alpha)


def ending(run: EvaluationRun) -> Stopping:
    assert run.stopping is not None
    return run.stopping


@pytest.mark.parametrize(
    ("limit", "outcome"),
    [(0.7, "passed"), (0.98, "failed"), (0.9, "inconclusive")],
    ids=["above", "below", "at it"],
)
def test_it_stops_when_the_side_is_clear(tmp_path: Path, limit: float, outcome: str) -> None:
    system = System()
    run = stored(tmp_path, "x", at_least(limit), system=system)
    end = ending(run)
    assert end.goals[0].outcome == outcome
    assert end.stopped_early is (outcome != "inconclusive")
    assert end.samples_used == len(run.samples) == len(run.outputs) <= len(system.asked)
    assert end.samples_in_dataset == 300
    low, high = end.goals[0].interval
    assert (low >= limit, high <= limit) == {"passed": (True, False), "failed": (False, True)}.get(
        outcome, (False, False)
    )
    words = stopping_in_words(end)
    assert ("Stopped early" in words) is end.stopped_early
    assert f"at least {limit:g}" in words


def test_samples_come_in_random_order_by_the_seed_and_are_stored_in_that_of_the_data(tmp_path: Path) -> None:
    """The file is sorted, what is answered right comes first: in its order the verdict would be wrong."""
    asked = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        system = System(lambda n: n < 150)
        run = stored(tmp_path, name, at_least(0.7), system=system, seed=seed)
        assert ending(run).goals[0].outcome == "failed"
        numbers = [int(sample.sample_id[1:]) for sample in run.samples]
        assert numbers == sorted(numbers)
        asked.append(system.asked)
    assert asked[0][:20] == asked[1][:20] != asked[2][:20]


def test_the_decision_is_the_same_for_every_executor_and_after_a_resume(tmp_path: Path) -> None:
    storage = EvaluationResultsStorage(tmp_path)
    digests, used = set(), set()
    for kind in ("serial", "threads", "async"):
        for concurrency in (1, 16):
            for stop_after in (0, 20):
                name = f"{kind}-{concurrency}-{stop_after}"
                options: dict[str, Any] = {"concurrency": concurrency}
                if stop_after:
                    stopping = evaluator(executor=EXECUTORS.get(kind)(**options))
                    seen: list[str] = []

                    def count(sample: EvaluationSample, output: object) -> None:
                        seen.append(sample.sample_id)  # noqa: B023 - called before the next turn
                        if len(seen) == 20:  # noqa: B023
                            stopping.stop()  # noqa: B023

                    stopping.on_output = count
                    with pytest.raises(InterruptedRunError):
                        storage.evaluate(stopping, world(), evaluation_id=name, stop_rule=at_least(0.8))
                executor = EXECUTORS.get(kind)(**options)
                run = stored(tmp_path, name, at_least(0.8), executor=executor, resume=bool(stop_after))
                used.add(ending(run).samples_used)
                digests.add(stable_bytes(storage.load_results(name)))
                assert verify_run(storage, name).ok
    assert len(used) == len(digests) == 1
    assert used.pop() > 20  # so that the interrupted ones had something left to find


@pytest.mark.parametrize("rule", [at_least(0.71), at_least(0.7, 0.01), None])
def test_another_rule_is_another_run(tmp_path: Path, rule: StopRule | None) -> None:
    stored(tmp_path, "x", at_least(0.7))
    (tmp_path / "x.results.json").unlink()
    with pytest.raises(StorageError, match="stop_when"):
        stored(tmp_path, "x", rule, resume=True)


def test_every_interval_of_the_run_is_the_sequences_or_none(tmp_path: Path) -> None:
    run = stored(tmp_path, "x", at_least(0.7))
    methods = {result.name: result.details["interval_method"] for result in run.results}
    assert methods["exact_match"] == methods["token_f1"] == METHOD
    assert methods["mean_latency[end_to_end]"] == NO_METHOD
    low, high = run.result("exact_match").details["confidence_interval"]
    assert (low, high) == pytest.approx(ending(run).goals[0].interval, abs=1e-9)
    fixed = stored(tmp_path, "all", None).result("exact_match").details["interval_method"]
    assert fixed == "Student's t, plus two"


def test_failures_speak_against_whatever_would_become_clear(tmp_path: Path) -> None:
    sure = ending(stored(tmp_path, "a", at_least(0.7)))
    every_tenth = System(fails=lambda n: n % 10 == 3)
    doubtful = ending(stored(tmp_path, "b", at_least(0.7), system=every_tenth))
    assert doubtful.goals[0].failed == pytest.approx(doubtful.samples_used / 10, rel=0.6)
    assert doubtful.samples_used > sure.samples_used
    assert "taken for the worst either way" in stopping_in_words(doubtful)
    # Where half of the calls fail nothing can be clear, neither that it is good nor that it is bad.
    half = System(lambda n: True, fails=lambda n: n % 2 == 1)
    for limit in (0.55, 0.95):
        found = ending(stored(tmp_path, f"half-{limit}", at_least(limit), system=half))
        assert (found.goals[0].outcome, found.stopped_early) == ("inconclusive", False)


def test_against_a_baseline(tmp_path: Path) -> None:
    base = stored(tmp_path, "base", None, system=System(lambda n: n % 10 < 6))
    better = StopRule((Goal("exact_match", "better"),), baseline=base)
    end = ending(stored(tmp_path, "good", better))
    assert (end.goals[0].outcome, end.stopped_early, end.baseline_id) == ("passed", True, "base")
    assert end.goals[0].value == pytest.approx(0.3, abs=0.15)
    assert end.goals[0].interval[0] >= 0
    worse = ending(stored(tmp_path, "bad", better, system=System(lambda n: n % 10 < 3)))
    assert worse.goals[0].outcome == "failed"
    same = ending(stored(tmp_path, "same", better, system=System(lambda n: n % 10 < 6)))
    assert (same.goals[0].outcome, same.stopped_early) == ("inconclusive", False)
    assert "exact_match better (against base): inconclusive" in stopping_in_words(same)
    margin = StopRule((Goal("exact_match", "no worse", 0.1),), baseline=base)
    no_worse = ending(stored(tmp_path, "no-worse", margin, system=System(lambda n: n % 10 < 6)))
    assert (no_worse.goals[0].outcome, no_worse.stopped_early) == ("passed", True)
    lost = ending(stored(tmp_path, "lost", margin, system=System(lambda n: n % 10 < 2)))
    assert lost.goals[0].outcome == "failed"


def test_a_failure_of_the_baseline_does_not_make_the_candidate_better(tmp_path: Path) -> None:
    base = stored(tmp_path, "base", None, system=System(lambda n: True, fails=lambda n: n % 2 == 0))
    rule = StopRule((Goal("exact_match", "better"),), baseline=base)
    end = ending(stored(tmp_path, "x", rule, system=System(lambda n: True)))
    assert (end.goals[0].outcome, end.stopped_early) == ("inconclusive", False)
    assert end.goals[0].failed == 150


def test_clusters_are_asked_whole(tmp_path: Path) -> None:
    run = stored(tmp_path, "x", at_least(0.5), data=world(300, per_cluster=3))
    end = ending(run)
    assert (end.stopped_early, end.largest_cluster) == (True, 3)
    clusters = [sample.metadata["cluster"] for sample in run.samples]
    assert all(clusters.count(name) == 3 for name in clusters)
    assert end.samples_used == len(run.samples)
    # The interval of the metric knows the clusters too: it is that of the goal.
    interval = run.result("exact_match").details["confidence_interval"]
    assert interval == pytest.approx(end.goals[0].interval, abs=1e-9)


def test_a_comparison_does_not_take_it_for_a_run_of_all_samples(tmp_path: Path) -> None:
    whole = stored(tmp_path, "whole", None, system=System(lambda n: n % 10 < 6))
    early = stored(tmp_path, "early", at_least(0.7))
    with pytest.raises(PlanError, match=r"early stopped after \d+ of 300 samples"):
        compare_runs(whole, early)
    with pytest.raises(PlanError, match="when its verdict was clear"):
        compare_runs(early, replace(early, evaluation_id="twin"))
    allowed = compare_runs(whole, early, allow_mismatch=True)
    assert any("its own verdict holds" in text for text in allowed.mismatches)
    to_the_end = stored(tmp_path, "end", at_least(0.9))
    assert not ending(to_the_end).stopped_early
    assert any("second look" in note for note in compare_runs(whole, to_the_end).notes)
    rule = StopRule((Goal("exact_match", "better"),), baseline=early)
    with pytest.raises(PlanError, match="stopped early itself"):
        stored(tmp_path, "next", rule)


@pytest.mark.parametrize(
    ("goal", "told"),
    [
        pytest.param(Goal("recall@5", "at least", 0.5), "is not measured", id="not in the plan"),
        pytest.param(Goal("bleu", "at least", 0.5), "not a mean", id="no mean"),
        pytest.param(Goal("mean_latency[end_to_end]", "at most", 1.0), "no highest score", id="no bounds"),
        pytest.param(Goal("exact_match", "at least", 1.0), "nothing to find out", id="at the bound"),
        pytest.param(Goal("exact_match", "at most", 7.0), "nothing to find out", id="outside"),
    ],
)
def test_goals_that_cannot_be_decided_are_refused_before_the_first_call(
    tmp_path: Path, goal: Goal, told: str
) -> None:
    system = System()
    with pytest.raises(PlanError, match=told):
        stored(tmp_path, "x", StopRule((goal,)), system=system, metrics=f"{METRICS},bleu")
    assert system.asked == []
    assert not (tmp_path / "x.run.db").exists()


def simulated(chance: float, size: int, seed: int, rule: StopRule) -> Stopping:
    """A run of a system that is right by chance, told to the watch as an executor would."""
    right = np.random.default_rng(seed).random(size) < chance
    data = world(size)
    watch = rule.watch(evaluator(metrics="exact_match", seed=seed), data, "whole")
    for sample in watch.samples():
        if watch.clear:
            break
        watch.tell(sample, an_output("", "yes" if right[int(sample.sample_id[1:])] else "no"))
    return watch.outcome()


@pytest.mark.full
def test_at_the_limit_it_is_wrong_no_more_often_than_alpha() -> None:
    """Looked at after every sample. `benchmarks/stopping.py` does the same with more and longer runs."""
    runs = 200
    wrong = sum(simulated(0.8, 100, seed, at_least(0.8)).stopped_early for seed in range(runs))
    assert wrong / runs <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / runs)


def test_where_there_is_an_effect_it_saves_samples() -> None:
    used = [simulated(0.95, 400, seed, at_least(0.8)) for seed in range(30)]
    assert all(end.goals[0].outcome == "passed" for end in used)
    assert np.mean([end.samples_used for end in used]) < 100
