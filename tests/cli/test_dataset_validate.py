"""auepora dataset check: every error is counted once, every file is checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.cli.main import main
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.errors import DataError
from auepora_eval.io.eval_json import load_eval_json
from auepora_eval.metrics.parse import parse_metrics
from auepora_eval.runs.store.storage import EvaluationResultsStorage
from tests.builders import scored_run, small_world

pytestmark = pytest.mark.filterwarnings("ignore::auepora_eval.core.plan.PartialCoverageWarning")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def a_dataset(path: str, wrong: int) -> None:
    queries: list[dict[str, Any]] = [{"query_id": "0", "query_text": "?", "relevant_documents": []}]
    queries += [{"query_id": str(n), "query_text": 1, "relevant_documents": []} for n in range(1, wrong + 1)]
    document = {"dataset_id": "d", "name": "D", "version": "1", "queries": queries}
    Path(path).write_text(json.dumps(document), encoding="utf-8")


def test_further_errors_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    a_dataset("d.eval.json", 137)
    assert main(["dataset", "check", "d.eval.json"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[101] == "  ... and 37 more (--all)"
    assert main(["dataset", "check", "--all", "d.eval.json"]) == 1
    assert "$.queries[137]" in capsys.readouterr().out
    assert main(["dataset", "check", "--json", "d.eval.json"]) == 1
    assert len(json.loads(capsys.readouterr().out)["files"][0]["form"]["errors"]) == 137
    with pytest.raises(DataError, match="And 136 more: auepora dataset check"):
        load_eval_json("d.eval.json")


@pytest.mark.parametrize("wrong", [100, 101])
def test_hundred_errors_are_all_listed(wrong: int, capsys: pytest.CaptureFixture[str]) -> None:
    a_dataset("d.eval.json", wrong)
    main(["dataset", "check", "d.eval.json"])
    assert ("... and 1 more" in capsys.readouterr().out) == (wrong == 101)


def test_missing_file_does_not_hide_other_errors(capsys: pytest.CaptureFixture[str]) -> None:
    a_dataset("good.eval.json", 0)
    a_dataset("bad.eval.json", 1)
    files = ["nosuch.json", "good.eval.json", "x" * 5000, ".", "bad.eval.json"]
    assert main(["dataset", "check", *files]) == 2
    shown = capsys.readouterr()
    assert [line for line in shown.out.splitlines() if "valid" in line.lower()] == [
        "good.eval.json: valid (eval_json)",
        "bad.eval.json: NOT VALID (eval_json)",
    ]
    assert shown.err.count("auepora: ") == len(shown.err.splitlines()) == 3
    assert "nosuch.json: there is no such file" in shown.err
    assert main(["dataset", "check", "--json", *files]) == 2
    reports = [one["form"] for one in json.loads(capsys.readouterr().out)["files"]]
    assert [(report["format"], report["valid"]) for report in reports] == [
        (None, False),
        ("eval_json", True),
        (None, False),
        (None, False),
        ("eval_json", False),
    ]


def test_missing_rows_and_rows_of_another_run(capsys: pytest.CaptureFixture[str]) -> None:
    storage = EvaluationResultsStorage("r")
    plan = EvaluationPlan(parse_metrics("recall@3"))
    run = scored_run(plan, *small_world(), system_name="s", dataset_name="d", evaluation_id="big")
    path = storage.save_run(run, rows_in_the_json=1)
    assert main(["dataset", "check", str(path)]) == 0
    beside = Path("r/big.queries.parquet")
    content = beside.read_bytes()
    capsys.readouterr()
    beside.write_bytes(content + b" ")
    assert main(["dataset", "check", str(path)]) == 1
    assert "$.queries_file: big.queries.parquet has another sha256" in capsys.readouterr().out
    beside.unlink()
    assert main(["dataset", "check", str(path)]) == 1
    assert "$.queries_file: there is no big.queries.parquet beside it" in capsys.readouterr().out
