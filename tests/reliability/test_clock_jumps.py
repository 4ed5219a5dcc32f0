"""The clock jumps: records are ordered by number, durations are not negative, files use UTC."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from auepora_eval.core import scoring
from auepora_eval.core.types import EvaluationSample, SystemOutputs
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.reliability.journaled_run import dataset_of, evaluator
from tests.stable import stable_bytes


@pytest.mark.parametrize(
    "jump", [timedelta(hours=1), -timedelta(hours=1), timedelta(days=365), -timedelta(days=365)], ids=str
)
def test_clock_jump_during_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: timedelta) -> None:
    storage, world = EvaluationResultsStorage(tmp_path), dataset_of(30)
    evaluator("serial", 1, 0.0).run(world, evaluation_id="quiet", storage=storage)
    running, real, seen = evaluator("threads", 4, 0.001), time.time, []

    def leap(sample: EvaluationSample, output: SystemOutputs) -> None:
        seen.append(sample.sample_id)
        if len(seen) == 10:
            monkeypatch.setattr(time, "time", lambda: real() + jump.total_seconds())
            monkeypatch.setattr(scoring, "now", lambda: datetime.now(UTC) + jump)

    running.on_output = leap
    running.run(world, evaluation_id="x", storage=storage)
    monkeypatch.undo()
    results = storage.load_results("x")
    assert stable_bytes(results) == stable_bytes(storage.load_results("quiet"))
    times = [row["latency_ms"] for row in results["query_results"] if row["latency_ms"] is not None]
    print(f"\n{jump}: shortest time {min(times):.2f} ms")
    assert min(times) >= 0
    assert 0 <= results["summary"]["total_evaluation_time_seconds"] < 60


def test_files_use_utc_in_every_time_zone(tmp_path: Path) -> None:
    told = {
        "out": str(tmp_path),
        "id": "x",
        "executor": "serial",
        "concurrency": 1,
        "size": 5,
        "seconds": 0.0,
    }
    before = datetime.now(UTC).replace(microsecond=0)
    subprocess.run(
        [sys.executable, "-m", "tests.reliability.journaled_run", json.dumps(told)],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "TZ": "Asia/Kathmandu"},
        check=True,
        capture_output=True,
    )
    results = EvaluationResultsStorage(tmp_path).load_results("x")
    for text in (results["timestamp"], results["_metadata"]["saved_at"]):
        assert before <= datetime.fromisoformat(text) <= datetime.now(UTC)
    print("\nUTC in the files of a machine in Kathmandu")
