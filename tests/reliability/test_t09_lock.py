"""T-09: the second writer of a run gets an error that names the first. A dead writer holds no lock."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from auepora_eval.errors import StorageError
from auepora_eval.runs.journal.journal import Journal
from auepora_eval.runs.journal.lock import RunLock

HOLD = """
import sys, time
from pathlib import Path
from auepora_eval.runs.journal.lock import RunLock
lock = RunLock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    running = subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    assert running.stdout.readline() == "held\n"
    return running


def test_t09_live_lock_is_an_error_and_stale_lock_is_taken_over(tmp_path: Path) -> None:
    running = holder(tmp_path)
    try:
        told = rf"is being written by process {running.pid} on {platform.node()}, for \d+ s"
        with pytest.raises(StorageError, match=told) as refused:
            Journal.create(tmp_path, {})
    finally:
        running.kill()
        running.communicate()
    RunLock(tmp_path).release()
    print(f"\nT-09: refused ({str(refused.value)[-90:]}); taken over after kill -9")


def test_t09_lock_is_released_at_the_end(tmp_path: Path) -> None:
    Journal.create(tmp_path, {}).close("finished")
    again = Journal.create(tmp_path, {}, force=True)
    with pytest.raises(StorageError, match="is being written by"):
        RunLock(tmp_path)
    again.close("finished")
    RunLock(tmp_path).release()


def test_t09_second_run_in_the_same_process_is_an_error(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, {})
    with pytest.raises(StorageError, match="is being written by"):
        Journal.create(tmp_path, {}, force=True)
    journal.close()


def test_t09_another_folder_of_the_same_process_is_free(tmp_path: Path) -> None:
    with RunLock(tmp_path / "a"), RunLock(tmp_path / "b"):
        pass
    RunLock(tmp_path / "a").release()


@pytest.mark.parametrize(
    ("note", "refused"),
    [
        pytest.param({"pid": "alive"}, True, id="alive"),
        pytest.param({"pid": 2**22 + 1}, False, id="dead"),
        pytest.param({"pid": 2**22 + 1, "host": "elsewhere"}, True, id="on another machine"),
        pytest.param({}, False, id="no note"),
        pytest.param({"pid": "x"}, False, id="not a note"),
    ],
)
def test_t09_file_system_without_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, note: dict[str, object], refused: bool
) -> None:
    fcntl = pytest.importorskip("fcntl")

    def no_locks(file: int, how: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "lockf", no_locks)
    parent = os.getppid()
    if note:
        whole = {"host": platform.node(), **note}
        whole["pid"] = parent if whole["pid"] == "alive" else whole["pid"]
        (tmp_path / "lock").write_text(json.dumps(whole), encoding="utf-8")
    if refused:
        with pytest.raises(StorageError, match="is being written by"):
            RunLock(tmp_path)
    else:
        RunLock(tmp_path).release()
