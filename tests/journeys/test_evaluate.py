"""The journey of a new user: demo, own system, own outputs, more metrics, comparison, report."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.cli.main import main
from tests.builders import plan
from tests.stored import kept

SYSTEM = '''
"""A user's system: two functions."""

PAGES = {"d1": "The Annet carries 22 cars.", "d2": "Water is tested on Tuesday."}


def retrieve(query, top_k):
    wanted = set(query.lower().split())
    ranked = sorted(PAGES, key=lambda page: -len(wanted & set(PAGES[page].lower().split())))
    return [(page, PAGES[page]) for page in ranked[:top_k]]


def generate(query, documents):
    if "crash" in query:
        raise RuntimeError("out of memory")
    return documents[0].text


system = (retrieve, generate)
'''

DATASET: list[dict[str, Any]] = [
    {
        "sample_id": "1",
        "query": "How many cars does the Annet take?",
        "relevant_docs": ["d1"],
        "reference_answer": "22",
    },
    {
        "sample_id": "2",
        "query": "When is water tested?",
        "relevant_docs": ["d2"],
        "reference_answer": {"text": "Tuesday"},
    },
    {"sample_id": "3", "query": "crash please", "relevant_docs": ["d2"], "reference_answer": None},
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "my_rag.py").write_text(SYSTEM)
    (tmp_path / "data.jsonl").write_text("\n".join(json.dumps(line) for line in DATASET))
    return tmp_path


def auepora(*words: str) -> int:
    return main(list(words))


def parsed(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_the_demo_prints_the_verdict_and_the_next_commands(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert auepora("demo", "--out", "runs") == 0
    out = capsys.readouterr().out
    for words in ("Is hybrid better than bm25?", "recall@5", "auepora show demo-bm25"):
        assert words in out
    assert "95% interval" not in out  # the tables are behind --full
    assert "hybrid is" in out or "nconclusive" in out
    written = sorted(path.name for path in (here / "runs").iterdir())
    assert written == [
        "demo-bm25-vs-demo-hybrid.html",
        "demo-bm25.results.json",
        "demo-bm25.run.db",
        "demo-hybrid.results.json",
        "demo-hybrid.run.db",
    ]
    page = (here / "runs" / "demo-bm25-vs-demo-hybrid.html").read_text()
    assert page.count("<script") == 1  # our own, which the page's policy names by its hash
    assert "http" not in page.replace("http-equiv", "")
    # The command that the demo names next works, and a second demo overwrites nothing.
    assert auepora("show", "demo-bm25", "--worst", "ndcg@5", "--out", "runs") == 0
    printed = capsys.readouterr().out
    assert "\n  reference: " in printed
    assert "\n  missed:    " in printed
    assert auepora("demo", "--out", "runs", "--json") == 0
    assert parsed(capsys)["runs"][0].endswith("demo-bm25-2.results.json")


def test_scoring_stored_outputs_equals_the_run(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = ("--dataset", "data.jsonl", "--metrics", "recall@1,token_f1,bleu", "--json")
    assert auepora("run", "--system", "my_rag:system", "--id", "ran", "--top-k", "2", *common) == 3
    ran = parsed(capsys)
    outputs = "data/evaluation/results/ran.run.db"
    assert auepora("score", "--outputs", outputs, "--id", "scored", *common) == 3
    scored = parsed(capsys)
    for section in ("retrieval_metrics", "answer_quality_metrics"):
        assert scored[section] == ran[section]
    assert scored["summary"]["failed_queries"] == 1


def test_predictions_in_short_form_and_a_missing_line(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        '{"sample_id": "1", "answer": "22", "retrieved": ["d1"]}',
        '{"sample_id": "2", "answer": "Friday"}',
    ]
    (here / "predictions.jsonl").write_text("\n".join(lines))
    words = (
        "score",
        "--dataset",
        "data.jsonl",
        "--outputs",
        "predictions.jsonl",
        "--metrics",
        "exact_match,recall@1",
    )
    assert auepora(*words, "--json") == 3
    stored = parsed(capsys)
    assert stored["summary"]["failures_by_type"] == {"MissingPrediction": 1}
    assert stored["answer_quality_metrics"]["exact_match"]["value"] == 0.5
    assert stored["retrieval_metrics"]["recall@1"]["details"]["num_failed"] == 1
    assert stored["system_version"] == "predictions"


def test_a_plan_file_and_flags_that_override_it(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "plan.config.yaml").write_text(
        "dataset: data.jsonl\nsystem: my_rag:system\nmetrics: [recall@1, mrr]\ntop_k: 2\nlimit: 2\nseed: 7\n"
    )
    assert auepora("run", "--config", "plan.config.yaml", "--metrics", "mrr", "--json") == 0
    stored = parsed(capsys)
    assert list(stored["retrieval_metrics"]) == ["mrr"]
    assert stored["configuration"]["retrieval_k"] == 2
    assert stored["configuration"]["limit"] == 2
    assert stored["summary"]["total_queries"] == 2
    assert stored["metadata"]["evaluation_parameters"]["random_seed"] == 7


def test_max_failures_stops_with_code_1_and_keeps_the_outputs(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (
        "run",
        "--dataset",
        "data.jsonl",
        "--system",
        "my_rag:system",
        "--id",
        "x",
        *plan(max_failures=0),
    )
    assert auepora(*words) == 1
    assert "more than the 0 allowed" in capsys.readouterr().err
    journal = "data/evaluation/results/x.run.db"
    assert kept(here / journal) == 3
    assert not (here / "data/evaluation/results/x.results.json").exists()
    # The kept outputs are not thrown away by trying again, and can be scored.
    assert auepora(*words) == 4
    assert "did not finish" in capsys.readouterr().err
    assert auepora("score", "--dataset", "data.jsonl", "--outputs", journal, "--id", "y") == 3
    assert auepora(*words, "--force") == 1


def test_json_is_one_document_on_stdout_and_notes_are_on_stderr(here: Path) -> None:
    words = (
        "run",
        "--dataset",
        "data.jsonl",
        "--system",
        "my_rag:system",
        "--metrics",
        "exact_match",
        "--json",
    )
    done = subprocess.run(
        [sys.executable, "-m", "auepora_eval", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3  # one call in three fails
    assert json.loads(done.stdout)["evaluation_id"]
    assert "note: 2 of 3 samples have reference_answer" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr
