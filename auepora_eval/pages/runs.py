"""The first page: every stored run in one table, what is running, and what failed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from ..core.display import ago
from ..core.types import MetricResult
from ..store.state import Unfinished
from .components import charts
from .components import parts as ui
from .components.markup import Markup, Node, join, tag
from .layout import address, compare_address, link, no_runs
from .requests import Ask, Download, Page, Redirect, Reply
from .run import first_error, grouped
from .workspace import Stored

_SHOWN = 100  # runs on a page
_METRICS = 3  # columns of metrics, unless others are chosen
_FIXED = ("status", "run", "system", "dataset", "samples", "failed", "age")
_STATES = ("all", "running", "failed")
_PLAIN = charts.Scale(0.0, 1.0, ())


def runs_page(ask: Ask) -> Reply:
    """Show the stored runs, those that are not finished, and what else is stored."""
    documents = ask.workspace.documents()
    unfinished = [ask.workspace.unfinished_run(run_id) for run_id in ask.workspace.unfinished_ids()]
    every = [one for one in documents if one.kind == "run" and not one.error]
    # Those that `auepora diagnose` made of another run are shown if somebody looks for them.
    runs = [one for one in every if "~" not in one.id or "~" in ask.values.get("words", "")]
    others = [one for one in documents if one.kind != "run" and not one.error]
    main = join(
        _worst_failure(ask, runs),
        _list(ask, runs, unfinished) if runs or unfinished else no_runs(ask.workspace),
        ui.section("Experiments", tag("ul", map(_other, others), class_="links")) if others else None,
        ui.notes(one.error for one in documents if one.error),
        _of_diagnoses(len(every) - len(runs)),
    )
    export = ui.button_link("Export CSV", "/runs.csv") if runs else None
    return Page("Runs", main, ask.workspace.command("list"), facts="newest first", actions=export)


def _of_diagnoses(count: int) -> Node:
    words = f"Show also the {count:,} runs that were made by auepora diagnose"
    return tag("p", tag("a", words, href="/?words=~"), class_="note") if count else None


def _other(one: Stored) -> Markup:
    return tag("li", link(one.id, one.kind, one.id), f" ({one.time.replace('T', ' ')[:16]})")


def runs_csv(ask: Ask) -> Reply:
    """Return all runs with all their values."""
    runs = [one for one in ask.workspace.documents() if one.kind == "run" and not one.error]
    return Download("runs", _csv(runs, _metric_names(runs)))


def _csv(runs: Sequence[Stored], names: Sequence[str]) -> Iterator[Sequence[Any]]:
    yield ["run", "system", "dataset", "samples", "failed", "time", *names]
    for one in runs:
        values = {result.name: result.value for result in one.run.results} if one.run else {}
        counts = one.count("total_queries"), one.count("failed_queries")
        about = one.id, one.system, one.head.get("dataset_id"), *counts, one.time
        yield [*about, *(values.get(name, "") for name in names)]


def compare_ticked(ask: Ask) -> Reply:
    """Lead from the ticked runs to their comparison."""
    # The newest run is the first on the page, and the candidate of a comparison is the newer one.
    return Redirect(compare_address(list(reversed(ask.lists.get("run", [])))))


def _worst_failure(ask: Ask, runs: Sequence[Stored]) -> Node:
    """Return the strip of the newest run that failed, if it is among the newest."""
    for one in runs[:5]:
        if one.state == "failed":
            count = f"{one.count('failed_queries'):,} of {one.count('total_queries'):,} calls failed"
            href = link("See them", "run", one.id, "samples", query={"failed": 1})
            return ui.strip("down", f"{one.id}: {count}", first_error(ask.workspace.index(one.id)), href=href)
    return None


# The table.


def _metric_names(runs: Sequence[Stored]) -> list[str]:
    return list(dict.fromkeys(result.name for one in runs if one.run for result in one.run.results))


def _shares_first(runs: Sequence[Stored]) -> list[str]:
    """Return the metrics to show: a share of each group, such as retrieval and answers."""
    results = {result.name: result for one in runs[:20] if one.run for result in one.run.results}
    groups = (
        [one.name for one in members if one.is_share] for _, _, members in grouped(list(results.values()))
    )
    return [names[0] for names in groups if names][:_METRICS]


def _list(ask: Ask, runs: Sequence[Stored], unfinished: Sequence[Unfinished]) -> Markup:
    names = _metric_names(runs)
    shown = [name for name in ask.lists.get("col", ()) if name in names] or _shares_first(runs)
    sort, order = ask.values.get("sort", "age"), ask.values.get("order", "")
    sort = sort if sort in (*_FIXED, *names) else "age"
    order = order if order in ("up", "down") else "up" if sort == "age" else "down"
    words, state = ask.values.get("words", "").strip()[:100], ask.values.get("state") or "all"
    matching = [one for one in runs if _matches(one, words) and state in ("all", one.state)]
    _sort(matching, sort, order)
    start = ask.number("start") or 0
    live = [one for one in unfinished if words in one.evaluation_id and state in ("all", "running")]
    rows = [_live_row(one, shown) for one in live]
    rows += [_row(one, shown) for one in matching[start : start + _SHOWN]]
    content = ui.table(
        "Runs",
        _columns(shown),
        rows,
        sort=(sort, order),
        href=lambda key, way: address(query=ask.query(sort=key, order=way, start=None)),
        kind="list runs",
        head=2,
    )
    about = ["Bars: value and 95% interval from 0 to 1. Tint: low scores. Values count answered samples."]
    return tag(
        "div",
        _controls(ask, names, shown, len(matching), len(unfinished)),
        tag("form", content, action="/ticked", method="get", id="ticked"),
        _older(ask, start, len(matching)),
        ui.notes(about),
        id="list",
        class_="column",
    )


def _matches(one: Stored, words: str) -> bool:
    text = f"{one.id} {one.system} {one.head.get('dataset_id')}".lower()
    return all(word in text for word in words.lower().split())


def _sort(runs: list[Stored], key: str, order: str) -> None:
    runs.sort(key=lambda one: one.time, reverse=key != "age" or order == "up")  # the newest is the youngest
    if key == "age":
        return
    values = {one.id: _sort_value(one, key) for one in runs}
    runs.sort(key=lambda one: values[one.id], reverse=order == "down")
    runs.sort(key=lambda one: not values[one.id][0])  # runs without a value come last, whichever way


def _sort_value(one: Stored, key: str) -> tuple[bool, float, str]:
    texts = {"run": one.id, "system": one.system, "dataset": str(one.head.get("dataset_id") or "")}
    if key in texts:
        return True, 0.0, texts[key].lower()
    value: float | None = one.count("total_queries" if key == "samples" else "failed_queries")
    if key not in _FIXED:
        result = _result(one, key)
        value = None if result is None or not math.isfinite(result.value) else result.value
    return value is not None, value or 0.0, ""


def _result(one: Stored, name: str) -> MetricResult | None:
    return next((result for result in one.run.results if result.name == name), None) if one.run else None


def _columns(shown: Sequence[str]) -> list[ui.Column]:
    return [
        ui.Column(ui.span("unseen", "Compare")),
        ui.Column("Status", None, "status"),
        ui.Column("Run", None, "run", "up"),
        ui.Column("System", "spare", "system", "up"),
        ui.Column("Dataset", "mute spare wide-only", "dataset", "up"),
        ui.Column("Samples", "n spare", "samples"),
        ui.Column("Failed", "n", "failed"),
        *(ui.Column(name, "n spare" if place else "n", name, "up") for place, name in enumerate(shown)),
        ui.Column("Age", "n mute spare", "age", "up"),
    ]


def _row(one: Stored, shown: Sequence[str]) -> ui.Row:
    failed, total = one.count("failed_queries"), one.count("total_queries")
    box = tag("input", type="checkbox", name="run", value=one.id, aria_label=f"Compare {one.id}")
    missed: Node = "" if failed is None else f"{failed:,}"
    if failed and total:
        is_bad = one.state == "failed"
        share = f" {failed / total:.0%}" if is_bad else None
        missed = [tag("b", f"{failed:,}", class_="down" if is_bad else "warn"), share]
    cells: list[Node] = [
        tag("label", box),
        ui.verdict(one.state),
        ui.row_link(ui.short(one.id, 48), address("run", one.id)),
        ui.short(one.system, 30),
        ui.short(str(one.head.get("dataset_id") or ""), 30),
        "" if total is None else f"{total:,}",
        missed,
        *(_value(_result(one, name)) for name in shown),
        tag("span", ago(one.time).removesuffix(" ago"), title=one.time.replace("T", " ")),
    ]
    return ui.Row(cells, "bad" if one.state == "failed" else None)


def _value(result: MetricResult | None) -> Node:
    if result is None:
        return ui.span("mute", "n/a")
    drawn = None
    if result.is_share and result.interval:
        drawn = ui.span("spare", charts.interval_bar(_PLAIN, result.value, result.interval, height=20))
    return ui.span("stand", drawn, ui.chip(result.value, result, digits=3))


def _live_row(one: Unfinished, shown: Sequence[str]) -> ui.Row:
    name = ui.row_link(ui.short(one.evaluation_id, 48), address("run", one.evaluation_id))
    state = ui.verdict("running" if one.is_running else "stopped")
    samples, age = one.progress if one.samples else None, ago(one.begun_at).removesuffix(" ago")
    return ui.Row([None, state, name, None, None, samples, None, *(None for _ in shown), age])


def _controls(ask: Ask, names: Sequence[str], shown: Sequence[str], count: int, live: int) -> Markup:
    state = ask.values.get("state") or "all"
    choices = [
        tag(
            "a",
            f"Unfinished {live}" if each == "running" else each.capitalize(),
            href=address(query=ask.query(state="" if each == "all" else each, start=None)),
            aria_current="true" if each == state else None,
        )
        for each in _STATES
        if each != "running" or live
    ]
    fields = ui.hidden_fields(ask.query(words=None, start=None))
    button = tag("button", "Compare ticked", type="submit", form="ticked", data_ticked=True)
    menu = ui.column_menu(names, shown, ask.query(col=None), "/")
    return tag(
        "div",
        ui.search_form("runs", ask.values.get("words", ""), fields, action="/"),
        tag("ul", (tag("li", each) for each in choices), class_="choice"),
        tag("span", "1 run" if count == 1 else f"{count:,} runs", class_="count", role="status"),
        ui.span("end", menu, button),
        class_="filters",
    )


def _older(ask: Ask, start: int, count: int) -> Node:
    """Return the links to the pages of newer and older runs."""
    pages = (("Newer", "prev", start - _SHOWN), ("Older", "next", start + _SHOWN))
    links = [
        (text, rel, address(query=ask.query(start=str(place))))
        for text, rel, place in pages
        if 0 <= place < count
    ]
    return ui.turns(f"{start + 1:,} to {min(start + _SHOWN, count):,} of {count:,}", links)
