"""Several files at once: nothing is changed by a build that fails, and the manifest is renamed last."""

from __future__ import annotations

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
