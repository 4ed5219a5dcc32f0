"""What else can be looked up: the metrics, trends, and stored experiments."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace

from ..core.metrics_base import SampleMetric, listed_metrics, scale_text
from ..core.targets import QUESTIONS
from ..core.types import TargetCategory, as_target
from ..decide.experiment_report import experiment_in_words, variant_runs
from ..decide.trend import metric_trend, trend_notes, trend_tables
from ..errors import NotFoundError
from ..store.state import read_results
from .components.charts import sparkline
from .components.markup import Markup, Node, join, tag
from .components.tables import data_table, notes
from .layout import address, link, select_box
from .requests import Ask, Page, Reply


def metrics_page(ask: Ask) -> Reply:
    """Show every metric with its meaning, those that match the words first asked for."""
    words = ask.values.get("words", "").strip()[:100]
    known = listed_metrics()
    chosen = [
        metric for metric in known if all(word in _searched(metric) for word in words.casefold().split())
    ]
    form = tag(
        "form",
        tag("label", "Words", tag("input", type="search", name="words", value=words)),
        tag("button", "Search", type="submit"),
        class_="filters",
        role="search",
        method="get",
        action="/metrics",
    )
    parts: list[Node] = [
        form,
        tag("p", f"{len(chosen)} of {len(known)} metrics", class_="count", role="status"),
    ]
    # Known targets in their own order. Targets that a plug-in added come last.
    for name in dict.fromkeys([*(target.name for target in TargetCategory), *map(_target, chosen)]):
        members = [metric for metric in chosen if _target(metric) == name]
        if members:
            question = next((text for target, text in QUESTIONS.items() if target.name == name), "")
            parts.append(tag("h2", name.replace("_", " ").capitalize()))
            parts.append(tag("p", question, class_="small"))
            parts.append(tag("dl", map(_described, members), class_="metrics"))
    return Page("Metrics", join(parts), "auepora metrics")


def _target(metric: type[SampleMetric]) -> str:
    return as_target(metric.target).name


def _searched(metric: type[SampleMetric]) -> str:
    return f"{metric.usage()} {_target(metric)} {metric.oracle} {metric.__doc__}".casefold()


def _described(metric: type[SampleMetric]) -> Markup:
    direction = "higher" if metric.higher_is_better else "lower"
    facts = f"{scale_text(metric.bounds, metric.unit)}, {direction} is better"
    facts += f"; needs {', '.join(metric.requires)}" if metric.requires else "; needs only the outputs"
    facts += f"; equals {metric.oracle}" if metric.oracle else ""
    first, *more = inspect.cleandoc(metric.__doc__ or "").split("\n\n")
    rest = tag("details", tag("summary", "More"), (tag("p", text) for text in more)) if more else None
    return join(
        tag("dt", tag("code", metric.usage())),
        tag("dd", tag("p", first), rest, tag("p", facts, class_="small")),
    )


def trend_page(ask: Ask) -> Reply:
    """Show one metric over time, for each system and dataset."""
    documents = [one.run for one in ask.workspace.documents() if one.run is not None]
    names = list(dict.fromkeys(result.name for run in documents for result in run.results))
    metric = ask.values.get("metric", "")
    # An old link may name a metric that no run has any more.
    metric = metric if metric in names else next(iter(names), "")
    if not metric:
        return Page(
            "Trend", tag("p", "There are no finished runs yet.", class_="lead"), ask.workspace.command("list")
        )
    trend = metric_trend(ask.workspace.storage, metric)
    form = tag(
        "form",
        tag("label", "Metric", select_box("metric", [(name, name) for name in names], metric)),
        tag("button", "Show", type="submit"),
        class_="filters",
        method="get",
        action="/trend",
        data_submits=True,
    )
    links = {
        one.evaluation_id: address("run", one.evaluation_id, "samples", query={"sort": metric})
        for one in documents
    }
    parts: list[Node] = [form]
    for line, table in zip(trend.lines, trend_tables(trend), strict=False):
        values = [point.value for point in line.points]
        label = f"{metric} of {line.system} in {len(values)} run{'s' * (len(values) > 1)}"
        # The bars at the end of the title are for a terminal: here, they are drawn.
        parts.append(tag("h2", table.title.rpartition("  ")[0]))
        if len(values) > 1:
            parts.append(sparkline(values, label=label, width=480, height=60))
        rows = [[row[0].replace("T", " ")[:16], *row[1:]] for row in table.rows]
        parts.append(data_table(replace(table, title="", rows=rows), label, links=links))
    parts.append(notes(trend_notes(trend)))
    return Page(f"Trend of {metric}", join(parts), ask.workspace.command("list", "--trend", metric))


def experiment_page(ask: Ask) -> Reply:
    """Show a stored experiment: who won, and links to its variants."""
    run_id = ask.path["name"]
    if ask.workspace.document(run_id).kind != "experiment":
        raise NotFoundError("", f"{run_id!r:.80} is not an experiment.")
    results = read_results(ask.workspace.path(run_id))
    stored = {one.id for one in ask.workspace.documents() if one.run is not None}
    runs = {name: run for name, run in variant_runs(results).items() if run in stored}
    items = [tag("li", f"{name}: ", link(run, "run", run)) for name, run in runs.items()]
    main = join(
        tag("p", experiment_in_words(results), class_="lead"),
        tag("ul", items, class_="links"),
        _comparisons(runs),
    )
    return Page(f"Experiment {run_id}", main, ask.workspace.command("show", ask.workspace.name(run_id)))


def _comparisons(runs: Mapping[str, str]) -> Node:
    """Return links from the experiment to the samples: the first variant, compared with each other one."""
    if len(runs) < 2:
        return None
    (control, first), *others = runs.items()
    return tag(
        "p",
        (
            (link(f"Samples: {name} against {control}", "compare", query=[("run", first), ("run", run)]), " ")
            for name, run in others
        ),
        class_="turns",
    )
