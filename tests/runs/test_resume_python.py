"""`resume=True` in Python: a finished run is read as what it is, budgets are the run's, the cache has all."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.calls.policy import CallPolicy
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.core.systems.named import load_system
from auepora_eval.errors import RunStoppedError, StorageError
from auepora_eval.metrics.parse import parse_metrics
from auepora_eval.runs.evaluation import OutputCache
from auepora_eval.runs.journal.identity import ChangedProgramWarning
from auepora_eval.runs.store.storage import EvaluationResultsStorage
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
@pytest.mark.parametrize("with_journal", [True, False], ids=["with a journal", "without"])
def test_a_finished_run_is_read_as_what_it_is(
    tmp_path: Path, evaluator: AueporaEvaluator, data: Any, told: str, with_journal: bool
) -> None:
    storage = EvaluationResultsStorage(tmp_path)
    if with_journal:
        an_evaluator().run(WORLD, evaluation_id="x", storage=storage)
    else:
        storage.save_run(an_evaluator().run(WORLD, evaluation_id="x"))
    again = an_evaluator().run(WORLD, evaluation_id="x", storage=storage, resume=True)
    assert again.result("exact_match").value == 1.0
    told = told if with_journal else told.replace("6 samples, now it is .* 4 samples", "the dataset")
    with pytest.raises(StorageError, match=told):
        evaluator.run(data, evaluation_id="x", storage=storage, resume=True)


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
    with pytest.warns(ChangedProgramWarning, match="whose results are older"):
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


def cached(storage: EvaluationResultsStorage, system: Any, name: str, **options: Any) -> int:
    with OutputCache(storage.results_directory / "cache", ["1"], 5) as cache:
        storage.evaluate(an_evaluator(system), WORLD, evaluation_id=name, cache=cache, **options)
        return cache.used


def test_answers_of_the_journal_come_to_the_cache(tmp_path: Path) -> None:
    storage = EvaluationResultsStorage(tmp_path)
    assert stopped_after(storage, 4, resume=False) == 4  # without a cache
    assert cached(storage, good, "x", resume=True) == 0
    assert cached(storage, good, "y") == 6


def test_answers_of_another_program_do_not(tmp_path: Path) -> None:
    storage, file = EvaluationResultsStorage(tmp_path / "runs"), tmp_path / "one.py"

    def system(more: str) -> Any:
        file.write_text(f"def f(query):\n    return 'yes'\n{more}", encoding="utf-8")
        return load_system(f"{file}:f")

    def stopped(more: str, most: int, *, resume: bool = True) -> None:
        with pytest.raises(RunStoppedError):
            an_evaluator(system(more), policy=CallPolicy(max_calls=most)).run(
                WORLD, evaluation_id="x", storage=storage, resume=resume
            )

    stopped("", 2, resume=False)
    with pytest.warns(ChangedProgramWarning):
        stopped("# another\n", 3)
    # The first program again: among the three answers is one of the other, nobody knows which.
    assert cached(storage, system(""), "x", resume=True) == 0
    assert cached(storage, system(""), "y") == 3


def test_what_is_in_the_journal_is_in_the_cache_after_a_kill(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\n"
        "from auepora_eval.runs.evaluation import OutputCache\n"
        "from tests.builders import a_sample, an_output\n"
        "cache = OutputCache(sys.argv[1], ['1'], 5).__enter__()\n"
        "for n in range(3): cache.add(a_sample(f's{n}', f'q{n}'), an_output('ab', 'yes'))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", script, tmp_path / "c"], check=False)
    assert killed.returncode == -signal.SIGKILL
    with OutputCache(tmp_path / "c", ["1"], 5) as cache:
        assert all(cache.get(a_sample(f"s{n}", f"q{n}")) is not None for n in range(3))
