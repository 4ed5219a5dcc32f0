"""`score` says why a metric has no value, and how a field that was not read is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auepora_eval.cli.main import main


def scored(capsys: pytest.CaptureFixture[str], predictions: list[dict[str, object]], metrics: str) -> str:
    samples = [{"sample_id": name, "query": f"What is {name}?", "reference_answer": "a"} for name in "abc"]
    samples[0]["relevant_docs"] = ["d1"]  # type: ignore[assignment]
    for file, records in (("data.jsonl", samples), ("out.jsonl", predictions)):
        Path(file).write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    main(["score", "--dataset", "data.jsonl", "--outputs", "out.jsonl", "--metrics", metrics])
    printed = capsys.readouterr()
    return " ".join((printed.out + printed.err).split())


@pytest.mark.parametrize(
    ("names", "note"),
    [
        (
            ("sample_id", "answer"),
            "'found_chunks' (3). If one has what metrics need, name it: --columns FIELD=NAME.",
        ),
        (
            ("id", "response"),
            "'found_chunks' (3); if one is retrieved, name it: --columns retrieved=NAME",
        ),
    ],
)
def test_an_unread_field_is_named_once_with_its_flag(
    names: tuple[str, str],
    note: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    rows: list[dict[str, object]] = [
        {names[0]: name, names[1]: "a", "found_chunks": ["d1"]} for name in "abc"
    ]
    printed = scored(capsys, rows, "recall@5,token_f1")
    assert note in printed
    assert printed.count("found_chunks' ") == 1


def test_a_value_that_is_missing_has_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    printed = scored(capsys, [{"sample_id": name, "answer": "a"} for name in "abc"], "mean_latency,token_f1")
    assert "mean_latency[end_to_end]: not measured, " in printed


def test_what_no_answer_has_is_said_once_if_a_call_failed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    printed = scored(capsys, [{"sample_id": name, "answer": "a"} for name in "ab"], "recall@5,token_f1")
    assert "Not measured (no output names documents): recall@5" in printed
    assert "no sample was scored" not in printed
