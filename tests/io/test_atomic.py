"""Writing: the old file or the new one, never a half, never a leftover."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.core.dataset import InMemoryDataset
from auepora_eval.core.types import EvaluationSample
from auepora_eval.errors import DataError, StorageError
from auepora_eval.io.files import write_bytes, written
from auepora_eval.io.jsonl import save_jsonl_dataset, save_records
from auepora_eval.io.parquet import save_parquet_dataset


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


@pytest.mark.parametrize("name", ["data.jsonl", "data.jsonl.gz"])
def test_records_that_break_leave_nothing(tmp_path: Path, name: str) -> None:
    def records() -> Iterator[dict[str, Any]]:
        yield {"a": 1}
        raise RuntimeError

    with pytest.raises(RuntimeError):
        save_records(records(), tmp_path / name)
    assert names(tmp_path) == []


@pytest.mark.parametrize("save", [save_jsonl_dataset, save_parquet_dataset])
def test_a_text_that_utf8_cannot_write_leaves_nothing(tmp_path: Path, save: Any) -> None:
    dataset = InMemoryDataset("d", [EvaluationSample("1", "q"), EvaluationSample("2", "\ud800")])
    with pytest.raises(DataError, match="surrogate"):
        save(dataset, tmp_path / "data")
    assert names(tmp_path) == []


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


def test_two_writers_of_one_file_do_not_harm_each_other(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with written(path, force=True) as first, written(path, force=True) as second:
        first.write(b"first")
        second.write(b"second")
    assert path.read_bytes() == b"first"
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


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageError, match="cannot be written"):
        write_bytes(tmp_path / "folder", b"new", force=True)
    assert names(tmp_path) == ["folder"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in this system's folders")
@pytest.mark.parametrize("force", [False, True], ids=["new", "force"])
def test_a_pipe_is_not_replaced(tmp_path: Path, force: bool) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        with pytest.raises(StorageError, match="a pipe or a device"):
            write_bytes(tmp_path / name, b"new", force=force)
    assert (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "link").is_symlink()
    assert names(tmp_path) == ["link", "pipe"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StorageError, match="Permission denied"):
        write_bytes(tmp_path / "file", b"new")
    tmp_path.chmod(0o700)
    assert names(tmp_path) == []


def test_equal_content_gives_equal_gzip(tmp_path: Path) -> None:
    for name in ("a.jsonl.gz", "b.jsonl.gz"):
        save_records([{"a": 1}], tmp_path / name)
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()


def test_the_content_and_the_folder_are_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    sync = os.fsync

    def counted(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", counted)
    for force in (False, True):
        synced.clear()
        write_bytes(tmp_path / "a", b"text", force=force)
        assert synced == [(tmp_path / "a").stat().st_ino, tmp_path.stat().st_ino]


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP])
def test_a_file_system_without_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*paths: object) -> None:
        raise OSError(number, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    write_bytes(tmp_path / "a", b"text")
    assert (tmp_path / "a").read_bytes() == b"text"


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EACCES, errno.EMLINK])
def test_another_error_of_a_link_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*paths: object) -> None:
        raise OSError(number, "no luck")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(StorageError, match="cannot be written: no luck"):
        write_bytes(tmp_path / "a", b"text")
    assert list(tmp_path.iterdir()) == []
