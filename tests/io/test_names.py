"""Ids as file names: checked, never repaired."""

from __future__ import annotations

import pytest

from auepora_eval.errors import DataError
from auepora_eval.io.files import file_name


@pytest.mark.parametrize(
    "identifier",
    [
        pytest.param("", id="empty"),
        pytest.param(".", id="dot"),
        pytest.param("..", id="dots"),
        pytest.param("a..b", id="dots within"),
        pytest.param("a/b", id="slash"),
        pytest.param("a\\b", id="backslash"),
        pytest.param("/etc/passwd", id="absolute"),
        pytest.param("../../etc/passwd", id="upwards"),
        pytest.param("C:x", id="drive"),
        pytest.param("a\0b", id="NUL"),
        pytest.param("a\n", id="newline at the end"),
        pytest.param("x" * 129, id="too long"),
        pytest.param(".hidden", id="leading dot"),
        pytest.param("a.", id="trailing dot"),
        pytest.param("a ", id="trailing blank"),
        pytest.param("-rf", id="looks like a flag"),
        pytest.param("é", id="beyond ASCII"),
        pytest.param("\ud800", id="half a surrogate pair"),
    ],
)
def test_others_are_refused(identifier: str) -> None:
    with pytest.raises(DataError, match="cannot be a file name") as caught:
        file_name(identifier, "evaluation id")
    assert str(caught.value).startswith("evaluation id ")
    assert len(str(caught.value)) < 260
