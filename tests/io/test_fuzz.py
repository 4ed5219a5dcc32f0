"""Whatever the bytes are: the readers return, or raise an error of ours."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.errors import AueporaError
from auepora_eval.io.config.plan import load_config
from auepora_eval.io.jsonl import load_jsonl_dataset
from auepora_eval.io.loader import load_dataset
from auepora_eval.io.outputs import load_predictions

pytestmark = pytest.mark.full

VALID = (
    b'{"sample_id":"1","query":"q","relevant_docs":["a",{"doc_id":"b","text":"t","metadata":{"relevance":2}}],'
    b'"reference_answer":{"text":"r","metadata":{"alternatives":["s"]}},"labels":{"x":1.5}}\n'
    b'{"sample_id":"2","query":"\\u00e9","retrieved":[{"doc_id":"a","score":0.5,"rank":1}],"answer":"x",'
    b'"timings":{"end_to_end":0.1},"error":null}\n'
)
PLAN = b"dataset: a.jsonl\nmetrics: [recall@5, mrr]\ntop_k: 3\ntimeout: 1.5\nid: first\n"
JSON_PIECES = [b"{", b"}", b"[", b"]", b'"', b",", b":", b"null", b"NaN", b"-", b"1e999", b"\\ud800", b"\\"]
BYTE_PIECES = [b"\x00", b"\xff", b"\n", b"\r", b"\t", b"\xef\xbb\xbf", b"\x1f\x8b", b"9" * 400]
YAML_PIECES = [b"&a ", b"*a", b"!!int ", b"!!timestamp ", b"<<: ", b"- ", b"2020-13-01", b"? "]
PIECES = st.sampled_from([*JSON_PIECES, *BYTE_PIECES, *YAML_PIECES])
READERS = [load_jsonl_dataset, load_dataset, load_predictions, load_config]


def ours_or_nothing(read: Callable[[Path], Any], content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "file"
        path.write_bytes(content)
        message = "file"
        try:
            read(path)
        except AueporaError as error:
            message = str(error)
    assert message.startswith("file")
    assert "\n" not in message


@pytest.mark.parametrize("read", READERS)
@settings(max_examples=100, deadline=None)
@given(content=st.binary(max_size=200) | st.lists(PIECES, max_size=20).map(b"".join))
def test_random_bytes(read: Callable[[Path], Any], content: bytes) -> None:
    ours_or_nothing(read, content)


@st.composite
def mutated(draw: st.DrawFn, valid: bytes) -> bytes:
    content = valid
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(content)))
        end = draw(st.integers(start, min(len(content), start + 6)))
        content = content[:start] + draw(PIECES | st.binary(max_size=3)) + content[end:]
    return content[: draw(st.integers(0, len(content)))] if draw(st.booleans()) else content


@pytest.mark.parametrize("read", READERS[:3])
@settings(max_examples=100, deadline=None)
@given(content=mutated(VALID))
def test_lines_with_a_fault(read: Callable[[Path], Any], content: bytes) -> None:
    ours_or_nothing(read, content)


@settings(max_examples=100, deadline=None)
@given(content=mutated(PLAN))
def test_plans_with_a_fault(content: bytes) -> None:
    ours_or_nothing(load_config, content)
