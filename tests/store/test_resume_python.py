"""`resume=True` in Python: a finished run is read as what it is, budgets are the run's, the cache has all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from auepora_eval.calls.policy import CallPolicy
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.core.systems.named import load_system
from auepora_eval.errors import RunStoppedError, StorageError
from auepora_eval.metrics.parse import parse_metrics
from auepora_eval.store.identity import ChangedProgramWarning
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import a_dataset, a_sample

WORLD = a_dataset(*(a_sample(f"s{n}", f"q{n}", reference="yes") for n in range(6)))
LESS = a_dataset(*(a_sample(f"s{n}", f"q{n}", reference="yes") for n in range(4)))


def good(query: str) -> str:
    return "yes"


def bad(query: str) -> str:
    return "no"


def an_evaluator(system: Any = good, metrics: str = "exact_match", **options: Any) -> AueporaEvaluator:
    return AueporaEvaluator(system, EvaluationPlan(parse_metrics(metrics)), **options)


@pytest.mark.parametrize(
    ("evaluator", "data", "told"),
    [
        (an_evaluator(bad), WORLD, "system was 'good', now it is 'bad'"),
        (
            an_evaluator(metrics="exact_match,bleu"),
            WORLD,
            "metrics was exact_match, now it is exact_match, b",
        ),
        (an_evaluator(top_k=9), WORLD, "top_k was 5"),
        (an_evaluator(seed=7), WORLD, "seed was 0"),
        (an_evaluator(), LESS, "6 samples, now it is .* 4 samples"),
    ],
    ids=["system", "metrics", "top_k", "seed", "data"],
)
def test_a_finished_run_is_read_as_what_it_is(
    tmp_path: Path, evaluator: AueporaEvaluator, data: Any, told: str
) -> None:
    storage = EvaluationResultsStorage(tmp_path)
    an_evaluator().run(WORLD, evaluation_id="x", storage=storage)
    again = an_evaluator().run(WORLD, evaluation_id="x", storage=storage, resume=True)
    assert again.result("exact_match").value == 1.0
    with pytest.raises(StorageError, match=told):
        evaluator.run(data, evaluation_id="x", storage=storage, resume=True)


def test_a_run_that_was_saved_from_memory_is_not_resumed(tmp_path: Path) -> None:
    storage = EvaluationResultsStorage(tmp_path)
    storage.save_run(an_evaluator().run(WORLD, evaluation_id="x"))
    with pytest.raises(StorageError, match="does not say which system was called"):
        an_evaluator().run(WORLD, evaluation_id="x", storage=storage, resume=True)


def test_another_file_is_refused_and_a_mended_one_told(tmp_path: Path) -> None:
    storage, text = EvaluationResultsStorage(tmp_path / "runs"), "def f(query):\n    return '{}'\n"
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    one.write_text(text.format("yes"), encoding="utf-8")
    two.write_text(text.format("no"), encoding="utf-8")
    with pytest.raises(RunStoppedError):
        an_evaluator(load_system(f"{one}:f"), policy=CallPolicy(max_calls=2)).run(
            WORLD, evaluation_id="x", storage=storage
        )
    with pytest.raises(StorageError, match=r"system was .*one.py:f', now it is .*two.py:f'"):
        an_evaluator(load_system(f"{two}:f")).run(WORLD, evaluation_id="x", storage=storage, resume=True)
    an_evaluator(load_system(f"{one}:f")).run(WORLD, evaluation_id="x", storage=storage, resume=True)
    one.write_text(text.format("no"), encoding="utf-8")
    with pytest.warns(ChangedProgramWarning, match="stored answers are of the earlier"):
        run = an_evaluator(load_system(f"{one}:f")).run(
            WORLD, evaluation_id="x", storage=storage, resume=True
        )
    assert run.result("exact_match").value == 1.0


def stopped_after(storage: EvaluationResultsStorage, most: int | None, *, resume: bool = True) -> int | None:
    """Go on with a budget; how many outputs are there then."""
    evaluator = an_evaluator(policy=CallPolicy(max_calls=most))
    with pytest.raises(RunStoppedError):
        evaluator.run(WORLD, evaluation_id="x", storage=storage, resume=resume)
    return storage.state("x").answered


def test_a_budget_is_the_runs(tmp_path: Path) -> None:
    storage = EvaluationResultsStorage(tmp_path)
    assert stopped_after(storage, 2, resume=False) == 2
    assert stopped_after(storage, 2) == 2
    assert stopped_after(storage, 5) == 5  # a larger number allows three more
    assert stopped_after(storage, 5) == 5
    run = an_evaluator().run(WORLD, evaluation_id="x", storage=storage, resume=True)  # and without one, all
    assert run.result("exact_match").value == 1.0


def test_a_new_run_of_the_same_evaluator_has_its_whole_budget(tmp_path: Path) -> None:
    storage, evaluator = EvaluationResultsStorage(tmp_path), an_evaluator(policy=CallPolicy(max_calls=5))
    with pytest.raises(RunStoppedError):
        evaluator.run(WORLD, evaluation_id="x", storage=storage)
    with pytest.raises(RunStoppedError):
        evaluator.run(WORLD, evaluation_id="x", storage=storage, resume=True)
    with pytest.raises(RunStoppedError):
        evaluator.run(WORLD, evaluation_id="y", storage=storage)
    assert storage.state("y").answered == 5
