"""T-03: kill -9 at any moment. What was acknowledged is there, once; the results are those of a quiet run."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.execution.local import EXECUTORS
from auepora_eval.runs.journal import stored_places
from auepora_eval.runs.stable import stable_bytes
from auepora_eval.runs.storage import EvaluationResultsStorage
from tests.reliability.journaled_run import a_world, evaluator

ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("AUEPORA_KILLS", "5"))  # an executor; `make soak` does 200
KINDS = [name for name in ("serial", "threads", "async", "processes") if name in EXECUTORS]
SIZE = 240
SECONDS = {"serial": 0.002, "threads": 0.008, "async": 0.008, "processes": 0.004}
LATEST = {
    "serial": 0.3,
    "threads": 0.3,
    "async": 0.3,
    "processes": 1.5,
}  # seconds to the kill; workers must start
CONCURRENCY = 8

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")


@dataclass
class Toll:
    """What the kills cost."""

    kills: int = 0
    runs: int = 0
    lost: int = 0
    twice: int = 0
    acknowledged: int = 0
    repeated: list[int] = field(default_factory=list)


def started(told: dict[str, Any]) -> subprocess.Popen[str]:
    running = subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-m", "tests.reliability.journaled_run", json.dumps(told)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n", running.communicate()[1]
    return running


def lines_of(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def check_kept(folder: Path, name: str, toll: Toll) -> None:
    """Whatever was acknowledged before the kill must be on the disk."""
    acknowledged = set(lines_of(folder / "acknowledged"))
    places = stored_places(folder / f"{name}.run")
    toll.lost += sum(places is None or sample_id not in places for sample_id in acknowledged)


def quiet_bytes(folder: Path) -> bytes:
    storage = EvaluationResultsStorage(folder)
    evaluator("serial", 1, 0.0).run(a_world(SIZE), evaluation_id="quiet", storage=storage)
    return stable_bytes(storage.load_results("quiet"))


def finish(folder: Path, told: dict[str, Any], toll: Toll) -> bytes:
    """Go on to the end; count what was lost, kept twice or asked twice."""
    running = started({**told, "die_at": None})
    try:
        _, err = running.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        running.send_signal(signal.SIGABRT)  # it says where it hangs
        pytest.fail(running.communicate()[1])
    assert running.returncode == 0, err
    check_kept(folder, told["id"], toll)
    acknowledged = Counter(lines_of(folder / "acknowledged"))
    toll.twice += sum(count > 1 for count in acknowledged.values())
    toll.acknowledged += len(acknowledged)
    asked = Counter(lines_of(folder / "asked"))
    toll.repeated.append(sum(asked.values()) - len(asked))
    storage = EvaluationResultsStorage(folder)
    ids = [row["query_id"] for row in storage.load_results(told["id"])["query_results"]]
    assert len(ids) == len(set(ids)) == SIZE
    return stable_bytes(storage.load_results(told["id"]))


@pytest.mark.parametrize("kind", KINDS)
def test_t03_random_kills(kind: str, tmp_path: Path) -> None:
    expected, toll, chance = quiet_bytes(tmp_path), Toll(), random.Random(f"{kind} {KILLS}")
    while toll.kills < KILLS:
        folder = tmp_path / f"run{toll.runs}"
        folder.mkdir()
        told: dict[str, Any] = {"out": str(folder), "id": "x", "executor": kind}
        told |= {"concurrency": 2 if kind == "processes" else CONCURRENCY}
        told |= {"size": SIZE, "seconds": SECONDS[kind]}
        while toll.kills < KILLS and not (folder / "x.results.json").exists():
            running = started(told)
            time.sleep(chance.uniform(0.0, LATEST[kind]))
            running.kill()
            running.communicate()
            toll.kills += 1
            check_kept(folder, "x", toll)
        assert finish(folder, told, toll) == expected
        toll.runs += 1
    repeated = sum(toll.repeated) / toll.kills
    print(
        f"\nT-03 {kind}: {toll.kills} random kills over {toll.runs} runs, {toll.acknowledged} samples: "
        f"lost {toll.lost}, twice {toll.twice}, asked again {repeated:.1f} a kill; results equal"
    )
    assert (toll.lost, toll.twice) == (0, 0)


@pytest.mark.parametrize(
    "die_at",
    [
        pytest.param(("write", 5, False), id="before a write"),
        pytest.param(("write", 5, True), id="after a write"),
        pytest.param(("fdatasync", 4, False), id="before a sync"),
        pytest.param(("fdatasync", 4, True), id="after a sync"),
        pytest.param(("ftruncate", 2, False), id="before the torn end is cut"),
        pytest.param(("link", 1, False), id="before the results get their name"),
        pytest.param(("link", 1, True), id="after the results got their name"),
    ],
)
def test_t03_named_moments(die_at: tuple[str, int, bool], tmp_path: Path) -> None:
    expected, toll = quiet_bytes(tmp_path), Toll()
    folder = tmp_path / "run"
    folder.mkdir()
    told = {"out": str(folder), "id": "x", "executor": "threads", "concurrency": CONCURRENCY}
    told |= {"size": SIZE, "seconds": 0.001}
    running = started({**told, "die_at": die_at})
    running.communicate(timeout=60)
    assert running.returncode == -signal.SIGKILL
    check_kept(folder, "x", toll)
    assert finish(folder, told, toll) == expected
    print(f"\nT-03 {die_at}: lost {toll.lost}, twice {toll.twice}; results equal")
    assert (toll.lost, toll.twice) == (0, 0)
