"""One run: its metrics, how the scores are spread, its slices, failures and provenance."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

import numpy as np

from ..core.targets import QUESTIONS
from ..core.types import EvaluationRun, MetricResult, Target, TargetCategory
from ..metrics.parse import meaning
from ..store.pages import RunSamples
from ..store.stopping import stopping_in_words
from .components.charts import histogram
from .components.markup import Markup, Node, join, tag
from .components.tables import (
    Slice,
    cards,
    metric_card,
    scale_of,
    scroll_box,
    short,
    slices_table,
)
from .layout import address, link, select_box
from .requests import Ask, Events, Page, Reply, Route
from .workspace import Stored, Workspace

BINS = 10
FEW = 20  # samples; below, a slice is marked
_COLUMNS = 4  # of cards on a wide screen
_TICK = 1.0  # seconds between two looks at a run that is going


def run_page(ask: Ask) -> Reply:
    """Show one run, finished or not."""
    run_id = ask.path["run"]
    if ask.workspace.is_unfinished(run_id):
        return _live_page(ask.workspace, run_id)
    stored = ask.workspace.document(run_id)
    index = ask.workspace.index(run_id)
    metric = ask.values.get("slices")
    metric = metric if metric in index.metrics else most_to_explain(index)
    main = join(
        _sentence(stored, index.run),
        tag(
            "p",
            link("All samples", "run", run_id, "samples"),
            " ",
            link(f"Worst by {metric}", "run", run_id, "samples", query={"sort": metric}) if metric else None,
            class_="turns",
        ),
        _labelling(ask.workspace, run_id),
        _by_target(run_id, index),
        _slices(ask, index, metric) if metric and index.fields else None,
        _failures(run_id, index),
        _provenance(stored.head),
    )
    return Page(f"Run {run_id}", main, ask.workspace.command("show", ask.workspace.name(run_id)))


def _labelling(workspace: Workspace, run_id: str) -> Markup:
    """Return how to label the answers of a run; the command serves pages without the system."""
    command = workspace.command("annotate", workspace.name(run_id))
    return tag("p", "Label its answers by keyboard: ", tag("code", command), class_="small")


def most_to_explain(index: RunSamples) -> str | None:
    """Return the metric whose samples differ most, by the same rule as the report."""
    names = [name for name, one in index.metrics.items() if one.target is not TargetCategory.LATENCY]
    return max(names or list(index.metrics), key=lambda name: _spread(index, name), default=None)


def _spread(index: RunSamples, name: str) -> float:
    """Return the sum of squared differences from the mean, as shares of the metric's scale."""
    values, result = index.column(name), index.metrics[name]
    known = values[np.isfinite(values)]
    if not len(known):
        return 0.0
    low, high = result.bounds or (None, None)
    low = float(known.min()) if low is None else low
    high = float(known.max()) if high is None else high
    shares = (known - low) / ((high - low) or 1.0)
    goodness = shares if result.higher_is_better else 1.0 - shares
    # A failed answer counts as the worst, as in a comparison.
    goodness = np.append(goodness, np.zeros(int(index.has_failed(name).sum())))
    return float(((goodness - goodness.mean()) ** 2).sum())


def _sentence(stored: Stored, run: EvaluationRun) -> Markup:
    total, failed = (stored.count(name) or 0 for name in ("total_queries", "failed_queries"))
    samples = "1 sample" if total == 1 else f"{total:,} samples"
    words = f"{run.system_name} on {run.dataset_name}: {samples}, top_k {run.top_k}, "
    words += f"{failed:,} failed" if failed else "none failed"
    seconds = f"; {run.seconds:.1f} s" if run.seconds else ""
    started = f", {run.started_at.replace('T', ' ')[:16]}" if run.started_at else ""
    stopping = [tag("p", stopping_in_words(run.stopping))] if run.stopping is not None else []
    return tag(
        "div",
        tag("p", f"{words}{seconds}{started}."),
        stopping,
        class_="lead",
    )


def _by_target(run_id: str, index: RunSamples) -> Markup:
    """Return the cards of all metrics, below the question that their target asks."""
    groups: dict[Target, list[MetricResult]] = {}
    for result in index.run.results:
        groups.setdefault(result.target, []).append(result)
    sections = []
    for target, results in groups.items():
        question = QUESTIONS.get(target) if isinstance(target, TargetCategory) else None
        sections.append(
            tag(
                "section",
                tag("h2", target.name.replace("_", " ").capitalize()),
                tag("p", question, class_="small") if question else None,
                cards(_card(run_id, index, result) for result in results),
                class_=f"wide-{min(len(results), _COLUMNS)}",
            )
        )
    return tag("div", sections, class_="targets")


def _card(run_id: str, index: RunSamples, result: MetricResult) -> Markup:
    is_scored = result.name in index.metrics
    href = address("run", run_id, "samples", query={"sort": result.name}) if is_scored else ""
    return metric_card(
        result,
        href=href,
        about=meaning(result.name),
        note="; ".join(result.notes),
        more=_histogram(run_id, index, result) if is_scored else None,
    )


def _histogram(run_id: str, index: RunSamples, result: MetricResult) -> Node:
    """Return how the scores are spread; each bar leads to its samples."""
    values = index.column(result.name)
    values = values[~np.isnan(values)]
    if not len(values):
        return None
    low, high = scale_of([result])
    # Without an upper bound the scale ends at the highest score. It must not be empty if all are equal.
    if result.bounds is None or None in result.bounds:
        low, high = min(low, float(values.min())), max(float(values.max()), low + 1e-12)
    links = [
        address(
            "run",
            run_id,
            "samples",
            query={
                "sort": result.name,
                "low": _edge(low, high, n, "low"),
                "high": _edge(low, high, n + 1, "high"),
            },
        )
        for n in range(BINS)
    ]
    return histogram(
        values, low, high, label=f"Scores of {result.name}", unit=result.unit, bins=BINS, links=links
    )


