"""T-08: workers and nodes that die. Nothing is lost, nothing counts twice, what kills its worker is found."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from auepora_eval.errors import WorkerLostError
from auepora_eval.execution.processes import ProcessExecutor
from tests.execution.worker_calls import DeadlyAt

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL here")
def test_processes_killed_at_random(tmp_path: Path) -> None:
    deaths = random.Random(7).sample(range(1500), 12)
    start = time.perf_counter()
    results = list(ProcessExecutor(concurrency=2).map(DeadlyAt(*deaths, once=tmp_path), range(1500)))
    seconds = time.perf_counter() - start
    kills = len(list(tmp_path.iterdir()))
    assert kills == 12
    assert sorted(results) == [(n, n * n) for n in range(1500)]
    print(f"T-08 processes: {kills} kills in 1500 samples, 0 lost, 0 twice, {seconds:.1f} s")


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL here")
def test_poisoned_samples_end_as_failures() -> None:
    results = dict(ProcessExecutor(concurrency=2).map(DeadlyAt(0, 1, 38), range(40)))
    lost = sorted(place for place, result in results.items() if isinstance(result, WorkerLostError))
    assert lost == [0, 1, 38]
    assert len(results) == 40


@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: pip install 'auepora-eval[ray]'")
def test_a_ray_cluster_of_three_nodes_that_loses_workers_and_a_node(tmp_path: Path) -> None:
    # In a process of its own: Ray leaves threads, signal handlers and warnings behind.
    command = [sys.executable, "-m", "tests.reliability.ray_run", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=180, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"start_seconds"')]
    assert lines, done.stderr[-2000:]
    said = json.loads(lines[0])
    for name in ("plain", "async"):
        assert said[name] == {"results": 100, "places": 100, "odd": {"7": "LookupError: seven"}}
    assert said["equal"]
    assert said["errors_equal"]
    assert said["window"] <= 24  # three processors, two tasks each, four calls a task
    assert said["budget"].startswith("stopped: the budget of 30 calls is spent")
    assert said["kills"] == 4
    assert said["workers_killed"] == {"results": 150, "places": 150, "odd": {}}
    assert said["poisoned"]["results"] == said["poisoned"]["places"] == 40
    assert list(said["poisoned"]["odd"]) == ["17"]
    assert said["poisoned"]["odd"]["17"].startswith("WorkerLostError")
    assert said["node_lost"] == {"results": 300, "places": 300, "odd": {}}
    print(f"T-08 ray: 4 workers and 1 of 3 nodes killed, 0 lost, 0 twice, {said['seconds']:.0f} s in all")
