"""Packed and unpacked is the same; what is not ours is an error, and a bomb is only an error."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auepora_eval.errors import DataError
from auepora_eval.io.documents import DataCompressor
from tests.io.documents import DATASET, json_values

documents = st.dictionaries(st.text(max_size=8), json_values, max_size=4)


@given(documents, st.integers(0, 9))
def test_a_round_trip_changes_nothing(document: dict[str, Any], level: int) -> None:
    packed = DataCompressor.compress_evaluation_data(document, level)
    assert DataCompressor.decompress_evaluation_data(packed) == document
    assert DataCompressor.decompress_evaluation_data(gzip.compress(json.dumps(document).encode())) == document


def test_equal_documents_give_equal_bytes_without_a_time_in_them() -> None:
    packed = DataCompressor.compress_evaluation_data(DATASET)
    assert packed == DataCompressor.compress_evaluation_data(DATASET)
    assert packed[4:8] == b"\0\0\0\0"


def test_a_higher_level_is_smaller() -> None:
    data = {"texts": [f"text {number * number}" for number in range(2000)]}
    sizes = [len(DataCompressor.compress_evaluation_data(data, level)) for level in (0, 1, 9)]
    assert sizes[0] > sizes[1] > sizes[2]


@pytest.mark.parametrize("level", [-1, 10, 1.5, "6", True, None])
def test_a_level_that_there_is_not(level: Any) -> None:
    with pytest.raises(ValueError, match=r"compression_level: .* is not a level. Use 0 to 9."):
        DataCompressor.compress_evaluation_data({}, level)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"", "there is nothing in it", id="nothing"),
        pytest.param(b"plain text", "cannot be unpacked", id="not gzip"),
        pytest.param(gzip.compress(b'{"a": 1}')[:-5], "cannot be unpacked", id="cut off"),
        pytest.param(gzip.compress(b'{"a": 1}') + b"junk", "cannot be unpacked", id="something behind"),
        pytest.param(gzip.compress(b'{"a": 1')[:], "ends in the middle", id="half a document"),
        pytest.param(gzip.compress(b'{"a": NaN}'), r"NaN", id="NaN"),
        pytest.param(gzip.compress(b'{"a": "\xff"}'), "not UTF-8", id="not UTF-8"),
        pytest.param(gzip.compress(b"[1]"), "an object was expected, not an array", id="a list"),
        pytest.param(gzip.compress(b'{"a":' * 5000 + b"1" + b"}" * 5000), "too deeply", id="deep"),
    ],
)
def test_what_is_not_ours_is_an_error(content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        DataCompressor.decompress_evaluation_data(content)


@given(st.binary(max_size=200), st.integers(0, 60))
def test_damaged_bytes_are_an_error_or_data(noise: bytes, place: int) -> None:
    packed = DataCompressor.compress_evaluation_data(DATASET)
    try:
        found = DataCompressor.decompress_evaluation_data(packed[:place] + noise + packed[place:])
    except DataError:
        return
    assert isinstance(found, dict)


def test_a_bomb_is_an_error_within_little_memory() -> None:
    bomb = gzip.compress(b'{"a": "' + b"x" * 100_000_000 + b'"}')
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="this is not data"):
            DataCompressor.decompress_evaluation_data(bomb)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60_000_000


def test_the_ratio_is_that_of_spaced_json_to_packed() -> None:
    spaced = len(json.dumps(DATASET))
    packed = len(DataCompressor.compress_evaluation_data(DATASET))
    assert DataCompressor.estimate_compression_ratio(DATASET) == spaced / packed > 1


@pytest.mark.parametrize("data", [[], "text", None])
def test_only_objects_are_packed(data: Any) -> None:
    with pytest.raises(DataError, match="an object was expected"):
        DataCompressor.compress_evaluation_data(data)


def test_what_cannot_be_written_is_an_error() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(DataError, match="too deeply"):
        DataCompressor.compress_evaluation_data({"a": deep})
    with pytest.raises(DataError, match="surrogate"):
        DataCompressor.compress_evaluation_data({"a": "\ud800"})
