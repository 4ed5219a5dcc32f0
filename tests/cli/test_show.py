"""`auepora show`: what counts as found is what the run counted, and the worst are not the best."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from auepora_eval.cli.main import main
from auepora_eval.core.settings import DEFAULT_OUT
from auepora_eval.io.jsonl import save_records
from auepora_eval.store.pages import RunSamples

GOLD = {"doc_id": "plans.md", "text": "The team plan costs 9."}
# By id nothing matches, by source 1 and 3, by text 1 and 2.
RETRIEVED: dict[str, dict[str, Any]] = {
    "1": {"doc_id": "c1", "text": "Prices. The team plan costs 9.", "metadata": {"source": "plans.md"}},
    "2": {"doc_id": "c2", "text": "FAQ. The team plan costs 9.", "metadata": {"source": "faq.md"}},
    "3": {"doc_id": "plans.md#3", "text": "Contact us."},
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    samples = [{"sample_id": name, "query": f"How {name}?", "relevant_docs": [GOLD]} for name in RETRIEVED]
    save_records(samples, tmp_path / "d.jsonl")
    outputs = [{"sample_id": name, "answer": "9", "retrieved": [doc]} for name, doc in RETRIEVED.items()]
    save_records(outputs, tmp_path / "o.jsonl")
    return tmp_path


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert main(list(words)) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(("match", "missed"), [("id", "123"), ("source", "2"), ("text", "3")])
def test_terminal_report_and_view_count_what_the_metrics_count(
    here: Path, capsys: pytest.CaptureFixture[str], match: str, missed: str
) -> None:
    files = ["--dataset", "d.jsonl", "--outputs", "o.jsonl", "--metrics", "recall@5"]
    assert main(["score", *files, "--match", match, "--id", "r"]) == 0
    worst = printed(capsys, "show", "r", "--worst", "recall@5")
    assert [line.split()[0] for line in worst.splitlines() if "recall@5" in line] == list(missed)
    assert worst.count("missed:    plans.md") == len(missed)
    assert f"Next: auepora show r --sample {missed[0]}" in worst
    for name, doc in RETRIEVED.items():
        shown = printed(capsys, "show", "r", "--sample", name)
        assert ("not retrieved: plans.md" in shown) == (name in missed)
        assert (f"  *   1  {doc['doc_id']}" in shown) == (name not in missed)
        assert shown.splitlines()[-1].startswith("Next: auepora view r")
    index = RunSamples(here / DEFAULT_OUT / "r.results.json")
    assert [place for place in index.ids if index.gold_missed[index.place_of(place)]] == list(missed)
    assert main(["show", "r", "--html", "r.html"]) == 0
    page = (here / "r.html").read_text(encoding="utf-8")
    assert page.count('<span class="tag warn">gold missed</span>') == len(missed)
    assert page.count('class="card doc missed"') == len(missed)


def test_regressions_mark_what_the_metrics_count(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    worse = [{"sample_id": name, "answer": "9", "retrieved": ["other.md"]} for name in RETRIEVED]
    save_records(worse, here / "worse.jsonl")
    for name, outputs in (("a", "o.jsonl"), ("b", "worse.jsonl")):
        words = f"score --dataset d.jsonl --outputs {outputs} --metrics recall@5 --match source --id {name}"
        assert main(words.split()) == 0
    out = " ".join(printed(capsys, "compare", "a", "b", "--full").split())
    assert "relevant at 1 of 1: c1*" in out
    assert "relevant at 1 of 1: plans.md#3*" in out
    assert "none relevant of 1: other.md" in out


def test_the_best_value_is_not_among_the_worst(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--dataset", "d.jsonl", "--outputs", "o.jsonl", "--match", "source"]
    assert main(["score", *files, "--metrics", "recall@5", "--id", "r"]) == 0
    assert printed(capsys, "show", "r", "--worst", "recall@5").count("recall@5") == 1
    save_records(
        [{"sample_id": "1", "answer": "9", "retrieved": [RETRIEVED["1"]]}], here / "o.jsonl", force=True
    )
    save_records([{"sample_id": "1", "query": "How?", "relevant_docs": [GOLD]}], here / "d.jsonl", force=True)
    assert main(["score", *files, "--metrics", "mrr", "--id", "one"]) == 0
    shown = printed(capsys, "show", "one", "--worst", "mrr")
    assert shown.startswith("mrr has its best value for every scored sample.\nNext: auepora view one")


# A results file of another tool.

SEED = Path(__file__).parents[1] / "golden" / "seed_003" / "comprehensive.results.json"


def test_summary_and_metrics_of_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(SEED)]) == 0
    shown = capsys.readouterr()
    rows = [line.split() for line in shown.out.splitlines()]
    assert ["total_queries", "500"] in rows
    assert ["hit@1", "0.72", "[0.68,", "0.76]"] in rows
    assert ["span_accuracy.perfect_matches", "380"] in rows
    assert "the file is of another tool" in shown.err
