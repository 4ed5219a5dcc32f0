"""Several files at once: all old or all new, wherever it stops."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from auepora_eval.errors import DataError, StorageError
from auepora_eval.io import put_in_place, together
from auepora_eval.io.together import journal_of, wait_until_in_place, written_together

NAMES = ("qa.jsonl", "summaries.jsonl", "manifest.json")


def paths_in(folder: Path) -> list[Path]:
    return [folder / name for name in NAMES]


def write(folder: Path, content: str, *, force: bool = True, sync: bool = True) -> None:
    paths = paths_in(folder)
    with written_together(paths, force=force, sync=sync) as files:
        for path in paths:
            files[path].write(content.encode())


def contents(folder: Path) -> list[str | None]:
    return [path.read_text() if path.exists() else None for path in paths_in(folder)]


def extras(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - set(NAMES)


@pytest.mark.parametrize("sync", [True, False])
def test_all_are_written_and_nothing_else_is_left(tmp_path: Path, sync: bool) -> None:
    write(tmp_path, "one", force=False, sync=sync)
    assert contents(tmp_path) == ["one"] * 3
    write(tmp_path, "two", sync=sync)
    assert contents(tmp_path) == ["two"] * 3
    assert extras(tmp_path) == set()


def test_nothing_is_written_after_an_error(tmp_path: Path) -> None:
    write(tmp_path, "old")

    def fail() -> None:
        with written_together(paths_in(tmp_path), force=True) as files:
            files[tmp_path / "qa.jsonl"].write(b"new")
            raise KeyError("x")

    with pytest.raises(KeyError):
        fail()
    assert contents(tmp_path) == ["old"] * 3
    assert extras(tmp_path) == set()


def test_an_existing_file_is_refused_also_if_it_appears_meanwhile(tmp_path: Path) -> None:
    (tmp_path / "summaries.jsonl").write_text("mine")
    with pytest.raises(StorageError, match=r"summaries.jsonl exists already"):
        write(tmp_path, "new", force=False)
    (tmp_path / "summaries.jsonl").unlink()

    def be_late() -> None:
        with written_together(paths_in(tmp_path)):
            (tmp_path / "summaries.jsonl").write_text("quicker")

    with pytest.raises(StorageError, match="exists already"):
        be_late()
    assert contents(tmp_path) == [None, "quicker", None]
    assert extras(tmp_path) == set()


# Every place at which the writing process can be stopped, by the call that it is about to make.
STOP = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[4])
from tests.io.test_together import write
from auepora_eval.io import put_in_place, together
where, after = sys.argv[2], int(sys.argv[3])
def die(*args, **more):
    os.kill(os.getpid(), 9)
if where == "write":
    class Dying(together.FilesTogether):
        def __getitem__(self, path):
            die()
    together.FilesTogether = Dying
elif where == "fsync":
    original, count = os.fsync, iter(range(100))
    os.fsync = lambda descriptor: die() if next(count) == after else original(descriptor)
elif where == "complete":
    together._put_in_place = die
elif where == "journal":
    put_in_place._appear = die
elif where == "rename":
    original, count = os.replace, iter(range(100))
    os.replace = lambda *names: die() if next(count) == after else original(*names)
elif where == "renamed":
    first = Path(sys.argv[1], "qa.jsonl")
    put_in_place.sync_folder = lambda folder: die() if first.read_text() != "old" else None
write(Path(sys.argv[1]), "new" * 1000)
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize(
    ("where", "after", "expected"),
    [
        pytest.param("write", 0, "old", id="before a byte is written"),
        *(pytest.param("fsync", n, "old", id=f"before sync {n + 1}") for n in range(3)),
        pytest.param("complete", 0, "old", id="before they are put in place"),
        pytest.param("fsync", 3, "old", id="before the draft of the journal is on the disk"),
        pytest.param("journal", 0, "old", id="before the journal"),
        *(pytest.param("rename", n, "new", id=f"before rename {n + 1}") for n in range(3)),
        pytest.param("renamed", 0, "new", id="before the journal is removed"),
        pytest.param("end", 0, "new", id="after it all"),
    ],
)
def test_a_writer_that_is_killed_leaves_all_old_or_all_new(
    tmp_path: Path, where: str, after: int, expected: str
) -> None:
    write(tmp_path, "old")
    root = str(Path(__file__).parents[2])
    done = subprocess.run([sys.executable, "-c", STOP, str(tmp_path), where, str(after), root], check=False)
    assert done.returncode == -signal.SIGKILL
    _wait_for_the_keeper(tmp_path)
    assert contents(tmp_path) == [expected if expected == "old" else "new" * 1000] * 3


def _wait_for_the_keeper(folder: Path) -> None:
    end = time.monotonic() + 5
    while extras(folder) and time.monotonic() < end:
        time.sleep(0.001)


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_what_stopped_between_two_renames_is_refused_by_readers_and_finished_by_the_next_writer(
    tmp_path: Path, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both processes are gone at once, as after a loss of power, with that many renames done."""
    monkeypatch.setattr(together, "_PATIENCE", 0.05)
    write(tmp_path, "old")
    files = together.FilesTogether(paths_in(tmp_path), "999999999-aa")
    files.open()
    for path in paths_in(tmp_path):
        files[path].write(b"new")
    renames = files.complete()
    files.journal.write_text(json.dumps({"token": files.token, "renames": renames}))
    for old, new in renames[:steps]:
        (tmp_path / old).replace(tmp_path / new)
    with pytest.raises(DataError, match="some may be old and some new"):
        wait_until_in_place(tmp_path / "manifest.json")
    seen: list[list[str | None]] = []
    with written_together(paths_in(tmp_path), force=True) as later:
        seen.append(contents(tmp_path))
        for path in paths_in(tmp_path):
            later[path].write(b"newer")
    assert seen == [["new"] * 3]
    assert contents(tmp_path) == ["newer"] * 3
    assert extras(tmp_path) == set()
    wait_until_in_place(tmp_path / "manifest.json")


