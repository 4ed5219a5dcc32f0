"""Recorded scenarios: commands with seeds, and what they printed, stored and showed.

`python -m tests.journeys.scenarios` records all of them into tests/golden/scenarios, with names of scenarios
only these. Do that only when a change of the outputs is intended; read the difference, and say in the commit
what changed and why.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

from tests.journeys import numbers, pages, screens
from tests.journeys.recording import ROOT, empty_folder

GOLDEN = ROOT / "tests" / "golden" / "scenarios"
RECORD = "python -m tests.journeys.scenarios"


def scenarios() -> dict[str, Callable[[], Any]]:
    """Return every scenario by its name. Each runs in an empty folder; it returns a text or data."""
    every = (*numbers.SCENARIOS, *screens.SCENARIOS, *pages.SCENARIOS)
    named = {scenario.__name__: scenario for scenario in every}
    assert len(named) == len(every), "two scenarios have the same name"
    return named


def measured(name: str) -> tuple[str, str]:
    """Run a scenario and return the name of its file and what belongs into it."""
    with empty_folder():
        found = scenarios()[name]()
    if isinstance(found, str):
        return f"{name}.txt", found
    return f"{name}.json", json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def record(*names: str) -> None:
    """Write the files of scenarios, of all if none is named; those of a scenario that is gone are removed."""
    GOLDEN.mkdir(parents=True, exist_ok=True)
    written: set[Path] = set()
    for name in names or scenarios():
        start = process_time()
        file, text = measured(name)
        (GOLDEN / file).write_bytes(text.encode())
        written.add(GOLDEN / file)
        print(f"{file:32} {len(text.encode()):8,} bytes {process_time() - start:6.2f} s")
    for path in [] if names else {*GOLDEN.iterdir()} - written:
        path.unlink()
        print(f"{path.name:32} removed")


if __name__ == "__main__":
    record(*sys.argv[1:])
