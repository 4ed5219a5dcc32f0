"""Files use UTC in every time zone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from auepora_eval.store.storage import EvaluationResultsStorage


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
