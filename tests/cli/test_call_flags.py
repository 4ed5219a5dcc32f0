"""The flags that say how a system is called: what they mean, where they are stored, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auepora_eval.cli.call_flags import call_executor, call_policy
from auepora_eval.cli.main import main
from tests.servers import chat_server

LINES = [{"sample_id": f"s{n}", "query": f"q {n}", "reference_answer": {"text": "a"}} for n in range(8)]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES), encoding="utf-8")
    system = "def answer(query):\n    return 'a'\n"
    (tmp_path / "mine.py").write_text(system, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_endpoints_are_tried_again_unasked_and_python_is_not() -> None:
    endpoint = {"system": "openai:http://127.0.0.1:1/v1#m", "concurrency": 4}
    assert call_policy(endpoint).retries == 4
    assert call_policy({**endpoint, "retries": 0}).retries == 0
    assert call_policy({"system": "mine.py:answer", "concurrency": 4}).retries == 0
    assert call_policy({**endpoint, "adaptive": True}).adaptive == 4


def test_a_hung_process_is_ended_where_it_makes_one_attempt_only() -> None:
    settings = {"system": "mine.py:answer", "executor": "processes", "concurrency": 2, "timeout": 5.0}
    assert (call_policy(settings).timeout, call_executor(settings).timeout) == (None, 5.0)  # type: ignore[attr-defined]
    settings["retries"] = 1
    assert (call_policy(settings).timeout, call_executor(settings).timeout) == (5.0, None)  # type: ignore[attr-defined]


def test_a_plan_names_an_endpoint_and_the_run_says_how_it_was_called(here: Path) -> None:
    with chat_server(["500", "ok"], says=lambda body: {"said": "a"}, bare=True) as server:
        plan = f"""dataset: d.jsonl
system: http:{server.url}/ask
metrics: [exact_match]
executor: threads
concurrency: 2
retries: 3
warm_up: 2
adaptive: true
http:
  answer: said
"""
        (here / "plan.config.yaml").write_text(plan, encoding="utf-8")
        assert main(["run", "--config", "plan.config.yaml", "--out", "out", "--id", "r"]) == 0
        assert len(server.requests) == 2 + 8 + 1  # warm-up, samples, one retry
    results = json.loads((here / "out" / "r.results.json").read_text(encoding="utf-8"))
    stored = json.dumps(results)
    for part in ('"warm_up": 2', '"concurrency": 2', '"retries": 3', '"adaptive": true'):
        assert part in stored


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--api-key-env", "PROVIDER_KEY"], "--api-key-env is for an endpoint"),
        (["--plain-http"], "--plain-http is for an endpoint"),
        (["--address", "auto"], "add --executor ray"),
        (["--budget-cost", "1"], "there are no prices to reckon with"),
        (["--executor", "clouds"], "there is no executor 'clouds'"),
    ],
)
def test_a_flag_that_would_do_nothing_is_refused(
    here: Path, flags: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["run", "--dataset", "d.jsonl", "--system", "mine.py:answer", "--out", "out"]
    assert main([*asked, "--metrics", "exact_match", *flags]) == 2
    assert words in capsys.readouterr().err


def test_a_budget_ends_the_run_and_what_is_finished_is_gone_on_with(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["run", "--dataset", "d.jsonl", "--system", "mine.py:answer", "--out", "out", "--id", "r"]
    assert main([*asked, "--metrics", "exact_match", "--budget-calls", "3"]) == 1
    said = capsys.readouterr().err
    assert "stopped: the budget of 3 calls is spent. What is finished is kept." in said
    assert "kept: 3 outputs" in said
    assert main(["run", "--resume", "r", "--out", "out", "--budget-calls", "5"]) == 0
    assert "8/8" in capsys.readouterr().out
