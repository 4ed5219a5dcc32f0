"""Messages about budgets: the used amount and new limits."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from auepora_eval.cli.main import main
from tests.builders import plan

Said = pytest.CaptureFixture[str]


SYSTEM = """
from auepora_eval.core.types import Response, SystemOutputs
class Told:
    name = "told"
    def run(self, sample, top_k=5):
        return SystemOutputs([], Response("hello"), {}, {"input_tokens": 5.5, "output_tokens": 10})
system = Told()
"""
MINE = ("--dataset", "d.jsonl", "--system", "mine.py:system", "--metrics", "exact_match", "--id", "x")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    made = ({"sample_id": f"s{n}", "query": f"q {n}", "reference_answer": "hello"} for n in range(30))
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(line) + "\n" for line in made), encoding="utf-8")
    (tmp_path / "mine.py").write_text(SYSTEM, encoding="utf-8")
    return tmp_path


def test_stopped_run_reports_its_journal(here: Path, capsys: Said) -> None:
    assert main(["run", "--out", "out", *MINE, *plan(budget_tokens=20), "--json"]) == 1
    said = capsys.readouterr()
    assert "stopped: 31 tokens were used, of a budget of 20." in said.err
    assert json.loads(said.out)["stopped"].startswith("31 tokens were used, of a budget of 20.")
    assert main(["run", "--out", "out", "--resume", "x"]) == 1
    said = capsys.readouterr()
    assert "budget: 31 of 20 tokens were spent before" in said.err
    assert "stopped: 31 tokens were used" in said.err


def test_a_resumed_run_reports_what_it_has_spent(here: Path, capsys: Said) -> None:
    assert main(["run", "--out", "out", *MINE, "--budget-calls", "9"]) == 1
    capsys.readouterr()
    assert main(["run", "--out", "out", "--resume", "x", "--budget-calls", "14"]) == 1
    assert "budget: 9 of 14 calls were spent before" in capsys.readouterr().err
    # The number of the header is the one that the run was started with.
    assert main(["run", "--out", "out", "--resume", "x"]) == 1
    assert "budget: 14 of 9 calls were spent before" in capsys.readouterr().err


def test_calls_in_progress_are_counted(here: Path, capsys: Said) -> None:
    slow = "    def run(self, sample, top_k=5):\n        import time; time.sleep(0.02)\n"
    text = SYSTEM.replace("    def run(self, sample, top_k=5):\n", slow)
    (here / "mine.py").write_text(text, encoding="utf-8")
    assert main(["run", "--out", "out", *MINE, *plan(budget_tokens=20), "--concurrency", "8"]) == 1
    told = re.search(r"stopped: ([\d.]+) tokens were used", capsys.readouterr().err)
    assert main(["run", "--out", "out", "--resume", "x"]) == 1
    kept = re.search(r"budget: ([\d.]+) of 20 tokens were spent before", capsys.readouterr().err)
    assert told is not None
    assert kept is not None
    assert told[1] == kept[1]
    assert float(kept[1]) > 46.5, "no more than three calls were made"
