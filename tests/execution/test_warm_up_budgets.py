"""A warm-up costs calls: they count for the run's budget, once, and for nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.cli.main import main
from auepora_eval.core.calls.policy import CallPolicy
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.errors import PlanError
from auepora_eval.execution.local import EXECUTORS, WarmedUp
from auepora_eval.runs.store.storage import EvaluationResultsStorage
from tests.builders import a_dataset, a_sample

SYSTEM = """
from pathlib import Path
from auepora_eval.core.types import Response, SystemOutputs


class Counted:
    def run(self, sample, top_k=5):
        with Path({asked!r}).open("a") as file:
            file.write(sample.sample_id + "\\n")
        return SystemOutputs([], Response("a"), extra={{"input_tokens": 3, "output_tokens": 7}})


system = Counted()
"""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that has a line for each call of the system."""
    lines = [{"sample_id": f"s{n}", "query": f"q {n}", "reference_answer": {"text": "a"}} for n in range(12)]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (tmp_path / "counted.py").write_text(SYSTEM.format(asked=str(tmp_path / "asked")), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "asked"


def calls(asked: Path) -> int:
    return len(asked.read_text().split())


RUN = [
    "run",
    "--dataset",
    "d.jsonl",
    "--system",
    "counted.py:system",
    "--metrics",
    "exact_match",
    "--out",
    "r",
]


@pytest.mark.parametrize(
    ("flags", "made"),
    [
        (["--budget-calls", "5"], 5),
        (["--budget-calls", "5", "--executor", "threads"], 5),
        (["--budget-tokens", "45"], 5),
        (["--budget-calls", "2"], 2),
    ],
)
def test_a_warm_up_is_spent_and_stays_spent(
    flags: list[str], made: int, asked: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*RUN, *flags, "--warm-up", "3", "--id", "b"]) == 1
    assert calls(asked) == made
    kept = max(0, made - 3)
    assert f"kept: {kept} outputs" in capsys.readouterr().err
    for _ in range(2):
        assert main(["run", "--resume", "b", "--out", "r"]) == 1
    assert calls(asked) == made  # not even a warm-up
    assert "were spent before" in capsys.readouterr().err


def test_with_more_budget_the_run_goes_on(asked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN, "--budget-calls", "5", "--warm-up", "3", "--id", "b"]) == 1
    said = capsys.readouterr().err
    assert "the budget of 5 calls is used up, 3 of them by the warm-up" in said
    assert main(["run", "--resume", "b", "--out", "r", "--budget-calls", "13"]) == 0
    assert calls(asked) == 5 + 13


@pytest.mark.parametrize("executor", ["processes", "ray"])
def test_worker_processes_cannot_be_warmed_up(executor: str, asked: Path) -> None:
    assert main([*RUN, "--executor", executor, "--warm-up", "3", "--id", "b"]) == 2
    with pytest.raises(PlanError, match="serial, threads or async"):
        WarmedUp(EXECUTORS.get(executor)(concurrency=2), 1)


def test_the_log_names_the_executor_itself(asked: Path) -> None:
    assert main([*RUN, "--warm-up", "1", "--executor", "threads", "--id", "b"]) == 0
    first = json.loads(Path("r/b.run/log.jsonl").read_text().splitlines()[0])
    assert (first["event"], first["executor"]) == ("run.started", "ThreadExecutor")


def test_a_run_made_in_python_names_it_too(tmp_path: Path) -> None:
    executor = WarmedUp(EXECUTORS.get("threads")(concurrency=2), 1)
    evaluator = AueporaEvaluator(lambda query: "a", EvaluationPlan([]), executor=executor)
    run = evaluator.run(a_dataset(a_sample("s")), storage=EvaluationResultsStorage(tmp_path))
    assert run.configuration["executor"] == "ThreadExecutor"


def test_failed_warm_up_calls_do_not_trip_the_breaker() -> None:
    asked = list[Any]()

    def system(query: str) -> str:
        asked.append(query)
        if len(asked) <= 3:
            raise ConnectionError("the model is loading")
        return "a"

    executor = WarmedUp(EXECUTORS.get("serial")(), 3)
    policy = CallPolicy(breaker_after=3)
    evaluator = AueporaEvaluator(system, EvaluationPlan([]), executor=executor, policy=policy)
    run = evaluator.run(a_dataset(*(a_sample(f"s{n}") for n in range(5))))
    assert len(asked) == 8
    assert all(output.error is None for output in run.outputs)
