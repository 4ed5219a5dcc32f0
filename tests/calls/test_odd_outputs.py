"""What a system returns or does to its sample, its folder or its stdout is at most that sample's failure."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import auepora_eval as ae
from auepora_eval.calls.policy import CallPolicy
from auepora_eval.cli.main import main
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.core.systems.call import EXECUTORS
from auepora_eval.core.systems.named import load_system
from auepora_eval.core.types import EvaluationSample, SystemOutputs
from auepora_eval.errors import DataError
from auepora_eval.metrics.parse import parse_metrics
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import a_dataset, a_sample, an_output

ROOT = Path(__file__).parents[2]
SAMPLES = a_dataset(*(a_sample(f"s{n}", f"q {n}", reference="yes") for n in range(4)))
ODD_VALUES: list[Any] = [
    {1: "a number as key"},
    {("a", 1): "a tuple as key"},
    {None: 1, "a": 2},
    {1, "a", None},
    [{"deep": {frozenset({1}), "b"}}],
]


class Odd:
    """Has an odd value in the output of one sample."""

    name = "odd"

    def __init__(self, part: str, value: object) -> None:
        self._part, self._value, self.calls = part, value, 0

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
        self.calls += 1
        output = an_output("a", "yes")
        if sample.sample_id == "s1":
            place = output if self._part == "extra" else output.response
            setattr(place, self._part, {"v": self._value})
        return output


@pytest.mark.parametrize("part", ["extra", "metadata", "structured"])
@pytest.mark.parametrize(
    "value", ODD_VALUES, ids=["number key", "tuple key", "mixed keys", "mixed set", "deep set"]
)
def test_output_that_json_cannot_hold_is_the_failure_of_its_sample(
    part: str, value: object, tmp_path: Path
) -> None:
    system, storage = Odd(part, value), EvaluationResultsStorage(tmp_path)
    evaluator = AueporaEvaluator(system, EvaluationPlan(parse_metrics("exact_match")))
    run = evaluator.run(SAMPLES, evaluation_id="x", storage=storage)
    assert (run["exact_match"].value, run["exact_match"].coverage.failed) == (1.0, 1)
    error = storage.load_run("x").outputs[1].error
    assert error is not None
    assert (error.type, "cannot be written as JSON" in error.message) == (DataError.__name__, True)
    evaluator.run(SAMPLES, evaluation_id="x", storage=storage, resume=True)
    assert system.calls == 4  # the failure would happen again, so nothing is left to resume


class Renaming:
    """Changes the sample that it gets."""

    name = "renaming"

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
        answer = sample.query
        sample.sample_id, sample.query, sample.reference_answer = "s0", "changed", None
        return an_output("a", answer)


@pytest.mark.parametrize("executor", ["serial", "threads", "async"])
def test_system_that_changes_its_sample_changes_no_result(executor: str, tmp_path: Path) -> None:
    evaluator = AueporaEvaluator(
        Renaming(),
        EvaluationPlan(parse_metrics("exact_match")),
        executor=EXECUTORS.get(executor)(concurrency=2),
    )
    samples = a_dataset(*(a_sample(f"s{n}", f"q {n}", reference=f"q {n}") for n in range(6)))
    run = evaluator.run(samples, evaluation_id="x", storage=EvaluationResultsStorage(tmp_path))
    assert (run["exact_match"].value, run["exact_match"].coverage.failed) == (1.0, 0)
    assert [sample.sample_id for sample in samples] == [f"s{n}" for n in range(6)]


@pytest.mark.parametrize("form", ["demo", "d.jsonl", "d.csv", "d.parquet", "d.eval.json", "d.yaml"])
def test_gold_of_every_kind_of_file_stays_as_it_is(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if form.endswith("parquet"):
        pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    line = {"sample_id": "s1", "query": "q", "relevant_docs": ["a", "b"], "reference_answer": "yes"}
    (tmp_path / "source.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    if form != "demo":
        assert main(["dataset", "convert", "source.jsonl", form]) == 0
    system = ["--system", "tests.calls.worker_calls:Cheat", "--metrics", "recall@5,exact_match"]
    assert main(["run", "--dataset", form, *system, "--id", "x"]) == 0
    stored = ae.load_run("x")
    assert [result.value for result in stored.results] == [0.0, 0.0]
    assert main(["show", "x", "--verify"]) == 0


class RudeError(BaseException):
    """Not an Exception."""


class Rude:
    """Raises what is not an Exception."""

    name = "rude"

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
        if sample.sample_id == "s1":
            raise asyncio.CancelledError("by the system")
        if sample.sample_id == "s2":
            raise RudeError("no exception")
        return an_output("a", "yes")


class RudeAsync(Rude):
    async def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().run(sample, top_k=top_k)


@pytest.mark.parametrize("timeout", [None, 20.0], ids=["no timeout", "timeout"])
@pytest.mark.parametrize("executor", ["serial", "threads", "async", "processes"])
@pytest.mark.parametrize("system", ["Rude", "RudeAsync"])
def test_every_executor_records_what_is_not_an_exception(
    system: str, executor: str, timeout: float | None
) -> None:
    if executor == "processes" and timeout:
        pytest.skip("a worker makes the calls like `serial`")
    named = load_system(f"tests.calls.test_odd_outputs:{system}")
    running, policy = EXECUTORS.get(executor)(concurrency=2), CallPolicy(timeout=timeout)
    run = AueporaEvaluator(named, EvaluationPlan([]), executor=running, policy=policy).run(SAMPLES)
    errors = [output.error and (output.error.type, output.error.message) for output in run.outputs]
    expected = [None, ("CancelledError", "by the system"), ("RudeError", "no exception"), None]
    assert [error and error[0] for error in errors] == [error and error[0] for error in expected]
    if timeout is None:  # asyncio gives a cancelled task no message
        assert errors == expected


WANDERING = """
import os, subprocess, sys
def system(query):
    os.makedirs("elsewhere", exist_ok=True)
    os.chdir("elsewhere")
    os.write(1, b"from a library in C\\n")
    subprocess.run([sys.executable, "-c", "print('from a helper')"])
    print("from Python")
    return "yes"
"""


@pytest.mark.parametrize("executor", ["serial", "threads", "processes"])
def test_folder_and_stdout_of_the_command_are_its_own(executor: str, tmp_path: Path) -> None:
    """A system changes the current folder, and writes to the file descriptor of stdout."""
    lines = [f'{{"sample_id": "s{n}", "query": "q {n}", "reference_answer": "yes"}}\n' for n in range(3)]
    (tmp_path / "d.jsonl").write_text("".join(lines), encoding="utf-8")
    (tmp_path / "mine.py").write_text(WANDERING, encoding="utf-8")
    words = ["run", "--dataset", "d.jsonl", "--system", "mine.py:system", "--metrics", "exact_match"]
    words += ["--out", "runs", "--id", "x", "--json", "--executor", executor, "--concurrency", "1"]
    words += ["--cache", "answers"]
    # Without buffers in Python there are none in C either.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        [sys.executable, "-m", "auepora_eval", *words],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["evaluation_id"] == "x"
    for source in ("a library in C", "a helper", "Python"):
        assert done.stderr.count(f"from {source}") == 3
    assert (tmp_path / "runs" / "x.results.json").is_file()
    assert (tmp_path / "answers").is_file()
