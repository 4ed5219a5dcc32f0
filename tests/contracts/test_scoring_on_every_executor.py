"""The contract of scoring on every executor: the same bytes in the same order."""

from __future__ import annotations

import multiprocessing
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.core import scoring as scored_chunks
from auepora_eval.core.calls.executor import Executor
from auepora_eval.core.dataset import canonical_json
from auepora_eval.core.metrics_base import SampleMetric
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.core.scores import Batch
from auepora_eval.core.scoring import score_in_chunks, score_outputs
from auepora_eval.core.types import EvaluationSample, MetricResult, SystemOutputs
from auepora_eval.execution.processes import ProcessExecutor
from auepora_eval.execution.systems import load_system
from auepora_eval.io.results.document import metric_entry
from auepora_eval.metrics.parse import parse_metrics
from auepora_eval.runs.store.storage import EvaluationResultsStorage
from tests.builders import a_dataset, a_failure, a_sample, an_output, small_world
from tests.contracts.test_every_executor import RAY, every_executor, executor_named
from tests.execution.worker_metrics import Deadly, OnlyAtHome, Unsendable, Where, WhereAsked, Wrong
from tests.stable import stable_bytes

AWAY = ("ray",) if RAY else ("processes",)
every_one_elsewhere = pytest.mark.parametrize("name", AWAY)
METRICS = (
    "recall@3,ndcg@3,map,exact_match,token_f1,rouge2,rougeL_answer,bleu,chrf,failure_rate,over_refusal_rate"
)
Pairs = list[tuple[EvaluationSample, SystemOutputs]]


@pytest.fixture(autouse=True)
def always_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scored_chunks, "WORTH_SENDING", 0.0)


def many(count: int = 170) -> Pairs:
    """Pairs of the small world again and again: clusters, failures and samples that lack something."""
    samples, outputs = small_world()
    found = []
    for n in range(count):
        sample = samples[n % 10]
        cluster = {"cluster": f"c{n % 40}"} if n % 10 < 4 else {}
        again = a_sample(
            f"s{n}",
            sample.query,
            relevant="abc"[n % 3 :] if n % 7 else None,
            reference="three boats at the north pier",
            labels=sample.labels,
        )
        again.metadata.update(cluster)
        answer = " ".join(["boats", "at", "the", "north", "pier", "three"][n % 4 :][: 1 + n % 5])
        found.append((again, a_failure() if n % 11 == 5 else an_output("abcd"[n % 2 :], answer)))
    assert outputs
    return found


def columns(batch: Batch, scores: Any) -> list[Any]:
    """All that a chunk's scores hold, to the last bit."""
    return [
        batch.sample_ids(),
        [
            (
                name,
                column.values.tobytes(),
                None if column.parts is None else (column.parts.shape, column.parts.tobytes()),
                column.notes,
                list(column.sample_ids),
                column.clusters,
                None if column.if_failed is None else [rows.tobytes() for rows in column.if_failed],
            )
            for name, column in scores.items()
        ],
    ]


def scored(
    metrics: Iterable[Any], pairs: Iterable[Any], executor: Executor | None, size: int = 10
) -> tuple[list[Any], bytes, list[MetricResult]]:
    seen: list[Any] = []

    def keep(batch: Batch, scores: Any) -> None:
        seen.append(columns(batch, scores))

    plan = EvaluationPlan(list(metrics))
    results = score_in_chunks(plan, pairs, keep, size=size, executor=executor)
    return seen, canonical_json([metric_entry(result) for result in results]), results


def processes_of(results: list[MetricResult], metric: str) -> set[int]:
    (found,) = (result for result in results if result.name == metric)
    return {int(score.value) for score in found.scores if score.value is not None}


@every_executor
def test_scores_are_bit_equal(name: str) -> None:
    metrics, pairs = parse_metrics(METRICS), many()
    expected = _scored_here()
    assert scored(metrics, pairs, executor_named(name))[:2] == expected
    assert len(expected[0]) == 17


@cache
def _scored_here() -> Any:
    """Return what every executor is compared with."""
    return scored(parse_metrics(METRICS), many(), None)[:2]


@every_executor
def test_scoring_process(name: str) -> None:
    pairs = many()
    *_, results = scored([WhereAsked(), Where()], pairs, executor_named(name))
    assert [result.name for result in results] == ["where_asked", "where"]
    assert processes_of(results, "where_asked") == {os.getpid()}
    workers = processes_of(results, "where") - {os.getpid()}
    assert bool(workers) == (name in AWAY)
    *_, whole = scored([Where(), *parse_metrics("flip_rate")], pairs, executor_named(name))
    assert processes_of(whole, "where") == {os.getpid()}


@every_one_elsewhere
def test_fast_metrics_are_not_sent_to_workers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scored_chunks, "WORTH_SENDING", 60.0)
    *_, results = scored([Where()], many(), executor_named(name))
    assert processes_of(results, "where") == {os.getpid()}


@every_executor
def test_stored_run_has_the_same_bytes(name: str, tmp_path: Path, stored_here: bytes) -> None:
    assert _stored_run(tmp_path, executor_named(name)) == stored_here


