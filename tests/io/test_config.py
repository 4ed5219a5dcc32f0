"""Plan files: what they may say, and that no YAML trick gets through."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.errors import DataError
from auepora_eval.io.config.plan import OtherBlockWarning, load_config, read_config


def loaded(tmp_path: Path, content: bytes) -> dict[str, Any]:
    path = tmp_path / "plan.config.yaml"
    path.write_bytes(content)
    return load_config(path)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(b"top_k: 3\n", {"top_k": 3}, id="one setting"),
        pytest.param(b"metrics: [recall@5, mrr]\n", {"metrics": ["recall@5", "mrr"]}, id="list of metrics"),
        pytest.param(b"metrics: recall@5,mrr\n", {"metrics": "recall@5,mrr"}, id="metrics as a text"),
        pytest.param(b"timeout: 2.5\nseed: 0\n", {"timeout": 2.5, "seed": 0}, id="numbers"),
        pytest.param(gzip.compress(b"top_k: 3\n"), {"top_k": 3}, id="gzip"),
        pytest.param(b"\xef\xbb\xbftop_k: 3\r\n", {"top_k": 3}, id="byte order mark and CRLF"),
        pytest.param(
            b"dataset: 2020-99-01\n", {"dataset": "2020-99-01"}, id="what looks like a date is a text"
        ),
        pytest.param(b"{}\n", {}, id="no setting"),
    ],
)
def test_plans(tmp_path: Path, content: bytes, expected: dict[str, Any]) -> None:
    assert loaded(tmp_path, content) == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"", "'key: value'", id="empty"),
        pytest.param(b"datset: x\n", "datset: there is no such setting. Did you mean dataset", id="misspelt"),
        pytest.param(b"zzzz: x\n", "The keys are dataset, ", id="unknown"),
        pytest.param(b"top_k: five\n", "top_k: 'five' is not of type .integer", id="text for a number"),
        pytest.param(b"dataset:\n", "dataset: null is not of type .string", id="no value"),
        pytest.param(b"metrics: [[a]]\n", r"metrics\[0\]: an array is not of type", id="nested list"),
        pytest.param(b"limit: -1\n", "limit: -1 is less than the minimum of 1", id="limit -1"),
        pytest.param(b"#" * 1_000_001, "more than 1 MB", id="1 MB"),
    ],
)
def test_refusals(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        loaded(tmp_path, content)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "tag",
    ["python/object/apply:os.mkdir [{0}]", "python/object/new:os.mkdir [[{0}]]", "python/name:os.mkdir"],
)
def test_a_tag_runs_nothing(tmp_path: Path, tag: str) -> None:
    trace = tmp_path / "made"
    with pytest.raises(DataError, match=r"the tag '!!python/.*Tags are not read"):
        loaded(tmp_path, f"dataset: !!{tag.format(trace)}\n".encode())
    assert not trace.exists()


BLOCK = "evaluation:\n  confidence_level: 0.95\nretrieval_metrics:\n  k_values: [1, 3]\n"


def test_json_and_yaml_say_the_same(tmp_path: Path) -> None:
    path = tmp_path / "plan.config.json"
    path.write_text('{"dataset": "d.jsonl", "metrics": ["mrr"], "top_k": 3}', encoding="utf-8")
    assert load_config(path) == loaded(tmp_path, b"dataset: d.jsonl\nmetrics: [mrr]\ntop_k: 3\n")
    path.write_text('{"top_k": 3, "top_k": 4}', encoding="utf-8")
    with pytest.raises(DataError, match="the key 'top_k' occurs twice"):
        load_config(path)
    path.write_text("top_k: 3\n", encoding="utf-8")
    with pytest.raises(DataError, match="not JSON"):
        load_config(path)


def test_blocks_of_other_tools_are_checked_and_left_out(tmp_path: Path) -> None:
    with pytest.warns(
        OtherBlockWarning,
        match="plan.config.yaml: retrieval_metrics, evaluation: not part of the plan, ignored",
    ):
        assert loaded(tmp_path, f"top_k: 3\n{BLOCK}".encode()) == {"top_k": 3}
    assert read_config(tmp_path / "plan.config.yaml") == {
        "top_k": 3,
        "evaluation": {"confidence_level": 0.95},
        "retrieval_metrics": {"k_values": [1, 3]},
    }
    with pytest.raises(DataError, match=r"\$.evaluation.confidence_level"):
        loaded(tmp_path, b"evaluation:\n  confidence_level: 95\n")
    with pytest.raises(DataError, match=r"evalution: there is no such setting. Did you mean evaluation"):
        loaded(tmp_path, b"evalution: {}\n")
