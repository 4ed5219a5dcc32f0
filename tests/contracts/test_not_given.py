"""null, NaN, "" and a missing field mean the same: not given. Tables have nulls where rows differ."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import auepora_eval as ae
from auepora_eval.cli.main import main
from auepora_eval.comparison.slices import field_values
from auepora_eval.core.matching import grade_of, source_of
from auepora_eval.core.scores import cluster_of
from auepora_eval.core.types import gold_documents
from auepora_eval.io.trec import save_qrels
from auepora_eval.quality.description import describe

NOT_GIVEN = [None, math.nan, ""]


def sample(
    n: int, metadata: dict[str, Any] | None = None, docs: Any = ("d",), **fields: Any
) -> ae.EvaluationSample:
    return ae.EvaluationSample(str(n), f"q{n}", relevant_docs=list(docs), metadata=metadata, **fields)


def document(doc_id: str, **metadata: Any) -> ae.Document:
    return ae.Document(doc_id, "", metadata)


def retriever(*doc_ids: str) -> Callable[[str], Any]:
    def system(query: str) -> Any:
        return [document(doc_id) for doc_id in doc_ids], "yes"

    return system


@pytest.mark.parametrize("value", NOT_GIVEN)
def test_samples_without_a_cluster_are_independent(value: Any) -> None:
    clustered = sample(1, {"cluster": 0})
    assert cluster_of(clustered) == "0"
    assert cluster_of(sample(1, {"cluster": value})) is None
    assert field_values(sample(1, {"kind": "b"}, labels={"kind": value}), "kind") == ["b"]

    # Half of the lists have the document. As one cluster they would have no interval.
    def every_second(query: str) -> Any:
        return retriever("d" if int(query[1:]) % 2 else "other")(query)

    plain, unclustered = (
        ae.evaluate(every_second, [sample(n, metadata) for n in range(40)], metrics=["hit@1"])
        for metadata in ({}, {"cluster": value})
    )
    (before,), (after,) = plain.results, unclustered.results
    assert after.interval == before.interval
    assert after.interval is not None
    assert after.details == before.details


@pytest.mark.parametrize("value", NOT_GIVEN)
def test_a_document_without_a_grade_is_relevant(value: Any) -> None:
    doc = document("d", relevance=value)
    assert grade_of(doc) == 1
    assert [one.doc_id for one in gold_documents(sample(1, docs=[doc]))] == ["d"]
    names = ["recall@5", "ndcg@5", "bpref", "map[ragas]", "judged@1", "distinct_source_share@5"]
    for docs in ([doc, document("e", relevance=3)], [doc, doc]):
        with_value, without = (
            ae.evaluate(retriever("d", "x"), [sample(1, docs=given)], metrics=names).results
            for given in (
                docs,
                [document(one.doc_id, **({} if one is doc else one.metadata)) for one in docs],
            )
        )
        assert [one.value for one in with_value] == pytest.approx([one.value for one in without])
        assert not any(one.coverage.failed for one in with_value)


@pytest.mark.parametrize("value", NOT_GIVEN)
def test_a_candidate_without_a_grade_is_not_judged(value: Any) -> None:
    with_value = sample(1, candidate_docs=[document("x", relevance=value)])
    without = sample(1, candidate_docs=[document("x")])
    for name in ("bpref", "judged@2"):
        one, other = (
            ae.evaluate(retriever("x", "d"), [each], metrics=[name])[name].value
            for each in (with_value, without)
        )
        assert one == other


@pytest.mark.parametrize("value", NOT_GIVEN)
def test_documents_without_a_source_are_five_sources(value: Any) -> None:
    assert source_of(document("d", source=value)) == "d"
    assert source_of(document("d", source=value, source_id=7)) == "7"
    assert source_of(document("d", source=0)) == "0"

    def system(query: str) -> Any:
        return [document(f"d{n}", source=value) for n in range(5)], "yes"

    run = ae.evaluate(system, [sample(1)], metrics=["distinct_source_share@5"])
    assert run["distinct_source_share@5"].value == 1


def test_qrels_of_documents_without_a_grade(tmp_path: Path) -> None:
    dataset = ae.InMemoryDataset("d", [sample(1, docs=[document("a", relevance=None)])])
    save_qrels(dataset, tmp_path / "q.qrels")
    assert (tmp_path / "q.qrels").read_text() == "1 0 a 1\n"


def test_labels_that_are_not_given_are_not_counted() -> None:
    dataset = ae.InMemoryDataset("d", [sample(1, labels={"kind": None}), sample(2, labels={"kind": "a"})])
    assert describe(dataset)["labels"]["kind"]["values"] == {"a": 1}


def rows() -> list[dict[str, Any]]:
    """Samples of which few have a cluster, a grade or a source."""
    return [
        {
            "sample_id": str(n),
            "query": f"q{n}",
            "relevant_docs": [{"doc_id": "d", "metadata": {"relevance": 2.0} if n < 4 else {"k": "v"}}],
            "metadata": {"cluster": f"c{n // 2}", "k": "v"} if n < 10 else {"k": "v"},
        }
        for n in range(60)
    ]


def predictions(right: int) -> list[dict[str, Any]]:
    """The first document of `right` in ten samples is the relevant one."""
    return [
        {
            "sample_id": str(n),
            "retrieved": [
                {
                    "doc_id": "d" if n % 10 < right else "x",
                    "metadata": {"source": "s"} if n < 4 else {"k": 1},
                },
                {"doc_id": "y", "metadata": {"k": 2}},
            ],
        }
        for n in range(60)
    ]


def write_lines(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_a_parquet_file_gives_the_same_numbers_as_its_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Columns of structs have a null where a row lacks a field that another row has."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "c.jsonl", rows())
    pq.write_table(pa.Table.from_pylist(rows()), "c.parquet")
    metrics = "recall@5,ndcg@5,mrr,bpref,distinct_source_share@5"
    found = {}
    for kind in ("jsonl", "parquet"):
        for name, right in (("few", 4), ("many", 7)):
            outputs = write_lines(tmp_path / f"{name}.jsonl", predictions(right))
            command = ["score", "--dataset", f"c.{kind}", "--outputs", str(outputs), "--metrics", metrics]
            assert main([*command, "--id", f"{kind}-{name}"]) == 0
        capsys.readouterr()
        assert main(["compare", f"{kind}-few", f"{kind}-many", "--json"]) == 0
        found[kind] = json.loads(capsys.readouterr().out.replace(f"{kind}-", ""))
    assert found["jsonl"]["metrics"] == found["parquet"]["metrics"]
    assert any(row["p_value"] < 0.05 for row in found["jsonl"]["metrics"])


def test_stored_rows_name_no_cluster_that_is_not_given(tmp_path: Path) -> None:
    samples = [sample(n, {"cluster": math.nan if n % 2 else None}) for n in range(4)]
    run = ae.evaluate(retriever("d"), samples, metrics="recall@5")
    stored = json.loads(Path(run.save(tmp_path)).read_text())
    assert ["cluster" in row for row in stored["query_results"]] == [False] * 4
