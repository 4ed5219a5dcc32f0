"""Rows in a Parquet file beside the results: everything works as if they were in the JSON."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.cli.main import main
from auepora_eval.comparison.compare import compare_runs
from auepora_eval.core.dataset import canonical_json
from auepora_eval.core.metrics_base import Metric
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.scores import Batch
from auepora_eval.core.types import (
    Document,
    EvaluationRun,
    EvaluationSample,
    MetricResult,
    SystemOutputs,
    TargetCategory,
)
from auepora_eval.errors import DataError
from auepora_eval.io.results.rows_parquet import ParquetRows
from auepora_eval.metrics.parse import parse_metrics
from auepora_eval.runs.evaluation import PredictionRecord, score_predictions
from auepora_eval.runs.store.storage import EvaluationResultsStorage, stored_pairs
from tests.builders import a_dataset, a_failure, a_sample, an_output, run_to_results, scored_run, small_world

METRICS = "recall@3,token_f1,bleu,latency@0.5,failure_rate,rejection_rate,flip_rate"
pytestmark = [
    pytest.mark.full,
    pytest.mark.filterwarnings("ignore::auepora_eval.core.plan.PartialCoverageWarning"),
]


class Own(Metric):
    name, target = "mine", TargetCategory.DIVERSITY

    def required_fields(self) -> list[str]:
        return []

    def compute(self, samples: list[EvaluationSample], outputs: list[SystemOutputs]) -> MetricResult:
        return MetricResult(self.name, self.target, 0.5)


def a_run(name: str = "run", *, worse: bool = False) -> EvaluationRun:
    samples, outputs = small_world()
    gold = samples[0].relevant_docs or []
    samples[0] = replace(samples[0], relevant_docs=[*gold, Document("judged", "", {"relevance": 0})])
    outputs[2] = a_failure()
    outputs[1].response.metadata["citations"] = [{"file_name": "a.pdf", "start_char": 0, "end_char": 5}]
    if worse:
        outputs[0], outputs[4] = an_output("zy", "nothing"), a_failure("TimeoutError", "too slow")
    plan = EvaluationPlan([*parse_metrics(METRICS), Own()])
    run = scored_run(plan, samples, outputs, system_name=name, dataset_name="d", evaluation_id=name, seed=4)
    return replace(run, started_at="2025-01-01T00:00:00Z", seconds=1.0)


def comparable(run: EvaluationRun) -> bytes:
    """All of a run as text: NaN is not equal to itself, and details come in any order."""
    return canonical_json([run_to_results(run), run.samples, run.outputs])


@pytest.mark.parametrize("rows_in_the_json", [9, 0])
def test_a_large_run_is_a_run(tmp_path: Path, rows_in_the_json: int) -> None:
    small, large = EvaluationResultsStorage(tmp_path / "small"), EvaluationResultsStorage(tmp_path / "large")
    small.save_run(a_run())
    path = large.save_run(a_run(), rows_in_the_json=rows_in_the_json)
    assert comparable(large.load_run("run")) == comparable(a_run()) == comparable(small.load_run("run"))
    raw = json.loads(path.read_text())
    assert raw["query_results"] == []
    assert raw["queries_file"]["name"] == "run.queries.parquet"
    assert raw["queries_file"]["rows"] == 10
    ours, theirs = large.load_results("run"), small.load_results("run")
    assert ours["query_results"] == theirs["query_results"]
    for document in (ours, theirs):
        document.pop("_metadata")
        document.pop("queries_file", None)
    assert ours == theirs
    assert large.load_tally("run") == small.load_tally("run")
    assert large.load_tally("run").failed == 1


@pytest.mark.parametrize("rows_in_the_json", [100, 3])
def test_a_comparison_needs_scores_only(tmp_path: Path, rows_in_the_json: int) -> None:
    storage = EvaluationResultsStorage(tmp_path)
    runs = a_run("a"), a_run("b", worse=True)
    for run in runs:
        storage.save_run(run, rows_in_the_json=rows_in_the_json)
    light = storage.load_scores("a"), storage.load_scores("b")
    expected = compare_runs(*runs, resamples=500)
    assert compare_runs(*light, resamples=500) == expected
    assert compare_runs(storage.load_run("a"), light[1], resamples=500) == expected
    assert [sample.sample_id for sample in light[1].samples] == ["s3", "s4", "n1"]


@pytest.mark.parametrize("size", [1, 3, 4, 10])
def test_rows_that_come_in_chunks(tmp_path: Path, size: int) -> None:
    storage, run = EvaluationResultsStorage(tmp_path), a_run()
    scores = {r.name: list(r.scores) for r in run.results if r.scores}
    with storage.state("run").writer(rows_in_the_json=5) as writer:
        for start in range(0, 10, size):
            part = slice(start, start + size)
            batch = Batch(run.samples[part], run.outputs[part])
            writer.add(batch, {name: column[part] for name, column in scores.items()})
        writer.finish(run)
    assert comparable(storage.load_run("run")) == comparable(run)


@pytest.mark.parametrize(
    "command",
    [
        ["show", "a"],
        ["show", "a", "--json"],
        ["show", "a", "--sample", "s3"],
        ["show", "a", "--worst", "recall@3"],
        ["compare", "a", "b"],
        ["compare", "a", "b", "--markdown", "-"],
        ["show", "a", "--verify"],
        ["score", "--run", "a", "--metrics", "mrr", "--id", "c", "--min-coverage", "0.5"],
    ],
    ids=" ".join,
)
def test_commands_say_the_same(tmp_path: Path, command: list[str], capsys: Any) -> None:
    said = []
    for folder, limit in (("small", 100), ("large", 3)):
        storage = EvaluationResultsStorage(tmp_path / folder)
        for run in (a_run("a"), a_run("b", worse=True)):
            storage.save_run(run, rows_in_the_json=limit)
        out = [] if command[0] == "run" else ["--out", str(tmp_path / folder)]
        assert main([*command, *out]) == 0
        said.append(capsys.readouterr().out)
    if "--json" not in command:
        assert said[0] == said[1]


def test_where_a_large_run_begins(tmp_path: Path) -> None:
    storage, run = EvaluationResultsStorage(tmp_path), a_run("a")
    size = len(run.samples)
    for limit, is_large in ((size, False), (size - 1, True)):
        storage.save_run(run, rows_in_the_json=limit, force=True)
        assert (tmp_path / "a.queries.parquet").exists() == is_large


def test_a_run_that_replaces_a_large_one_leaves_none_of_it(tmp_path: Path) -> None:
    storage = EvaluationResultsStorage(tmp_path)
    storage.save_run(a_run(), rows_in_the_json=3)
    storage.save_run(a_run(), force=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.results.json", "run.run"]


def test_a_writer_that_fails_leaves_nothing(tmp_path: Path) -> None:
    storage, run = EvaluationResultsStorage(tmp_path), a_run()

    def crash() -> None:
        with storage.state("run").writer(rows_in_the_json=3) as writer:
            writer.add(Batch(run.samples, run.outputs), {})
            raise RuntimeError

    with pytest.raises(RuntimeError):
        crash()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_without_pyarrow_the_rows_stay_in_the_json(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    storage = EvaluationResultsStorage(tmp_path)
    with pytest.warns(UserWarning, match=r"over 3 samples.*\[parquet\]"):
        storage.save_run(a_run(), rows_in_the_json=3)
    assert len(storage.load_results("run")["query_results"]) == 10
    assert comparable(storage.load_run("run")) == comparable(a_run())


def test_a_file_that_is_not_the_one_stored_is_refused(tmp_path: Path) -> None:
    storage = EvaluationResultsStorage(tmp_path)
    storage.save_run(a_run(), rows_in_the_json=3)
    rows = tmp_path / "run.queries.parquet"
    content = rows.read_bytes()
    for damaged in (content[:-9], b"", b"PAR1", content + b"x"):
        rows.write_bytes(damaged)
        for load in (storage.load_run, storage.load_scores, storage.load_results):
            with pytest.raises(DataError, match="is not the file that the results were stored with"):
                load("run")
        with pytest.raises(DataError, match="not a Parquet file"):
            _ = ParquetRows(rows).ids
    rows.unlink()
    with pytest.raises(DataError, match="there is no such file"):
        storage.load_run("run")


def test_a_name_in_the_document_is_not_followed(tmp_path: Path) -> None:
    storage = EvaluationResultsStorage(tmp_path)
    path = storage.save_run(a_run(), rows_in_the_json=3)
    document = json.loads(path.read_text())
    document["queries_file"]["name"] = "../../etc/passwd"
    path.write_text(json.dumps(document), encoding="utf-8")
    assert len(storage.load_results("run")["query_results"]) == 10
    broken: list[Any] = [{}, [], {"sha256": 5}, "x"]
    for nonsense in broken:
        path.write_text(json.dumps({**document, "queries_file": nonsense}), encoding="utf-8")
        with pytest.raises(DataError, match="queries_file: has no sha256"):
            storage.load_results("run")


def test_scoring_from_files_crosses_the_line(tmp_path: Path, monkeypatch: Any) -> None:
    """10,001 samples: the rows are beside the results, and everything fits."""
    from auepora_eval.io.outputs import PredictionFile

    samples = [a_sample(str(n), relevant="a", cluster=str(n // 2)) for n in range(10_001)]
    lines = (json.dumps({"sample_id": str(n), "retrieved": ["ab"[n % 2]]}) for n in range(10_001))
    (tmp_path / "p.jsonl").write_text("\n".join(lines), encoding="utf-8")
    storage = EvaluationResultsStorage(tmp_path / "runs")
    plan = EvaluationPlan(parse_metrics("recall@1,mrr"))
    predictions = PredictionFile(tmp_path / "p.jsonl")
    record = PredictionRecord(storage.state("s"), a_dataset(*samples), predictions, system_name="s")
    run = score_predictions(record, plan)
    assert record.state.path.with_name(f"{run.evaluation_id}.queries.parquet").exists()
    stored = storage.load_scores(run.evaluation_id)
    assert [r.value for r in stored.results] == [r.value for r in run.results]
    assert stored.results[0].scores.clusters == run.results[0].scores.clusters  # type: ignore[attr-defined]
    assert stored.resource_usage is None
    assert main(["show", run.evaluation_id, "--verify", "--out", str(tmp_path / "runs")]) == 0


def test_some_samples_of_a_run_are_read_without_the_others(tmp_path: Path) -> None:
    run, storage = a_run(), EvaluationResultsStorage(tmp_path)
    storage.save_run(run)
    chosen = {run.samples[place].sample_id: (run.samples[place], run.outputs[place]) for place in (0, 2)}
    assert stored_pairs(storage.find("run"), [*chosen, "none"]) == chosen
