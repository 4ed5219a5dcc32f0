"""What a system calls "attempts" or "cached" is its own: it never steers what a run counts and keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.cli.main import main
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from tests.builders import a_dataset, a_sample, an_output
from tests.servers import chat_server

OWN = {"attempts": ["plan", "search", "answer"], "cached": False, "seen": 1}


def run_with(extra: dict[str, Any]) -> dict[str, Any]:
    class Agent:
        def run(self, sample: Any, *, top_k: int = 5) -> Any:
            return an_output("a", "x", extra=extra)

    return AueporaEvaluator(Agent(), EvaluationPlan([])).run(a_dataset(a_sample("s"))).outputs[0].extra


def test_the_systems_own_names_are_kept_under_other_ones() -> None:
    extra = dict(OWN)
    assert run_with(extra) == {"system_attempts": OWN["attempts"], "system_cached": False, "seen": 1}
    assert extra == OWN  # the system's own object is left alone


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    lines = [{"sample_id": f"s{n}", "query": f"q {n}", "reference_answer": {"text": "a"}} for n in range(8)]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_server_that_tells_of_its_own_cache(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Answers are kept in ours all the same, and a spent budget stays spent."""
    reply = {"answer": "a", "usage": {"cached": 0, "attempts": 2, "input_tokens": 1, "output_tokens": 1}}
    with chat_server(says=lambda body: reply, bare=True) as server:
        words = ["run", "--dataset", "d.jsonl", "--metrics", "exact_match", "--system", f"http:{server.url}"]
        assert main([*words, "--budget-calls", "5", "--id", "b", "--out", "r", "--cache", "c"]) == 1
        assert len(server.requests) == 5
        assert main(["run", "--resume", "b", "--out", "r"]) == 1
        assert "budget: 5 of 5 calls were spent before" in capsys.readouterr().err
        assert len(server.requests) == 5
        assert main([*words, "--id", "c", "--out", "r", "--cache", "c"]) == 0
        assert "cache: 5 of 8 answers reused" in capsys.readouterr().err
        assert len(server.requests) == 8