@pytest.fixture(scope="module")
def stored_here(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return _stored_run(tmp_path_factory.mktemp("here"), None)


def _stored_run(folder: Path, executor: Executor | None) -> bytes:
    samples = [
        a_sample(f"s{n}", f"query {n}", relevant="ab"[n % 2], reference=f"answer {n % 3}")
        for n in range(1600)
    ]
    evaluator = AueporaEvaluator(
        load_system("tests.execution.worker_calls:Quiet"),
        EvaluationPlan(parse_metrics("recall@3,mrr,token_f1,chrf,failure_rate")),
        executor=executor,
        seed=3,
    )
    storage = EvaluationResultsStorage(folder)
    evaluator.run(a_dataset(*samples), evaluation_id="x", storage=storage)
    results = storage.load_results("x")
    assert [row["query_id"] for row in results["query_results"]] == [sample.sample_id for sample in samples]
    return stable_bytes(results)


@every_one_elsewhere
def test_lists_are_scored_by_workers(name: str) -> None:
    pairs = many(1600)
    samples, outputs = [sample for sample, _ in pairs], [output for _, output in pairs]
    plan = EvaluationPlan(parse_metrics("token_f1,bleu"))
    plain = score_outputs(plan, samples, outputs)
    assert score_outputs(plan, samples, outputs, executor=executor_named(name)) == plain
    where = score_outputs(EvaluationPlan([Where()]), samples, outputs, executor=executor_named(name))
    assert len(processes_of(where, "where")) > 1


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL here")
@every_one_elsewhere
def test_dead_scoring_workers_lose_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scored_chunks, "LEAST_EARLY", 128)  # no chunk is taken over: each meets a worker
    pairs = many(300)
    at = ("s28", "s110", "s111", "s255")
    once = Deadly(os.getpid(), at, tmp_path)
    expected = scored([once], pairs, None)[:2]
    assert scored([once], pairs, executor_named(name))[:2] == expected
    kills = len(list(tmp_path.iterdir()))
    print(f"\nT-08 scoring on {name}: {kills} kills in {len(pairs)} samples, 0 lost, 0 twice, results equal")
    assert kills == 4


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL here")
@every_one_elsewhere
def test_chunk_that_kills_workers_is_scored_locally(name: str) -> None:
    pairs = many(60)
    always = Deadly(os.getpid(), ("s28",))
    assert scored([always], pairs, executor_named(name))[:2] == scored([always], pairs, None)[:2]


@every_one_elsewhere
@pytest.mark.parametrize(
    ("metric", "says"),
    [
        (OnlyAtHome(os.getpid()), "there is no support 'mine' here"),
        (Unsendable(), "cannot be sent to"),
    ],
    ids=["lacks something", "cannot be sent"],
)
def test_unpicklable_metrics_are_scored_locally_with_one_warning(
    name: str, metric: SampleMetric, says: str
) -> None:
    pairs = many()
    expected = scored([metric], pairs, None)[:2]
    with pytest.warns(UserWarning, match=f"Scored here, because the workers cannot: .*{says}") as told:
        found = scored([metric], iter(pairs), executor_named(name))[:2]
    assert found == expected
    assert len(told) == 1


@every_executor
def test_bug_in_a_metric_is_raised(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that it was tried here too
        with pytest.raises(ZeroDivisionError):
            scored([Wrong("s77")], many(), executor_named(name))


@every_executor
def test_error_of_the_pairs_is_raised(name: str) -> None:
    def source() -> Iterator[Any]:
        yield from many(45)
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        scored(parse_metrics("token_f1"), source(), executor_named(name))


def test_no_worker_remains_if_results_cannot_be_stored() -> None:
    def keep(batch: Batch, scores: Any) -> None:
        if batch.samples[0].sample_id == "s50":
            raise OSError("the disk is full")

    plan, executor = EvaluationPlan([Where()]), ProcessExecutor(concurrency=2)
    with pytest.raises(OSError, match="the disk is full") as caught:
        score_in_chunks(plan, iter(many()), keep, size=10, executor=executor)
    assert caught.tb is not None  # and so all frames are still there
    assert multiprocessing.active_children() == []


class Withholding:
    """An executor whose first chunk comes last, whatever else there is: a worker that is stuck."""

    concurrency = 2

    def for_scoring(self) -> Withholding:
        return self

    def map(self, call: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[tuple[int, Any]]:
        source = enumerate(items)
        place, first = next(source)
        for pair in source:
            yield pair[0], call(pair[1])
        yield place, call(first)


@pytest.mark.parametrize("name", [*AWAY, "withholding"])
def test_at_most_a_window_of_texts_is_in_memory(name: str) -> None:
    executor: Any = Withholding() if name == "withholding" else executor_named(name)
    read = kept = most = 0
    pairs = many(1000)

    def source() -> Iterator[Any]:
        nonlocal read, most
        for pair in pairs:
            read += 1
            most = max(most, read - kept)
            yield pair

    def keep(batch: Batch, scores: Any) -> None:
        nonlocal kept
        kept += len(batch)

    plan = EvaluationPlan(parse_metrics("token_f1,bleu"))
    found = score_in_chunks(plan, source(), keep, size=10, executor=executor)
    assert found == score_in_chunks(plan, iter(pairs), lambda batch, scores: None, size=10)
    assert kept == 1000
    under_way = 2 * 3  # for each worker the one that it scores, and the next
    assert most <= 10 * (scored_chunks.LEAST_EARLY + under_way + 2)
    print(f"\n{name}: at most {most} of 1000 samples in memory, in chunks of 10")
