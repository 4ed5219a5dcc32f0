"""--json on a stopped run prints one document."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auepora_eval.cli.main import main
from tests.builders import plan

pytestmark = pytest.mark.full

SYSTEM = """
def answers(query):
    return "a"

def fails(query):
    raise ConnectionError("https://u:pw-canary@h/ is down")
"""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = [{"sample_id": f"s{n}", "query": f"q{n}", "reference_answer": "a"} for n in range(60)]
    Path("d.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    Path("s.py").write_text(SYSTEM, encoding="utf-8")
    return tmp_path


def asked(system: str, *flags: str) -> list[str]:
    words = ["run", "--dataset", "d.jsonl", "--system", f"s.py:{system}", "--metrics", "exact_match"]
    return [*words, "--out", "out", "--id", "r", "--json", *flags]


@pytest.mark.parametrize(
    ("system", "keys", "why", "kept"),
    [
        ("answers", {"budget_calls": 5}, "the budget of 5 calls is used up", 5),
        ("fails", {"breaker": 3}, "https://u:***@h/ is down", 3),
    ],
)
def test_stopped_run_prints_json(
    system: str, keys: dict[str, object], why: str, kept: int, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(asked(system, *plan(**keys))) == 1
    told = json.loads(capsys.readouterr().out)
    assert why in told.pop("stopped")
    resume = "auepora run --resume r --out out"
    assert told == {"evaluation_id": "r", "kept": kept, "samples": 60, "resume": resume}
