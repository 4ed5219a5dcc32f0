"""Where runs are kept: nothing lost, nothing overwritten, damage shown and survived."""

from __future__ import annotations

import copy
import json
import shutil
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.core.types import (
    EvaluationRun,
    EvaluationSample,
    MetricResult,
    Response,
    SampleScore,
    SystemOutputs,
    TargetCategory,
)
from auepora_eval.errors import DataError, StorageError
from auepora_eval.store.storage import EvaluationResultsStorage


def a_run(evaluation_id: str = "first", **fields: Any) -> EvaluationRun:
    result = MetricResult(
        "token_f1",
        TargetCategory.GENERATION_CORRECTNESS,
        0.5,
        {"confidence_interval": None},
        [SampleScore(0.5, sample_id="1")],
    )
    samples = [EvaluationSample("1", "q", reference_answer=Response("r"))]
    outputs = [SystemOutputs([], Response("x"), {"end_to_end": 0.5})]
    return EvaluationRun(evaluation_id, "system", "data", "f" * 64, [result], samples, outputs, **fields)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*"))


@pytest.fixture
def storage(tmp_path: Path) -> EvaluationResultsStorage:
    storage = EvaluationResultsStorage(tmp_path / "runs")
    storage.save_run(a_run())
    return storage


def edited(storage: EvaluationResultsStorage, **fields: Any) -> None:
    path = storage.find("first")
    path.write_text(json.dumps(json.loads(path.read_text()) | fields), encoding="utf-8")


def test_a_run_is_not_overwritten_unless_forced(storage: EvaluationResultsStorage) -> None:
    with pytest.raises(StorageError, match="exists already"):
        storage.save_run(a_run(seed=7))
    assert storage.load_run("first").seed == 0
    storage.save_run(a_run(seed=7), force=True)
    assert storage.load_run("first").seed == 7


def test_save_results_neither_changes_its_input_nor_overwrites(tmp_path: Path) -> None:
    storage = EvaluationResultsStorage(tmp_path)
    results = {"evaluation_id": "one", "summary": {"total_queries": 3}}
    before = copy.deepcopy(results)
    path = storage.save_results(results, "nightly")
    assert results == before
    assert path == str(tmp_path / "one.results.json")
    with pytest.raises(StorageError, match="exists already"):
        storage.save_results({**results, "summary": {}})
    stored = storage.load_results("one")
    assert stored["summary"] == {"total_queries": 3}
    assert stored["_metadata"]["evaluation_type"] == "nightly"


@pytest.mark.parametrize("evaluation_id", ["..", "a/b", "/etc/x", "a\0b", "x" * 200, ".a", "a.", 5])
def test_an_id_is_never_joined_to_a_path_unchecked(tmp_path: Path, evaluation_id: Any) -> None:
    storage = EvaluationResultsStorage(tmp_path / "runs")
    for call in (
        lambda: storage.save_results({"evaluation_id": evaluation_id}),
        lambda: storage.save_run(a_run(evaluation_id)),
        lambda: storage.state(evaluation_id).database,
        lambda: storage.free_id(evaluation_id),
        lambda: storage.load_run("5/" if evaluation_id == 5 else evaluation_id),
    ):
        with pytest.raises(DataError, match=r"cannot be a file name|there is no such file"):
            call()
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("first", id="id"),
        pytest.param("first.results.json", id="file name"),
        pytest.param("{folder}/first.results.json", id="path"),
        pytest.param("{folder}/first.run.db", id="database"),
        pytest.param("{folder}/first", id="path without a suffix"),
    ],
)
def test_ways_to_name_a_run(storage: EvaluationResultsStorage, name: str) -> None:
    found = storage.find(name.format(folder=storage.results_directory))
    assert found == storage.results_directory / "first.results.json"


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"{", id="cut off"),
        pytest.param(b"[]", id="an array"),
        pytest.param(b"\xff", id="not UTF-8"),
        pytest.param(b"\x1f\x8bxx", id="begins like gzip"),
        pytest.param(b"[" * 100_000, id="100,000 brackets"),
        pytest.param(b'{"summary":[1]}', id="a wrong type"),
        pytest.param(b'{"_metadata":5}', id="wrong metadata"),
    ],
)
def test_a_damaged_file_is_listed_with_its_error(storage: EvaluationResultsStorage, content: bytes) -> None:
    (storage.results_directory / "bad.results.json").write_bytes(content)
    heads = {head["evaluation_id"]: head for head in storage.list_results()}
    assert heads["bad"]["error"]
    assert "error" not in heads["first"]
    assert heads["first"]["total_queries"] == 1


