"""The log of a run: what happened is on record, and the run does not depend on it."""

from __future__ import annotations

import json
import logging
import pickle
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.calls.asking import Caller
from auepora_eval.calls.executors import SerialExecutor, ThreadExecutor
from auepora_eval.calls.policy import CallClock, CallPolicy
from auepora_eval.calls.processes import ProcessExecutor
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.core.systems.call import SystemCall
from auepora_eval.core.systems.named import load_system
from auepora_eval.core.types import EvaluationSample, SystemOutputs
from auepora_eval.errors import RunStoppedError, StorageError
from auepora_eval.metrics.parse import parse_metrics
from auepora_eval.runs import evaluation
from auepora_eval.runs.evaluation import OutputCache
from auepora_eval.runs.log import LOG, RunLog, logged
from auepora_eval.runs.store.storage import EvaluationResultsStorage
from tests.builders import a_dataset, a_sample, an_output
from tests.stable import stable_bytes

DATA = a_dataset(*(a_sample(f"s{n}", f"query {n}", reference="yes") for n in range(6)))


class Fails:
    """Fails on the samples that are named, as often as is said, then answers."""

    name = "fails"

    def __init__(self, times: dict[str, int], error: Exception | None = None) -> None:
        self.left, self.error = times, error or TimeoutError("too slow")

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
        if self.left.get(sample.sample_id, 0):
            self.left[sample.sample_id] -= 1
            raise self.error
        return an_output("a", "yes")


def no_time(sleeps: list[float]) -> CallClock:
    return CallClock(now=lambda: 0.0, sleep=sleeps.append, chance=lambda: 1.0)


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / LOG).read_text(encoding="utf-8").splitlines()]


def run_logged(tmp_path: Path, system: Any, **options: Any) -> list[dict[str, Any]]:
    storage = EvaluationResultsStorage(tmp_path)
    evaluator = AueporaEvaluator(system, EvaluationPlan(parse_metrics("exact_match")), **options)
    storage.evaluate(evaluator, DATA, evaluation_id="r")
    return lines_of(storage.run_folder("r"))


def test_a_quiet_run_has_a_beginning_and_an_end(tmp_path: Path) -> None:
    began, ended = run_logged(tmp_path, Fails({}))
    assert (began["event"], began["level"], began["samples"]) == ("run.started", "info", 6)
    assert (began["system"], began["executor"]) == ("fails", "SerialExecutor")
    assert (ended["event"], ended["outputs"], ended["failed"]) == ("run.finished", 6, 0)
    assert began["time"] <= ended["time"]
    assert began["time"].endswith("Z")


@pytest.mark.parametrize(
    "executor", [SerialExecutor(), ThreadExecutor(concurrency=2)], ids=["serial", "threads"]
)
def test_attempts_and_failures_are_logged(tmp_path: Path, executor: Any) -> None:
    sleeps: list[float] = []
    policy = CallPolicy(retries=1, backoff=0.5, clock=no_time(sleeps))
    lines = run_logged(tmp_path, Fails({"s1": 1, "s4": 2}), executor=executor, policy=policy)
    told = [(line["event"], line["sample_id"], line.get("attempt")) for line in lines if "sample_id" in line]
    assert sorted(told, key=str) == [
        ("attempt.failed", "s1", 1),
        ("attempt.failed", "s4", 1),
        ("attempt.failed", "s4", 2),
        ("sample.failed", "s4", None),
    ]
    failed = next(line for line in lines if line["event"] == "sample.failed")
    assert (failed["error_type"], failed["message"], failed["attempts"]) == ("TimeoutError", "too slow", 2)
    assert failed["level"] == "warning"
    tried = [line["seconds"] for line in lines if line.get("attempt") and line["sample_id"] == "s4"]
    assert failed["seconds"] == pytest.approx(sum(tried), abs=5e-6)  # not the last attempt's alone
    assert (lines[-1]["failed"], lines[-1]["waits"], lines[-1]["waited_seconds"]) == (1, 2, sum(sleeps))


def test_attempts_of_other_processes_are_logged(tmp_path: Path) -> None:
    policy = CallPolicy(retries=1, backoff=0.001)
    lines = run_logged(tmp_path, Fails({"s2": 9}), executor=ProcessExecutor(concurrency=1), policy=policy)
    assert [line["attempt"] for line in lines if line["event"] == "attempt.failed"] == [1, 2]


@pytest.mark.parametrize(
    ("raised", "event", "level"),
    [
        pytest.param(RunStoppedError("the budget is spent"), "run.stopped", "warning", id="stopped"),
        pytest.param(KeyboardInterrupt(), "run.interrupted", "warning", id="interrupted"),
        pytest.param(StorageError("disk full"), "run.failed", "error", id="failed"),
    ],
)
def test_how_a_run_ended_is_logged(tmp_path: Path, raised: BaseException, event: str, level: str) -> None:
    evaluator = AueporaEvaluator(Fails({}), EvaluationPlan(parse_metrics("exact_match")))
    before = evaluator.executor, evaluator.policy, evaluator.on_output
    with pytest.raises(type(raised)), logged(evaluator, RunLog(tmp_path), {"evaluation_id": "r"}, samples=1):
        raise raised
    assert (evaluator.executor, evaluator.policy, evaluator.on_output) == before
    last = lines_of(tmp_path)[-1]
    assert (last["event"], last["level"], last["error_type"]) == (event, level, type(raised).__name__)


