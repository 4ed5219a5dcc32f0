"""The frame of every page: navigation, heading, content, and the command that prints the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

from ..core.types import MetricResult
from .components.markup import Markup, Node, join, tag
from .page import Assets, linked, page
from .requests import Ask, Page


@dataclass(frozen=True)
class Frame:
    """What the pages of a command share: its script and style, the pages to go to, the keys to press."""

    name: str  # of the script and the style
    places: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)


VIEW = Frame(
    "view",
    {"/": "Runs", "/gate": "Gate", "/trend": "Trend", "/metrics": "Metrics"},
    {"j": "next", "k": "previous", "Enter": "open", "u": "up", "/": "search"},
)


def html_of(shown: Page, ask: Ask | None = None, frame: Frame = VIEW) -> str:
    """Return a page as HTML."""
    address = ask.address if ask else ""
    header = join(_navigation(address, frame), tag("h1", shown.title))
    command = (
        tag("p", "In a terminal: ", tag("code", shown.command), class_="small command")
        if shown.command
        else None
    )
    return page(
        f"{shown.title} · auepora",
        assets=_assets(shown, frame),
        header=header,
        main=shown.main,
        footer=join(command, _keys(frame)),
    )


def _assets(shown: Page, frame: Frame) -> Assets:
    assets = linked("/style.css", f"/{frame.name}.js")
    more = [
        tag("link", rel="stylesheet", href=f"/{frame.name}.css"),
        tag("link", rel="icon", href="/favicon.svg"),
    ]
    if shown.refresh is not None:
        # Not by a script: the page must load itself again without JavaScript, too.
        more.append(tag("meta", attrs={"http-equiv": "refresh", "content": shown.refresh}))
    return Assets(join(assets.head, more), assets.end)


def _navigation(address: str, frame: Frame) -> Markup | None:
    if not frame.places:
        return None
    here = address.partition("?")[0]
    links = (
        tag("li", tag("a", name, href=place, aria_current="page" if place == here else None))
        for place, name in frame.places.items()
    )
    return tag("nav", tag("ul", links), aria_label="Pages")


def _keys(frame: Frame) -> Markup | None:
    if not frame.keys:
        return None
    named = [join(tag("kbd", key), f" {what}") for key, what in frame.keys.items()]
    return tag("p", "Keys: ", named[0], ((", ", each) for each in named[1:]), class_="small keys")


def error_page(status: int, text: str) -> Page:
    """Return the page of an error."""
    title = {400: "This cannot be shown", 404: "Not found"}.get(status, "Something went wrong")
    return Page(title, tag("p", text, class_="lead"), status=status)


def waiting_page(what: str) -> Page:
    """Return the page while something is made in the background."""
    main = join(
        tag("p", f"{what} …", class_="lead", role="status"),
        tag("p", "This page loads itself again until it is ready. The other pages can be used meanwhile."),
    )
    return Page("One moment", main, refresh=1)


Query = Mapping[str, str | int | None] | Sequence[tuple[str, str]]


def address(*parts: str, query: Query = ()) -> str:
    """Return an address of this server, quoted; a value that is None or empty is left out."""
    # safe="": a slash in an id must not start another part of the path.
    path = "/" + "/".join(quote(part, safe="") for part in parts)
    pairs = query.items() if isinstance(query, Mapping) else query
    given = [(name, str(value)) for name, value in pairs if value is not None and value != ""]
    return f"{path}?{urlencode(given)}" if given else path


def with_id(page: str, sample_id: str) -> str:
    """Return the address of a sample's page. Quicker than `address`: a list has one for each row."""
    return f"{page}{'&' if '?' in page else '?'}id={quote(sample_id, safe='')}"


def select_box(name: str, options: Iterable[tuple[str, str]], chosen: str | None) -> Markup:
    """Return a box with one option per (value, text); the value "" is chosen if none is."""
    return tag(
        "select",
        (tag("option", text, value=value, selected=value == (chosen or "")) for value, text in options),
        name=name,
    )


def metric_box(name: str, metrics: Iterable[MetricResult], chosen: str | None, none: str = "") -> Markup:
    """Return a box of metrics; file.js has to know which of them are better if they are lower."""
    options = [tag("option", none, value="", selected=not chosen)] if none else []
    options += [
        tag(
            "option",
            one.name,
            value=one.name,
            selected=one.name == chosen,
            data_lower=not one.higher_is_better,
        )
        for one in metrics
    ]
    return tag("select", options, name=name)


def link(text: Node, *parts: str, query: Query = ()) -> Markup:
    """Return a link to a page of this server."""
    return tag("a", text, href=address(*parts, query=query))


def help_dialog(keys: Mapping[str, str], note: str) -> Markup:
    """Return the dialog that lists the keys of a page."""
    rows = (tag("tr", tag("th", tag("kbd", key), scope="row"), tag("td", what)) for key, what in keys.items())
    return tag(
        "dialog",
        tag("h2", "Keys"),
        tag("table", tag("tbody", rows)),
        tag("p", note),
        tag("form", tag("button", "Close", class_="main"), method="dialog"),
        class_="help",
        aria_label="Keys",
    )
