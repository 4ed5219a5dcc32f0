"""A kill leaves the old file, the new one or none, and the command works again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from auepora_eval.store.database import Database
from tests.reliability.killed_commands import COMMANDS

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_killed_commands_leave_whole_files(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.reliability.killed_commands", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    facts: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["command"] for one in facts] == list(COMMANDS)
    for one in facts:
        assert one["again"] == one["quiet"], one  # the next time it ends as if nothing had happened
        assert -signal.SIGKILL in one["ends"], one
    for path in (path for path in tmp_path.rglob("*") if "__pycache__" not in path.parts):
        if path.is_file() and not path.name.endswith(".tmp"):
            check_whole(path)
    kills = sum(end < 0 for one in facts for end in one["ends"])
    print(f"\ncommands: {kills} kills of {len(COMMANDS)} commands: every file is whole")


def check_whole(path: Path) -> None:
    if ".run.db" in path.name:
        if path.suffix == ".db":
            with Database.read(path) as database:
                assert database.select("PRAGMA integrity_check") == [("ok",)]
        return
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        json.loads(text)
    elif path.suffix == ".jsonl":
        assert [json.loads(line) for line in text.splitlines()]
    elif path.suffix == ".xml":
        ElementTree.fromstring(text)  # noqa: S314 - our own file
    elif path.suffix == ".html":
        assert text.rstrip().endswith("</html>")