def test_a_run_that_is_refused_leaves_the_other_ones_log_alone(tmp_path: Path) -> None:
    run_logged(tmp_path, Fails({}))
    before = (tmp_path / "r.run" / LOG).read_bytes()
    with pytest.raises(StorageError, match="exists already"):
        run_logged(tmp_path, Fails({}))
    assert (tmp_path / "r.run" / LOG).read_bytes() == before


def test_a_resumed_run_goes_on_with_its_log(tmp_path: Path) -> None:
    storage = EvaluationResultsStorage(tmp_path)
    plan = EvaluationPlan(parse_metrics("exact_match"))
    for kept, budget in ((None, 3), (3, None)):
        policy = CallPolicy(max_calls=budget)
        evaluator = AueporaEvaluator(Fails({}), plan, policy=policy)
        try:
            storage.evaluate(evaluator, DATA, evaluation_id="r", resume=kept is not None)
        except RunStoppedError:
            assert kept is None
    told = [(line["event"], line.get("kept")) for line in lines_of(tmp_path / "r.run")]
    assert told == [("run.started", None), ("run.stopped", None), ("run.resumed", 3), ("run.finished", None)]


@pytest.mark.parametrize("torn", [b'{"time":"2026', b'{"event":"x"}\n', b""])
def test_a_torn_last_line_swallows_no_event(tmp_path: Path, torn: bytes) -> None:
    (tmp_path / LOG).write_bytes(torn)
    log = RunLog(tmp_path, restart=False)
    log.write(logging.INFO, "run.resumed")
    log.write(logging.INFO, "run.finished")
    log.close()
    lines = (tmp_path / LOG).read_bytes().splitlines()
    assert [json.loads(line)["event"] for line in lines[-2:]] == ["run.resumed", "run.finished"]
    assert lines[:-2] == torn.splitlines()


def test_a_log_that_cannot_be_written_does_not_stop_the_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "r.run"
    folder.mkdir()
    elsewhere = tmp_path / "elsewhere"
    (folder / LOG).symlink_to(elsewhere)  # somebody's trap: not followed
    storage = EvaluationResultsStorage(tmp_path)
    evaluator = AueporaEvaluator(Fails({}), EvaluationPlan(parse_metrics("exact_match")))
    with caplog.at_level(logging.WARNING, "auepora_eval"):
        storage.evaluate(evaluator, DATA, evaluation_id="r")
    assert storage.state("r").has_results
    assert not elsewhere.exists()
    assert [record.event for record in caplog.records] == ["log.given_up"]  # type: ignore[attr-defined]


def test_the_logger_gets_events_with_their_facts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "auepora_eval"):
        lines = run_logged(tmp_path, Fails({"s0": 1}, ValueError("no \x1b[31m luck\ud800")))
    told = {record.event: record.facts for record in caplog.records}  # type: ignore[attr-defined]
    assert told["sample.failed"]["message"] == "no \x1b[31m luck?"
    assert [line["event"] for line in lines].count("sample.answered") == 5  # asked for, so in the file too


def test_without_a_handler_of_its_own_a_program_hears_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logger = logging.getLogger("auepora_eval")
    assert [type(handler) for handler in logger.handlers] == [logging.NullHandler]
    run_logged(tmp_path, Fails({"s0": 1}))
    assert capsys.readouterr() == ("", "")


def test_the_clock_goes_to_other_processes_without_the_log() -> None:
    policy = CallPolicy(clock=CallClock(sleep=time.sleep, on_wait=lambda seconds: None))
    system = load_system("tests.calls.worker_calls:Quiet")
    sent = pickle.loads(pickle.dumps(Caller(SystemCall(system, 5), policy)))  # noqa: S301 - our own, just made
    assert (sent.policy.clock.sleep, sent.policy.clock.on_wait) == (time.sleep, None)


def test_results_have_the_same_bytes_with_a_log_and_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_logged(tmp_path / "with", Fails({"s1": 9}))
    monkeypatch.setattr(evaluation, "logged", lambda *run, **facts: nullcontext())
    storage = EvaluationResultsStorage(tmp_path / "without")
    evaluator = AueporaEvaluator(Fails({"s1": 9}), EvaluationPlan(parse_metrics("exact_match")))
    storage.evaluate(evaluator, DATA, evaluation_id="r")
    logged_results = EvaluationResultsStorage(tmp_path / "with").load_results("r")
    assert stable_bytes(logged_results) == stable_bytes(storage.load_results("r"))


def test_answers_from_a_cache_are_counted(tmp_path: Path) -> None:
    plan = EvaluationPlan(parse_metrics("exact_match"))
    for name in ("first", "second"):
        storage = EvaluationResultsStorage(tmp_path / name)
        evaluator = AueporaEvaluator(Fails({}), plan)
        with OutputCache(tmp_path / "cache", ["fails"], 5) as cache:
            storage.evaluate(evaluator, DATA, evaluation_id="r", cache=cache)
    ends = [lines_of(tmp_path / name / "r.run")[-1] for name in ("first", "second")]
    assert [end.get("cached") for end in ends] == [None, 6]
