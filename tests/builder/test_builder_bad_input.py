"""What the builder refuses: clear words, the source untouched, nothing written."""

from __future__ import annotations

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


def test_nothing_for_any_split_is_an_error(folder: Path) -> None:
    source = write_tasks(folder / "other.jsonl", [a_raw_task("1", "citations"), a_raw_task("2", "other")])
    words = r"not one of its 2 records is for qa, summaries; there are 'citations', 'other'"
    refused(folder, DataError, words, source=source, manifest=folder / "new" / "deep" / "manifest.json")
    assert not (folder / "new").exists()


def test_a_misspelt_task_type_is_not_a_matter_of_the_splits(folder: Path) -> None:
    source = write_tasks(folder / "other.jsonl", [a_raw_task("1", "QA")])
    refused(
        folder,
        DataError,
        r"there are 'QA'. Choose other --splits, or write qa, summaries, citations as task_type.",
        source=source,
    )


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