def test_metadata_of_the_caller_stays(tmp_path: Path) -> None:
    storage = EvaluationResultsStorage(tmp_path)
    told = {"owner": "team a", "evaluation_type": "nightly", "saved_at": "long ago"}
    storage.save_results({"evaluation_id": "a", "_metadata": told})
    stored = storage.load_results("a")["_metadata"]
    assert stored == {**told, "saved_at": stored["saved_at"], "file_path": str(tmp_path / "a.results.json")}
    assert stored["saved_at"] != "long ago"
    storage.save_results({"evaluation_id": "b", "_metadata": told}, "weekly")
    assert storage.load_results("b")["_metadata"]["evaluation_type"] == "weekly"
    assert [head["evaluation_type"] for head in storage.list_results()] == ["nightly", "weekly"]
    with pytest.raises(DataError, match=r"\$\._metadata: an object was expected, not an array"):
        storage.save_results({"evaluation_id": "c", "_metadata": [1]})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": object()}, r"\$\.x\.a: object would be read back"),
        ([1, b"bytes"], r"\$\.x\[1\]: bytes would be read back"),
        (2**2000, r"\$\.x: the number is too large"),
        ({1: 2}, r"\$\.x: the key 1 is not a text"),
        ({3, 4}, r"\$\.x: set would be read back"),
        (datetime(2024, 1, 1, tzinfo=UTC), r"\$\.x: datetime would be read back"),
        (Decimal("1.1"), r"\$\.x: Decimal would be read back"),
    ],
)
def test_what_would_be_read_back_as_something_else_is_refused(
    tmp_path: Path, value: Any, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        EvaluationResultsStorage(tmp_path).save_results({"evaluation_id": "a", "x": value})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [b"", b"not a database", b"SQLite format 3\0 and no more"])
def test_a_file_that_is_not_a_database_is_named(storage: EvaluationResultsStorage, content: bytes) -> None:
    (storage.results_directory / "first.run.db").write_bytes(content)
    with pytest.raises(StorageError, match=r"first\.run\.db cannot be read"):
        storage.load_run("first")


def test_a_document_of_other_outputs_is_refused(storage: EvaluationResultsStorage) -> None:
    other = EvaluationResultsStorage(storage.results_directory / "other")
    run = a_run()
    run.outputs[0].response.text = "something else"
    other.save_run(run)
    shutil.copy(other.results_directory / "first.run.db", storage.results_directory)
    with pytest.raises(DataError, match=r"it was not made of the outputs in first\.run\.db"):
        storage.load_run("first")


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"evaluation_id": 5}, id="number as id"),
        pytest.param({"timestamp": None}, id="no time"),
        pytest.param({"summary": {}}, id="empty summary"),
        pytest.param({"summary": []}, id="list as summary"),
        pytest.param({"configuration": {}}, id="no retrieval_k"),
        pytest.param({"additional_metrics": {"m": {"target": "LATENCY", "value": "x"}}}, id="text value"),
        pytest.param({"additional_metrics": {"m": {"target": "LATENCY"}}}, id="no value"),
        pytest.param({"additional_metrics": [1]}, id="list of metrics"),
    ],
)
def test_an_edited_results_file_is_refused(storage: EvaluationResultsStorage, fields: dict[str, Any]) -> None:
    edited(storage, **fields)
    with pytest.raises(DataError, match=r"^first\.results\.json: .*Was it edited"):
        storage.load_run("first")
