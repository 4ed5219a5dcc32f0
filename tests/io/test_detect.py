"""What a file holds is found by its first records, not by the very first one alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from auepora_eval.io.detect import kind_of_file
from tests.raw_tasks import a_raw_task, write_tasks

SAMPLE = {"sample_id": "1", "query": "How many boats?"}
PREDICTION = {"sample_id": "1", "answer": "three"}


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        pytest.param(['{"sample_id": "0", "que', PREDICTION], "predictions", id="a cut-off first line"),
        pytest.param(
            [{"instruction": "Sum it up."}, a_raw_task()], "splits", id="a first task without an id"
        ),
        pytest.param([{"dataset": {"name": "boats"}}, SAMPLE], "jsonl", id="a description first"),
        pytest.param(
            [{**PREDICTION, "answer": "x" * 2_000_000}, PREDICTION], "predictions", id="a first line of 2 MB"
        ),
        pytest.param(["", "  ", PREDICTION], "predictions", id="blank lines first"),
    ],
)
def test_the_first_record_alone_does_not_decide(tmp_path: Path, lines: list[Any], kind: str) -> None:
    path = write_tasks(tmp_path / "file.jsonl", lines)
    assert kind_of_file(path) == kind
