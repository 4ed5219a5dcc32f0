"""The recorded scenarios print and store the same numbers as when they were recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.journeys.scenarios import GOLDEN, answers, measure

# Words that were renamed since the scenarios were recorded: old -> new. Numbers have no entry here.
RENAMED: dict[str, str] = {
    "biggest_losers": "largest_regressions",
    "cannot tell": "inconclusive",
    "if_unclear": "if_inconclusive",
    "losers": "regressions",
    "unclear": "inconclusive",
    "untold": "not_tested",
}


@pytest.mark.parametrize("name", sorted(answers()))
def test_no_number_has_changed(name: str) -> None:
    recorded = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    assert measure(name) == renamed(recorded)


def renamed(value: Any) -> Any:
    """Return a recorded document with the words of today."""
    if isinstance(value, dict):
        return {RENAMED.get(name, name): renamed(each) for name, each in value.items()}
    if isinstance(value, list):
        return [renamed(each) for each in value]
    return RENAMED.get(value, value) if isinstance(value, str) else value


def test_every_recording_belongs_to_a_scenario() -> None:
    assert {path.stem for path in GOLDEN.glob("*.json")} == set(answers())
