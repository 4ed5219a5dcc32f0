"""The first page: every stored run, newest first, with the trend of its first metric."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress

from ..core.display import interval_text, value_text
from ..core.types import EvaluationRun, MetricResult
from ..store.state import Unfinished
from .components.charts import sparkline
from .components.markup import Markup, Node, join, tag
from .components.tables import scroll_box, short
from .layout import address, link
from .requests import Ask, Page, Redirect, Reply, Route
from .workspace import Stored

_SHOWN = 100  # runs on a page
_POINTS = 30  # of a sparkline
_HEADINGS = (
    "Compare",
    "Run",
    "System",
    "Dataset",
    "Samples",
    "Failed",
    "First metric",
    "95% interval",
    "Trend",
    "When",
)
_NUMERIC = ("Samples", "Failed")
_SPARE = ("System", "Dataset", "Samples", "95% interval", "Trend", "When")  # left out on a phone


def runs_page(ask: Ask) -> Reply:
    """Show the stored runs, those that are not finished, and what else is stored."""
    documents = ask.workspace.documents()
    runs = [one for one in documents if one.kind == "run" and not one.error]
    others = [one for one in documents if one.kind != "run" and not one.error]
    broken = [one for one in documents if one.error]
    start = ask.number("start") or 0
    main = join(
        _live(ask.workspace.unfinished()),
        _newest_pair(runs),
        _table(runs[start : start + _SHOWN], _trends(runs)) if runs else _nothing(ask),
        _older(start, len(runs)),
        _others(others),
        (tag("p", one.error, class_="small") for one in broken),
    )
    return Page("Runs", main, ask.workspace.command("list"))


def compare_ticked(ask: Ask) -> Reply:
    """Lead from the ticked runs to their comparison."""
    ticked = ask.lists.get("run", [])
    if len(ticked) < 2:
        return Redirect(address("run", ticked[0]) if ticked else "/")
    # The newest run is the first on the page, and the candidate of a comparison is the newer one.
    return Redirect(address("compare", query=[("run", run_id) for run_id in reversed(ticked)]))


def _newest_pair(runs: Sequence[Stored]) -> Node:
    """Return a link to the comparison that is wanted most: of the newest run and the one before it."""
    measured = [one for one in runs if one.run is not None]
    for one in measured[1:]:
        newest = measured[0]
        if one.run and newest.run and one.run.dataset_fingerprint == newest.run.dataset_fingerprint:
            query = [("run", one.id), ("run", newest.id)]
            return tag(
                "p", link(f"Compare {newest.id} with {one.id}", "compare", query=query), class_="turns"
            )
    return None


def _nothing(ask: Ask) -> Markup:
    folder = str(ask.workspace.folder)
    return tag(
        "p",
        f"There are no finished runs in {folder}. Make two of them: ",
        tag("code", "auepora demo"),
        class_="lead",
    )


def _live(unfinished: Iterable[Unfinished]) -> Node:
    items = [
        tag(
            "li",
            link(one.evaluation_id, "run", one.evaluation_id),
            f": {one.progress} samples have an output",
        )
        for one in unfinished
    ]
    return join(tag("h2", "Not finished"), tag("ul", items, class_="links")) if items else None


def _table(runs: Sequence[Stored], trends: Mapping[str, Sequence[float | None]]) -> Markup:
    # One run each has no trend, and an empty column only takes space.
    is_shown = {name: name != "Trend" or any(len(each) > 1 for each in trends.values()) for name in _HEADINGS}
    head = (tag("th", name, scope="col", class_=_classes(name)) for name in _HEADINGS if is_shown[name])
    rows = (tag("tr", compress(_cells(one, trends), is_shown.values())) for one in runs)
    table = tag("table", tag("thead", tag("tr", head)), tag("tbody", rows), class_="runs")
    button = tag("button", "Compare the ticked runs", type="submit")
    return tag("form", scroll_box("Stored runs", table), tag("p", button), action="/ticked", method="get")


def _classes(name: str) -> str | None:
    classes = [*(["num"] if name in _NUMERIC else []), *(["spare"] if name in _SPARE else [])]
    return " ".join(classes) or None


def _cells(one: Stored, trends: Mapping[str, Sequence[float | None]]) -> Iterable[Markup]:
    """Return the cells of a run, in the order of the headings."""
    yield tag("td", tag("input", type="checkbox", name="run", value=one.id, aria_label=f"Compare {one.id}"))
    yield tag("th", tag("a", short(one.id, 60), href=address("run", one.id), data_row=True), scope="row")
    first = one.run.results[0] if one.run is not None and one.run.results else None
    counts = (one.count(name) for name in ("total_queries", "failed_queries"))
    contents: list[Node] = [
        short(str(one.head.get("system_name") or one.head.get("system_version") or "-"), 40),
        short(str(one.head.get("dataset_id") or "-"), 40),
        *("-" if count is None else f"{count:,}" for count in counts),
        _value(first) if first else "-",
        interval_text(first.interval, first.unit) if first else "-",
        _sparkline(one, trends, first.name) if first else None,
        one.time.replace("T", " ")[:16],
    ]
    for name, content in zip(_HEADINGS[2:], contents, strict=True):
        yield tag("td", content, class_=_classes(name))


def _value(result: MetricResult) -> Markup:
    return join(f"{result.name} ", tag("b", value_text(result.value, result.unit, interval=result.interval)))


def _sparkline(one: Stored, trends: Mapping[str, Sequence[float | None]], name: str) -> Node:
    values = trends.get(one.id, ())
    if len(values) < 2:
        return None
    drawn = sparkline(values, label=f"{name} in the last {len(values)} runs of this system on these samples")
    # Changes are tested on that page: it takes the scores of every sample of every run.
    return link(drawn, "trend", query={"metric": name})


def _trends(runs: Sequence[Stored]) -> dict[str, list[float | None]]:
    """Return the values of the first metric up to each run, of runs that measured the same thing."""
    series: defaultdict[tuple[object, ...], list[float | None]] = defaultdict(list)
    trends: dict[str, list[float | None]] = {}
    for one in reversed(runs):
        if one.run is None or not one.run.results:
            continue
        values = series[_same(one.run)]
        values.append(one.run.results[0].value)
        trends[one.id] = values[-_POINTS:]
    return trends


def _same(run: EvaluationRun) -> tuple[object, ...]:
    """Return what two runs must have in common to be one line: system, samples, and how it was measured."""
    return (
        run.system_name,
        run.dataset_fingerprint,
        run.top_k,
        run.results[0].name,
        str(run.results[0].signature),
    )


def _older(start: int, count: int) -> Node:
    links = []
    if start:
        links.append(link("Newer runs", query={"start": max(0, start - _SHOWN) or None}))
    if start + _SHOWN < count:
        links.append(link("Older runs", query={"start": start + _SHOWN}))
    if not links:
        return None
    shown = f"Runs {start + 1:,} to {min(start + _SHOWN, count):,} of {count:,}. "
    return tag("p", shown, ((each, " ") for each in links))


def _others(others: Sequence[Stored]) -> Node:
    if not others:
        return None
    items = (
        tag("li", link(one.id, one.kind, one.id), f" ({one.kind}, {one.time.replace('T', ' ')[:16]})")
        for one in others
    )
    return join(tag("h2", "Experiments"), tag("ul", items, class_="links"))


ROUTES = [Route("/", runs_page), Route("/ticked", compare_ticked)]
