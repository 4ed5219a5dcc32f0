"""The recorded scenarios print, store and show the same as when they were recorded."""

from __future__ import annotations

from difflib import unified_diff

import pytest

from tests.journeys.scenarios import GOLDEN, RECORD, measured, scenarios

_MOST_LINES = 150  # of a difference that is shown


@pytest.mark.parametrize("name", sorted(scenarios()))
def test_the_output_is_as_recorded(name: str) -> None:
    file, now = measured(name)
    path = GOLDEN / file
    recorded = path.read_bytes().decode() if path.exists() else ""
    if now != recorded:
        pytest.fail(f"{difference(file, recorded, now)}\nIf this is intended: {RECORD} {name}", pytrace=False)


def difference(file: str, recorded: str, now: str) -> str:
    """Return what changed, as `diff` shows it."""
    lines = [
        *unified_diff(recorded.splitlines(), now.splitlines(), f"recorded/{file}", f"now/{file}", lineterm="")
    ]
    more = [f"... and {len(lines) - _MOST_LINES:,} more lines"] if len(lines) > _MOST_LINES else []
    return "\n".join([*lines[:_MOST_LINES], *more])


def test_every_recording_belongs_to_a_scenario() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(scenarios())