def _edge(low: float, high: float, place: int, side: str) -> str | None:
    """Return an end of a bar, as the address of its samples has it. A bar includes its lower end only."""
    if place == 0 and side == "low":
        return f"{low:.10g}"
    end = low + (high - low) * place / BINS
    # Filters include both ends: without the step down, a score on an edge would be in two bars.
    if side == "high" and place < BINS:
        end = float(np.nextafter(end, -np.inf))
    # 17 digits give the same float back: fewer would move the edge across a score.
    return f"{end:.17g}"


def _slices(ask: Ask, index: RunSamples, metric: str) -> Node:
    """Return the mean of one metric in each slice, worst first within a field."""
    run_id = ask.path["run"]
    result, values = index.metrics[metric], index.column(metric)
    if not np.isclose(np.nanmean(values), result.value, rtol=1e-6, atol=1e-9):
        return None  # not a mean: a slice of it is not the mean of its scores
    slices = []
    for name, members in index.fields.items():
        rows = [_slice(run_id, index, name, value, metric, values) for value in members]
        rows = [one for one in rows if one.values[0] is not None]
        slices += sorted(rows, key=lambda one: one.values[0] or 0.0, reverse=not result.higher_is_better)
    options = [(name, name) for name in index.metrics]
    form = tag(
        "form",
        tag("label", "Metric", select_box("slices", options, metric)),
        tag("button", "Show", type="submit"),
        class_="filters",
        method="get",
        action=f"{address('run', run_id)}#slices",
        data_submits=True,
    )
    table = slices_table(slices, ["Mean"], metric=metric, unit=result.unit)
    # One file has the slices of one metric.
    return join(tag("h2", "Slices", id="slices"), None if ask.rows else form, table)


def _slice(run_id: str, index: RunSamples, name: str, value: str, metric: str, values: Any) -> Slice:
    chosen = values[index.members(name, value)]
    scored = chosen[~np.isnan(chosen)]
    href = address("run", run_id, "samples", query={"sort": metric, "slice": f"{name}:{value}"})
    mean = float(scored.mean()) if len(scored) else None
    return Slice(name, value, len(scored), [mean], few=len(scored) < FEW, href=href)


def _failures(run_id: str, index: RunSamples) -> Node:
    """Return the failures, grouped by what was reported."""
    if not index.errors:
        return None
    counts = np.bincount(index.error_codes[index.error_codes >= 0], minlength=len(index.errors))
    rows = []
    # Stable: errors that are equally frequent keep the order of their first occurrence.
    for code in np.argsort(-counts, kind="stable").tolist():
        kind, message = index.errors[code]
        query = {"error": code}
        rows.append(
            tag(
                "tr",
                tag("td", f"{counts[code]:,}", class_="num"),
                tag("th", link(kind, "run", run_id, "samples", query=query), scope="row"),
                tag("td", short(message, 300)),
            )
        )
    head = tag(
        "tr",
        tag("th", "Samples", scope="col", class_="num"),
        *(tag("th", t, scope="col") for t in ("Error", "Message")),
    )
    table = tag("table", tag("thead", head), tag("tbody", rows))
    return join(tag("h2", "Failures"), scroll_box("Failures", table))


def _provenance(head: Mapping[str, Any]) -> Markup:
    """Return the settings of the run, its environment and the hashes of its data."""
    metadata = head.get("metadata") or {}
    facts = {
        **{f"{name}": value for name, value in _flat(head.get("configuration") or {})},
        **{f"{name}": value for name, value in _flat(metadata.get("evaluation_environment") or {})},
        **{name: value for name, value in metadata.items() if isinstance(value, str)},
    }
    rows = (
        tag("tr", tag("th", name, scope="row"), tag("td", short(str(value), 500)))
        for name, value in facts.items()
    )
    content = scroll_box("Settings and provenance", tag("table", tag("tbody", rows)))
    return tag("details", tag("summary", "Settings and provenance"), content)


def _flat(record: Mapping[str, Any], under: str = "") -> Iterable[tuple[str, Any]]:
    for name, value in record.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{under}{name}.")
        else:
            yield f"{under}{name}", ", ".join(map(str, value)) if isinstance(value, list) else value


# A run that is going: its journal grows, and the page follows it.


def _live_page(workspace: Workspace, run_id: str) -> Page:
    state = workspace.unfinished_run(run_id)
    how = state.obstacle or f"It was stopped. Resume it: {state.line}"
    main = join(
        tag("p", tag("b", state.progress, data_live="progress"), " samples have an output. ", class_="lead"),
        tag("p", how, data_live="how", role="status"),
        tag("div", data_events=address("run", run_id, "events")),
    )
    return Page(f"Run {run_id}, not finished", main, workspace.command("list"))


def run_events(ask: Ask) -> Reply:
    """Send how far a run is, whenever that changes, until it has results."""
    return Events(_progress(ask.workspace, ask.path["run"]))


async def _progress(workspace: Workspace, run_id: str) -> AsyncIterator[str]:
    last = ""
    while workspace.is_unfinished(run_id):
        # In a thread: the journal is read from the disk, and all pages share one event loop.
        state = await asyncio.to_thread(workspace.unfinished_run, run_id)
        how = state.obstacle or f"It was stopped. Resume it: {state.line}"
        event = json.dumps({"progress": state.progress, "how": how})
        if event != last:
            yield event
        last = event
        await asyncio.sleep(_TICK)
    yield json.dumps({"finished": True})


ROUTES = [Route("/run/{run}", run_page), Route("/run/{run}/events", run_events)]
