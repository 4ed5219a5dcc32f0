"""Several files at once: nothing is changed by a build that fails, and the manifest is renamed last."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from auepora_eval.errors import StorageError
from auepora_eval.io.files import written_together

NAMES = ("qa.jsonl", "summaries.jsonl", "manifest.json")


def paths_in(folder: Path) -> list[Path]:
    return [folder / name for name in NAMES]


def write(folder: Path, content: str, *, force: bool = True) -> None:
    paths = paths_in(folder)
    with written_together(paths, force=force) as files:
        for path in paths:
            files[path].write(content.encode())


def contents(folder: Path) -> list[str | None]:
    return [path.read_text() if path.exists() else None for path in paths_in(folder)]


def extras(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - set(NAMES)


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
from tests.io.test_several_files_at_once import write
from auepora_eval.io import files
where, after = sys.argv[2], int(sys.argv[3])
calls = iter(range(100))
def die(*args, **more):
    os.kill(os.getpid(), 9)
if where == "write":
    Path.open = die
elif where == "fsync":
    fsync = os.fsync
    os.fsync = lambda descriptor: die() if next(calls) == after else fsync(descriptor)
elif where == "rename":
    replace = Path.replace
    Path.replace = lambda path, target: die() if next(calls) == after else replace(path, target)
write(Path(sys.argv[1]), "new")
"""


@pytest.mark.parametrize(
    ("where", "after", "renamed"),
    [
        pytest.param("write", 0, 0, id="before a byte is written"),
        *(pytest.param("fsync", number, 0, id=f"before sync {number + 1}") for number in range(3)),
        *(pytest.param("rename", number, number, id=f"before rename {number + 1}") for number in range(3)),
    ],
)
def test_a_killed_writer_leaves_the_old_manifest_and_the_next_one_cleans_up(
    tmp_path: Path, where: str, after: int, renamed: int
) -> None:
    write(tmp_path, "old")
    root = str(Path(__file__).parents[2])
    done = subprocess.run([sys.executable, "-c", STOP, str(tmp_path), where, str(after), root], check=False)
    assert done.returncode == -signal.SIGKILL
    assert contents(tmp_path) == ["new"] * renamed + ["old"] * (3 - renamed)
    assert contents(tmp_path)[-1] == "old"
    write(tmp_path, "newer")
    assert contents(tmp_path) == ["newer"] * 3
    assert extras(tmp_path) == set()
