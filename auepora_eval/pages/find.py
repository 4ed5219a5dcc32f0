"""Search from anywhere: runs, pages, metrics and samples."""

from __future__ import annotations

from ..core.metrics_base import listed_metrics
from ..errors import AueporaError
from ..store.pages import Filter
from .components import parts as ui
from .components.markup import Markup, Node, join, tag
from .layout import PLACES, address, with_id
from .requests import Ask, Page, Reply
from .workspace import Workspace

_EACH = 8  # results of a kind
_RUNS = 3  # whose samples are searched: that of the page, or the newest

Found = list[tuple[str, str, str]]  # (text, what it is, address)


def find_page(ask: Ask) -> Reply:
    """Show what matches some words; the search of every page shows the same while one types."""
    words = ask.values.get("words", "").strip()[:200]
    groups = {
        "Runs": _runs(ask.workspace, words),
        "Pages": [(name, "page", place) for place, name, _ in PLACES if _has(name, words)],
        "Metrics": _metrics(ask, words),
        "Samples": _samples(ask, words) if words else [],
    }
    parts: list[Node] = [_group(name, found) for name, found in groups.items() if found]
    empty = tag("p", "Nothing matches.", class_="mute pad")
    field = tag("input", type="search", name="words", value=words, aria_label="Find")
    form = tag(
        "form", field, tag("button", "Find", type="submit"), action="/find", class_="filters", role="search"
    )
    return Page("Find", join(form, tag("div", parts or empty, class_="found")), crumbs=[("Runs", "/")])


def _has(text: str, words: str) -> bool:
    return all(word in text.lower() for word in words.lower().split())


def _group(name: str, found: Found) -> Markup:
    items = (
        tag("li", tag("a", tag("span", ui.short(text, 90)), tag("small", kind), href=href, data_row=True))
        for text, kind, href in found
    )
    return join(tag("h2", name), tag("ul", items))


def _runs(workspace: Workspace, words: str) -> Found:
    matching = [one for one in workspace.runs() if _has(f"{one.id} {one.head.get('system_name')}", words)]
    return [(one.id, "run", address("run", one.id)) for one in matching[:_EACH]]


def _metrics(ask: Ask, words: str) -> Found:
    """Return the metrics of the run of the page, which lead to its samples, and those of the reference."""
    run_id = ask.values.get("run", "")
    known = next((one.run for one in ask.workspace.runs() if one.id == run_id), None)
    own = [
        (
            result.name,
            f"metric of {ui.short(run_id, 30)}",
            address("run", run_id, "samples", query={"sort": result.name}),
        )
        for result in (known.results if known else ())
        if _has(result.name, words)
    ]
    named = [
        (metric.usage(), "metric", f"/metrics?words={metric.usage().partition('@')[0]}")
        for metric in listed_metrics()
    ]
    return [*own, *(one for one in named if words and _has(one[0], words))][:_EACH]


def _samples(ask: Ask, words: str) -> Found:
    recent = [one.id for one in ask.workspace.runs()]
    first = ask.values.get("run", "")
    run_ids = [first] if first in recent else recent[:_RUNS]
    found: Found = []
    for run_id in run_ids:
        try:
            index = ask.workspace.index(run_id)
        except AueporaError:
            continue  # a run whose file is missing has no samples to find
        page = index.page(index.matching(Filter(words)), None, count=_EACH)
        where = address("run", run_id, "sample")
        found += [
            (f"{row.sample_id} {row.query}", ui.short(run_id, 30), with_id(where, row.sample_id))
            for row in index.rows(page.places)
        ]
    return found[:_EACH]
