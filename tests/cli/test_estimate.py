"""`auepora run --estimate`: a pilot of five samples, whose outputs count when the run is resumed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from auepora_eval.cli.main import main
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import plan
from tests.servers import ChatServer, chat_server

SAMPLES = 23


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    lines = [
        {"sample_id": f"s{n}", "query": f"question {n}", "reference_answer": "a"} for n in range(SAMPLES)
    ]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(server: ChatServer, *words: str) -> int:
    system = f"openai:{server.url}#m"
    return main(["run", "--dataset", "d.jsonl", "--system", system, "--metrics", "exact_match", *words])


def asked(server: ChatServer) -> list[int]:
    """Return the number in each question that the server got."""
    prompts = [request["messages"][-1]["content"] for request in server.requests]
    return [int(re.findall(r"question (\d+)", prompt)[-1]) for prompt in prompts]


def test_pilot_counts_when_the_run_is_resumed(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with chat_server(["ok"], says=lambda body: "a") as server:
        assert run(server, "--estimate", "--id", "r", *plan(price_input=0.01, price_output=0.03)) == 0
        printed = capsys.readouterr().out
        assert "Estimate for 23 samples, based on 5" in printed
        assert "Next: auepora run --resume r\n" in printed
        # 0, 4, 9, 13 and 18 are spread over the 23 samples.
        assert [place for place in range(SAMPLES) if place in asked(server)] == [0, 4, 9, 13, 18]

        assert main(["run", "--resume", "r", "--estimate"]) == 0
        assert len(server.requests) == 5, "the pilot is there already"
        assert capsys.readouterr().out == printed

        assert main(["run", "--resume", "r"]) == 0
        assert len(server.requests) == len(set(asked(server))) == SAMPLES
    results = EvaluationResultsStorage().load_run("r")
    assert results["exact_match"].value == 1.0
    assert len(results.outputs) == SAMPLES


def test_tokens_and_cost_are_those_that_the_endpoint_reports(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with chat_server(["ok"], says=lambda body: "a") as server:
        prices = plan(price_input=0.01, price_output=0.03)
        assert run(server, "--estimate", "--id", "r", *prices, "--json") == 0
        pilot = json.loads(capsys.readouterr().out)
        assert main(["run", "--resume", "r", "--json"]) == 0
        whole = json.loads(capsys.readouterr().out)["performance_metrics"]["api_usage"]
    assert (pilot["samples"], pilot["pilot"], pilot["failed"]) == (SAMPLES, 5, 0)
    estimate = pilot["estimate"]
    assert estimate["calls"]["total"] == SAMPLES == whole["total_requests"]
    # The server reports the same usage for every call, so the estimate is exact.
    assert estimate["input_tokens"]["total"] == pytest.approx(whole["input_tokens"])
    assert estimate["cost"]["total"] == pytest.approx(whole["estimated_cost_usd"])
    assert estimate["cost"]["total"] > 0
