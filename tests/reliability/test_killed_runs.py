"""Kill -9 at any moment loses no acknowledged output, and results equal those of a quiet run."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.core.systems.call import EXECUTORS
from tests.calls.ray_nodes import ray_nodes
from tests.reliability.killed_runs import Toll, check_kept, ended, finish, lines_of, quiet_bytes, started

RAY = os.environ.get("AUEPORA_RAY", "")  # the address of a cluster
KILLS = int(os.environ.get("AUEPORA_KILLS", "0"))  # an executor; `make soak` does 30
FEW = {"serial": 3, "threads": 5, "async": 3, "processes": 3, "ray": 1}
SIZE = 240
SECONDS = {"serial": 0.002, "threads": 0.008, "async": 0.008, "processes": 0.004, "ray": 0.01}
CONCURRENCY = {"serial": 1, "threads": 8, "async": 8, "processes": 2, "ray": 2}
LATEST = {"serial": 0.3, "threads": 0.3, "async": 0.3, "processes": 1.5, "ray": 4.0}  # seconds to the kill

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")


@contextmanager
def where(kind: str) -> Iterator[tuple[dict[str, str], Mapping[str, str] | None]]:
    """What a run is told of the place where its calls are made, and its environment."""
    if kind != "ray":
        yield {}, None
    elif RAY:
        yield {"address": RAY}, None
    elif find_spec("ray") is None:
        pytest.skip("Ray is not installed: pip install 'auepora-eval[ray]'")
    elif not KILLS:
        pytest.skip("tests/calls/test_ray.py runs this on its cluster")
    else:
        with ray_nodes(2) as nodes:  # it outlives the drivers, as a cluster does
            yield {"address": nodes.address}, nodes.environment


def await_the_kill(kind: str, folder: Path, running: subprocess.Popen[str], chance: random.Random) -> None:
    """A random moment: by the clock, and where workers take seconds to start also by what is done by then."""
    end = time.monotonic() + chance.uniform(0.0, LATEST[kind])
    if kind not in ("processes", "ray") or chance.random() < 0.3:
        time.sleep(end - time.monotonic())
        return
    goal = len(lines_of(folder / "acknowledged")) + chance.randrange(SIZE)
    end = time.monotonic() + 60
    while len(lines_of(folder / "acknowledged")) < goal and running.poll() is None and time.monotonic() < end:
        time.sleep(0.002)


@pytest.mark.parametrize("kind", list(EXECUTORS))
def test_random_kills(kind: str, tmp_path: Path) -> None:
    kills = KILLS or FEW[kind]
    expected, toll, chance = quiet_bytes(tmp_path, SIZE), Toll(), random.Random(f"{kind} {kills}")
    with where(kind) as (address, environment):
        while toll.kills < kills:
            folder = tmp_path / f"run{toll.runs}"
            folder.mkdir()
            told: dict[str, Any] = {"out": str(folder), "id": "x", "executor": kind, **address}
            told |= {"concurrency": CONCURRENCY[kind], "size": SIZE, "seconds": SECONDS[kind]}
            while toll.kills < kills and not (folder / "x.results.json").exists():
                running = started(told, environment)
                await_the_kill(kind, folder, running, chance)
                running.kill()
                running.communicate()
                toll.kills += 1
                check_kept(folder, "x", toll)
            assert finish(folder, told, toll, environment) == expected
    print(
        f"\n{kind}: {toll.kills} random kills over {toll.runs} runs, {toll.acknowledged} samples: "
        f"{toll.in_words()}"
    )
    assert (toll.lost, toll.twice) == (0, 0)


@pytest.mark.parametrize(
    "die_at",
    [
        pytest.param(("link", 1, False), id="before the database gets its name"),
        pytest.param(("link", 1, True), id="after the database got its name"),
        pytest.param(("fsync", 1, False), id="before the results are on the disk"),
        pytest.param(("fsync", 2, False), id="between the database and the results"),
        pytest.param(("replace", 1, False), id="before the results get their name"),
        pytest.param(("replace", 1, True), id="after the results got their name"),
    ],
)
def test_named_moments(die_at: tuple[str, int, bool], tmp_path: Path) -> None:
    expected, toll = quiet_bytes(tmp_path, SIZE), Toll()
    folder = tmp_path / "run"
    folder.mkdir()
    told = {"out": str(folder), "id": "x", "executor": "threads", "concurrency": 8}
    told |= {"size": SIZE, "seconds": 0.001}
    running = started({**told, "die_at": die_at})
    ended(running)
    assert running.returncode == -signal.SIGKILL
    check_kept(folder, "x", toll)
    assert finish(folder, told, toll) == expected
    print(f"\n{die_at}: lost {toll.lost}, twice {toll.twice}; results equal")
    assert (toll.lost, toll.twice) == (0, 0)
