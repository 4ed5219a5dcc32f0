"""A run on every executor: the same bytes in the same order."""

from __future__ import annotations

from pathlib import Path

import pytest

from auepora_eval.calls.executors import Executor
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.core.systems.named import load_system
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import a_dataset, a_sample
from tests.contracts.test_every_executor import every_executor, executor_named
from tests.stable import stable_bytes

pytestmark = pytest.mark.full


@every_executor
def test_stored_run_has_the_same_bytes(name: str, tmp_path: Path, stored_serially: bytes) -> None:
    assert _stored_run(tmp_path, executor_named(name)) == stored_serially


@pytest.fixture(scope="module")
def stored_serially(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return _stored_run(tmp_path_factory.mktemp("here"), None)


def _stored_run(folder: Path, executor: Executor | None) -> bytes:
    samples = [
        a_sample(f"s{n}", f"query {n}", relevant="ab"[n % 2], reference=f"answer {n % 3}") for n in range(600)
    ]
    evaluator = AueporaEvaluator(
        load_system("tests.calls.worker_calls:Quiet"),
        EvaluationPlan("recall@3,mrr,token_f1,chrf,failure_rate"),
        executor=executor,
        seed=3,
    )
    storage = EvaluationResultsStorage(folder)
    evaluator.run(a_dataset(*samples), evaluation_id="x", storage=storage)
    results = storage.load_results("x")
    assert [row["query_id"] for row in results["query_results"]] == [sample.sample_id for sample in samples]
    return stable_bytes(results)
