"""Ids as file names: checked, never repaired."""

from __future__ import annotations

import pytest

from auepora_eval.errors import DataError
from auepora_eval.io.files import file_name


@pytest.mark.parametrize("identifier", ["a", "run-1", "2024.v1", "a@b+c_d", "x" * 128, "console", "common.x"])
def test_plain_names_pass_unchanged(identifier: str) -> None:
    assert file_name(identifier) == identifier


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


def test_a_number_is_not_an_id() -> None:
    with pytest.raises(DataError, match="cannot be a file name"):
        file_name(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("identifier", "said"),
    [
        ("a.", "no dot last"),
        ("café", "128 ASCII letters"),
        ("a/b", "128 ASCII letters"),
        ("x" * 129, "128 ASCII letters"),
    ],
)
def test_the_error_says_what_is_allowed(identifier: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        file_name(identifier)
