"""The quick way to read a record: it gives what the careful way gives, or leaves the record to it."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auepora_eval.core.types import Document
from auepora_eval.errors import DataError
from auepora_eval.io.json.records import (
    prediction_record,
    quick_journaled,
    quick_prediction,
    quick_sample,
    read_prediction,
    read_sample,
)
from auepora_eval.io.jsonl import parse_line
from tests.builders import a_failure, an_output

WHERE = "d.jsonl:7"
CORPUS = {"a": Document("a", "a text", {"relevance": 2})}
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.floats(-9, 9), st.text(max_size=3))
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
)
OBJECTS = st.dictionaries(st.text(max_size=2), ANYTHING, max_size=2)


def record(required: dict[str, Any], **optional: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Mostly what a record should be; now and then anything at all in a field, or a field nobody knows."""
    fields = {name: st.one_of(field, field, field, ANYTHING) for name, field in optional.items()}
    return st.fixed_dictionaries(required, optional={**fields, "unknown": ANYTHING})


DOCUMENTS = st.lists(
    st.one_of(
        st.sampled_from(["a", "b"]), record({"doc_id": st.text(max_size=2)}, text=st.text(), metadata=OBJECTS)
    ),
    max_size=3,
)
RESPONSES = st.one_of(
    st.text(max_size=3), record({}, text=st.text(max_size=3), structured=OBJECTS, metadata=OBJECTS)
)
HITS = st.lists(
    st.one_of(
        st.sampled_from(["a", "b"]),
        record(
            {"doc_id": st.text(max_size=2)},
            text=st.text(max_size=3),
            score=st.floats(0, 1) | st.integers(0, 3),
            rank=st.integers(1, 3),
            metadata=OBJECTS,
        ),
    ),
    max_size=3,
)
SAMPLES = record(
    {"sample_id": st.sampled_from(["1", " ", "x"]), "query": st.text(max_size=3)},
    relevant_docs=DOCUMENTS,
    candidate_docs=DOCUMENTS,
    reference_answer=RESPONSES,
    labels=OBJECTS,
    metadata=OBJECTS,
)
PREDICTIONS = record(
    {"sample_id": st.sampled_from(["1", " ", "x"])},
    retrieved=HITS,
    response=RESPONSES,
    answer=st.text(max_size=3),
    timings=st.dictionaries(st.sampled_from(["end_to_end", "ttft"]), st.floats(-1, 3) | st.integers(0, 2)),
    extra=OBJECTS,
    error=st.one_of(
        st.text(max_size=3), record({"type": st.text()}, message=st.text(), seconds=st.floats(0, 1))
    ),
)


def outcome(read: Callable[[], Any]) -> Any:
    """What a reader gives: a value, or the words of its error; with the words of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = read()
        except DataError as error:
            found = str(error)
    return found, [str(one.message) for one in caught]


def assert_alike(quick: Callable[[], Any], careful: Callable[[], Any]) -> None:
    ours = outcome(quick)
    if ours != (None, []):  # else it was left to the careful way
        assert ours == outcome(careful)


@given(SAMPLES)
def test_samples(sample: dict[str, Any]) -> None:
    line = json.dumps(sample).encode()
    assert_alike(
        lambda: quick_sample(line, WHERE, CORPUS), lambda: read_sample(parse_line(line, WHERE), WHERE, CORPUS)
    )


@given(PREDICTIONS)
def test_predictions(prediction: dict[str, Any]) -> None:
    line = json.dumps(prediction).encode()
    careful = lambda: read_prediction(parse_line(line, WHERE), WHERE)  # noqa: E731
    assert_alike(lambda: quick_prediction(line, WHERE), careful)
    journaled = b'{"output":' + line + b',"seq":1,"type":"output","v":1}'
    assert_alike(lambda: quick_journaled(journaled, WHERE), careful)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b'{"sample_id":"1","query":"q","sample_id":"2"}', id="an id twice"),
        pytest.param(b'{"sample_id":"1","query":"q","query":"p"}', id="a query twice"),
        pytest.param(b'{"sample_id":"1","query":"q","quary":"p"}', id="an unknown field"),
        pytest.param(
            b'{"sample_id":"1","query":"q","relevant_docs":[{"doc_id":"a","txt":"t"}]}', id="inside"
        ),
        pytest.param(b'{"sample_id":1,"query":"q"}', id="a wrong type"),
        pytest.param(b'{"sample_id":"1"}', id="a field that is missing"),
        pytest.param(b'{"sample_id":"1","query":"q","labels":{"n":' + b"9" * 400 + b"}}", id="a huge number"),
        pytest.param(
            b'{"sample_id":"1","query":"q","labels":' + b'{"a":' * 120 + b"1" + b"}" * 121, id="too deep"
        ),
        pytest.param(b'{"dataset":{"dataset_id":"x"}}', id="the head of a file"),
        pytest.param(b'["1"]', id="no object"),
        pytest.param(b'{"sample_id":"1","query":"\xff"}', id="no UTF-8"),
        pytest.param(b'{"sample_id":"1","que', id="cut off"),
    ],
)
def test_what_is_unusual_is_left_to_the_careful_way(line: bytes) -> None:
    assert quick_sample(line, WHERE, {}) is None


def test_the_usual_is_not_left_to_it() -> None:
    line = b'{"sample_id":"1","query":"q","relevant_docs":["a"],"reference_answer":{"text":"t"}}'
    assert quick_sample(line, WHERE, CORPUS) == read_sample(json.loads(line), WHERE, CORPUS)
    outputs = [an_output("ab", "x", timings={"end_to_end": math.pi}, extra={"n": [1, None]}), a_failure()]
    for output in outputs:
        line = msgspec.json.encode(prediction_record("1", output))
        assert quick_prediction(line, WHERE) == read_prediction(json.loads(line), WHERE) == ("1", output)
