"""Scoring from files: in chunks as in one piece and in any order."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.core.dataset import dataset_fingerprint
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.scores import Batch, Scores
from auepora_eval.core.scoring import score_in_chunks, score_outputs
from auepora_eval.errors import DataError
from auepora_eval.io.loader import open_dataset
from auepora_eval.io.outputs import PredictionFile, load_predictions, missing_output
from auepora_eval.metrics.parse import parse_metrics
from auepora_eval.store.predictions import PredictionRecord, Predictions, predictions_at, score_predictions
from auepora_eval.store.storage import EvaluationResultsStorage
from auepora_eval.store.verify import FITS, verify_run
from tests.builders import a_failure, a_sample, small_world

pytestmark = pytest.mark.full

LINES: list[dict[str, Any]] = [
    {"sample_id": str(n), "retrieved": [f"d{n}", "x"], "answer": f"answer {n}"} for n in range(30)
]


def predictions(folder: Path, *, packed: bool = False, shuffled: bool = False) -> Predictions:
    lines = list(LINES)
    if shuffled:
        random.Random(0).shuffle(lines)
    content = b"\xef\xbb\xbf" + "\r\n".join(json.dumps(line) + "\n" for line in lines).encode()
    path = folder / "p.jsonl"
    path.write_bytes(gzip.compress(content, mtime=0) if packed else content)
    return predictions_at(path)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("shuffled", [False, True])
def test_predictions_are_found_in_any_order(tmp_path: Path, packed: bool, shuffled: bool) -> None:
    file = predictions(tmp_path, packed=packed, shuffled=shuffled)
    with pytest.raises(DataError, match="1 predictions are for samples that the data lack, first '29'"):
        file.check_known_samples({str(n) for n in range(29)})
    wanted = ["29", "0", "none", "7", "8"]
    assert next(iter(file.outputs(wanted))).response.text == "answer 29"
    found = list(file.outputs(wanted))
    assert [output.response.text for output in found] == ["answer 29", "answer 0", "", "answer 7", "answer 8"]
    assert [output.error is not None for output in found] == [False, False, True, False, False]
    assert file.longest == 2


PLAIN = "recall@3,ndcg@3,exact_match,token_f1,rougeL_answer,bleu,mean_latency,latency@0.5"


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_chunks_give_what_one_piece_gives(size: int) -> None:
    samples, outputs = small_world()
    outputs[4] = a_failure()
    plan = EvaluationPlan(parse_metrics(PLAIN))
    seen: list[str] = []

    def keep(batch: Batch, scores: Any) -> None:
        seen.extend(batch.sample_ids)
        assert all(len(column) == len(batch) for column in scores.values())

    chunked = score_in_chunks(plan, zip(samples, outputs, strict=True), keep, size=size)
    assert seen == [sample.sample_id for sample in samples]
    for ours, whole in zip(chunked, score_outputs(plan, samples, outputs), strict=True):
        assert ours.value == pytest.approx(whole.value, rel=1e-12)
        assert ours.details["bounds_if_failed"] == whole.details["bounds_if_failed"]
        assert ours.details["confidence_interval"] == whole.details["confidence_interval"]
        assert list(ours.scores) == list(whole.scores)


def test_metrics_of_pairs_are_scored_in_one_piece() -> None:
    samples, outputs = small_world()
    plan = EvaluationPlan(parse_metrics("flip_rate,recall@3"))
    batches: list[int] = []
    chunked = score_in_chunks(
        plan, zip(samples, outputs, strict=True), lambda batch, scores: batches.append(len(batch)), size=2
    )
    assert batches == [10]
    assert chunked[0].value == pytest.approx(score_outputs(plan, samples, outputs)[0].value, nan_ok=True)


def test_joined_scores_keep_clusters_apart() -> None:
    metric = parse_metrics("recall@1")[0]
    pieces = []
    for start, cluster in ((0, None), (5, "c")):
        samples = [a_sample(str(n), relevant="a", cluster=cluster) for n in range(start, start + 5)]
        pieces.append(metric.score_batch(Batch(samples, small_world()[1][:5])))  # type: ignore[attr-defined]
    joined = Scores.joined(pieces)
    assert joined.clusters is not None
    assert len(set(joined.clusters)) == 6
    assert len(joined) == 10


def test_outputs_are_stored_as_they_came(tmp_path: Path) -> None:
    """Whatever form a prediction has, the stored run gives the same output, and its files are consistent."""
    lines = [
        '{"sample_id": "0", "answer": "a\\u003ab", "retrieved": ["d0", {"doc_id": "x", "score": 2}]}',
        '{"timings": {"end_to_end": 0.25}, "extra": {"z": 1, "a": [1]}, "sample_id": "2", "answer": ""}',
        "",
        '{"sample_id": "1", "response": {"text": "t", "metadata": {"citations": []}}, "error": null}',
        '{"sample_id": "3", "error": {"type": "Timeout", "message": "late", "seconds": 3}}',
    ]
    (tmp_path / "p.jsonl").write_text("\n".join(lines), encoding="utf-8")
    records = [
        {"sample_id": str(n), "query": f"q{n}", "relevant_docs": [f"d{n}"], "metadata": {"cluster": n % 2}}
        for n in range(5)
    ]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    storage = EvaluationResultsStorage(tmp_path / "runs")
    dataset = open_dataset(tmp_path / "d.jsonl")
    record = PredictionRecord(
        storage.state("r"),
        dataset,
        PredictionFile(tmp_path / "p.jsonl"),
        EvaluationPlan(parse_metrics(["recall@5"])),
        system_name="s",
    )
    score_predictions(record)
    run = storage.load_run("r")
    expected = load_predictions(tmp_path / "p.jsonl")
    assert run.outputs == [expected.get(str(n)) or missing_output() for n in range(5)]
    assert run.samples == list(dataset)
    assert run.dataset_fingerprint == dataset_fingerprint(dataset)
    assert [check for check in verify_run(storage, "r").checks if check.status != FITS] == []
