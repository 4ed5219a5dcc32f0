"""Dead workers and nodes lose and repeat nothing, and samples that kill their worker are found."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.calls.processes import ProcessExecutor
from auepora_eval.errors import WorkerLostError
from tests.calls.ray_nodes import Nodes, ray_nodes
from tests.calls.worker_calls import DeadlyAt
from tests.reliability.killed_runs import PATIENCE, Toll, counted, ended, lines_of, quiet_bytes, started

WORKERS = min(20, int(os.environ.get("AUEPORA_KILLS", "4")))  # of a Ray cluster


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL here")
def test_processes_killed_at_random(tmp_path: Path) -> None:
    deaths = random.Random(7).sample(range(1500), 12)
    start = time.perf_counter()
    results = list(ProcessExecutor(concurrency=2).map(DeadlyAt(*deaths, once=tmp_path), range(1500)))
    seconds = time.perf_counter() - start
    kills = len(list(tmp_path.iterdir()))
    assert kills == 12
    assert sorted(results) == [(n, n * n) for n in range(1500)]
    print(f"processes: {kills} kills in 1500 samples, 0 lost, 0 twice, {seconds:.1f} s")


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL here")
def test_poisoned_samples_end_as_failures() -> None:
    results = dict(ProcessExecutor(concurrency=2).map(DeadlyAt(0, 1, 38), range(40)))
    lost = sorted(place for place, result in results.items() if isinstance(result, WorkerLostError))
    assert lost == [0, 1, 38]
    assert len(results) == 40


@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: pip install 'auepora-eval[ray]'")
def test_ray_run_survives_lost_workers_and_a_lost_node(tmp_path: Path) -> None:
    size, chance, start = 200, random.Random(8), time.perf_counter()
    expected, toll = quiet_bytes(tmp_path, size), Toll()
    folder = tmp_path / "run"
    folder.mkdir()
    with ray_nodes(1, 1) as nodes:
        told: dict[str, Any] = {"out": str(folder), "id": "x", "executor": "ray", "address": nodes.address}
        told |= {"concurrency": 2, "size": size, "seconds": 0.02}
        running = started(told, nodes.environment)
        for done in sorted(chance.sample(range(20, size - 60), WORKERS)):
            await_done(folder, running, done)
            if toll.kills == WORKERS // 2:
                nodes.remove(1)
            toll.kills += killed_one(nodes, chance)
        err = ended(running)
    assert running.returncode == 0, err
    assert counted(folder, told, toll) == expected
    seconds = time.perf_counter() - start
    fate = f"{toll.kills} workers and 1 of 2 nodes killed, {size} samples"
    print(f"\nray: {fate}: {toll.in_words()}, {seconds:.0f} s")
    assert toll.kills == WORKERS
    assert (toll.lost, toll.twice) == (0, 0)


def await_done(folder: Path, running: subprocess.Popen[str], count: int) -> None:
    """Return when so many samples are acknowledged, or the run is over."""
    end = time.monotonic() + PATIENCE
    while len(lines_of(folder / "acknowledged")) < count and running.poll() is None:
        assert time.monotonic() < end, f"fewer than {count} samples after {PATIENCE:.0f} s"
        time.sleep(0.005)


def killed_one(nodes: Nodes, chance: random.Random) -> int:
    """Kill a worker that is at work; how many that were."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            os.kill(chance.choice(nodes.workers()), signal.SIGKILL)
            return 1
        except (IndexError, ProcessLookupError):  # none is at work just now, or that one has ended
            time.sleep(0.005)
    return 0
