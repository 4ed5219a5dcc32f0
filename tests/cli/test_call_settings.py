"""Settings of calls: meaning, storage and errors."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from auepora_eval.cli.main import main
from auepora_eval.core.settings import RunSettings
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import plan

LINES = [{"sample_id": f"s{n}", "query": f"q {n}", "reference_answer": {"text": "a"}} for n in range(8)]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES), encoding="utf-8")
    system = "def answer(query):\n    return 'a'\n"
    (tmp_path / "mine.py").write_text(system, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_endpoints_are_retried_by_default_and_python_is_not() -> None:
    endpoint = RunSettings(system="openai:http://127.0.0.1:1/v1#m", concurrency=4)
    assert endpoint.call_policy().retries == 4
    assert replace(endpoint, retries=0).call_policy().retries == 0
    assert RunSettings(system="mine.py:answer", concurrency=4).call_policy().retries == 0


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("retris: 3", "retris: there is no such setting. Did you mean retries?"),
        ("rpm: 0", "rpm: 0 is less than the minimum of 1."),
        ("plain_http: 3", "plain_http: 3 is not of type"),
        ("http: {anwser: said}", "unknown field 'anwser'. Did you mean answer?"),
    ],
)
def test_bad_call_settings_in_a_plan(
    here: Path, line: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = f"dataset: d.jsonl\nsystem: http:http://127.0.0.1:1/ask\n{line}\n"
    (here / "plan.config.yaml").write_text(plan, encoding="utf-8")
    assert main(["run", "--config", "plan.config.yaml", "--out", "out"]) == 2
    assert words in capsys.readouterr().err


def test_paths_in_a_plan_are_relative_to_it(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plans = here / "plans"
    plans.mkdir()
    (here / "d.jsonl").rename(plans / "d.jsonl")
    plan = "dataset: d.jsonl\nsystem: mine.py:answer\nmetrics: [exact_match]\ncache: answers\n"
    (plans / "plan.config.yaml").write_text(plan, encoding="utf-8")
    for name, used in (("a", 0), ("b", 8)):
        assert main(["run", "--config", "plans/plan.config.yaml", "--out", "out", "--id", name]) == 0
        assert f"cache: {used} of 8 answers reused" in capsys.readouterr().err
    assert (plans / "answers").is_file()
    assert main(["run", "--config", "plans/plan.config.yaml", "--out", "out", "--cache", "other"]) == 0
    assert "cache: 0 of 8 answers reused" in capsys.readouterr().err
    assert (here / "other").is_file()


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"api_key_env": "PROVIDER_KEY"}, "api_key_env is for an endpoint"),
        ({"plain_http": True}, "plain_http is for an endpoint"),
        ({"address": "auto"}, "add --executor ray"),
        ({"budget_cost": 1}, "budget_cost needs price_input and price_output"),
    ],
)
def test_setting_without_effect_is_rejected(
    here: Path, keys: dict[str, object], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["run", "--dataset", "d.jsonl", "--system", "mine.py:answer", "--out", "out"]
    assert main([*asked, "--metrics", "exact_match", *plan(**keys)]) == 2
    assert words in capsys.readouterr().err


# retry_on: exceptions of the user's own are retried, now and on resume.

LOADS = """
from pathlib import Path


class Loading(LookupError):
    pass


def answer(query):
    asked = Path("asked")
    asked.write_text(asked.read_text() + "x" if asked.exists() else "x")
    if len(asked.read_text()) <= int(Path("failing").read_text()):
        raise Loading("the model is loading")
    return "a"
"""
RUN = ["run", "--dataset", "d.jsonl", "--system", "mine.py:answer", "--metrics", "exact_match", "--out", "r"]
PATIENT: dict[str, object] = {"retries": 2, "longest_wait": 0.001}


@pytest.fixture
def loading(here: Path) -> Path:
    (here / "mine.py").write_text(LOADS, encoding="utf-8")
    (here / "failing").write_text("2", encoding="utf-8")
    return here


@pytest.mark.parametrize("name", ["Loading", "mine.Loading", "KeyError,LookupError"])
def test_named_error_is_retried(loading: Path, name: str) -> None:
    assert main([*RUN, *plan(**PATIENT, retry_on=name), "--id", "x"]) == 0
    assert len((loading / "asked").read_text()) == 10


def test_resume_retries_named_errors(loading: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (loading / "failing").write_text("99", encoding="utf-8")
    assert main([*RUN, *plan(**PATIENT, retry_on="Loading"), "--id", "x"]) == 3
    (loading / "failing").write_text("0", encoding="utf-8")
    assert main(["run", "--resume", "x", "--out", "r"]) == 0
    assert "8 of them failed and are retried" in capsys.readouterr().err
    header = EvaluationResultsStorage("r").state("x").header
    assert header is not None
    assert header["configuration"]["retry_on"] == "Loading"
