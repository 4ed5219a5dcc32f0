"""The head of a results file is read without its rows, and is the same as when everything is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.store.state import read_results, read_results_head
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import a_dataset, a_sample


@pytest.fixture
def path(tmp_path: Path) -> Path:
    samples = [a_sample(str(n), relevant="ab", query='text with "query_results": [') for n in range(20)]
    evaluator = AueporaEvaluator(lambda query: {"retrieved": ["a"]}, EvaluationPlan("recall@1,mrr"))
    evaluator.run(a_dataset(*samples), evaluation_id="r", storage=EvaluationResultsStorage(tmp_path))
    return tmp_path / "r.results.json"


def test_head_is_the_document_without_its_rows(path: Path) -> None:
    results = read_results(path)
    assert len(results.pop("query_results")) == 20
    assert read_results_head(path) == results


def test_rows_are_not_read(path: Path) -> None:
    head = read_results_head(path)
    start, rows = path.read_bytes().split(b'"query_results": [\n')
    path.write_bytes(start + b'"query_results": [\n' + b"x" * (len(rows) - 7) + rows[-7:])
    assert read_results_head(path) == head


def test_a_document_with_its_rows_in_the_middle_is_read_whole(path: Path) -> None:
    results = read_results(path)
    rows = results.pop("query_results")
    middle = {"evaluation_id": "r", "query_results": rows, **results}
    for indent in (None, 2):
        path.write_text(json.dumps(middle, indent=indent) + "\n", encoding="utf-8")
        assert read_results_head(path) == results


def test_summary_and_tally_are_those_of_the_whole_run(path: Path) -> None:
    storage = EvaluationResultsStorage(path.parent)
    whole, summary = storage.load_run("r"), storage.load_summary("r")
    assert [(one.name, one.value, one.details) for one in summary.results] == [
        (one.name, one.value, one.details) for one in whole.results
    ]
    tally = storage.load_tally("r")
    assert (tally.total, tally.failed) == (20, 0)
