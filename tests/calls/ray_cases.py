"""The executor `ray` on a cluster that is there: tests/calls/test_ray.py starts it, then these."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.calls.asking import Caller
from auepora_eval.calls.policy import CallPolicy, Limits
from auepora_eval.calls.ray import RayExecutor
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.core.systems.call import SystemCall
from auepora_eval.core.systems.named import load_system
from auepora_eval.core.types import EvaluationSample, SystemOutputs
from auepora_eval.errors import PlanError, RunStoppedError, WorkerLostError
from tests.builders import a_dataset, a_sample, an_output
from tests.calls.worker_calls import DeadlyAt

ADDRESS = os.environ["AUEPORA_RAY"]

SYSTEM = """
import os
from pathlib import Path
from tests.builders import an_output

LOG = Path({log!r})


def note(words):
    with LOG.open("a") as file:
        file.write(f"{{os.getpid()}} {{words}}\\n")


class System:
    def __init__(self):
        if Path({moved!r}).exists():
            raise ImportError("the index is not on this machine")
        note("loaded")

    def run(self, sample, *, top_k=5):
        note(sample.sample_id)
        return an_output()
"""


def on_the_cluster(**options: Any) -> RayExecutor:
    return RayExecutor(**{"concurrency": 3, "address": ADDRESS, **options})


def samples(count: int) -> list[EvaluationSample]:
    return [a_sample(f"s{n}", f"query {n}") for n in range(count)]


@pytest.fixture
def system(tmp_path: Path) -> Any:
    file = tmp_path / "my_rag.py"
    log, moved = str(tmp_path / "log"), str(tmp_path / "moved")
    file.write_text(SYSTEM.format(log=log, moved=moved), encoding="utf-8")
    return load_system(f"{file}:System")


def notes(tmp_path: Path) -> dict[str, list[str]]:
    """What each worker wrote, by its process."""
    found: dict[str, list[str]] = {}
    for line in (tmp_path / "log").read_text().splitlines():
        process, words = line.split()
        found.setdefault(process, []).append(words)
    del found[str(os.getpid())]  # that of the driver, which loads the system to know its name
    return found


def test_a_worker_loads_the_system_once(system: Any, tmp_path: Path) -> None:
    call: Caller[Any, Any] = Caller(SystemCall(system, 5), Limits())
    results = list(on_the_cluster().map(call, samples(120)))
    assert sorted(place for place, _ in results) == list(range(120))
    workers = notes(tmp_path)
    assert call.limits.spent.calls == 120
    assert all(words.count("loaded") == 1 for words in workers.values())
    assert sum(len(words) - 1 for words in workers.values()) == 120


def test_a_system_that_workers_cannot_load_is_told_at_once(system: Any, tmp_path: Path) -> None:
    (tmp_path / "moved").touch()
    with pytest.raises(PlanError, match=r"cannot load the system: .*the index is not on this machine"):
        list(on_the_cluster().map(Caller(SystemCall(system, 5), Limits()), samples(50)))


def test_a_system_that_cannot_be_sent_is_refused() -> None:
    class Locked:
        def __init__(self) -> None:
            self.lock = threading.Lock()

        def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
            return an_output()

    with pytest.raises(PlanError, match="cannot be sent to the cluster"):
        list(on_the_cluster().map(Caller(SystemCall(Locked(), 5), Limits()), samples(1)))


def test_the_one_that_kills_its_worker_is_found_and_no_other_is_lost() -> None:
    results = dict(on_the_cluster().map(DeadlyAt(7), range(12)))
    lost = results.pop(7)
    assert isinstance(lost, WorkerLostError)
    assert "the worker died 3 times on it" in str(lost)
    assert results == {n: n * n for n in range(12) if n != 7}


def test_an_item_that_cannot_be_sent_fails_alone() -> None:
    results = dict(on_the_cluster().map(repr, [1, threading.Lock(), 3, 4]))
    assert "cannot leave its process" in str(results.pop(1))
    assert results == {0: "1", 2: "3", 3: "4"}


def test_a_budget_is_counted_where_the_run_is() -> None:
    quiet = load_system("tests.calls.worker_calls:Quiet")
    call: Caller[Any, Any] = Caller(SystemCall(quiet, 5), Limits(CallPolicy(max_calls=30)))
    kept: list[int] = []

    def collect() -> None:
        kept.extend(place for place, _ in on_the_cluster().map(call, iter(samples(1000))))

    with pytest.raises(RunStoppedError, match="the budget of 30 calls is used up"):
        collect()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("test_odd_outputs:Rude", [None, "CancelledError", "RudeError", None]),
        ("test_odd_outputs:RudeAsync", [None, "CancelledError", "RudeError", None]),
    ],
    ids=["no exception", "no exception, async"],
)
def test_odd_ends_of_a_call_are_recorded_as_everywhere(name: str, expected: list[str | None]) -> None:
    system = load_system(f"tests.calls.{name}")
    start = time.monotonic()
    run = AueporaEvaluator(system, EvaluationPlan([]), executor=on_the_cluster()).run(a_dataset(*samples(4)))
    assert [output.error and output.error.type for output in run.outputs] == expected
    assert time.monotonic() - start < 60
