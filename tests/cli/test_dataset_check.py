"""`dataset check` and `dataset diff`: form, content, description and samples of files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.cli.main import main
from auepora_eval.core.dataset import InMemoryDataset
from auepora_eval.core.types import Document
from auepora_eval.io.loader import save_dataset
from tests.builders import a_sample

pytestmark = pytest.mark.filterwarnings("ignore::auepora_eval.core.plan.PartialCoverageWarning")

REAL_DATA = Path(__file__).parents[3] / "shared" / "data"
BAD: dict[str, Any] = {
    "dataset_id": "boats",
    "name": "Boats",
    "version": "1.0.0",
    "metadata": {"size": 5},
    "queries": [
        {"query_id": "q1", "query_text": "Where does it moor?", "relevant_documents": ["d1", "d9"]},
        {"query_id": "q1", "query_text": "\x1b[31mWho keeps it?", "relevant_documents": ["d1"]},
    ],
    "documents": [{"document_id": "d1", "content": "The Annet moors at the pier."}],
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.eval.json").write_text(json.dumps(BAD), encoding="utf-8")
    return tmp_path


@pytest.fixture
def boats() -> InMemoryDataset:
    corpus = [Document("d1", "The Annet moors at the north pier.", {"title": "Boats"})]
    one = a_sample("q1", "Where does the Annet moor?", reference="at the north pier", labels={"kind": "a"})
    one.relevant_docs = [corpus[0]]
    one.metadata["citations"] = [{"file_name": "d1", "start_char": 4, "end_char": 9}]
    two = a_sample("q2", "Who keeps the light?", reference="Gulls weigh seven hundred grams")
    two.relevant_docs = [corpus[0]]
    info = {"dataset_id": "boats", "name": "Boats", "version": "1.0.0"}
    return InMemoryDataset("boats", [one, two], info=info, documents=corpus)


def test_check_lists_the_worst_problems_first(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset", "check", "bad.eval.json", "demo"]) == 1
    out = capsys.readouterr().out
    assert out.startswith(
        "bad.eval.json: NOT VALID (eval_json)\n  bad.eval.json: $.queries[1].query_id: 'q1' "
    )
    assert "bad.eval.json: 2 errors, 1 warning in 2 samples\n\nerror: query_uniqueness, 1\n" in out
    assert "$.queries[0] (q1): duplicate query id: 'q1' is used 2 times, again at $.queries[1]." in out
    assert out.index("error: document_references") < out.index("warning: declared")
    assert "demo: nothing found" in out


def test_check_as_json_and_its_thresholds(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset", "check", "bad.eval.json", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert not document["ok"]
    assert document["files"][0]["content"]["counts"] == {"error": 2, "warning": 1, "note": 0}
    assert document["files"][0]["content"]["issues"][0]["sample_id"] == "q1"
    assert document["files"][0]["form"]["format"] == "eval_json"
    assert main(["dataset", "check", "bad.eval.json", "--fail-on", "never"]) == 1, "the form is wrong too"
    missing = {**BAD, "queries": BAD["queries"][:1]}
    Path("missing.eval.json").write_text(json.dumps(missing), encoding="utf-8")
    assert main(["dataset", "check", "missing.eval.json"]) == 1
    assert main(["dataset", "check", "missing.eval.json", "--fail-on", "never"]) == 0
    other_size = {**BAD, "queries": BAD["queries"][1:]}
    Path("size.eval.json").write_text(json.dumps(other_size), encoding="utf-8")
    assert main(["dataset", "check", "size.eval.json"]) == 0
    assert main(["dataset", "check", "size.eval.json", "--fail-on", "warning"]) == 1


def test_sample(here: Path, boats: InMemoryDataset, capsys: pytest.CaptureFixture[str]) -> None:
    save_dataset(boats, "boats.eval.json")
    assert main(["dataset", "check", "boats.eval.json", "--id", "q1"]) == 0
    assert capsys.readouterr().out.splitlines()[:6] == [
        "q1: Where does the Annet moor?",
        "  reference: at the north pier",
        "  support:   100% of its words are in the gold documents",
        "  labels:    kind=a",
        "  gold d1 (Boats): The Annet moors at the north pier.",
        "  cites d1, 4-9",
    ]
    assert main(["dataset", "check", "boats.eval.json", "--suspicious", "--sample", "1", "--json"]) == 0
    (worst,) = json.loads(capsys.readouterr().out)["files"][0]["sample"]
    assert worst["sample_id"] == "q2"
    assert worst["support"] == {"share": 0.0, "missing": ["gulls", "weigh", "seven", "hundred", "grams"]}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["check", "nowhere.jsonl"], "nowhere.jsonl: there is no such file"),
        (["check", "demo", "--id", "q999"], "demo: there is no sample 'q999'."),
        (["check", "bare.jsonl", "--suspicious"], "no sample has a reference and documents"),
    ],
)
def test_impossible_requests(
    here: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    Path("bare.jsonl").write_text('{"sample_id": "1", "query": "q"}\n')
    assert main(["dataset", *words]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert said in shown.err
    assert shown.err.count("\n") == 1


@pytest.mark.skipif(not (REAL_DATA / "clapnq").exists(), reason="the public datasets are not here")
def test_clap_nq_has_supported_references(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """300 questions with grounded answers: three passages that serve two questions are all that is found."""
    samples = []
    with (REAL_DATA / "clapnq" / "clapnq_dev_answerable.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            answers = [output["answer"] for output in record["output"] if output.get("answer")]
            sample = a_sample(record["id"], record["input"], reference=answers[0], alternatives=answers[1:])
            sample.relevant_docs = [
                Document(f"{record['id']}-{place}", passage["text"])
                for place, passage in enumerate(record["passages"])
            ]
            samples.append(sample)
    save_dataset(InMemoryDataset("clapnq", samples), "clapnq.jsonl")
    assert main(["dataset", "check", "clapnq.jsonl", "--json"]) == 0
    issues = json.loads(capsys.readouterr().out)["files"][0]["content"]["issues"]
    assert [issue["check"] for issue in issues] == ["duplicate_documents"] * 3
