"""A stored run is judged: every verdict is stored before it counts, and nothing is asked twice."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from auepora_eval.calls.policy import CallPolicy
from auepora_eval.core.metrics_base import skip
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.types import EvaluationSample, MetricResult, SampleScore, SystemOutputs, TargetCategory
from auepora_eval.errors import CallError, RunStoppedError
from auepora_eval.judges.judge import FunctionJudge, Judge
from auepora_eval.judges.metric import JudgedMetric
from auepora_eval.judges.question import Question, kind_named
from auepora_eval.judges.runs import RunJudging
from auepora_eval.store.cache import CallCache
from auepora_eval.store.database import Database
from auepora_eval.store.state import ReplacedRunWarning
from auepora_eval.store.storage import EvaluationResultsStorage
from auepora_eval.store.verify import verify_run
from tests.builders import a_sample, an_output, scored_run
from tests.judges.functions import book_of


class Supported(JudgedMetric):
    """A judged metric with one question a sample: is the answer in the first document?"""

    name, kinds = "supported", ("support",)
    target = TargetCategory.GENERATION_FAITHFULNESS

    def judged(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        if not output.retrieved:
            return skip("no documents")
        material = {"passage": output.retrieved[0].doc.text, "claim": output.response.text}
        return self.ask_all([Question(kind_named("support"), material)])[0].score or 0.0


class Also(Supported):
    """The same under another name."""

    name = "also_supported"


class CountingJudge(FunctionJudge):
    """Says yes to answers that have an even number, and counts what it is asked."""

    def __init__(self, failing: int = 0) -> None:
        super().__init__(self._said, "counting")
        self.asked: list[Question] = []
        self.failing = failing

    def _said(self, question: Question) -> str:
        self.asked.append(question)
        if len(self.asked) <= self.failing:
            raise CallError("the server is down", kind="http_5xx")
        return "yes" if int(question.material["claim"].split()[-1]) % 2 == 0 else "no"


IDENTITY = CountingJudge().identity(kind_named("support"))


@pytest.fixture
def storage(tmp_path: Path) -> EvaluationResultsStorage:
    """A folder with the run `first` of ten samples; the last one has no document."""
    storage = EvaluationResultsStorage(tmp_path)
    samples = [a_sample(str(number)) for number in range(10)]
    outputs = [an_output("a" if number < 9 else "", f"answer {number}") for number in range(10)]
    storage.save_run(scored_run(EvaluationPlan("non_answer_rate"), samples, outputs, evaluation_id="first"))
    return storage


def judged(storage: EvaluationResultsStorage, judge: Judge, **options: object) -> list[MetricResult]:
    return RunJudging(storage, "first", [Supported()], judge, **options).results()  # type: ignore[arg-type]


def test_every_verdict_says_what_it_is_about(storage: EvaluationResultsStorage) -> None:
    judged(storage, CountingJudge())
    verdicts = list(book_of(storage.state("first").database).values())
    assert len(verdicts) == 9
    assert verdicts[0].about == {"sample_id": "0"}
    assert (verdicts[0].label, verdicts[0].kind, verdicts[0].identity) == ("yes", "support", IDENTITY)


def test_nothing_is_asked_twice(storage: EvaluationResultsStorage) -> None:
    judged(storage, CountingJudge())
    again = CountingJudge()
    (result,) = judged(storage, again)
    assert again.asked == []
    assert result.value == pytest.approx(5 / 9)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE call SET reply = json_set(reply, '$.score', 0.5) WHERE n = (SELECT max(n) FROM call)",
        "UPDATE call SET usage = '{}' WHERE kind = 'judge'",
        "DELETE FROM call WHERE kind = 'judge'",
    ],
)
def test_a_changed_verdict_is_found(storage: EvaluationResultsStorage, statement: str) -> None:
    judged(storage, CountingJudge())
    assert verify_run(storage, "first").ok
    with closing(sqlite3.connect(storage.results_directory / "first.run.db")) as db, db:
        db.execute(statement)
    assert not verify_run(storage, "first").ok


def test_force_says_that_it_discards_verdicts(storage: EvaluationResultsStorage) -> None:
    judged(storage, CountingJudge())
    with pytest.warns(ReplacedRunWarning, match="discards 9 verdicts of judges of 'first'"):
        storage.save_run(storage.load_run("first"), force=True)


def test_a_failed_call_is_a_failed_sample_with_bounds_and_is_asked_again(
    storage: EvaluationResultsStorage,
) -> None:
    judge = CountingJudge(failing=3)
    (result,) = judged(storage, judge)
    assert (result.coverage.scored, result.coverage.failed, result.coverage.skipped) == (6, 3, 1)
    assert result.if_failed == pytest.approx((3 / 9, 6 / 9))
    (result,) = judged(storage, judge)
    assert len(judge.asked) == 12
    assert result.value == pytest.approx(5 / 9)


def test_a_spent_budget_stops_and_the_next_session_goes_on(storage: EvaluationResultsStorage) -> None:
    judge = CountingJudge()
    with pytest.raises(RunStoppedError, match="budget of 4 calls"):
        judged(storage, judge, policy=CallPolicy(max_calls=4))
    assert len(judge.asked) == 4
    assert [one.name for one in storage.load_run("first").results] == ["non_answer_rate"]
    with pytest.raises(RunStoppedError, match="budget of 6 calls"):
        judged(storage, judge, policy=CallPolicy(max_calls=6))
    assert len(judge.asked) == 6
    judged(storage, judge, policy=CallPolicy(max_calls=9))
    assert len(judge.asked) == 9


def test_a_replay_without_a_verdict_is_a_failure_and_not_a_call(
    storage: EvaluationResultsStorage, tmp_path: Path
) -> None:
    judged(storage, CountingJudge())
    shorter = tmp_path / "shorter.run.db"
    shutil.copy(storage.state("first").database, shorter)
    with Database.write(shorter) as database, database.transaction() as db:
        db.execute("DELETE FROM call WHERE kind = 'judge' AND sample > '4'")
    judge = CountingJudge()
    (result,) = judged(storage, judge, replay=shorter)
    assert judge.asked == []
    assert (result.coverage.scored, result.coverage.failed) == (5, 4)
    assert "not_stored" in next(score.reason for score in result.scores if score.failed)


def test_runs_share_verdicts_in_a_cache(storage: EvaluationResultsStorage, tmp_path: Path) -> None:
    run = storage.load_run("first")
    with CallCache(tmp_path / "cache.db") as cache:
        judged(storage, CountingJudge(), cache=cache)
    storage.state("first").remove()
    storage.save_run(run)
    judge = CountingJudge()
    with CallCache(tmp_path / "cache.db") as cache:
        (result,) = judged(storage, judge, cache=cache)
    assert judge.asked == []
    assert result.value == pytest.approx(5 / 9)
    assert len(book_of(storage.state("first").database)) == 9


def test_two_judges_at_once_keep_both_metrics(storage: EvaluationResultsStorage) -> None:
    """The second has read the run before the first one wrote its results."""
    second = RunJudging(storage, "first", [Supported()], CountingJudge())
    first = RunJudging(storage, "first", [Also()], CountingJudge())
    first.results()
    second.results()
    names = [result.name for result in storage.load_run("first").results]
    assert sorted(names) == ["also_supported", "non_answer_rate", "supported"]
    assert verify_run(storage, "first").ok
