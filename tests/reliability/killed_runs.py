"""Start runs in processes that are killed and resumed, and count the costs of the kills."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.store.storage import EvaluationResultsStorage
from tests.reliability.journaled_run import dataset_of, evaluator
from tests.stable import stable_bytes
from tests.stored import sample_ids

ROOT = Path(__file__).parents[2]
PATIENCE = 180.0  # seconds: a busy machine is no failure, and one that hangs says where


@dataclass
class Toll:
    """What the kills cost."""

    kills: int = 0
    runs: int = 0
    lost: int = 0
    twice: int = 0
    acknowledged: int = 0
    repeated: list[int] = field(default_factory=list)

    def in_words(self) -> str:
        repeated = sum(self.repeated) / max(self.kills, 1)
        return f"lost {self.lost}, twice {self.twice}, asked again {repeated:.1f} a kill; results equal"


def started(told: dict[str, Any], environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """A run that is ready to begin, or to go on."""
    running = subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-m", "tests.reliability.journaled_run", json.dumps(told)],
        cwd=ROOT,
        env=environment or os.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n", running.communicate()[1]
    return running


def ended(running: subprocess.Popen[str]) -> str:
    """What a run that ends by itself has said."""
    try:
        return running.communicate(timeout=PATIENCE)[1]
    except subprocess.TimeoutExpired:
        running.send_signal(signal.SIGABRT)  # it says where it hangs
        pytest.fail(running.communicate()[1])


def lines_of(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def check_kept(folder: Path, name: str, toll: Toll) -> None:
    """Whatever was acknowledged before the kill must be on the disk."""
    acknowledged = set(lines_of(folder / "acknowledged"))
    path = folder / f"{name}.run.db"
    toll.lost += len(acknowledged - sample_ids(path) if path.exists() else acknowledged)


def quiet_bytes(folder: Path, size: int) -> bytes:
    """The results of a run that nothing happens to."""
    storage = EvaluationResultsStorage(folder)
    evaluator("serial", 1, 0.0).run(dataset_of(size), evaluation_id="quiet", storage=storage)
    return stable_bytes(storage.load_results("quiet"))


def finish(
    folder: Path, told: dict[str, Any], toll: Toll, environment: Mapping[str, str] | None = None
) -> bytes:
    """Go on to the end; count what was lost, kept twice or asked twice."""
    running = started({**told, "die_at": None}, environment)
    err = ended(running)
    assert running.returncode == 0, err
    return counted(folder, told, toll)


def counted(folder: Path, told: dict[str, Any], toll: Toll) -> bytes:
    """The results of a run that has come to its end, once what it lost and repeated is counted."""
    check_kept(folder, told["id"], toll)
    acknowledged = Counter(lines_of(folder / "acknowledged"))
    toll.twice += sum(count > 1 for count in acknowledged.values())
    toll.acknowledged += len(acknowledged)
    asked = Counter(lines_of(folder / "asked"))
    toll.repeated.append(sum(asked.values()) - len(asked))
    toll.runs += 1
    storage = EvaluationResultsStorage(folder)
    ids = [row["query_id"] for row in storage.load_results(told["id"])["query_results"]]
    assert len(ids) == len(set(ids)) == told["size"]
    return stable_bytes(storage.load_results(told["id"]))
