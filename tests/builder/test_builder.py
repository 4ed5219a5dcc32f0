"""The builder: what comes out, that the counts add up, and what it refuses."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.builder.build import BuildPlan, BuildResult, build_dataset
from auepora_eval.errors import DataError, StorageError
from tests.raw_tasks import a_flat_task, a_raw_task, records, write_tasks

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TASKS: list[dict[str, Any] | str] = [
    a_raw_task("q1"),
    "",
    a_flat_task("q2", metadata={"document": "b.txt", "labels": {"scenario": "noise", "variant_of": "q1"}}),
    a_raw_task("s1", "summaries"),
    a_raw_task("c1", "citations"),
    "not JSON",
    a_raw_task("q1"),
    a_raw_task("q3", expected_response=None),
    a_raw_task("x", ""),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tasks(tmp_path / "offline_dataset.jsonl", TASKS)
    return tmp_path


def build(folder: Path, **settings: Any) -> BuildResult:
    return build_dataset(BuildPlan.in_folder(folder, **settings), now=NOW, environment={})


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_build(folder: Path) -> None:
    named: list[tuple[str, str]] = []
    plan = BuildPlan.in_folder(folder)
    result = build_dataset(
        plan, on_skipped=lambda where, reason, what: named.append((where, reason)), now=NOW, environment={}
    )
    assert [record["task_id"] for record in records(folder / "qa_pairs.jsonl")] == ["q1", "q2"]
    assert [record["task_id"] for record in records(folder / "summaries.jsonl")] == ["s1"]
    assert named == [
        ("offline_dataset.jsonl:6", "invalid_json"),
        ("offline_dataset.jsonl:7", "duplicate_task_id"),
        ("offline_dataset.jsonl:8", "missing_reference"),
    ]
    assert names(folder) == ["manifest.json", "offline_dataset.jsonl", "qa_pairs.jsonl", "summaries.jsonl"]
    assert not result.unchanged


def test_the_manifest_is_that_of_seed_000_and_more(folder: Path) -> None:
    build(folder, version="v1.2")
    manifest = json.loads((folder / "manifest.json").read_text())
    qa = (folder / "qa_pairs.jsonl").read_bytes()
    source = (folder / "offline_dataset.jsonl").read_bytes()
    seed = [
        "version",
        "generated_at_utc",
        "source_offline_dataset",
        "filters",
        "splits",
        "excluded_task_types",
    ]
    assert list(manifest)[:6] == seed
    assert manifest["version"] == "v1.2"
    assert manifest["generated_at_utc"] == "2026-01-02T03:04:05Z"
    assert manifest["source_offline_dataset"] == "offline_dataset.jsonl"
    assert manifest["filters"] == {}
    assert manifest["splits"]["qa"] == {
        "path": "qa_pairs.jsonl",
        "count": 2,
        "sha256": hashlib.sha256(qa).hexdigest(),
        "bytes": len(qa),
    }
    assert manifest["excluded_task_types"] == {"citations": 1, "unknown": 1}
    assert manifest["skipped"] == {"duplicate_task_id": 1, "invalid_json": 1, "missing_reference": 1}
    assert manifest["source"] == {"path": "offline_dataset.jsonl", "count": 8, "bytes": len(source)}
    assert manifest["coverage"]["task_types"] == {"citations": 1, "qa": 2, "summaries": 1, "unknown": 1}
    assert manifest["coverage"]["documents"] == {"a.txt": 2, "b.txt": 1}
    assert manifest["coverage"]["labels"] == {"scenario=noise": 1}
    assert manifest["build"]["parameters"] == {"splits": ["qa", "summaries"], "limit": None, "strict": False}


def test_a_split_of_citations_can_be_asked_for(folder: Path) -> None:
    outputs = {name: folder / f"{name}.jsonl" for name in ("qa", "citations")}
    result = build(folder, outputs=outputs)
    assert [record["task_type"] for record in records(folder / "citations.jsonl")] == ["citations"]
    assert result.manifest.excluded_task_types == {"summaries": 1, "unknown": 1}


def test_rejects_are_kept_with_their_reasons(folder: Path) -> None:
    build(folder, rejects=folder / "rejects.jsonl")
    kept = records(folder / "rejects.jsonl")
    assert [(entry["where"], entry["reason"]) for entry in kept] == [
        ("offline_dataset.jsonl:6", "invalid_json"),
        ("offline_dataset.jsonl:7", "duplicate_task_id"),
        ("offline_dataset.jsonl:8", "missing_reference"),
    ]
    assert kept[0]["line"] == "not JSON"
    assert kept[1]["record"] == a_raw_task("q1")


def test_the_same_input_gives_the_same_bytes(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    write_tasks(other / "offline_dataset.jsonl", TASKS)
    for place in (folder, other):
        plan = BuildPlan.in_folder(place)
        build_dataset(plan, environment={"SOURCE_DATE_EPOCH": "1735689600"})
    for name in ("manifest.json", "qa_pairs.jsonl", "summaries.jsonl"):
        assert (folder / name).read_bytes() == (other / name).read_bytes()
    assert json.loads((folder / "manifest.json").read_text())["generated_at_utc"] == "2025-01-01T00:00:00Z"


def test_a_version_that_is_there_is_built_again_only_to_the_same(folder: Path) -> None:
    build(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert build(folder).unchanged
    write_tasks(folder / "offline_dataset.jsonl", TASKS[:4])
    with pytest.raises(StorageError, match="is of v1 already, with other content"):
        build(folder)
    with pytest.raises(StorageError, match="exists already"):
        build(folder, version="v2")
    for name in ("manifest.json", "qa_pairs.jsonl", "summaries.jsonl"):
        assert (folder / name).read_bytes() == before[name]
    assert build(folder, version="v2", force=True).manifest.version == "v2"
    replaced = build(folder, version="v2", force=True, limit=1)
    assert replaced.replaced is not None
    assert replaced.manifest.splits["qa"].count == 1


LINES = st.one_of(
    st.builds(
        lambda kind, name, answer: json.dumps(a_flat_task(name, kind, answer=answer)),
        st.sampled_from(["qa", "summaries", "citations", "", "other"]),
        st.sampled_from("abcdef"),
        st.sampled_from(["yes", "", None]),
    ),
    st.sampled_from(["", " ", "{", "[]", "null", '{"task_type": "qa"}', '{"task_id": "1"}']),
)


@settings(max_examples=30, deadline=None)
@given(st.lists(LINES, max_size=12), st.sampled_from([None, 1, 3]), st.booleans())
def test_counts_add_up_on_any_input(lines: list[str], limit: int | None, ended: bool) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / "offline_dataset.jsonl"
        source.write_text("\n".join(lines) + ("\n" if ended else ""))
        read = [line for line in lines if line.strip()][:limit]
        skipped: Counter[str] = Counter()
        try:
            plan = BuildPlan.in_folder(folder, limit=limit, rejects=folder / "rejects.jsonl")
            result = build_dataset(plan, on_skipped=lambda where, reason, what: skipped.update([reason]))
        except DataError:
            assert [path.name for path in folder.iterdir()] == ["offline_dataset.jsonl"]
            return
        manifest = result.manifest
        stored = json.loads((folder / "manifest.json").read_text())
        assert manifest.records == len(read) == stored["source"]["count"]
        assert manifest.skipped == dict(skipped) == stored["skipped"]
        assert len(records(folder / "rejects.jsonl")) == skipped.total()
        for split in stored["splits"].values():
            assert len(records(folder / split["path"])) == split["count"]
        counted = sum(split["count"] for split in stored["splits"].values())
        assert counted + sum(stored["excluded_task_types"].values()) + skipped.total() == len(read)


def test_a_label_or_document_counts_wherever_it_comes(tmp_path: Path) -> None:
    def coverage(tasks: list[dict[str, Any]]) -> dict[str, Any]:
        write_tasks(tmp_path / "offline_dataset.jsonl", tasks)
        build(tmp_path, force=True)
        found: dict[str, Any] = json.loads((tmp_path / "manifest.json").read_text())["coverage"]
        return found

    def labelled(**labels: Any) -> list[dict[str, Any]]:
        return [
            a_flat_task(
                f"t{n}",
                metadata={
                    "document": f"d{n}.txt",
                    "labels": {"fake_answer": f"f{n}", "true_answer": f"t{n}", "none": None, **labels},
                },
            )
            for n in range(3)
        ]

    some = coverage(labelled(noise_ratio=0.8, hard=True, topics=["a", "b", "a"], level=2))
    assert some["labels"] == {
        "hard=true": 3,
        "level=2": 3,
        "noise_ratio=0.8": 3,
        "topics=a": 3,
        "topics=b": 3,
    }
    assert some["not_counted"] == []
    assert coverage(labelled(odd={"a": 1}))["not_counted"] == ["labels.odd"]
    many = [
        a_flat_task(f"t{n}", metadata={"document": f"d{n}", "labels": {"few": n % 101, "id": n}})
        for n in range(1_200)
    ]
    forth, back = coverage(many), coverage(many[::-1])
    assert forth == back
    assert (len(forth["documents"]), len(forth["labels"])) == (1_200, 101)
    assert forth["not_counted"] == ["labels.id"]
