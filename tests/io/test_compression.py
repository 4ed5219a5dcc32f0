"""Packed and unpacked is the same; what is not ours is an error, and a bomb is only an error."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auepora_eval.errors import DataError
from auepora_eval.io.documents import DataCompressor
from tests.io.documents import json_values

documents = st.dictionaries(st.text(max_size=8), json_values, max_size=4)


@given(documents, st.integers(0, 9))
def test_a_round_trip_changes_nothing(document: dict[str, Any], level: int) -> None:
    packed = DataCompressor.compress_evaluation_data(document, level)
    assert DataCompressor.decompress_evaluation_data(packed) == document
    assert DataCompressor.decompress_evaluation_data(gzip.compress(json.dumps(document).encode())) == document


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"", "there is nothing in it", id="nothing"),
        pytest.param(b"plain text", "cannot be unpacked", id="not gzip"),
        pytest.param(gzip.compress(b'{"a": 1}')[:-5], "cannot be unpacked", id="cut off"),
        pytest.param(gzip.compress(b'{"a": 1}') + b"junk", "cannot be unpacked", id="something behind"),
        pytest.param(gzip.compress(b'{"a": 1')[:], "not JSON", id="half a document"),
        pytest.param(gzip.compress(b'{"a": NaN}'), r"NaN", id="NaN"),
        pytest.param(gzip.compress(b'{"a": "\xff"}'), "not UTF-8", id="not UTF-8"),
        pytest.param(gzip.compress(b"[1]"), "an object was expected, not an array", id="a list"),
        pytest.param(gzip.compress(b'{"a":' * 5000 + b"1" + b"}" * 5000), "too deeply", id="deep"),
    ],
)
def test_what_is_not_ours_is_an_error(content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        DataCompressor.decompress_evaluation_data(content)
