"""What `dataset check` finds in raw tasks and splits that can be loaded all the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.builder.build import BuildPlan, build_dataset
from auepora_eval.cli.main import main
from auepora_eval.io.builds import load_split
from auepora_eval.io.validate import file_errors
from tests.raw_tasks import a_flat_task, a_raw_task, write_tasks


@pytest.mark.parametrize(
    ("fields", "finding"),
    [
        ({"rag_prompt": ""}, "$.rag_prompt: the prompt is empty."),
        ({"rag_prompt": " \n"}, "$.rag_prompt: the prompt is empty."),
        ({"contexts": [], "sources": []}, "$.contexts: there are no contexts."),
    ],
)
def test_an_empty_prompt_and_no_contexts_are_findings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], fields: dict[str, Any], finding: str
) -> None:
    raw = write_tasks(tmp_path / "offline_dataset.jsonl", [a_flat_task("good"), a_flat_task("bad", **fields)])
    assert file_errors(raw)[0].startswith(f"offline_dataset.jsonl:2: {finding}")
    manifest = build_dataset(BuildPlan.in_folder(tmp_path)).manifest
    assert manifest.notes["empty_prompt" if "rag_prompt" in fields else "no_contexts"] == 1
    split = tmp_path / "qa_pairs.jsonl"
    assert file_errors(split)[0].startswith(f"qa_pairs.jsonl:2: {finding}")
    assert len(load_split(split)) == 2  # a system that needs neither can be run on it
    assert main(["dataset", "check", str(tmp_path / "manifest.json")]) == 1
    assert finding in capsys.readouterr().out


def test_fields_at_the_top_that_differ_from_those_under_rag_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = [a_raw_task("same"), a_raw_task("other", contexts=2)]
    tasks[0] |= {"contexts": tasks[0]["rag"]["contexts"], "rag_prompt": tasks[0]["rag"]["prompt"]}
    tasks[1] |= {"contexts": ["another", "text"], "sources": ["x", "y"]}
    raw = write_tasks(tmp_path / "offline_dataset.jsonl", tasks)
    (error,) = file_errors(raw)
    assert error.startswith("offline_dataset.jsonl:2: $.contexts: 'contexts' differs from 'rag.contexts'")
    assert main(["dataset", "check", str(raw)]) == 1
    printed = capsys.readouterr().out
    assert "(other): 'contexts' differs from 'rag.contexts', which is used." in printed
    assert "(same): 'contexts'" not in printed
    words = ["dataset", "build", "--offline-dataset", str(raw), "--manifest-output", str(tmp_path / "m.json")]
    outputs = ["--qa-output", str(tmp_path / "qa.jsonl"), "--summary-output", str(tmp_path / "s.jsonl")]
    assert main([*words, *outputs]) == 0
    assert "fields differ: 1 (dataset check names the records)" in capsys.readouterr().err
    assert json.loads((tmp_path / "m.json").read_text())["notes"] == {"fields_differ": 1}


def test_a_second_question_and_a_second_answer_that_differ_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = {
        **a_raw_task("two"),
        "instruction": "A?",
        "question": "B?",
        "expected_response": "a",
        "answer": "b",
    }
    raw = write_tasks(tmp_path / "offline_dataset.jsonl", [task])
    assert main(["dataset", "check", str(raw)]) == 1
    printed = capsys.readouterr().out
    assert "'question' differs from 'instruction', which is used." in printed
    assert "'answer' differs from 'expected_response', which is used." in printed
    assert build_dataset(BuildPlan.in_folder(tmp_path)).manifest.notes == {"fields_differ": 1}
