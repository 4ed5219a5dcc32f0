"""Writing: the old file or the new one, never a half, never a leftover."""

from __future__ import annotations

from pathlib import Path

import pytest

from auepora_eval.errors import StorageError
from auepora_eval.io.files import write_bytes, written


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_new_file_and_its_folders(tmp_path: Path) -> None:
    write_bytes(tmp_path / "a" / "b" / "file", b"new")
    assert (tmp_path / "a" / "b" / "file").read_bytes() == b"new"
    assert names(tmp_path / "a" / "b") == ["file"]


def test_an_existing_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(StorageError, match="exists already"):
        write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    write_bytes(path, b"new", force=True)
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_writer_that_breaks_leaves_the_old_file(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write_half() -> None:
        with written(path, force=True) as file:
            file.write(b"half")
            raise error

    with pytest.raises(error):
        write_half()
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


def test_a_file_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "file"

    def write_while_others_write() -> None:
        with written(path) as file:
            file.write(b"ours")
            path.write_bytes(b"theirs")

    with pytest.raises(StorageError, match="someone else"):
        write_while_others_write()
    assert path.read_bytes() == b"theirs"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("file/below", id="its folder is a file"),
        pytest.param("x" * 300, id="a name that is too long"),
        pytest.param("a\0b", id="NUL in the name"),
    ],
)
@pytest.mark.parametrize("force", [False, True], ids=["new", "force"])
def test_what_cannot_be_written(tmp_path: Path, name: str, force: bool) -> None:
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(StorageError, match="cannot be"):
        write_bytes(tmp_path / name, b"new", force=force)
    assert names(tmp_path) == ["file"]
