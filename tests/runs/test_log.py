"""Events: what of them may be written down."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auepora_eval.runs.log import RunLog, clean_facts, in_words

KEY = "sk-canary-0123456789"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (7, 7),
        (True, True),
        (0.12345678, 0.123457),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        ("half \ud800 a character", "half ? a character"),
        ("a\0b", "a�b"),
        ("x" * 9_999, "x" * 500),
        (f"{'x' * 490} {KEY}", f"{'x' * 490} ***"),  # cut after the key is out, not through it
    ],
)
def test_facts_are_cleaned(value: Any, expected: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", KEY)
    assert clean_facts({"fact": value, "unknown": None}) == {"fact": expected}


def test_a_secret_at_the_end_of_a_fact_takes_nothing_of_the_next() -> None:
    facts = {"a": "Bearer abc123", "b": "/?key=1", "c": "http://u:x", "d": "y@h", "e": "Authorization: Basic"}
    expected = facts | {"a": "Bearer ***", "b": "/?key=***"}
    assert clean_facts(facts) == expected


@given(st.dictionaries(st.text(min_size=1), st.none() | st.integers() | st.floats() | st.text(), max_size=5))
def test_every_fact_that_is_known_stays_under_its_name(facts: dict[str, Any]) -> None:
    clean = clean_facts(facts)
    assert set(clean) == {name for name, value in facts.items() if value is not None}
    assert all(isinstance(clean[name], str) for name, value in facts.items() if isinstance(value, str))


def test_the_logger_gets_events_from_its_level_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = RunLog(tmp_path)
    with caplog.at_level(logging.WARNING, "auepora_eval"):
        log.write(logging.INFO, "quiet")
        log.write(logging.WARNING, "loud", size=3, name="a b")
    log.close()
    (record,) = caplog.records
    assert (record.getMessage(), record.levelname) == ("loud size=3 name='a b'", "WARNING")
    assert in_words("bare", {}) == "bare"
