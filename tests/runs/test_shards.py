"""Scoring in several processes stores the same bytes as scoring in one, and reports the same errors."""

from __future__ import annotations

import json
import multiprocessing
import resource
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.scoring import SIZE
from auepora_eval.errors import AueporaError
from auepora_eval.io.datasets.predictions import PredictionFile
from auepora_eval.io.jsonl import JsonlDataset
from auepora_eval.runs import shards
from auepora_eval.runs.evaluation import PredictionRecord, score_predictions
from auepora_eval.runs.store.state import RunState
from auepora_eval.runs.store.storage import EvaluationResultsStorage

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked")
COUNT = 2 * SIZE + 50
METRICS = "recall@2,mrr,ndcg,bleu,latency@0.5,failure_rate"
Lines = list[dict[str, Any]]


def the_lines() -> tuple[Lines, Lines]:
    """Samples and predictions with a little of everything; the predictions are in another order."""
    samples: Lines = []
    predictions: Lines = []
    for n in range(COUNT):
        sample: dict[str, Any] = {"sample_id": f"q{n}", "query": f"Wie groß ist {n}?"}
        sample["reference_answer"] = "22 m"
        if n % 7:
            sample["relevant_docs"] = [f"d{n}", {"doc_id": f"e{n}", "metadata": {"relevance": n % 3}}]
        if n % 11 == 0:
            sample["labels"] = {"answerable": False}
        if n % 5 == 0:
            sample["metadata"] = {"cluster": n // 50}
        samples.append(sample)
        prediction: dict[str, Any] = {"sample_id": f"q{n}", "retrieved": [f"d{n + n % 2}", f"e{n}"]}
        prediction |= {"answer": f"{n % 30} m \u2028", "timings": {"end_to_end": n / 1000}}
        if n % 13 == 0:
            prediction["extra"] = {"input_tokens": n, "output_tokens": 2}
        if n % 17 == 0:
            prediction = {"sample_id": f"q{n}", "error": {"type": "TimeoutError", "message": f"late {n % 3}"}}
        if n % 19:  # the others have no line, and have failed
            predictions.append(prediction)
    return samples, predictions[::-1]


class World:
    """Files, and two ways to score them."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self._patch = folder, monkeypatch
        self.samples, self.predictions = the_lines()
        self.metrics: Any = METRICS
        monkeypatch.setattr(shards, "LEAST_SAMPLES", 1)
        monkeypatch.setattr(shards, "LINES", SIZE)
        monkeypatch.setattr(shards, "_cores", lambda: 2)
        monkeypatch.setattr(threading, "active_count", lambda: 1)  # those of xdist hold no lock of ours
        limits: Any = RunState.writer.__wrapped__.__kwdefaults__  # type: ignore[attr-defined]
        monkeypatch.setitem(limits, "rows_in_the_json", 500)

    def write(self) -> None:
        for name, records in (("data", self.samples), ("answers", self.predictions)):
            lines = (each if isinstance(each, str) else json.dumps(each) for each in records)
            (self.folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def scored(self, name: str, *, processes: int, on_scored: Callable[[bool], None] | None = None) -> Any:
        """Return what was stored and what was reported."""
        self._patch.setattr(shards, "MOST_PROCESSES", processes)
        storage = EvaluationResultsStorage(self.folder / name)
        dataset, predictions = (self.folder / f"{each}.jsonl" for each in ("data", "answers"))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                record = PredictionRecord(
                    storage.state("run"),
                    JsonlDataset(dataset),
                    PredictionFile(predictions),
                    system_name="s",
                    on_scored=on_scored,
                )
                score_predictions(record, EvaluationPlan(self.metrics))
            except AueporaError as error:
                return str(error)
        files = sorted(path for path in (self.folder / name).rglob("*") if path.is_file())
        contents = {path.name: path.read_bytes() for path in files}
        results = json.loads(contents.pop("run.results.json"))
        for volatile in ("timestamp", "_metadata"):
            del results[volatile]
        del results["summary"]["total_evaluation_time_seconds"]
        return results, contents, [str(each.message) for each in caught]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def seconds_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@pytest.mark.parametrize("head", [False, True], ids=["samples only", "described"])
def test_several_processes_store_the_same_bytes(world: World, head: bool) -> None:
    if head:
        world.samples.insert(0, {"dataset": {"dataset_id": "heights", "version": "1"}})
    world.write()
    before = seconds_of_children()
    reported: list[bool] = []
    alone = world.scored("alone", processes=1)
    assert seconds_of_children() == before
    together = world.scored("together", processes=2, on_scored=reported.append)
    assert seconds_of_children() > before
    assert together == alone
    results, files, _ = together
    assert sorted(files) == ["outputs.jsonl", "run.queries.parquet", "samples.jsonl"]
    assert (len(reported), sum(reported)) == (COUNT, results["summary"]["failed_queries"])


def repeat_an_id(world: World) -> None:
    world.samples[-1]["sample_id"] = "q3"


def add_an_unknown_field(world: World) -> None:
    world.samples[-1]["colour"] = "blue"


def cut_a_line_off(world: World) -> None:
    world.samples[-1] = '{"sample_id": "x", "que'  # type: ignore[call-overload]


def leave_a_line_blank(world: World) -> None:
    world.samples.insert(600, "")  # type: ignore[arg-type]


def answer_what_nobody_asked(world: World) -> None:
    world.predictions.append({"sample_id": "stranger", "answer": "5 m"})


def report_a_negative_time(world: World) -> None:
    world.predictions[5]["timings"] = {"end_to_end": -1}


def turn_scores_round(world: World) -> None:
    hits = [{"doc_id": "a", "score": 0.1, "rank": 1}, {"doc_id": "b", "score": 0.9, "rank": 2}]
    world.predictions[5] = {"sample_id": world.predictions[5]["sample_id"], "retrieved": hits}


def count_half_tokens(world: World) -> None:
    for prediction in world.predictions:
        if "answer" in prediction:
            prediction["extra"] = {"input_tokens": 0.1}


@pytest.mark.parametrize(
    "change",
    [
        repeat_an_id,
        add_an_unknown_field,
        cut_a_line_off,
        leave_a_line_blank,
        answer_what_nobody_asked,
        report_a_negative_time,
        turn_scores_round,
        count_half_tokens,
    ],
)
def test_unusual_data_have_the_same_outcome(world: World, change: Callable[[World], None]) -> None:
    change(world)
    world.write()
    assert world.scored("together", processes=2) == world.scored("alone", processes=1)
    assert multiprocessing.active_children() == []


def test_a_process_that_dies_changes_nothing(world: World) -> None:
    world.write()

    def kill_one(_: bool) -> None:
        for process in multiprocessing.active_children()[:1]:
            process.kill()

    assert world.scored("together", processes=2, on_scored=kill_one) == world.scored("alone", processes=1)


def test_an_interrupt_ends_all_processes_and_stores_nothing(world: World) -> None:
    world.write()

    def interrupt(_: bool) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        world.scored("together", processes=2, on_scored=interrupt)
    assert multiprocessing.active_children() == []
    assert [path for path in (world.folder / "together").rglob("*") if path.is_file()] == []
