"""Splits as datasets: what a record becomes, the way back, and the manifest beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from auepora_eval.builder.build import BuildPlan, build_dataset
from auepora_eval.core.types import EvaluationSample
from auepora_eval.errors import DataError
from auepora_eval.io.builds import load_split, manifest_errors
from auepora_eval.io.validate import file_errors
from tests.raw_tasks import a_flat_task, a_raw_task, records, write_tasks

TASKS: list[dict[str, Any] | str] = [
    a_raw_task("q1", metadata={"selected_chunk_ids": [2, 7], "labels": {"scenario": "base"}, "cluster": "c"}),
    a_flat_task("q2", metadata={"alternatives": ["3", "three"], "contexts": "clash", "metadata": 1}),
    a_raw_task("s1", "summaries"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tasks(tmp_path / "offline_dataset.jsonl", TASKS)
    build_dataset(BuildPlan.in_folder(tmp_path, version="v3"))
    return tmp_path


def the_samples(path: Path) -> list[EvaluationSample]:
    return list(load_split(path))


@pytest.mark.parametrize("odd", [[], {"a": 1}, 3, None])
def test_odd_places_of_chunks_and_spans_are_no_spans(tmp_path: Path, odd: object) -> None:
    task = a_raw_task(metadata={"selected_chunk_ids": [2], "answer_span": {"start": 1, "end": 2}})
    task["metadata"]["summary_spans"] = odd
    task["rag"]["retrieved"][1] |= {"source_path": odd, "start": 0, "end": 9}
    (sample,) = the_samples(write_tasks(tmp_path / "offline_dataset.jsonl", [task]))
    assert "spans" not in (sample.relevant_docs or [])[0].metadata


def test_what_a_record_becomes(folder: Path) -> None:
    first, second = the_samples(folder / "qa_pairs.jsonl")
    assert (first.sample_id, first.query) == ("q1", "How many boats?")
    assert first.reference_answer is not None
    assert first.reference_answer.text == "Three boats [2]."
    assert first.labels == {"scenario": "base", "task_type": "qa"}
    assert [doc.doc_id for doc in first.candidate_docs or ()] == ["1", "2"]
    assert first.relevant_docs is not None
    known, unknown = first.relevant_docs
    assert (known.doc_id, known.text, known.metadata["circular"]) == ("2", "text 2", True)
    assert (unknown.doc_id, unknown.metadata) == ("7", {"text_missing": True, "circular": True})
    assert first.metadata["cluster"] == "c"
    split = first.metadata["split"]
    assert split["rag_prompt"] == "You are an assistant."
    assert split["answer_citations"] == [split["citations"][1]]
    assert second.relevant_docs is None
    assert [(doc.doc_id, doc.text) for doc in second.candidate_docs or ()] == [
        ("a.txt", "first"),
        ("b.txt", "second"),
    ]
    assert second.reference_answer is not None
    assert second.reference_answer.metadata == {"alternatives": ["3", "three"]}
    (summary,) = the_samples(folder / "summaries.jsonl")
    assert summary.labels == {"task_type": "summaries"}
    assert summary.query == "How many boats?"


def test_raw_tasks_load_as_what_they_would_become(folder: Path) -> None:
    raw = load_split(folder / "offline_dataset.jsonl")
    assert list(raw)[:2] == the_samples(folder / "qa_pairs.jsonl")
    assert raw.info == {}


def test_the_version_and_the_manifests_hash_come_along(folder: Path) -> None:
    import hashlib

    dataset = load_split(folder / "qa_pairs.jsonl")
    assert dataset.name == "qa_pairs"
    assert dataset.info["version"] == "v3"
    manifest = (folder / "manifest.json").read_bytes()
    assert dataset.info["metadata"]["manifest_sha256"] == hashlib.sha256(manifest).hexdigest()
    assert dataset.info["metadata"]["split"] == "qa"


def test_a_split_that_is_not_the_manifests_is_refused(folder: Path) -> None:
    with (folder / "qa_pairs.jsonl").open("a") as file:
        file.write("\n")
    with pytest.raises(DataError, match=r"not the file that manifest.json describes as v3"):
        load_split(folder / "qa_pairs.jsonl")
    (folder / "manifest.json").write_text("{}")  # some other tool's
    assert len(load_split(folder / "qa_pairs.jsonl")) == 2


def test_a_build_is_as_its_manifest_says_until_it_is_changed(folder: Path) -> None:
    manifest = folder / "manifest.json"
    assert manifest_errors(manifest) == []
    lines = (folder / "qa_pairs.jsonl").read_text().splitlines(keepends=True)
    (folder / "qa_pairs.jsonl").write_text(lines[0])
    errors = manifest_errors(manifest)
    assert "$.splits.qa.count: 2, but qa_pairs.jsonl has 1 records" in errors[0]
    assert "$.splits.qa.sha256" in errors[1]
    (folder / "qa_pairs.jsonl").unlink()
    assert "there is no qa_pairs.jsonl" in manifest_errors(manifest)[0]


def test_what_the_documents_do_not_say_has_no_right_answer(tmp_path: Path) -> None:
    record = {
        "task_id": "u",
        "task_type": "qa",
        "question": "Who is the mayor?",
        "reference_answer": "The documents do not say.",
        "rag_prompt": "",
        "contexts": [],
        "sources": [],
        "retrieved": [],
        "citations": [],
        "answer_citations": [],
        "metadata": {"labels": {"scenario": "unanswerable", "answerable": False}},
    }
    path = tmp_path / "qa_pairs.jsonl"
    path.write_bytes(msgspec.json.encode(record) + b"\n")
    (sample,) = load_split(path)
    assert sample.reference_answer is None


def test_a_file_holds_one_split(folder: Path) -> None:
    (folder / "manifest.json").unlink()
    qa, summaries = records(folder / "qa_pairs.jsonl"), records(folder / "summaries.jsonl")
    mixed = folder / "mixed.jsonl"
    for first, second, said in (
        (qa[0], summaries[0], "'summaries' is among records of the type 'qa'"),
        (summaries[0], qa[0], "'qa' is among records of the type 'summaries'"),
        (qa[0], {**qa[1], "task_type": "citations"}, "'citations' is among"),
        (qa[0], {**qa[1], "task_type": "summaries"}, "'summaries' is among"),
        ({**qa[0], "task_type": "summaries"}, qa[1], "instruction"),
        (summaries[0], {**summaries[0], "task_id": "s2", "task_type": "qa"}, "'qa' is among"),
        (qa[0], {**qa[1], "question": None}, "Expected"),
    ):
        write_tasks(mixed, [first, second])
        with pytest.raises(DataError, match=said):
            load_split(mixed)
        assert said in file_errors(mixed)[0]
