"""Manifests: versions, times, paths, and what is read back."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from auepora_eval.errors import DataError
from auepora_eval.io.builds import build_time, read_manifest

SEED = {
    "version": "v1",
    "generated_at_utc": "2025-11-04T18:30:00Z",
    "source_offline_dataset": "evaluation/datasets/offline_dataset.jsonl",
    "filters": {},
    "splits": {
        "qa": {"path": "evaluation/datasets/qa_pairs.jsonl", "count": 120},
        "summaries": {"path": "evaluation/datasets/summaries.jsonl", "count": 45},
    },
    "excluded_task_types": {"citations": 12},
}


def stored(folder: Path, document: object) -> Path:
    path = folder / "manifest.json"
    path.write_text(json.dumps(document))
    return path


def test_the_example_of_seed_000_is_read(tmp_path: Path) -> None:
    snapshot = read_manifest(stored(tmp_path, SEED))
    assert snapshot.manifest.records == 177
    assert snapshot.splits["qa"] == tmp_path / "qa_pairs.jsonl"  # its paths were from the project's root
    (tmp_path / "evaluation/datasets").mkdir(parents=True)
    (tmp_path / "evaluation/datasets/qa_pairs.jsonl").write_text("")
    assert read_manifest(tmp_path / "manifest.json").splits["qa"].parent == tmp_path / "evaluation/datasets"


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../other.jsonl", "a/../../b.jsonl", "..\\x", "", ".", "a\0b"]
)
def test_a_manifest_names_no_file_outside_its_folder(tmp_path: Path, path: str) -> None:
    snapshot = read_manifest(stored(tmp_path, {**SEED, "splits": {"qa": {"path": path, "count": 1}}}))
    assert snapshot.manifest.splits["qa"].count == 1  # its counts can be compared with all the same
    with pytest.raises(DataError, match=r"\$.splits.qa.path: .* not in the manifest's own folder"):
        _ = snapshot.splits


def test_a_file_elsewhere_is_taken_only_if_its_hash_is_known(tmp_path: Path) -> None:
    place = tmp_path / "q" / "qa.jsonl"
    place.parent.mkdir()
    place.write_bytes(b"{}\n")
    (tmp_path / "m").mkdir()

    def splits(sha256: str, path: str = "../q/qa.jsonl") -> dict[str, Path]:
        split = {"path": path, "count": 1, "sha256": sha256}
        return read_manifest(stored(tmp_path / "m", {**SEED, "splits": {"qa": split}})).splits

    known = hashlib.sha256(b"{}\n").hexdigest()
    assert splits(known)["qa"].samefile(place)
    with pytest.raises(DataError, match="not in the manifest's own folder"):
        splits("")
    with pytest.raises(DataError, match="is not the file that was built"):
        splits("0" * 64)
    for bad in ("..", "../q", str(place), "../q/\0"):
        with pytest.raises(DataError, match=r"not in the manifest's own folder|not the file that was built"):
            splits(known, bad)
    assert not splits(known, "../q/gone.jsonl")["qa"].exists()  # which is for others to say


def test_the_time_is_utc_or_what_the_environment_says() -> None:
    there = datetime(2026, 1, 1, 1, 0, tzinfo=timezone(timedelta(hours=2)))
    assert build_time({}, there) == "2025-12-31T23:00:00Z"
    assert build_time({"SOURCE_DATE_EPOCH": " 0 "}, there) == "1970-01-01T00:00:00Z"
    with pytest.raises(DataError, match="SOURCE_DATE_EPOCH"):
        build_time({"SOURCE_DATE_EPOCH": "yesterday"}, datetime.now(UTC))
    with pytest.raises(DataError, match="SOURCE_DATE_EPOCH"):
        build_time({"SOURCE_DATE_EPOCH": "9" * 30}, datetime.now(UTC))
