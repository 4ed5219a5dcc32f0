"""What a system calls "attempts" or "cached" is its own: it never steers what a run counts and keeps."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.cli.main import main
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.core.scoring import Tally
from auepora_eval.core.systems.call import attempts_of, failed_attempts, is_from_cache
from auepora_eval.store.database import FAILED, MAY_PASS
from auepora_eval.store.record import outcome_of
from tests.builders import a_dataset, a_failure, a_sample, an_output
from tests.servers import chat_server

OWN = {"attempts": ["plan", "search", "answer"], "cached": False, "seen": 1}
RECORD = {"sample": "s", "attempt": 1, "kind": "timeout", "type": "TimeoutError", "message": "", "seconds": 1}


def run_with(extra: dict[str, Any]) -> dict[str, Any]:
    class Agent:
        def run(self, sample: Any, *, top_k: int = 5) -> Any:
            return an_output("a", "x", extra=extra)

    return AueporaEvaluator(Agent(), EvaluationPlan([])).run(a_dataset(a_sample("s"))).outputs[0].extra


def test_the_systems_own_names_are_kept_under_other_ones() -> None:
    extra = dict(OWN)
    assert run_with(extra) == {"system_attempts": OWN["attempts"], "system_cached": False, "seen": 1}
    assert extra == OWN  # the system's own object is left alone


@pytest.mark.parametrize(
    ("extra", "calls", "kinds", "cached"),
    [
        ({}, 1, {}, False),
        ({"attempts": [RECORD]}, 2, {"timeout": 1}, False),
        ({"attempts": [RECORD], "cached": True}, 2, {}, True),
        (OWN, 1, {}, False),
        ({"attempts": [{"x": 1}], "cached": 0}, 1, {}, False),
        ({"attempts": 3, "cached": "no"}, 1, {}, False),
    ],
    ids=str,
)
def test_journals_from_before_are_read_for_what_is_ours(
    extra: dict[str, Any], calls: int, kinds: dict[str, int], cached: bool
) -> None:
    output = an_output("a", "x", extra=extra)
    assert (attempts_of(output), is_from_cache(output)) == (calls, cached)
    assert len(failed_attempts(output.extra)) == calls - 1
    assert Tally().add([output]).failed_attempts == kinds


def test_a_failure_may_pass_by_our_record_only() -> None:
    failure = a_failure("KeyError")
    assert failure.error is not None
    assert outcome_of(replace(failure, extra={"attempts": [RECORD]})) == MAY_PASS
    assert outcome_of(replace(failure, extra={"attempts": [{"kind": "timeout"}]})) == FAILED
    assert outcome_of(replace(failure, extra=OWN)) == FAILED


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
