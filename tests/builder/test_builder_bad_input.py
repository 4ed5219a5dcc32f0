"""What the builder refuses: clear words, the source untouched, nothing written."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.builder.build import BuildPlan, build_dataset
from auepora_eval.errors import AueporaError, DataError, StorageError
from tests.raw_tasks import a_raw_task, write_tasks


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tasks(tmp_path / "offline_dataset.jsonl", [a_raw_task("1"), "bad", a_raw_task("2", "summaries")])
    return tmp_path


def state(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(folder: Path, kind: type[AueporaError], words: str, **settings: Any) -> None:
    before = state(folder)
    with pytest.raises(kind, match=words):
        build_dataset(BuildPlan.in_folder(folder, **settings))
    assert state(folder) == before


def test_strict_stops_at_the_first_bad_line(folder: Path) -> None:
    refused(folder, DataError, r"offline_dataset.jsonl:2: not JSON", strict=True)


def test_all_bad_is_an_error(folder: Path) -> None:
    source = write_tasks(folder / "bad.jsonl", ["x", a_raw_task(None)])
    refused(folder, DataError, r"not one of its 2 records can be used. The first: bad.jsonl:1", source=source)


def test_nothing_is_an_error(folder: Path) -> None:
    refused(folder, DataError, "no records", source=write_tasks(folder / "empty.jsonl", ["", " "]))


def test_nothing_for_any_split_is_an_error(folder: Path) -> None:
    source = write_tasks(folder / "other.jsonl", [a_raw_task("1", "citations"), a_raw_task("2", "other")])
    words = r"not one of its 2 records is for qa, summaries; there are 'citations', 'other'"
    refused(folder, DataError, words, source=source, manifest=folder / "new" / "deep" / "manifest.json")
    assert not (folder / "new").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in this system's folders")
def test_a_pipe_as_source(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    refused(folder, DataError, "is a pipe", source=folder / "pipe")


def test_no_source(folder: Path) -> None:
    refused(folder, DataError, "there is no such file", source=folder / "nowhere.jsonl")
    refused(folder, DataError, "is a folder", source=folder)


def test_a_broken_gzip(folder: Path) -> None:
    source = folder / "raw.gz"
    source.write_bytes(b"\x1f\x8b\x08\x00broken")
    refused(folder, DataError, "cannot be read on", source=source)


@pytest.mark.parametrize("version", ["1", "v", "v1.", "v1.x", "v1\n", "../v1", ""])
def test_versions_are_vn_or_vn_n(folder: Path, version: str) -> None:
    refused(folder, DataError, "is not a version", version=version)


def test_an_output_that_is_the_source(folder: Path) -> None:
    source = folder / "offline_dataset.jsonl"
    refused(folder, StorageError, "is the source itself", force=True, manifest=source)
    refused(
        folder,
        StorageError,
        "is the source itself",
        force=True,
        outputs={"qa": folder / "x" / ".." / source.name},
    )
    (folder / "linked.jsonl").hardlink_to(source)
    refused(folder, StorageError, "is the source itself", force=True, outputs={"qa": folder / "linked.jsonl"})


def test_one_file_for_two_outputs(folder: Path) -> None:
    refused(folder, StorageError, "written twice", manifest=folder / "qa_pairs.jsonl")


def test_an_output_that_is_a_symbolic_link(folder: Path) -> None:
    (folder / "precious.txt").write_text("keep me")
    (folder / "qa_pairs.jsonl").symlink_to(folder / "precious.txt")
    refused(folder, StorageError, "is a symbolic link", force=True)
    (folder / "qa_pairs.jsonl").unlink()
    (folder / "qa_pairs.jsonl").symlink_to(folder / "nowhere")
    refused(folder, StorageError, "is a symbolic link", force=True)


def test_an_output_that_is_a_folder(folder: Path) -> None:
    (folder / "qa_pairs.jsonl").mkdir()
    refused(folder, StorageError, "is a folder", force=True)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in this system's folders")
@pytest.mark.parametrize("name", ["qa_pairs.jsonl", "manifest.json", "rejects.jsonl"])
def test_an_output_that_is_a_pipe(folder: Path, name: str) -> None:
    os.mkfifo(folder / name)
    refused(folder, StorageError, "is a pipe or a device", force=True, rejects=folder / "rejects.jsonl")
    assert (folder / name).is_fifo()


def test_a_folder_that_is_a_file(folder: Path) -> None:
    (folder / "file").write_text("")
    refused(folder, StorageError, "cannot be written", outputs={"qa": folder / "file" / "qa.jsonl"})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder(folder: Path) -> None:
    place = folder / "closed"
    place.mkdir(mode=0o500)
    refused(folder, StorageError, "cannot be written: Permission denied", outputs={"qa": place / "qa.jsonl"})


@pytest.mark.skipif(sys.platform != "linux", reason="a folder that even root cannot write to is needed")
def test_a_folder_in_which_nobody_can_write(folder: Path) -> None:
    refused(folder, StorageError, "/proc/.* cannot be written", outputs={"qa": Path("/proc/qa.jsonl")})


def test_a_source_that_changes_meanwhile(folder: Path) -> None:
    before = state(folder)

    def write_more(where: str, reason: str, what: str) -> None:
        with (folder / "offline_dataset.jsonl").open("a") as file:
            file.write("\n")

    with pytest.raises(DataError, match="changed while it was read"):
        build_dataset(BuildPlan.in_folder(folder), on_skipped=write_more)
    assert set(state(folder)) == set(before)


FULL = """
import resource, sys
from auepora_eval.cli.main import main
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
outputs = ["--qa-output", "qa.jsonl", "--summary-output", "s.jsonl", "--manifest-output", "manifest.json"]
sys.exit(main(["dataset", "build", "--force", "--offline-dataset", "offline_dataset.jsonl", *outputs]))
"""


def test_a_full_disk_leaves_everything_as_it_was(tmp_path: Path) -> None:
    tasks = [a_raw_task(str(n), metadata={"filler": "x" * 1000}) for n in range(200)]
    write_tasks(tmp_path / "offline_dataset.jsonl", tasks)
    for name in ("qa.jsonl", "s.jsonl", "manifest.json"):
        (tmp_path / name).write_text("old\n")
    before = state(tmp_path)
    assert resource.getrlimit(resource.RLIMIT_FSIZE)
    done = subprocess.run(
        [sys.executable, "-c", FULL], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 4
    assert "auepora: qa.jsonl cannot be written: File too large. Nothing was changed." in done.stderr
    assert "Traceback" not in done.stderr
    assert state(tmp_path) == before
