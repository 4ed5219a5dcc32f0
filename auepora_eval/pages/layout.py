"""The frame of every page: navigation, breadcrumb, search, keys, and the command that prints the same."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from html import unescape
from importlib.resources import files
from urllib.parse import quote, urlencode

from .components.markup import Markup, Node, join, raw_element, tag
from .components.parts import SIGNS, lead, menu, short
from .requests import Ask, Page
from .workspace import Workspace

# Of the navigation: the address, the name, and the path of its icon on 16 by 16.
PLACES = (
    ("/", "Runs", "M2 4h12M2 8h12M2 12h8"),
    ("/compare", "Compare", "M5 2v12M11 2v12M2 6h6M8 10h6"),
    ("/trend", "Trend", "M2 12l4-4 3 2 5-6M10 4h4v4"),
    ("/gate", "Gate", "M8 2l5 2v4c0 3-2 5-5 6-3-1-5-3-5-6V4zM6 8l2 2 3-4"),
    ("/label", "Label", "M2 3h6l6 5-6 5H2zM5 8h.1"),
    ("/metrics", "Metrics", "M3 12a6 6 0 1 1 10 0M8 10l3-4"),
)
_MARK = "M1 5h14M1 11h14M5 2.5v5M11 8.5v5"


def html_of(shown: Page, ask: Ask | None = None, *, places: bool = True) -> str:
    """Return a page as HTML; without `places` for a person who only labels."""
    main = join(heading(shown), shown.main)
    keys = _keys(main.text, searches=places, has_way_up=places and bool(shown.crumbs))
    body: list[Node] = [
        tag("a", "Skip to the content", class_="skip", href="#main"),
        _rail(ask) if places else None,
        tag(
            "div",
            tag("header", _top(shown, ask, places=places), class_="top"),
            # Without a tabindex, the skip link would scroll here but leave the focus behind.
            tag("main", main, id="main", tabindex=-1),
            tag("footer", _command(shown)) if shown.command else None,
            class_="page",
        ),
        _palette(shown) if places else None,
        _key_help(keys),
    ]
    links = [
        tag("link", rel="stylesheet", href="/style.css"),
        raw_element("script", "", src="/view.js", defer=True),
        tag("link", rel="icon", href="/favicon.svg"),
    ]
    if shown.refresh is not None:
        # Not by a script: the page must load itself again without JavaScript, too.
        links.append(tag("meta", attrs={"http-equiv": "refresh", "content": shown.refresh}))
    return document(f"{shown.title} · auepora", links, tag("body", body, class_=None if places else "alone"))


def document(title: str, head: Node, body: Markup) -> str:
    """Return a whole HTML document."""
    meta = [
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
    ]
    return f"<!doctype html>\n{tag('html', tag('head', meta, head), body, lang='en')}\n"


def heading(shown: Page) -> Markup:
    """Return the title of a page with what stands beside it."""
    return tag(
        "div",
        tag("h1", shown.title),
        tag("p", shown.facts, class_="mute") if shown.facts else None,
        tag("div", shown.actions, class_="actions") if shown.actions else None,
        class_="head",
    )


def brand() -> Markup:
    """Return the name of the product."""
    return tag("span", tag("span", icon(_MARK), class_="mark"), "auepora", class_="brand")


def _rail(ask: Ask | None) -> Markup:
    """Return what is on the left of each page: search, the pages to go to, and the newest runs."""
    path = ask.address.partition("?")[0] if ask else ""
    path = "/label" if path.startswith("/review/") else path  # reviews are on the page of tasks
    current = next((place for place, *_ in PLACES[1:] if path.startswith(place)), "/" if path else "")
    links = []
    for place, name, shape in PLACES:
        now = "page" if place == current else None
        links.append(tag("li", tag("a", icon(shape), name, href=place, aria_current=now)))
    find = tag(
        "button", "Find", tag("kbd", "Ctrl K"), type="button", popovertarget="find", class_="button find"
    )
    return tag(
        "aside",
        tag("a", brand(), href="/", aria_label="auepora: all runs"),
        find,
        tag("nav", tag("ul", links), aria_label="Pages"),
        _recent(ask.workspace) if ask else None,
        class_="rail",
        aria_label="auepora",
    )


def _recent(workspace: Workspace) -> Node:
    items = []
    for run_id, state, about in workspace.recent()[:8]:
        sign, kind = SIGNS[state]
        parts = [
            tag("span", sign, class_=kind, aria_hidden="true"),
            tag("span", short(run_id, 40), class_="cut"),
            tag("small", about) if about else None,
        ]
        title = run_id if len(run_id) > 20 else None
        items.append(tag("li", tag("a", parts, href=address("run", run_id), title=title)))
    return tag("nav", tag("h2", "Recent"), tag("ul", items), class_="recent", aria_label="Recent runs")


def icon(shape: str) -> Markup:
    """Return a drawing beside a word."""
    return tag("svg", tag("path", d=shape), class_="i", viewBox="0 0 16 16", aria_hidden="true")


def crumbs(shown: Page, workspace: Workspace | None = None) -> Markup:
    """Return the way to a page; the name of a run is a menu of all others."""
    items: list[Node] = []
    for place, (text, href) in enumerate(shown.crumbs):
        # The last one that leads up is what the key u follows.
        is_last = place == len(shown.crumbs) - 1
        link = tag("a", short(text, 40), href=href, rel="up" if is_last else None)
        items.append(tag("li", link, _switch(workspace, text, href)))
    here = tag("span", short(shown.title, 60), aria_current="page")
    own = _switch(workspace, shown.run, address("run", shown.run)) if shown.title == shown.run else None
    return tag("nav", tag("ol", items, tag("li", here, own)), class_="crumbs", aria_label="Breadcrumb")


def _switch(workspace: Workspace | None, run_id: str, href: str) -> Node:
    if workspace is None or href != address("run", run_id):
        return None
    recent = [other for other, *_ in workspace.recent() if other != run_id]
    others = [tag("a", short(other, 60), href=address("run", other)) for other in recent]
    return menu("⌄", others, label="Switch to another run") if others else None


def _top(shown: Page, ask: Ask | None, *, places: bool) -> Node:
    way = crumbs(shown, ask.workspace if ask else None) if places else brand()
    find = tag(  # on a phone, where the rail has no space for it
        "button",
        icon("M7 2a5 5 0 1 0 0 10 5 5 0 0 0 0-10zM11 11l4 4"),
        type="button",
        popovertarget="find",
        class_="button quiet narrow-only",
        aria_label="Find",
    )
    keys = tag(
        "button", "?", type="button", popovertarget="keys", class_="button quiet", aria_label="Keys (?)"
    )
    return [way, find if places else None, keys]


def _palette(shown: Page) -> Markup:
    """Return the search from anywhere. Without a script, Enter shows what was found on a page of its own."""
    field = tag(
        "input",
        type="search",
        name="words",
        placeholder="Run, metric, page or words of a sample",
        aria_label="Find",
        autocomplete="off",
    )
    run = tag("input", type="hidden", name="run", value=shown.run) if shown.run else None
    form = tag("form", field, run, action="/find", method="get", role="search", data_find=True)
    found = tag("div", class_="found", aria_live="polite")
    return tag("div", form, found, id="find", popover=True, class_="over", role="dialog", aria_label="Find")


def _keys(html: str, *, searches: bool, has_way_up: bool) -> Iterator[tuple[str, str]]:
    """Yield the keys that do something on a page: what they act on is in it."""
    if searches:
        yield "Ctrl K", "find a run, page, metric or sample"
    if "data-row" in html:
        yield "j k", "next, previous row"
        yield "Enter", "open the row"
    if 'rel="next"' in html or 'rel="prev"' in html:
        yield "[ ]", "previous, next"
    if has_way_up and 'data-key="u"' not in html:  # a button comes first: there it is undo
        yield "u", "up"
    if 'type="search"' in html:
        yield "/", "filter"
    if 'type="checkbox" name="run"' in html:
        yield "x", "tick the run of the row"
    # Buttons that have a key say what it does.
    for key, what in re.findall(r'data-key="([^"]+)"[^>]*><kbd>[^<]*</kbd> ([^<]+)<', html):
        yield key, unescape(what)
    yield "?", "these keys"
    yield "Esc", "close"


def _key_help(keys: Iterable[tuple[str, str]]) -> Markup:
    rows = [
        join(tag("dt", ((tag("kbd", key), " ") for key in names.split())), tag("dd", what))
        for names, what in keys
    ]
    about = {"id": "keys", "class": "over", "role": "dialog", "aria-label": "Keys"}
    return tag("div", tag("h2", "Keys of this page"), tag("dl", rows), popover=True, attrs=about)


def _command(shown: Page) -> Markup:
    copy = tag("button", "Copy", type="button", class_="button quiet", data_copy=shown.command, hidden=True)
    return tag("p", "In a terminal: ", tag("code", shown.command), copy, class_="command")


# Pages that are not about anything stored.


def error_page(status: int, text: str) -> Page:
    """Return the page of an error."""
    title = {400: "This cannot be shown", 404: "Not found"}.get(status, "Something went wrong")
    return Page(title, lead(text), status=status, crumbs=[("Runs", "/")])


def waiting_page(what: str) -> Page:
    """Return the page while something is made in the background."""
    main = join(
        tag("p", f"{what} …", class_="lead", role="status"),
        tag("p", "This page loads itself again until it is ready. The other pages can be used meanwhile."),
    )
    return Page("One moment", main, refresh=1)


def no_runs(workspace: Workspace) -> Markup:
    """Return what a page says while there is nothing to show."""
    why = f"There are no finished runs in {workspace.folder}. Make two of them: "
    return lead(why, tag("code", "auepora demo"))


# Addresses.

Query = Mapping[str, str | int | None] | Iterable[tuple[str, str | None]]


def address(*parts: str, query: Query = ()) -> str:
    """Return an address of this server, quoted; a value that is None or empty is left out."""
    # safe="": a slash in an id must not start another part of the path.
    path = "/" + "/".join(quote(part, safe="") for part in parts)
    pairs = query.items() if isinstance(query, Mapping) else query
    given = [(name, str(value)) for name, value in pairs if value is not None and value != ""]
    return f"{path}?{urlencode(given)}" if given else path


def compare_address(run_ids: Iterable[str]) -> str:
    """Return the address of a comparison, whose first run is the baseline."""
    return address("compare", query=[("run", run_id) for run_id in run_ids])


def with_id(page: str, sample_id: str) -> str:
    """Return the address of a sample's page. Quicker than `address`: a list has one for each row."""
    return f"{page}{'&' if '?' in page else '?'}id={quote(sample_id, safe='')}"


def link(text: Node, *parts: str, query: Query = ()) -> Markup:
    """Return a link to a page of this server."""
    return tag("a", text, href=address(*parts, query=query))


# One file: everything that a page loads is inside it.


def inside(script: str, style: str) -> Markup:
    """Return the head of a page that is one file; its policy allows this style and script by hash."""
    # A report is opened from the disk, where no server sends headers. The page has model output in it: if
    # markup ever escaped, it could neither run nor load anything.
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    meta = tag("meta", attrs={"http-equiv": "Content-Security-Policy", "content": policy})
    return join(meta, raw_element("style", style))


def own_file(name: str) -> str:
    """Return the text of a file of this package."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
