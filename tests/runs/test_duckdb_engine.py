"""DuckDB gives the values, intervals and coverage of the normal way, or an error that names it."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.cli.main import main
from auepora_eval.errors import DataError, MissingDependencyError, PlanError
from auepora_eval.io.jsonl import load_jsonl_dataset
from auepora_eval.io.parquet import import_pyarrow, save_parquet_dataset
from auepora_eval.metrics.parse import parse_metrics
from auepora_eval.runs.duckdb_engine import score_with_duckdb

pytest.importorskip("duckdb")
METRICS = "recall@3,precision@3,f1@3,hit@3,mrr,mrr@2,map,map@3,ndcg@3,ndcg,ndcg_exp@3,r_precision,rbp"
Record = Mapping[str, Any]


def write(path: Path, records: Iterable[Record]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def random_sample(rng: random.Random, number: int, *, clustered: bool) -> Record:
    def judged(doc: str) -> str | Record:
        if rng.random() < 0.5:
            return doc
        grade = {"metadata": {"relevance": rng.choice([0, 1, 2, 3, 0.5])}} if rng.random() < 0.7 else {}
        return {"doc_id": doc, "text": "t", **grade}

    docs = rng.choices("abcdefgh", k=rng.randrange(5))  # also twice, also none
    return {
        "sample_id": f"s{number}",
        "query": "q",
        **({"relevant_docs": [judged(doc) for doc in docs]} if rng.random() < 0.9 else {}),
        **({"metadata": {"cluster": f"c{number % 7}"}} if clustered and rng.random() < 0.9 else {}),
    }


def random_prediction(rng: random.Random, number: int) -> Record:
    ids = rng.choices("abcdefghij", k=rng.randrange(7))
    ranks = rng.sample(range(1, 20), len(ids))
    scores = sorted((rng.random() for _ in ids), reverse=True)
    error = {"error": rng.choice(["boom", {"type": "TimeoutError", "message": "10 s"}, {"type": "X"}])}
    retrieved = rng.choice(
        [
            ids,
            [{"doc_id": doc, "score": score} for doc, score in zip(ids, scores, strict=True)],
            [{"doc_id": doc, "rank": rank} for doc, rank in zip(ids, ranks, strict=True)],
            [{"doc_id": doc} if n % 2 else doc for n, doc in enumerate(ids)],
            {"doc_id": ids, "score": scores},
        ]
    )
    return {"sample_id": f"s{number}", "retrieved": retrieved, **(error if rng.random() < 0.1 else {})}


def normal_way(dataset: Path, predictions: Path, folder: Path) -> Any:
    words = (
        f"score --dataset {dataset} --outputs {predictions} --metrics {METRICS} --id r --out {folder} --force"
    )
    main([*words.split(), "--min-coverage", "0"])
    return json.loads((folder / "r.results.json").read_text())


@pytest.mark.parametrize("seed", range(4))
def test_results_are_those_of_the_normal_way(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    samples = [random_sample(rng, n, clustered=seed % 2 == 1) for n in range(200)]
    answers = [random_prediction(rng, n) for n in range(200) if rng.random() < 0.9]
    rng.shuffle(answers)
    dataset = write(tmp_path / "data[1].jsonl", [{"dataset": {"name": "x"}}, *samples])
    predictions = write(tmp_path / "it's.jsonl", answers)
    usual = normal_way(dataset, predictions, tmp_path)
    scored = score_with_duckdb(dataset, predictions, parse_metrics(METRICS))
    stored = {**usual["retrieval_metrics"], **usual.get("other_metrics", {})}
    for result in scored.results:
        expected = stored[result.name]
        assert result.value == expected["value"], result.name
        assert result.details["confidence_interval"] == expected["confidence_interval"], result.name
        others = {name: value for name, value in result.details.items() if name != "confidence_interval"}
        expected["details"].pop("notes", None)  # about scores, which DuckDB does not read
        assert others == expected["details"]
    assert scored.samples == 200
    assert scored.failures.total() == usual["summary"]["failed_queries"]


def test_parquet_files(tmp_path: Path) -> None:
    """Our own Parquet files keep metadata as JSON texts; others have lists of ids, or of structs."""
    rng = random.Random(9)
    samples = [random_sample(rng, n, clustered=True) for n in range(60)]
    ids = [{"sample_id": f"s{n}", "retrieved": rng.choices("abcdef", k=3)} for n in range(60)]
    dataset, predictions = write(tmp_path / "d.jsonl", samples), write(tmp_path / "p.jsonl", ids)
    save_parquet_dataset(load_jsonl_dataset(dataset), tmp_path / "d.parquet")
    pyarrow, parquet = import_pyarrow()
    parquet.write_table(pyarrow.Table.from_pylist(ids), tmp_path / "ids.parquet")
    hits = [{**each, "retrieved": [{"doc_id": doc} for doc in each["retrieved"]]} for each in ids]
    parquet.write_table(pyarrow.Table.from_pylist(hits), tmp_path / "hits.parquet")
    metrics = parse_metrics(METRICS)
    expected = score_with_duckdb(dataset, predictions, metrics)
    assert expected.results[0].coverage.scored > 30
    for name in ("ids.parquet", "hits.parquet"):
        assert score_with_duckdb(tmp_path / "d.parquet", tmp_path / name, metrics) == expected
    parquet.write_table(pyarrow.Table.from_pylist([{**SAMPLE, "sample_id": "s1"}]), tmp_path / "one.parquet")
    parquet.write_table(pyarrow.Table.from_pylist(ids[1:2]), tmp_path / "answer.parquet")
    [recall] = score_with_duckdb(
        tmp_path / "one.parquet", tmp_path / "answer.parquet", parse_metrics("recall@3")
    ).results
    assert recall.value == float("a" in ids[1]["retrieved"])
    parquet.write_table(pyarrow.Table.from_pylist([{**SAMPLE, "sample_id": 1}]), tmp_path / "number.parquet")
    with pytest.raises(DataError, match="line of '1' is not one that DuckDB scores"):
        score_with_duckdb(tmp_path / "number.parquet", tmp_path / "answer.parquet", metrics)


SAMPLE = {"sample_id": "1", "query": "q", "relevant_docs": ["a"]}
ANSWER = {"sample_id": "1", "retrieved": ["a"]}


@pytest.mark.parametrize(
    ("samples", "answers", "message"),
    [
        ([], [ANSWER], "no samples"),
        ([SAMPLE, SAMPLE], [ANSWER], "'1' is there twice"),
        ([SAMPLE], [ANSWER, ANSWER], "'1' is there twice"),
        ([SAMPLE], [{**ANSWER, "sample_id": "2"}], "no sample '2'"),
        ([{"query": "q"}], [ANSWER], "normal way"),
        ([SAMPLE], [{"sample_id": "1", "answer": "x"}], "normal way"),
        ([{**SAMPLE, "relevant_docs": "a"}], [ANSWER], "normal way"),
        (
            [{**SAMPLE, "relevant_docs": [{"doc_id": "a", "metadata": {"relevance": "2"}}]}],
            [ANSWER],
            "normal",
        ),
        ([SAMPLE], [{**ANSWER, "retrieved": [{"doc_id": "a", "rank": 1}] * 2}], "normal way"),
        ([SAMPLE], ["no object"], "normal way"),
        ([SAMPLE], [{**ANSWER, "retrieved": ["a", {"id": "b"}]}], "normal way"),
        ([{**SAMPLE, "relevant_docs": [5]}], [ANSWER], "normal way"),
        ([{**SAMPLE, "sample_id": 1}], [ANSWER], "normal way"),
        ([SAMPLE], [{**ANSWER, "sample_id": 1}], "normal way"),
        ([{**SAMPLE, "sample_id": " "}], [{**ANSWER, "sample_id": " "}], "normal way"),
        ([{**SAMPLE, "relevant_docs": [{"doc_id": 1}]}], [ANSWER], "normal way"),
        ([{**SAMPLE, "relevant_docs": [{"doc_id": None}]}], [ANSWER], "normal way"),
        ([SAMPLE], [{**ANSWER, "retrieved": [{"doc_id": "a"}, {"doc_id": 1}]}], "normal way"),
        ([SAMPLE], [{**ANSWER, "retrieved": {"doc_id": ["a", 1], "score": [2, 1]}}], "normal way"),
        ([SAMPLE], [{**ANSWER, "retrieved": [{"doc_id": "a", "rank": 1.5}]}], "normal way"),
    ],
)
def test_what_it_cannot_read_is_an_error(
    samples: list[Record], answers: list[Record], message: str, tmp_path: Path
) -> None:
    dataset, predictions = write(tmp_path / "d.jsonl", samples), write(tmp_path / "p.jsonl", answers)
    with pytest.raises(DataError, match=message):
        score_with_duckdb(dataset, predictions, parse_metrics("recall@1"))


@pytest.mark.parametrize("name", ["token_f1", "bpref", "map[ragas]", "judged@3"])
def test_other_metrics_are_an_error_that_names_the_normal_way(name: str, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="Leave out --engine duckdb"):
        score_with_duckdb(tmp_path / "d", tmp_path / "p", parse_metrics(name))


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A sample without prediction counts as failed, and one without relevant documents is skipped."""
    dataset = write(
        tmp_path / "d.jsonl", [SAMPLE, {**SAMPLE, "sample_id": "2"}, {"sample_id": "3", "query": "q"}]
    )
    predictions = write(tmp_path / "p.jsonl", [ANSWER, {**ANSWER, "sample_id": "3"}])
    words = f"score --dataset {dataset} --outputs {predictions} --metrics recall@1 --engine duckdb".split()
    assert main([*words, "--json"]) == 3
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    details = document["metrics"]["recall@1"]["details"]
    assert (document["samples"], document["failed"]) == (3, 1)
    assert (details["num_samples"], details["num_skipped"], details["num_failed"]) == (1, 1, 1)
    assert details["bounds_if_failed"] == [0.5, 1.0]
    assert "not stored" in printed.err
    assert main([*words, "--min-coverage", "0.5"]) == 0
    assert "MissingPrediction" in capsys.readouterr().out
    assert main([*words, "--limit", "1", "--id", "x"]) == 2
    assert "does not take --limit, --id" in capsys.readouterr().err
    assert main([*words[:-4], "--engine", "duckdb"]) == 2
    assert "needs --outputs FILE and --metrics" in capsys.readouterr().err


def test_missing_package_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingDependencyError, match=r"auepora-eval\[duckdb\]"):
        score_with_duckdb(tmp_path / "d", tmp_path / "p", parse_metrics("recall@1"))
