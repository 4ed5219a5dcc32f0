"""Whether a run is being written is asked of its lock: a note outlives the process that wrote it."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from auepora_eval.errors import StorageError
from auepora_eval.runs.journal.lock import RunLock, writer_of

fcntl = pytest.importorskip("fcntl")
ALIVE = os.getppid()  # any process but this one
HOLD = """
import sys, time
from pathlib import Path
from auepora_eval.runs.journal.lock import RunLock
lock = RunLock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


def leave_note(folder: Path, **other: object) -> None:
    note = {"pid": ALIVE, "host": platform.node()}
    (folder / "lock").write_text(json.dumps({**note, **other}), encoding="utf-8")


def no_locks(file: int, how: int) -> None:
    raise OSError(95, "Operation not supported")


def test_who_holds_the_lock_writes_and_who_was_killed_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    try:
        assert running.stdout.readline() == "held\n"
        held = f"process {running.pid} on {platform.node()}"
        assert writer_of(tmp_path) == held
        with pytest.raises(StorageError, match=held):  # having been asked takes nothing from it
            RunLock(tmp_path)
        running.kill()
        running.wait()
        assert writer_of(tmp_path) == ""
        monkeypatch.setattr(fcntl, "lockf", no_locks)
        assert writer_of(tmp_path) == ""
        RunLock(tmp_path).release()
    finally:
        running.kill()
        running.communicate()


@pytest.mark.parametrize("other", [{}, {"host": "container-1"}], ids=["alive", "another host"])
def test_a_note_alone_holds_nothing(tmp_path: Path, other: dict[str, object]) -> None:
    leave_note(tmp_path, **other)
    assert writer_of(tmp_path) == ""
    RunLock(tmp_path).release()


@pytest.mark.parametrize(
    ("other", "is_held"), [({}, True), ({"host": "container-1"}, True), ({"pid": 2**22 + 1}, False)]
)
def test_where_the_file_system_has_no_locks_the_note_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: dict[str, object], is_held: bool
) -> None:
    monkeypatch.setattr(fcntl, "lockf", no_locks)
    leave_note(tmp_path, **other)
    assert bool(writer_of(tmp_path)) == is_held


def test_this_process_counts_too_and_asking_takes_nothing_from_it(tmp_path: Path) -> None:
    with RunLock(tmp_path):
        for _ in range(2):
            assert writer_of(tmp_path) == f"process {os.getpid()} on {platform.node()}"
        with pytest.raises(StorageError, match="is being written by"):
            RunLock(tmp_path)
        other = f"""
import sys
from pathlib import Path
from auepora_eval.runs.journal.lock import writer_of
print(writer_of(Path({str(tmp_path)!r})))
"""
        asked = subprocess.run([sys.executable, "-c", other], capture_output=True, text=True, check=True)
        assert asked.stdout.strip() == f"process {os.getpid()} on {platform.node()}"
        os.truncate(tmp_path / "lock", 0)  # the note is not written yet
        asked = subprocess.run([sys.executable, "-c", other], capture_output=True, text=True, check=True)
        assert asked.stdout.strip() == "another process"
    assert writer_of(tmp_path) == ""


def test_nothing_is_made_by_asking(tmp_path: Path) -> None:
    assert writer_of(tmp_path) == ""
    assert not list(tmp_path.iterdir())


ASK = """
import fcntl, sys, time
with open(sys.argv[1], "rb") as asking:
    fcntl.lockf(asking, fcntl.LOCK_SH)
    print("asking", flush=True)
    time.sleep(0.04)
time.sleep(60)
"""


def test_who_comes_for_the_lock_while_somebody_asks_gets_it(tmp_path: Path) -> None:
    RunLock(tmp_path).release()
    command = [sys.executable, "-c", ASK, str(tmp_path / "lock")]
    asking = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert asking.stdout is not None
    assert asking.stdout.readline() == "asking\n"
    try:
        taken = RunLock(tmp_path)
        assert writer_of(tmp_path), "it is not held"
        taken.release()
    finally:
        asking.kill()
        asking.communicate()
