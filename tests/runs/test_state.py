"""The state of a run: new, unfinished or complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from auepora_eval.calls.policy import CallPolicy
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.errors import RunStoppedError, StorageError
from auepora_eval.runs.store.state import unfinished_run
from auepora_eval.runs.store.storage import EvaluationResultsStorage
from tests.builders import a_dataset, a_sample

DATA = a_dataset(*(a_sample(f"s{n}", f"q{n}", reference="a") for n in range(4)))


def run(storage: EvaluationResultsStorage, *, calls: int | None = None, fails: str = "") -> None:
    def system(query: str) -> str:
        if query == fails:
            raise ConnectionError("down")
        return "a"

    policy = CallPolicy(max_calls=calls)
    evaluator = AueporaEvaluator(system, EvaluationPlan("exact_match"), policy=policy)
    evaluator.run(DATA, evaluation_id="r", storage=storage)


def test_a_new_run(tmp_path: Path) -> None:
    state = EvaluationResultsStorage(tmp_path).state("r")
    assert (state.has_header, state.has_results, state.answered) == (False, False, None)
    assert not state.is_complete()
    assert state.remaining() == 0
    state.check_no_results()


def test_an_unfinished_run(tmp_path: Path) -> None:
    storage = EvaluationResultsStorage(tmp_path)
    with pytest.raises(RunStoppedError):
        run(storage, calls=3)
    state = storage.state("r")
    assert (state.has_header, state.has_results, state.answered) == (True, False, 3)
    assert (state.is_complete(), state.remaining()) == (False, 1)
    assert storage.unfinished() == ["r"]
    assert unfinished_run(state).progress == "3 of 4"


def test_a_complete_run(tmp_path: Path) -> None:
    storage = EvaluationResultsStorage(tmp_path)
    run(storage)
    state = storage.state("r")
    assert (state.has_results, state.answered, state.remaining()) == (True, 4, 0)
    assert state.is_complete(retry_failed=True)
    assert storage.unfinished() == []
    with pytest.raises(StorageError, match="exists already"):
        state.check_no_results()
    state.check_no_results(force=True)


def test_a_run_with_failures_that_may_pass_is_not_complete(tmp_path: Path) -> None:
    storage = EvaluationResultsStorage(tmp_path)
    run(storage, fails="q2")
    state = storage.state("r")
    assert state.has_results
    assert (state.is_complete(), state.remaining()) == (False, 1)


@pytest.mark.parametrize("name", ["", "a/b", "..", "x" * 300])
def test_an_id_that_cannot_be_a_file_name(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="evaluation id"):
        _ = EvaluationResultsStorage(tmp_path).state(name).path
