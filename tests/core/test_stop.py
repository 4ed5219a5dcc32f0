"""`AueporaEvaluator.stop`: it ends one run, not the evaluator."""

from __future__ import annotations

from pathlib import Path

import pytest

from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.errors import InterruptedRunError
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import a_dataset, a_sample

DATA = a_dataset(*(a_sample(f"s{n}", f"{n}") for n in range(6)))


class Asked:
    """An evaluator, and what its system was asked; it is told to stop at one of the queries."""

    def __init__(self, stop_at: str) -> None:
        self.queries: list[str] = []
        self._stop_at = stop_at
        self.evaluator = AueporaEvaluator(self._answer, EvaluationPlan([]))

    def _answer(self, query: str) -> str:
        self.queries.append(query)
        if query == self._stop_at:
            self.evaluator.stop()
        return "answer"


def test_evaluator_resumes_a_stopped_run(tmp_path: Path) -> None:
    asked, storage = Asked("2"), EvaluationResultsStorage(tmp_path)
    with pytest.raises(InterruptedRunError, match="after 3 samples"):
        asked.evaluator.run(DATA, evaluation_id="x", storage=storage)
    run = asked.evaluator.run(DATA, evaluation_id="x", storage=storage, resume=True)
    assert asked.queries == ["0", "1", "2", "3", "4", "5"]
    assert run.evaluation_id == "x"


def test_stop_before_a_run_ends_only_that_run() -> None:
    asked = Asked("")
    asked.evaluator.stop()  # as when another thread is faster than the one that begins
    with pytest.raises(InterruptedRunError, match="after 0 samples"):
        asked.evaluator.run(DATA)
    assert len(asked.evaluator.run(DATA).outputs) == 6
