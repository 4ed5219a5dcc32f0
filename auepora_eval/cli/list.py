"""List stored runs, or show the trend of a metric.

Unfinished runs are listed last, each with the command to resume it. A trend has one
series per system and dataset, with intervals. Runs are never joined if their samples
or settings differ. A failed call counts as the worst value of a metric.

  auepora demo
  auepora list --trend ndcg@5
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..core.table import Table
from ..decide.trend import metric_trend, plot_trend, trend_notes, trend_tables, trend_to_dict
from ..errors import PlanError, did_you_mean
from ..store.state import unfinished_runs
from ..store.storage import EvaluationResultsStorage
from . import echo
from .common import say_stored
from .flags import add_flag, add_json, add_out

if TYPE_CHECKING:
    from ..decide.trend import Trend
    from ..store.state import Unfinished

_METRICS_SHOWN = 12
_OTHERS = {"ab_test": "experiment", "benchmark": "benchmark"}  # by their evaluation_type


def add_arguments(parser: ArgumentParser) -> None:
    add_flag(parser, "--trend", "show a metric over time, with its intervals", "METRIC")
    add_flag(parser, "--across-systems", "with --trend: one series for all systems")
    add_flag(parser, "--plot", "with --trend: write a plot, .png or .svg", "FILE")
    add_flag(parser, "--force", "overwrite the plot if it exists")
    add_out(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    storage = EvaluationResultsStorage(args.out)
    if args.trend is not None:
        return _trend(storage, args)
    if args.plot or args.across_systems:
        raise PlanError("--plot and --across-systems are for a trend: add --trend METRIC.")
    heads, unfinished = storage.list_results(), unfinished_runs(storage.results_directory)
    if args.json:
        echo.say_json(heads)
        for one in unfinished:
            words = f"{one.evaluation_id} is not finished, {one.progress}: {one.obstacle or one.line}"
            echo.note(f"note: {echo.one_line(words)}")
        return 0
    # One damaged file must not hide the other runs.
    for head in heads:
        if "error" in head:
            echo.note(f"note: {echo.one_line(head['error'])}")
    tables = _tables([head for head in heads if "error" not in head], unfinished)
    for number, table in enumerate(tables):
        if number:
            echo.say()
        echo.show(table)
    if not heads and not unfinished:
        echo.note(f"no runs in {args.out}. Make one with auepora run, or with auepora demo.")
    return 0


def _tables(heads: Sequence[Mapping[str, Any]], unfinished: Sequence[Unfinished]) -> list[Table]:
    """Return the finished runs, the other documents, and the unfinished runs, as far as there are any."""
    names = ("evaluation_id", "timestamp", "system_version", "dataset_id", "total_queries", "failed_queries")
    runs = [_cells(head, *names) for head in heads if str(head.get("evaluation_type")) not in _OTHERS]
    others = [
        [_OTHERS[head["evaluation_type"]], *_cells(head, "evaluation_id", "timestamp", "dataset_id")]
        for head in heads
        if str(head.get("evaluation_type")) in _OTHERS
    ]
    started = [
        [one.evaluation_id, one.begun_at, one.progress, one.obstacle or one.line] for one in unfinished
    ]
    tables = (
        Table(("Run", "When", "System", "Dataset", "Samples", "Failed"), runs, numeric=(4, 5)),
        Table(("Kind", "Name", "When", "Dataset"), others),
        Table(("Not finished", "Started", "Answered", "Resume"), started),
    )
    return [table for table in tables if table.rows]


def _cells(head: Mapping[str, Any], *names: str) -> list[str]:
    return ["-" if head.get(name) is None else str(head[name]) for name in names]


def _trend(storage: EvaluationResultsStorage, args: Namespace) -> int:
    trend = metric_trend(storage, args.trend, across_systems=args.across_systems)
    if not trend.lines:
        _say_notes(trend_notes(trend))
        raise PlanError(f"no run in {args.out} has {trend.metric!r:.60}. {_available_metrics(trend)}")
    if args.plot:
        from ..reporting.plots import save_figure

        try:
            say_stored(save_figure(plot_trend(trend), args.plot, force=args.force))
        except ValueError as error:  # fewer than two runs, or another suffix
            raise PlanError(f"{error}.") from error
    if args.json:
        echo.say_json(trend_to_dict(trend))
        return 0
    for table in trend_tables(trend):
        echo.show(table)
        echo.say()
    _say_notes(trend_notes(trend))
    return 0


def _say_notes(notes: Iterable[str]) -> None:
    for text in notes:
        echo.note(f"note: {echo.one_line(text)}")


def _available_metrics(trend: Trend) -> str:
    if not trend.metrics:
        return "There are no runs in it: make one with auepora run."
    hint = echo.one_line(did_you_mean(trend.metric, trend.metrics), 100)
    names = ", ".join(echo.one_line(name, 60) for name in trend.metrics[:_METRICS_SHOWN])
    more = len(trend.metrics) - _METRICS_SHOWN
    return f"{hint}{' ' if hint else ''}They have {names}{f' and {more} more' if more > 0 else ''}."
