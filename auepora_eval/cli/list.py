"""List stored runs, or show the trend of a metric.

The newest run is the last. An unfinished one has the command to resume it. A trend has one
series per system and dataset, with intervals. Runs are never joined if their samples
or settings differ. A failed call counts as the worst value of a metric.

  auepora demo
  auepora list --trend ndcg@5
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..core.display import ago
from ..core.table import Table
from ..decide.trend import metric_trend, trend_notes, trend_tables, trend_to_dict
from ..errors import PlanError, did_you_mean
from ..store.state import unfinished_runs
from ..store.storage import EvaluationResultsStorage
from . import echo
from .flags import add_flag, add_json, add_out

if TYPE_CHECKING:
    from ..decide.trend import Trend
    from ..store.state import Unfinished

_METRICS_SHOWN = 12
_OTHERS = {"ab_test": "experiment", "benchmark": "benchmark"}  # by their evaluation_type


def add_arguments(parser: ArgumentParser) -> None:
    add_flag(parser, "--trend", "show a metric over time, with its intervals", "METRIC")
    add_out(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    storage = EvaluationResultsStorage(args.out)
    if args.trend is not None:
        return _trend(storage, args)
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
    sound = [head for head in reversed(heads) if "error" not in head]
    own = [head for head in sound if not _is_intervention(head, sound)]
    echo.show_all(table for table in _tables(own, unfinished) if table.rows)
    if hidden := len(sound) - len(own):
        echo.note(f"Not listed: runs of diagnose and stress (RUN~NAME), {hidden} in all; --json has them.")
    if not heads and not unfinished:
        echo.note(f"no runs in {args.out}. Make one with auepora run, or with auepora demo.")
    return 0


def _is_intervention(head: Mapping[str, Any], heads: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a run was made by `diagnose` or `stress` from another one that is stored."""
    base, mark, _ = str(head.get("evaluation_id")).rpartition("~")
    return bool(mark) and any(each.get("evaluation_id") == base for each in heads)


def _tables(heads: Sequence[Mapping[str, Any]], unfinished: Sequence[Unfinished]) -> Iterator[Table]:
    """Yield the other documents, the unfinished runs and the finished runs, the newest last."""
    is_run = [str(head.get("evaluation_type")) not in _OTHERS for head in heads]
    others = [
        [
            _OTHERS[head["evaluation_type"]],
            _cell(head, "evaluation_id"),
            _when(head),
            _cell(head, "dataset_id"),
        ]
        for head, run in zip(heads, is_run, strict=True)
        if not run
    ]
    yield Table(("Kind", "Name", "When", "Dataset"), others)
    started = [
        [one.evaluation_id, ago(one.begun_at), one.progress, one.obstacle or one.line] for one in unfinished
    ]
    yield Table(("Not finished", "Started", "Answered", "Resume"), started)
    names = ("system_version", "dataset_id", "total_queries", "failed_queries")
    rows = [
        [_cell(head, "evaluation_id"), _when(head), *(_cell(head, name) for name in names), _metric(head)]
        for head, run in zip(heads, is_run, strict=True)
        if run
    ]
    headings = ("Run", "When", "System", "Dataset", "Samples", "Failed", "First metric")
    # One line per run, also on a narrow screen.
    yield Table(headings, rows, numeric=(4, 5), spare=(2, 3, 4, 5))


def _cell(head: Mapping[str, Any], name: str) -> str:
    return "-" if head.get(name) is None else str(head[name])


def _metric(head: Mapping[str, Any]) -> str:
    metric = head.get("first_metric")
    if not metric:
        return "-"
    judge = head["judges"].get(metric[0])
    return f"{metric[0]} {metric[1]:.4f}" + (f", judge {judge}" if judge else "")


def _when(head: Mapping[str, Any]) -> str:
    return ago(_cell(head, "timestamp"))


def _trend(storage: EvaluationResultsStorage, args: Namespace) -> int:
    trend = metric_trend(storage, args.trend)
    if not trend.lines:
        _say_notes(trend_notes(trend))
        raise PlanError(f"no run in {args.out} has {trend.metric!r:.60}. {_available_metrics(trend)}")
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
