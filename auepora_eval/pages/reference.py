"""What else can be looked up: the metrics, trends, and stored experiments."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from datetime import UTC, datetime

from ..core.metrics_base import SampleMetric, listed_metrics, scale_text
from ..core.targets import QUESTIONS
from ..core.types import TargetCategory, as_target
from ..decide.experiment import experiment_in_words, variant_runs
from ..decide.trend import Trend, TrendLine, TrendPoint, metric_trend, trend_notes
from ..errors import NotFoundError
from ..store.state import read_results
from .components import charts
from .components import parts as ui
from .components.markup import Markup, Node, join, tag
from .layout import address, link, no_runs
from .requests import Ask, Page, Reply
from .workspace import Workspace

_WHOLE = 20  # metrics; of more, only the first sentences are shown


def metrics_page(ask: Ask) -> Reply:
    """Show every metric with its meaning, those that match the words first asked for."""
    words = ask.values.get("words", "").strip()[:100]
    known = listed_metrics()
    found: dict[str, list[type[SampleMetric]]] = {target.name: [] for target in TargetCategory}
    for metric in known:  # targets that a plug-in added come last
        if all(word in _searched(metric) for word in words.casefold().split()):
            found.setdefault(_target(metric), []).append(metric)
    found = {name: members for name, members in found.items() if members}
    total, names = sum(map(len, found.values())), {name: name.replace("_", " ").lower() for name in found}
    count = tag("span", f"{total} of {len(known)} metrics", class_="count", role="status")
    jumps = (tag("li", tag("a", text, href=f"#{name.lower()}")) for name, text in names.items())
    parts: list[Node] = [
        ui.search_form("metrics", words, count, action="/metrics"),
        tag("ul", jumps, class_="tags jumps"),
    ]
    questions = {target.name: text for target, text in QUESTIONS.items()}
    for name, members in found.items():
        described = (_described(metric, whole=total < _WHOLE) for metric in members)
        content = tag("dl", described, class_="metrics")
        about, title = questions.get(name, ""), names[name].capitalize()
        parts.append(ui.section(title, content, about=about, anchor=name.lower()))
    return Page("Metrics", tag("div", parts, id="list", class_="column"), "auepora metrics")


def _target(metric: type[SampleMetric]) -> str:
    return as_target(metric.target).name


def _searched(metric: type[SampleMetric]) -> str:
    return f"{metric.usage()} {_target(metric)} {metric.oracle} {metric.__doc__}".casefold()


def _described(metric: type[SampleMetric], *, whole: bool) -> Markup:
    direction = "higher" if metric.higher_is_better else "lower"
    facts = f"{scale_text(metric.bounds, metric.unit)}, {direction} is better"
    facts += f"; needs {', '.join(metric.requires)}" if metric.requires else "; needs only the outputs"
    facts += f"; equals {metric.oracle}" if metric.oracle else ""
    first, *more = inspect.cleandoc(metric.__doc__ or "").split("\n\n")
    rest = ui.folded("More", (tag("p", text) for text in more)) if more and whole else None
    return join(
        tag("dt", tag("code", metric.usage())),
        tag("dd", tag("p", first), tag("p", facts, class_="note"), rest),
    )


def trend_page(ask: Ask) -> Reply:
    """Show one metric over time: all systems of a dataset in one chart, with dates and intervals."""
    runs = [one.run for one in ask.workspace.documents() if one.run is not None]
    names = list(dict.fromkeys(result.name for run in runs for result in run.results))
    metric = ask.values.get("metric", "")
    # An old link may name a metric that no run has any more.
    metric = metric if metric in names else next(iter(names), "")
    if not metric:
        return Page("Trend", no_runs(ask.workspace), ask.workspace.command("list"))
    trend = trend_of(ask.workspace, metric)
    # Runs that `auepora diagnose` made of another one are not versions of a system.
    lines = [line for line in trend.lines if "~" not in line.points[-1].evaluation_id]
    datasets = dict.fromkeys((line.dataset, line.dataset_sha256) for line in lines)
    drawn = [
        _chart(metric, [line for line in lines if (line.dataset, line.dataset_sha256) == key])
        for key in datasets
    ]
    count = sum(len(line.points) for line in lines)
    box = ui.select_box("metric", [(name, name) for name in names], metric, "Metric")
    return Page(
        f"Trend of {metric}",
        join(_latest_change(lines), drawn, ui.notes(trend_notes(trend, all_lines=True))),
        ask.workspace.command("list", "--trend", metric),
        facts="1 run" if count == 1 else f"{count} runs",
        actions=ui.choice_form("/trend", box),
    )


def _latest_change(lines: Sequence[TrendLine]) -> Node:
    """Return whether the newest run of the longest line is outside the interval of the one before."""
    line = next((line for line in lines if len(line.points) > 1), None)
    if line is None:
        return None
    before, after = line.points[-2:]
    query = [("run", before.evaluation_id), ("run", after.evaluation_id)]
    change = ui.number(after.value - before.value, line.unit, signed=True)
    words = f"{line.system}: {change} from {before.evaluation_id} to {after.evaluation_id}"
    return ui.strip("same", words, href=link("Is it significant? Compare them", "compare", query=query))


def _chart(metric: str, lines: Sequence[TrendLine]) -> Node:
    known = [line for line in lines if any(math.isfinite(point.value) for point in line.points)]
    if not known:
        return None
    drawn = [[_point(one, point, metric) for point in one.points] for one in known[: len(charts.SERIES)]]
    names = [ui.short(line.system, 18) for line in known] if len(known) > 1 else []
    about = f"{known[0].dataset}, points: runs; band: 95% interval"
    label = f"{metric} over time of {', '.join(line.system for line in known)}"
    title = f"{ui.arrow(metric, up=known[0].higher_is_better)}{' in s' if known[0].unit == 's' else ''}"
    rows: list[list[Node]] = [
        [
            tag("a", ui.short(point.evaluation_id, 48), href=_samples_of(point, metric)),
            ui.short(line.system, 40),
            point.timestamp.replace("T", " ")[:16],
            tag("b", ui.number(point.value, line.unit)),
            ui.interval(point.interval, line.unit),
            "" if point.failed is None else f"{point.failed:,}",
        ]
        for line in known
        for point in reversed(line.points)
    ]
    columns: list[ui.Column | str] = [
        *("Run", "System", "When"),
        *(ui.Column(name, "n") for name in ("Value", "95% interval", "Failed")),
    ]
    body = [
        tag("div", charts.legend([line.system for line in known]), class_="pad"),
        charts.trend_chart(drawn, names=names, label=label),
        ui.folded("Values as a table", ui.table(label, columns, rows), kind="pad"),
    ]
    return ui.card(title, body, about=about)


def _point(line: TrendLine, point: TrendPoint, metric: str) -> charts.Point:
    value = f"{ui.number(point.value, line.unit)} {ui.interval(point.interval, line.unit)}"
    title = f"{point.evaluation_id}: {value}, {point.timestamp.replace('T', ' ')[:16]}"
    href = _samples_of(point, metric)
    return charts.Point(_time(point.timestamp), point.value, point.interval, title, href)


def _samples_of(point: TrendPoint, metric: str) -> str:
    return address("run", point.evaluation_id, "samples", query={"sort": metric})


def _time(text: str) -> datetime:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        when = datetime.fromtimestamp(0, UTC)
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def trend_of(workspace: Workspace, metric: str) -> Trend:
    """Return the trend of a metric; read again when a run came or went."""
    changed = workspace.folder.stat().st_mtime_ns if workspace.folder.is_dir() else 0
    return workspace.trends.get((metric, changed), lambda: metric_trend(workspace.storage, metric))


def experiment_page(ask: Ask) -> Reply:
    """Show a stored experiment: who won, and links to its variants."""
    run_id = ask.path["name"]
    if ask.workspace.document(run_id).kind != "experiment":
        raise NotFoundError("", f"{run_id!r:.80} is not an experiment.")
    results = read_results(ask.workspace.path(run_id))
    stored = {one.id for one in ask.workspace.documents() if one.run is not None}
    runs = [(name, run) for name, run in variant_runs(results).items() if run in stored]
    items = []
    for name, run in runs:
        control, first = runs[0]
        pair = link(f"against {control}", "compare", query=[("run", first), ("run", run)])
        items.append(tag("li", f"{name}: ", link(run, "run", run), " ", pair if run != first else None))
    main = join(ui.lead(experiment_in_words(results)), tag("ul", items, class_="links"))
    command = ask.workspace.command("show", ask.workspace.name(run_id))
    return Page(
        f"Experiment {run_id}", main, command, facts=str(results.get("name", "")), crumbs=[("Runs", "/")]
    )
