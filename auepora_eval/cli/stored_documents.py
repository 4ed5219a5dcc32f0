"""What `auepora show` prints of an experiment, a recording of a benchmark, and a benchmark file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import echo

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..runs.benchmark_measurements import Measurement


def say_experiment(results: Mapping[str, Any]) -> None:
    """The tables of a stored experiment, who won, and why."""
    from ..reporting import stored_tables as tables

    _say_head("experiment", results)
    echo.say_table(("Metric", *tables.variant_names(results)), tables.variant_rows(results))
    tests, rails = tables.test_rows(results), tables.rail_rows(results)
    if tests:
        echo.say()
        echo.say_table(tables.TEST_HEADINGS, tests, numeric=(2, 3, 4))
    if rails:
        echo.say()
        echo.say_table(tables.RAIL_HEADINGS, rails)
    echo.say()
    winner, reason = echo.one_line(results.get("winner"), 80), echo.one_line(results.get("reason"), 1000)
    echo.say_words(f"Winner: {winner}. {'Reason: ' if winner == 'none' else ''}{reason}")


def say_recording(results: Mapping[str, Any], name: str) -> None:
    """What a recording of a benchmark found, and what had become worse."""
    from ..runs.benchmark_measurements import measurements_of_results

    _say_head("benchmark", results)
    _say_measurements(measurements_of_results(results, name))
    worse = results.get("regressions")
    found = [one for one in worse if isinstance(one, dict)] if isinstance(worse, list) else []
    for one in found:
        words = f"{echo.one_line(one.get('severity'), 20)}: {echo.one_line(one.get('message'), 500)}"
        echo.say_words(words)
    if not found:
        echo.say("Nothing had become worse.")


def say_benchmark_file(path: Path) -> None:
    """Baselines, or what was measured."""
    from ..io.benchmark_json import load_benchmark
    from ..runs.benchmark_baselines import read_baselines
    from ..runs.benchmark_measurements import measurements_of_benchmark

    data = load_benchmark(path)
    if not isinstance(data.get("baselines"), dict):
        echo.say(f"benchmark {path.name}")
        _say_measurements(measurements_of_benchmark(data, path.name))
        return
    baselines = [one for one in read_baselines(path).values() if one.recordings]
    echo.say(f"baselines {path.name}")
    _say_measurements([one.expected for one in baselines])
    for one in baselines:
        last = one.expected.timestamp or "at no stated time"
        name = echo.one_line(one.operation, 60)
        count = "1 recording" if len(one.recordings) == 1 else f"{len(one.recordings)} recordings"
        more = f"; {len(one.history)} before this baseline began" if one.history else ""
        echo.say(f"{name}: {count}, the last {echo.one_line(last, 40)}{more}")


def _say_head(kind: str, results: Mapping[str, Any]) -> None:
    names = ("evaluation_id", "timestamp", "dataset_id")
    told = ", ".join(echo.one_line(results[name], 80) for name in names if results.get(name) is not None)
    title = results.get("name")
    echo.say(f"{kind} {told}")
    if kind == "experiment" and title:
        echo.say(echo.one_line(title, 300))


def _say_measurements(found: Sequence[Measurement]) -> None:
    from ..reporting.stored_tables import MEASUREMENT_HEADINGS, measurement_rows

    echo.say_table(MEASUREMENT_HEADINGS, measurement_rows(found), numeric=range(1, 7))
