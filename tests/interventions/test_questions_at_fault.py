"""`dataset check --runs`: questions that may themselves be at fault."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import auepora_eval as ae
from auepora_eval import Document
from auepora_eval.cli.main import main

GOLD = Document("d1", "The ferry leaves at 9. The bridge opened in 1911.")


def sample(name: str, query: str, reference: str) -> ae.EvaluationSample:
    return ae.EvaluationSample(name, query, [GOLD], reference_answer=reference)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    samples = [
        sample("good", "When did the bridge open?", "1911"),
        sample("wrong", "When does the ferry leave?", "Tuesday"),
        sample("hard", "When did it open?", "1911"),
    ]
    ae.save_dataset(ae.InMemoryDataset("q", samples), tmp_path / "q.jsonl")
    answers = {"When did the bridge open?": "In 1911.", "When does the ferry leave?": "At 9."}
    for name in ("a", "b"):
        system = lambda query, name=name: answers.get(query, name * 5)  # noqa: E731
        ae.evaluate(system, samples, metrics="contains_answer", evaluation_id=name).save(tmp_path)
    return tmp_path


def found(
    project: Path, capsys: pytest.CaptureFixture[str], *flags: str, check: str = "at fault"
) -> dict[str, str]:
    capsys.readouterr()
    runs = [str(project / name) for name in ("a", "b")]
    main(["dataset", "check", str(project / "q.jsonl"), "--json", *flags, "--runs", *runs])
    issues = json.loads(capsys.readouterr().out)["files"][0]["content"]["issues"]
    return {one["sample_id"]: one["message"] for one in issues if one["check"] == check}


def test_a_wrong_reference_is_found_and_a_hard_question_is_not(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    faults = found(project, capsys)
    assert set(faults) == {"wrong"}
    assert "its gold does not hold the reference" in faults["wrong"]
    assert "none of 2 systems is right" in faults["wrong"]
    assert "strong systems agree on another answer" in faults["wrong"]


def test_weak_systems_that_share_an_error_are_no_evidence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    samples = [sample(f"q{n}", f"When did bridge {n} open?", "1911") for n in range(6)]
    ae.save_dataset(ae.InMemoryDataset("q", samples), tmp_path / "q.jsonl")
    for name in ("a", "b"):  # both are right twice
        system = lambda query: "In 1911." if query[16] in "01" else "The ferry leaves at 9."  # noqa: E731
        ae.evaluate(system, samples, metrics="contains_answer", evaluation_id=name).save(tmp_path)
    assert found(tmp_path, capsys) == {}
    assert set(found(tmp_path, capsys, check="not answered")) == {"q2", "q3", "q4", "q5"}


def test_a_question_that_nobody_answers_is_listed_apart(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert found(project, capsys, check="not answered") == {"hard": "none of 2 systems is right"}


def test_an_unknown_run_is_one_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset", "check", str(project / "q.jsonl"), "--runs", str(project / "nobody")]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "nobody" in shown.err
    assert len(shown.err.splitlines()) == 1


def test_stale_gold_is_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = project / "corpus.jsonl"
    corpus.write_text(json.dumps({"doc_id": "d1", "text": "The bridge opened in 1912."}) + "\n")
    faults = found(project, capsys, "--corpus", str(corpus))
    assert "the text of d1 has changed since" in faults["good"]


def test_removed_gold_is_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = project / "corpus.jsonl"
    corpus.write_text(json.dumps({"doc_id": "d2", "text": "Another text."}) + "\n")
    assert "d1 is no longer in the corpus" in found(project, capsys, "--corpus", str(corpus))["good"]
    chunk = {"doc_id": "d1-0", "text": "The bridge opened in 1911.", "metadata": {"source": "d1"}}
    corpus.write_text(json.dumps(chunk) + "\n")
    assert "corpus" not in found(project, capsys, "--corpus", str(corpus)).get("good", "")


def test_a_changed_source_of_generated_questions_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    pier = Path("docs/pier.md")
    pier.parent.mkdir()
    pier.write_text("The north pier of Annet was built in 1911 by the harbour company of the town.\n")
    assert main(["dataset", "generate", "docs", "--variants", "none"]) == 0
    check = ["dataset", "check", "offline_dataset.jsonl", "--corpus", "docs"]
    capsys.readouterr()
    main(check)
    assert "has changed since" not in capsys.readouterr().out
    pier.write_text("The south pier of Annet was built in 1911 by the harbour company of the town.\n")
    main(check)
    assert "the source pier.md has changed since" in capsys.readouterr().out
    pier.rename("docs/quay.md")
    main(check)
    assert "pier.md is no longer in the corpus" in capsys.readouterr().out


def test_runs_of_other_questions_are_one_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset", "check", "demo", "--runs", str(project / "a")]) == 2
    assert "none of these questions" in capsys.readouterr().err
