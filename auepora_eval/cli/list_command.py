"""list the stored runs, newest first, or the trend of a metric over them

Example:

  auepora demo
  auepora list
  auepora list --trend ndcg@5

A trend has a line for each system and dataset, and marks where its values changed. Runs on other samples, or
with a metric that was computed otherwise, are never joined.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from . import echo
from .common import add_json, add_out, say_stored, share

if TYPE_CHECKING:
    from ..runs.trend import Trend, TrendLine

_BARS = "▁▂▃▄▅▆▇█"
_LINES_SHOWN = 10
_POINTS_SHOWN = 40


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

    storage = EvaluationResultsStorage(args.out)
    if args.trend is not None:
        return _trend(storage, args)
    if args.plot or args.across_systems:
        raise PlanError("--plot and --across-systems are of a trend: add --trend METRIC.")
    heads = storage.list_results()
    if args.json:
        echo.say_json(heads)
        return 0
    if not heads:
        echo.note(f"no runs in {args.out}. Make one with auepora run, or with auepora demo.")
        return 0
    for head in heads:
        if "error" in head:
            echo.note(f"note: {echo.one_line(head['error'])}")
    names = ("evaluation_id", "timestamp", "system_version", "dataset_id", "total_queries", "failed_queries")
    rows = [[str(head.get(name, "?")) for name in names] for head in heads if "error" not in head]
    echo.say_table(("Run", "When", "System", "Dataset", "Samples", "Failed"), rows, numeric=(4, 5))
    return 0


def _trend(storage: Any, args: Namespace) -> int:
    from ..errors import PlanError
    from ..runs.trend import metric_trend

    trend = metric_trend(storage, args.trend, alpha=args.alpha, across_systems=args.across_systems)
    if not trend.lines:
        raise PlanError(f"no run in {args.out} has {trend.metric!r:.60}. auepora list shows what is there.")
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
        echo.note("note: other samples, systems or ways to compute a metric make lines of their own.")
    lacking = sum(reason.startswith("has no ") for reason in trend.left_out.values())
    if lacking:
        echo.note(f"note: {lacking} runs have no {trend.metric}.")
    for name, reason in trend.left_out.items():
        if not reason.startswith("has no "):
            echo.note(f"note: {echo.one_line(name, 80)} is left out: {echo.one_line(reason)}")


def _say_line(trend: Trend, line: TrendLine) -> None:
    from ..reporting.tables import interval_text, value_text

    version = f" {line.version}" if line.version else ""
    data = f"{line.dataset}{version} ({line.dataset_sha256[:12]})"
    echo.say(f"{trend.metric}: {line.system} on {data}, {len(line.points)} runs")
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
                value_text(point.value, line.unit),
                interval_text(point.interval, line.unit),
                "-" if point.samples is None else f"{point.samples:,}",
                "" if change is None else f"change: {told}, p = {change.p_value:.2g}",
            ]
        )
    kept = [row for place, row in enumerate(rows) if place in changes or place >= len(rows) - _POINTS_SHOWN]
    headings = ("When", "Run", "Value", "95% interval", "Samples", "")
    echo.say_table(headings, kept, numeric=(2, 3, 4))
    if len(kept) < len(rows):
        echo.say(f"  ({len(rows) - len(kept)} older runs are not shown; --json has them)")
    if len(line.points) > 1:
        echo.say_words(_in_words(trend, line))
    echo.say()


def _in_words(trend: Trend, line: TrendLine) -> str:
    from ..reporting.tables import value_text

    how = f"({line.method}; a line without changes gets a mark in {trend.alpha:.0%} of cases at most)"
    if not line.changes:
        return f"No change found {how}."
    last = line.changes[-1]
    better = (last.difference > 0) == line.higher_is_better
    moved = f"from {value_text(last.before, line.unit)} to {value_text(last.after, line.unit)}"
    count = "1 change" if len(line.changes) == 1 else f"{len(line.changes)} changes"
    return f"{count}; the last one at {last.evaluation_id}, {moved}: {'better' if better else 'worse'} {how}."


def sparkline(line: TrendLine) -> str:
    """The values as bars from the lowest to the highest, a stroke before each change, a dot where none is."""
    import math

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
