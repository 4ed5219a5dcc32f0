"""Plan files: what they may say, and that no YAML trick gets through."""

from __future__ import annotations

import gzip
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.errors import DataError
from auepora_eval.io.config import load_config


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
        pytest.param(b"top_k: 1\ntop_k: 2\n", {"top_k": 2}, id="of a repeated key the last counts"),
        pytest.param(b"{}\n", {}, id="no setting"),
    ],
)
def test_plans(tmp_path: Path, content: bytes, expected: dict[str, Any]) -> None:
    assert loaded(tmp_path, content) == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"", "'key: value'", id="empty"),
        pytest.param(b"- a\n", "'key: value'", id="a list"),
        pytest.param(b"text\n", "'key: value'", id="a text"),
        pytest.param(b"datset: x\n", "datset: there is no such setting. Did you mean dataset", id="misspelt"),
        pytest.param(b"zzzz: x\n", "The keys are dataset, ", id="unknown"),
        pytest.param(b"1: x\n", "no such setting", id="a number as key"),
        pytest.param(b"top_k: five\n", "top_k: expected int but got 'five'", id="text for a number"),
        pytest.param(b"top_k: true\n", "expected int but got True", id="boolean for a number"),
        pytest.param(b"dataset:\n", "dataset: expected str but got None", id="no value"),
        pytest.param(b"metrics: [[a]]\n", "list of names", id="nested list"),
        pytest.param(b"top_k: 0\n", "top_k: 0 is out of range. Use at least 1", id="top_k 0"),
        pytest.param(b"limit: -1\n", "limit: -1 is out of range", id="limit -1"),
        pytest.param(b"seed: -1\n", "seed: -1 is out of range", id="seed -1"),
        pytest.param(b"timeout: .nan\n", "timeout: nan is out of range", id="timeout NaN"),
        pytest.param(b"timeout: 0\n", "timeout: 0 is out of range", id="timeout 0"),
        pytest.param(b"timeout: .inf\n", "timeout: inf is out of range", id="timeout infinite"),
        pytest.param(b"dataset: 2020-99-01\n", "not YAML: month", id="a date that is none"),
        pytest.param(b"top_k: 1" + b"0" * 5000, "not YAML", id="5000 digits"),
        pytest.param(b"top_k: !!bool x\n", "not YAML", id="a boolean that is none"),
        pytest.param(b"a: b: c\n", r"yaml:1: not YAML", id="syntax"),
        pytest.param(b"top_k: 1\n---\ntop_k: 2\n", r"yaml:2: not YAML", id="two documents"),
        pytest.param(b"top_k: \x00\n", "not YAML", id="NUL"),
        pytest.param(b"dataset: \xff\xfe\xfa\n", "not YAML", id="not UTF-8"),
        pytest.param(b"[" * 100_000, "not YAML", id="100,000 brackets"),
        pytest.param(b"#" * 1_000_001, "over 1 MB", id="1 MB"),
        pytest.param(gzip.compress(b"top_k: 3\n")[:-5], "cut off", id="gzip cut off"),
        pytest.param(b"\x1f\x8b" + b"x" * 20, "damaged", id="begins like gzip"),
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
    with pytest.raises(DataError, match="could not determine a constructor"):
        loaded(tmp_path, f"dataset: !!{tag.format(trace)}\n".encode())
    assert not trace.exists()


@pytest.mark.parametrize(
    ("first", "line"),
    [
        pytest.param("a: &a [x,x,x,x,x,x,x,x,x]", "{1}: &{1} [{0}]", id="lists"),
        pytest.param("a: &a {x: 1}", "{1}: &{1} {{<<: [{0}]}}", id="merge keys"),
    ],
)
def test_a_bomb_of_aliases_is_refused_at_once(tmp_path: Path, first: str, line: str) -> None:
    letters = "abcdefghijk"
    lines = [first]
    for old, new in pairwise(letters):
        lines.append(line.format(",".join([f"*{old}"] * 9), new))
    start = time.perf_counter()
    with pytest.raises(DataError, match="a plan has no aliases"):
        loaded(tmp_path, "\n".join(lines).encode())
    assert time.perf_counter() - start < 1


@pytest.mark.parametrize("content", [b"metrics: &a [*a]\n", b"&a\ndataset: *a\n"], ids=["list", "mapping"])
def test_a_plan_that_holds_itself_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(DataError, match="aliases"):
        loaded(tmp_path, content)


def test_a_folder_is_not_a_plan(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is a folder"):
        load_config(tmp_path)
