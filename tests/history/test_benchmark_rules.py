"""Failures, chance, throughput by the clock and a new normal: what bench-record makes of them."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from scipy.stats import t

from auepora_eval.core.calls.executor import SerialExecutor
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.execution.local import ThreadExecutor
from auepora_eval.history.bench import Baseline, Measurement, measurements, with_recordings
from auepora_eval.history.bench_rules import baseline_restarts, improvements, regressions
from auepora_eval.metrics.parse import parse_metrics
from auepora_eval.runs.store.storage import EvaluationResultsStorage
from tests.builders import a_dataset, a_sample, an_output

BEFORE = Measurement("op", 20, 1.0, 0.1, 100.0, 10.0, timestamp="2026-03-01T00:00:00Z", source="before")
NOW = replace(BEFORE, timestamp="2026-03-03T00:00:00Z", source="now")


def measured_run(
    folder: Path, concurrency: int, *, failing: bool = False, resumed: bool = False
) -> Measurement:
    """A run of 12 calls of 20 ms each, so many at a time."""

    def system(query: str) -> Any:
        time.sleep(0.02)
        if failing:
            raise RuntimeError("down")
        return an_output("a", "x")

    storage = EvaluationResultsStorage(folder)
    executor = ThreadExecutor(concurrency=concurrency) if concurrency > 1 else SerialExecutor()
    evaluator = AueporaEvaluator(system, EvaluationPlan(parse_metrics("recall@1")), executor=executor)
    dataset = a_dataset(*(a_sample(f"s{n}", f"q {n}", relevant="a") for n in range(12)))
    evaluator.run(dataset, evaluation_id="r", storage=storage)
    if resumed:
        with (folder / "r.run" / "journal.jsonl").open("ab") as journal:
            journal.write(b'00000000 {"seq":99,"type":"resume","v":1}\n')
    return next(one for one in measurements("r", storage) if one.operation == "end_to_end")


def test_throughput_is_by_the_clock_of_the_run(tmp_path: Path) -> None:
    alone, six = measured_run(tmp_path / "1", 1), measured_run(tmp_path / "6", 6)
    assert alone.throughput is not None
    assert six.throughput is not None
    assert alone.throughput < 50  # 20 ms a call, and a little more
    assert six.throughput > 2 * alone.throughput
    assert measured_run(tmp_path / "r", 1, resumed=True).throughput is None  # it had two clocks


def test_a_run_of_failures_is_a_measurement(tmp_path: Path) -> None:
    found = measured_run(tmp_path, 1, failing=True)
    assert (found.count, found.failed, math.isnan(found.mean_duration)) == (0, 12, True)
    (worse,) = regressions([found], {})
    assert (worse.quantity, worse.severity, worse.current) == ("failures", "critical", 1.0)


def test_a_lost_throughput_is_seen_though_calls_take_as_long() -> None:
    now = replace(NOW, throughput=2.0)
    found = regressions([now], {"op": Baseline("op", (BEFORE,))})
    assert [(one.quantity, one.severity) for one in found] == [("throughput", "critical")]


@pytest.mark.parametrize(
    ("failed", "before", "severity"),
    [
        (0, 0, None),
        (1, 0, None),  # 1 of 21 is under 5%
        (2, 0, "low"),  # 9%, p = 0.27
        (6, 0, "high"),  # 23%, p = 0.015
        (60, 0, "critical"),
        (60, 60, None),  # as many as ever
        (3, None, "low"),  # without a baseline, against 5%: p = 0.11
        (5, None, "high"),  # p = 0.006
        (30, None, "critical"),
    ],
)
def test_calls_that_fail(failed: int, before: int | None, severity: str | None) -> None:
    baselines = {} if before is None else {"op": Baseline("op", (replace(BEFORE, failed=before),))}
    found = regressions([replace(NOW, failed=failed)], baselines)
    assert [one.severity for one in found] == ([] if severity is None else [severity])
    assert all(("no baseline" in one.message) == (before is None) for one in found)


def test_chance_of_failures_is_that_of_the_oracle() -> None:
    (found,) = regressions([replace(NOW, failed=6)], {"op": Baseline("op", (BEFORE,))})
    # All six of the failures of 46 calls among the last 26: C(26, 6) / C(46, 6)
    assert found.p_value == pytest.approx(math.comb(26, 6) / math.comb(46, 6))


@pytest.mark.parametrize(
    ("value", "spread", "severity"),
    [(1.6, 0.5, "low"), (1.6, 0.05, "critical"), (9.0, 0.5, "critical")],
)
def test_a_single_call_is_held_against_the_spread(value: float, spread: float, severity: str) -> None:
    one = replace(NOW, count=1, std_duration=None, mean_duration=value, throughput=None)
    (found,) = regressions([one], {"op": Baseline("op", (replace(BEFORE, std_duration=spread),))})
    away = (value - 1.0) / (spread * math.sqrt(1 + 1 / 20))
    assert found.p_value == pytest.approx(2 * t.sf(away, 19))
    assert found.severity == severity


@pytest.mark.parametrize(("now", "severity"), [(5.0, "critical"), (0.0005, None), (0.0, None)])
def test_a_baseline_of_no_time_at_all(now: float, severity: str | None) -> None:
    before = replace(BEFORE, mean_duration=0.0, std_duration=0.0)
    found = regressions(
        [replace(NOW, mean_duration=now, std_duration=0.0)], {"op": Baseline("op", (before,))}
    )
    assert [one.severity for one in found] == ([] if severity is None else [severity])
    assert all("the baseline has none" in one.message for one in found)


def test_an_accepted_change_starts_a_new_baseline() -> None:
    slow = replace(NOW, mean_duration=2.5)
    accepted = with_recordings({"op": Baseline("op", (BEFORE, BEFORE))}, [slow], restarts=[slow])
    assert accepted["op"].recordings == (slow,)
    assert accepted["op"].history == (BEFORE, BEFORE)
    assert regressions([replace(slow, source="next")], accepted) == []
    assert regressions([replace(slow, mean_duration=3.3)], accepted)
    lost = replace(NOW, count=0, mean_duration=math.nan, failed=20)
    assert with_recordings(accepted, [lost], restarts=[lost]) == accepted  # there is nothing to expect


@pytest.mark.parametrize(
    ("changes", "better"),
    [
        ({}, []),
        ({"mean_duration": 0.92, "throughput": None}, []),  # the way back is 8.7%
        ({"mean_duration": 0.8, "throughput": None}, ["duration"]),
        ({"mean_duration": 0.8, "std_duration": 1.0, "throughput": None}, []),  # may be chance
        ({"mean_duration": 0.8, "count": 4, "throughput": None}, []),  # too few to be a baseline
        ({"mean_memory": 80.0}, ["memory"]),
        ({"mean_memory": 90.0}, []),
        ({"throughput": 20.0}, ["throughput"]),
        ({"mean_duration": 1.3}, []),
        ({"count": 0, "mean_duration": math.nan, "failed": 9}, []),
    ],
)
def test_it_is_better_if_the_way_back_would_be_worse(changes: dict[str, Any], better: list[str]) -> None:
    now = replace(NOW, **changes)
    found = improvements([now], {"op": Baseline("op", (BEFORE,))})
    assert [one.quantity for one in found] == better
    begun = baseline_restarts([now], {"op": Baseline("op", (BEFORE,))})
    assert begun == ([now] if better else [])
    if begun:
        later = with_recordings({"op": Baseline("op", (BEFORE,))}, [now], restarts=begun)
        back = regressions([replace(BEFORE, timestamp="2026-03-04T00:00:00Z")], later)
        assert [one.quantity for one in back] == better


def test_fewer_failures_are_better() -> None:
    (found,) = improvements([NOW], {"op": Baseline("op", (replace(BEFORE, failed=20),))})
    assert (found.quantity, found.baseline, found.current) == ("failures", 0.5, 0.0)
    assert found.message == "op: 0% of the calls failed, 50% in the baseline."


def test_what_is_not_better_than_the_best_is_a_good_day() -> None:
    """A machine that wavers: 0.85 is far below the mean of 1, but has been there before."""
    days = [
        replace(BEFORE, mean_duration=mean, std_duration=0.05, throughput=None, source=f"{mean}")
        for mean in (1.1, 0.9, 1.1, 0.9)
    ]
    good = replace(days[0], mean_duration=0.85, source="good")
    assert improvements([good], {"op": Baseline("op", tuple(days))}) == []
    assert improvements([good], {"op": Baseline("op", (days[0], days[2]))})


def test_what_is_known_begins_nothing_unless_it_is_accepted() -> None:
    fast = replace(NOW, mean_duration=0.5)
    kept = {"op": Baseline("op", (BEFORE,), history=(fast,))}
    assert baseline_restarts([fast], kept) == []
    assert with_recordings(kept, [fast]) == kept
    assert baseline_restarts([fast], kept, accept=True) == [fast]
    assert with_recordings(kept, [fast], restarts=[fast])["op"].recordings == (fast,)


def test_a_new_baseline_begins_with_the_first_that_is_better() -> None:
    same, fast = replace(NOW, source="same"), replace(NOW, mean_duration=0.5)
    kept = {"op": Baseline("op", (BEFORE,))}
    later = replace(fast, source="later")
    restarts = baseline_restarts([same, fast, later], kept)
    assert restarts == [fast]
    found = with_recordings(kept, [same, fast, later], restarts=restarts)["op"]
    assert (found.history, found.recordings) == ((BEFORE, same), (fast, later))


def test_months_on_a_machine_that_wavers() -> None:
    """By 2% from night to night: none fails while nothing changes, and what gets worse again is seen."""
    from benchmarks.baselines import BETTER_AND_WORSE, STEADY, nights_that_fail

    assert not any(any(nights_that_fail(STEADY, 0.02, seed, restarts=True)) for seed in range(3))
    for seed in range(3):
        *before, last = nights_that_fail(BETTER_AND_WORSE, 0.02, seed, restarts=True)
        assert (any(before), last) == (False, True)
