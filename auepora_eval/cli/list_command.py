"""list the stored runs, experiments and benchmarks, newest first, or the trend of a metric

Example:

  auepora demo
  auepora list
  auepora list --trend ndcg@5

A trend has a line for each system and dataset, and marks where its values changed. Runs on other samples, of
a system with other settings (top_k, arguments), or with a metric that was computed otherwise, are never
joined. Failed calls count as the worst of a metric, as they do in a comparison.

Runs that were begun and not finished stand below, with the line that goes on with each.
"""

from __future__ import annotations

import math
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from . import echo
from .common import add_json, add_out, say_stored
from .numbers import share

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..runs.trend import Trend, TrendLine
    from ..runs.trend_points import TrendPoint

_BARS = "▁▂▃▄▅▆▇█"
_LINES_SHOWN = 10
_POINTS_SHOWN = 40
_METRICS_SHOWN = 12
_OTHERS = {"ab_test": "experiment", "benchmark": "benchmark"}  # by their evaluation_type


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--trend", metavar="METRIC", help="show a metric over time, and where it changed")
    parser.add_argument(
        "--across-systems", action="store_true", help="with --trend: one line whatever the system is called"
    )
    parser.add_argument(
        "--alpha", type=share, default=0.05, help="chance of a false mark in a line without changes (0.05)"
    )
    parser.add_argument("--plot", metavar="FILE", help="with --trend: draw it, .png or .svg (extra plots)")
    parser.add_argument("--force", action="store_true", help="replace a plot of the same name")
    add_out(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    from ..errors import PlanError
    from ..runs.storage import EvaluationResultsStorage
    from ..runs.unfinished import unfinished_runs

    storage = EvaluationResultsStorage(args.out)
    if args.trend is not None:
        return _trend(storage, args)
    if args.plot or args.across_systems:
        raise PlanError("--plot and --across-systems are of a trend: add --trend METRIC.")
    heads, begun = storage.list_results(), unfinished_runs(storage)
    if args.json:
        echo.say_json(heads)
        for one in begun:
            words = f"{one.evaluation_id} is not finished, {one.progress}: {one.obstacle or one.line}"
            echo.note(f"note: {echo.one_line(words)}")
        return 0
    if not heads and not begun:
        echo.note(f"no runs in {args.out}. Make one with auepora run, or with auepora demo.")
        return 0
    for head in heads:
        if "error" in head:
            echo.note(f"note: {echo.one_line(head['error'])}")
    read = [head for head in heads if "error" not in head]
    runs = [head for head in read if head.get("evaluation_type") not in _OTHERS]
    if runs:
        names = ("evaluation_id", "timestamp", "system_version", "dataset_id", "total_queries")
        rows = [_cells(head, *names, "failed_queries") for head in runs]
        echo.say_table(("Run", "When", "System", "Dataset", "Samples", "Failed"), rows, numeric=(4, 5))
    others = [head for head in read if head.get("evaluation_type") in _OTHERS]
    if others:
        rows = [
            [_OTHERS[head["evaluation_type"]], *_cells(head, "evaluation_id", "timestamp", "dataset_id")]
            for head in others
        ]
        if runs:
            echo.say()
        echo.say_table(("Kind", "Name", "When", "Dataset"), rows)
    if begun:
        if read:
            echo.say()
        rows = [[one.evaluation_id, one.begun_at, one.progress, one.obstacle or one.line] for one in begun]
        echo.say_table(("Not finished", "Begun", "Answered", "Go on with"), rows)
    return 0


def _cells(head: Mapping[str, Any], *names: str) -> list[str]:
    return ["-" if head.get(name) is None else str(head[name]) for name in names]


def _trend(storage: Any, args: Namespace) -> int:
    from ..errors import PlanError
    from ..runs.trend import metric_trend

    trend = metric_trend(storage, args.trend, alpha=args.alpha, across_systems=args.across_systems)
    if not trend.lines:
        _say_left_out(trend)
        raise PlanError(f"no run in {args.out} has {trend.metric!r:.60}. {_what_there_is(trend)}")
    if args.plot:
        from ..reporting.plots import save_figure
        from ..reporting.trend_plot import plot_trend

        try:
            say_stored(save_figure(plot_trend(trend), args.plot, force=args.force))
        except ValueError as error:  # fewer than two runs, or another suffix
            raise PlanError(f"{error}.") from error
    if args.json:
        from ..reporting.trend_json import trend_to_dict

        echo.say_json(trend_to_dict(trend))
        return 0
    _say(trend)
    return 0


def _what_there_is(trend: Trend) -> str:
    import difflib

    if not trend.metrics:
        return "There are no runs in it: make one with auepora run."
    near = difflib.get_close_matches(trend.metric[:80], trend.metrics, n=1)
    meant = f"Did you mean {echo.one_line(near[0], 60)}? " if near else ""
    names = ", ".join(echo.one_line(name, 60) for name in trend.metrics[:_METRICS_SHOWN])
    more = len(trend.metrics) - _METRICS_SHOWN
    return f"{meant}They have {names}{f' and {more} more' if more > 0 else ''}."


def _say(trend: Trend) -> None:
    several = [line for line in trend.lines if len(line.points) > 1]
    for line in (several or trend.lines)[:_LINES_SHOWN]:
        _say_line(trend, line)
    alone = sum(len(line.points) == 1 for line in trend.lines) if several else 0
    if alone:
        echo.note(f"note: {alone} runs are alone on their samples or with their system; --json shows them.")
    if len(several) > _LINES_SHOWN:
        echo.note(f"note: {len(several) - _LINES_SHOWN} more lines; --json shows them.")
    if len(trend.lines) > 1:
        echo.note(
            "note: other samples, systems, settings or ways to compute a metric make lines of their own."
        )
    failed = [point for line in trend.lines for point in line.points if point.failed]
    if any(point.failures_counted for point in failed):
        echo.note("note: failed calls count as the worst of the metric, as in a comparison.")
    if any(map(_mark, failed)):
        echo.note("note: *: calls failed, and the value leaves them out.")
    if any(not line.dataset_sha256 for line in trend.lines):
        echo.note(
            "note: results of other tools do not tell their samples; they are joined by name and number."
        )
    _say_left_out(trend)


def _say_left_out(trend: Trend) -> None:
    lacking = sum(reason.startswith("has no ") for reason in trend.left_out.values())
    if lacking:
        echo.note(f"note: {lacking} runs have no {trend.metric}.")
    for name, reason in trend.left_out.items():
        if not reason.startswith("has no "):
            echo.note(f"note: {echo.one_line(name, 80)} is left out: {echo.one_line(reason)}")


def _say_line(trend: Trend, line: TrendLine) -> None:
    from ..reporting.number_texts import interval_text, value_text
    from ..reporting.trend_words import settings_in_words

    version = f" {line.version}" if line.version else ""
    data = f"{line.dataset}{version} ({line.dataset_sha256[:12] or 'samples not told'})"
    settings = settings_in_words(trend, line)
    system = f"{line.system} ({settings})" if settings else line.system
    echo.say(f"{trend.metric}: {echo.one_line(system, 300)} on {data}, {len(line.points)} runs")
    echo.say(f"  {sparkline(line)}")
    changes = {change.place: change for change in line.changes}
    rows = []
    for place, point in enumerate(line.points):
        change = changes.get(place)
        told = "" if change is None else value_text(change.difference, line.unit, signed=True)
        rows.append(
            [
                point.timestamp,
                point.evaluation_id,
                value_text(point.value, line.unit) + _mark(point),
                interval_text(point.interval, line.unit),
                "-" if point.samples is None else f"{point.samples:,}",
                "-" if point.failed is None else f"{point.failed:,}",
                "" if change is None else f"change: {told}, p = {change.p_value:.2g}",
            ]
        )
    kept = [row for place, row in enumerate(rows) if place in changes or place >= len(rows) - _POINTS_SHOWN]
    headings = ("When", "Run", "Value", "95% interval", "Scored", "Failed", "")
    echo.say_table(headings, kept, numeric=(2, 3, 4, 5))
    if len(kept) < len(rows):
        echo.say(f"  ({len(rows) - len(kept)} older runs are not shown; --json has them)")
    if len(line.points) > 1:
        echo.say_words(_in_words(trend, line))
    echo.say()


def _mark(point: TrendPoint) -> str:
    return "*" if point.failed and not point.failures_counted and math.isfinite(point.value) else ""


def _in_words(trend: Trend, line: TrendLine) -> str:
    from ..reporting.number_texts import value_text

    how = f"({line.method}; a line without changes gets a mark in {trend.alpha:.0%} of cases at most)"
    if not line.changes:
        return f"No change found {how}."
    last = line.changes[-1]
    better = (last.difference > 0) == line.higher_is_better
    moved = f"from {value_text(last.before, line.unit)} to {value_text(last.after, line.unit)}"
    count = "1 change" if len(line.changes) == 1 else f"{len(line.changes)} changes"
    verdict = "better" if better else "worse"
    if better and any(map(_mark, line.points[last.place :])):
        verdict = "better for the calls that were answered, but others failed"
    return f"{count}; the last one at {last.evaluation_id}, {moved}: {verdict} {how}."


def sparkline(line: TrendLine) -> str:
    """The values as bars from the lowest to the highest, a stroke before each change, a dot where none is."""
    values = [point.value for point in line.points]
    known = [value for value in values if math.isfinite(value)]
    low, high = min(known, default=0.0), max(known, default=0.0)
    places = {change.place for change in line.changes}
    drawn = []
    for place, value in enumerate(values):
        level = 0.5 if high == low else (value - low) / (high - low)
        bar = _BARS[min(len(_BARS) - 1, int(level * len(_BARS)))] if math.isfinite(value) else "·"
        drawn.append(f"│{bar}" if place in places else bar)
    return "".join(drawn)
