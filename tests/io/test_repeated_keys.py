"""A key that an object has twice is found in every spelling, and nothing else is taken for one."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auepora_eval.errors import DataError
from auepora_eval.io.json.text import parse_json

TWICE = [
    '{"a":1,"a":1}',
    '{"a" :1,"a":2}',
    '{"a"\t:\n1, "a" : 2}',
    '{"a":1,"a":2,"b":"\\u003a"}',
    '{"a":1,"a":2,"b":"\\u003A"}',
    '{"a":1,"\\u0061":2}',
    '{"a":{"b:c":1,"b:c":":"}}',
    '[{"a":1},{"b":null,"b":{"c":1}}]',
]


@pytest.mark.parametrize("text", TWICE)
def test_a_repeated_key_is_an_error(text: str) -> None:
    with pytest.raises(DataError, match="occurs twice"):
        parse_json(text.encode(), "data.jsonl:17")


VALUES = st.recursive(
    st.none() | st.integers() | st.text(alphabet='ab:"\\ é\n'),
    lambda part: st.lists(part) | st.dictionaries(st.text(alphabet='a:"b\\'), part),
)


@given(VALUES, st.sampled_from([json.dumps, lambda value: json.dumps(value, indent=1, ensure_ascii=False)]))
def test_other_texts_are_read_as_they_are(value: object, dumps: Callable[[object], str]) -> None:
    assert parse_json(dumps(value).encode(), "data.jsonl:17") == value