@pytest.mark.parametrize(
    "renames",
    [
        [["../../secret", "qa.jsonl"]],
        [[".qa.jsonl.1-a.part", "../other/qa.jsonl"]],
        [["precious.txt", "qa.jsonl"]],
        ["qa.jsonl"],
    ],
)
def test_a_journal_that_is_not_ours_moves_nothing(
    tmp_path: Path, renames: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(together, "_PATIENCE", 0.05)
    (tmp_path / "precious.txt").write_text("precious")
    journal_of(tmp_path / "manifest.json").write_text(json.dumps({"token": "x", "renames": renames}))
    with pytest.raises(StorageError, match=r"[Rr]emove it"):
        write(tmp_path, "new")
    assert (tmp_path / "precious.txt").read_text() == "precious"
    assert contents(tmp_path) == [None] * 3


def test_of_two_writers_at_once_one_wins_with_all_its_files(tmp_path: Path) -> None:
    root = str(Path(__file__).parents[2])
    both = [
        subprocess.Popen(
            [sys.executable, "-c", RIVAL, str(tmp_path), name * 500, root], stdout=subprocess.PIPE
        )
        for name in "ab"
    ]
    for writer in both:
        with writer:
            assert writer.communicate(timeout=60)[0] == b"fine\n"
    assert contents(tmp_path) in (["a" * 500] * 3, ["b" * 500] * 3)
    assert extras(tmp_path) == set()


RIVAL = """
import sys
from contextlib import suppress
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from auepora_eval.errors import StorageError
from tests.io.test_together import contents, write
for _ in range(15):
    with suppress(StorageError):  # the other one is just putting its files in place
        write(Path(sys.argv[1]), sys.argv[2], sync=False)
print("fine")
"""


def test_leftovers_of_the_dead_are_removed_and_those_of_the_living_kept(tmp_path: Path) -> None:
    dead = tmp_path / ".qa.jsonl.999999999-ab.part"
    living = tmp_path / f".qa.jsonl.{os.getpid()}-ab.part"
    for path in (dead, living):
        path.write_text("")
    write(tmp_path, "x")
    assert extras(tmp_path) == {living.name}


def test_it_works_without_a_second_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    write(tmp_path, "one")
    assert contents(tmp_path) == ["one"] * 3
    assert extras(tmp_path) == set()


def test_a_second_process_that_dies_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "dies.py"
    script.write_text("")
    monkeypatch.setattr(put_in_place, "__file__", str(script))
    write(tmp_path / "out", "one")
    assert contents(tmp_path / "out") == ["one"] * 3


def test_the_second_process_renames_at_a_word_and_not_only_at_the_end(tmp_path: Path) -> None:
    """The writer lives on, stopped between the journal and its renames: the other one does them."""
    write(tmp_path, "old")
    files = together.FilesTogether(paths_in(tmp_path), f"{os.getpid()}-aa")
    files.open()
    for path in paths_in(tmp_path):
        files[path].write(b"new")
    files.complete()
    with together._standing_by(files) as call_for_help:
        time.sleep(0.05)
        assert contents(tmp_path) == ["old"] * 3
        call_for_help()
        end = time.monotonic() + 5
        while contents(tmp_path) != ["new"] * 3 and time.monotonic() < end:
            time.sleep(0.005)
        assert contents(tmp_path) == ["new"] * 3  # though the writer has not ended, nor written a journal
    assert extras(tmp_path) == set()


WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.io.test_together import write
print("ready", flush=True)
for number in range(100_000):
    write(Path(sys.argv[1]), str(number) * 2000)
"""


def test_kills_at_random_moments_never_leave_a_mixture(tmp_path: Path) -> None:
    """Each time the whole process group is killed while files are replaced without a pause."""
    chance = random.Random(7)
    write(tmp_path, "old")
    for _ in range(8):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), str(Path(__file__).parents[2])],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        with writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
            time.sleep(chance.uniform(0.01, 0.12))
            os.killpg(writer.pid, signal.SIGKILL)
        _wait_for_the_keeper(tmp_path)  # on a busy machine it may need its milliseconds
        assert len(set(contents(tmp_path))) == 1
        assert extras(tmp_path) == set()
