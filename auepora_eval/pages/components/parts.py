"""The parts of pages: numbers, verdicts, the strip, tables, menus and panels."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ...core.display import NOT_MEASURED, value_text
from ...core.types import MetricResult
from .markup import Attribute, Markup, Node, join, tag

_LONGEST = 600  # characters of one cell
FEW = 20  # samples; a number of fewer is marked


def short(text: str, limit: int = _LONGEST) -> str:
    """Return text cut to `limit` characters."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def arrow(name: str, *, up: bool) -> str:
    """Return the name of a metric, with an arrow if lower is better."""
    return name if up else f"{name} ↓"


def breakable(name: str) -> list[Node]:
    """Return the name of a metric, which a phone may break after "_" and "["."""
    first, *more = re.split(r"(?<=[_\[])", name)
    return [first, *([tag("wbr"), piece] for piece in more)]


# Numbers. Three digits in tables, two in chips; a change always has its sign.


def number(value: float | None, unit: str = "", *, signed: bool = False, digits: int = 3) -> str:
    """Return a value for a table.

    >>> number(0.75931), number(-0.0066, signed=True), number(23.456), number(0.0, signed=True)
    ('0.759', '−0.007', '23.5', '±0.000')
    """
    if value is None or not math.isfinite(value):
        return NOT_MEASURED
    if unit == "s":
        text = value_text(value, unit, signed=signed)
    else:
        shape = f".{digits}f" if abs(value) < 10 else ".1f" if abs(value) < 1000 else ",.0f"
        text = f"{value:{'+' if signed else ''}{shape}}"
    if signed and not text.strip("+-0. "):
        return f"±{text.lstrip('+-')}"
    return text.replace("-", "−")


def change(value: float, unit: str = "") -> str:
    """Return a change for a chip: two digits, or three if two would show none."""
    return number(value, unit, signed=True, digits=2 if abs(value) >= 0.005 else 3)


def interval(limits: Sequence[float] | None, unit: str = "", *, signed: bool = False) -> str:
    """Return the ends of an interval: "0.69 to 0.81"; "" if there is none."""
    if not limits:
        return ""
    low, high = (number(limit, unit, signed=signed) for limit in limits[:2])
    return f"{low}, {high}" if signed else f"{low} to {high}"


def chip(value: float | None, result: MetricResult, *, failed: bool = False, digits: int = 2) -> Markup:
    """Return a score with its tint; what was not measured is a word."""
    if failed:
        return tag("span", "failed", class_="h h0")
    if value is None or not math.isfinite(value):
        return tag("span", NOT_MEASURED, class_="h mute")
    text = number(value, result.unit, digits=digits)
    # Only shares of which more is better are tinted.
    is_tinted = result.is_share and result.higher_is_better
    return tag("span", text, class_=f"h h{min(4, int(value * 5))}" if is_tinted else "h")


# Verdicts: a sign and a word; the colour only repeats them.

SIGNS = {
    "better": ("▲", "up"),
    "worse": ("▼", "down"),
    "no worse": ("≥", "same"),
    "same": ("=", "same"),
    "inconclusive": ("~", "same"),
    "passed": ("✓", "up"),
    "complete": ("✓", "up"),
    "shown": ("✓", "up"),
    "failed": ("✕", "down"),
    "running": ("◔", "news"),
    "partial": ("!", "warn"),
    "stopped": ("!", "warn"),
    "warning": ("!", "warn"),
}


def sign_of(word: str) -> tuple[str, str]:
    """Return the sign of a verdict and its class: "worse, within margin" is a kind of worse."""
    return SIGNS.get(word.partition(",")[0].partition(" (")[0].lower(), ("~", "same"))


def verdict(word: str) -> Markup:
    """Return a verdict with its sign."""
    sign, kind = sign_of(word)
    # On a phone the cells of a table have space for the sign only; the word is for screen readers there.
    both = tag("span", sign, aria_hidden="true"), tag("span", f" {word}", class_="word")
    return tag("span", both, class_=f"verdict {kind}")


def strip(kind: str, words: Node, *more: Node, href: Node = None, sign: str = "") -> Markup:
    """Return the line on top of a page that says how it stands: up, down, warn or news."""
    sign = sign or {"up": "✓", "down": "✕", "warn": "!", "news": "◔", "same": "~"}[kind]
    return tag(
        "div",
        tag("strong", tag("span", sign, aria_hidden="true"), " ", words),
        more,
        href and tag("span", href, class_="end"),
        class_=f"strip {kind}",
        role="status",
    )


# Tables.


@dataclass(frozen=True)
class Column:
    """A column: its heading, the class of its cells, and its name in the address if it can be sorted by."""

    heading: Node = None
    kind: str | None = None
    key: str = ""
    first: str = "down"  # the order at the first click


@dataclass(frozen=True)
class Row:
    """A row of cells with a class; `words` is what a filter in one file finds it by, beside its texts."""

    cells: Sequence[Node]
    kind: str | None = None
    words: str | None = None


Sorted = tuple[str, str]  # the name of a column, and "up" or "down"


def table(
    label: str,
    columns: Sequence[Column | str],
    rows: Iterable[Row | Markup | Sequence[Node]],
    *,
    sort: Sorted = ("", ""),
    href: Callable[[str, str], str] | None = None,
    kind: str = "",
    head: int = 0,
) -> Markup:
    """Return a table; the column `head` names the rows, `href` is the address that sorts by another one."""
    named = [Column(each) if isinstance(each, str) else each for each in columns]
    kinds = [each.kind for each in named]
    body = (each if isinstance(each, Markup) else _row(each, kinds, head) for each in rows)
    top = tag("thead", tag("tr", (_heading(each, sort, href) for each in named)))
    content = tag("table", top, tag("tbody", body), class_=kind or None)
    return tag("div", content, class_="scroll", role="region", aria_label=label, tabindex=0)


def _row(row: Row | Sequence[Node], kinds: Sequence[str | None], head: int) -> Markup:
    one = row if isinstance(row, Row) else Row(row)
    cells = (
        tag("th", cell, scope="row", class_=kind) if place == head else tag("td", cell, class_=kind)
        for place, (cell, kind) in enumerate(zip(one.cells, kinds, strict=True))
    )
    return tag("tr", cells, class_=one.kind, data_words=one.words)


def _heading(column: Column, sort: Sorted, href: Callable[[str, str], str] | None) -> Markup:
    if not column.heading:  # a heading without words says nothing to a screen reader
        return tag("td", class_=column.kind)
    if href is None or not column.key:
        return tag("th", column.heading, scope="col", class_=column.kind)
    is_sorted = sort[0] == column.key
    order = ("up" if sort[1] == "down" else "down") if is_sorted else column.first
    state = ("ascending" if sort[1] == "up" else "descending") if is_sorted else "none"
    text = tag("a", column.heading, href=href(column.key, order))
    return tag("th", text, scope="col", class_=column.kind, aria_sort=state)


def span(kind: str, *content: Node) -> Markup:
    """Return a few words with a class."""
    return tag("span", *content, class_=kind)


def row_link(text: Node, href: str, *, title: str | None = None) -> Markup:
    """Return the link of a row, which the keys j and k stop at."""
    return tag("a", text, href=href, data_row=True, title=title)


def choice_form(action: str, *content: Node, button: str = "Show") -> Markup:
    """Return a form whose choice is applied at once; without a script by its button."""
    submit = tag("button", button, type="submit")
    return tag("form", content, submit, class_="filters", method="get", action=action, data_submits=True)


def select_box(name: str, options: Iterable[tuple[str, str]], chosen: str | None, label: str) -> Markup:
    """Return a box with one option per (value, text); the value "" is chosen if none is."""
    items = (tag("option", text, value=value, selected=value == (chosen or "")) for value, text in options)
    return tag("select", items, name=name, aria_label=label)


def key_button(
    key: str, text: str, value: str = "", *, pressed: bool | None = None, disabled: bool = False
) -> Markup:
    """Return a button that a key presses."""
    state = None if pressed is None else "true" if pressed else "false"
    named = {"name": "key", "value": value or key, "data-key": key, "aria-pressed": state}
    return tag("button", tag("kbd", key), f" {text}", type="submit", disabled=disabled, attrs=named)


def press_form(action: str, *content: Node, kind: str | None = "bar-form") -> Markup:
    """Return a form of such buttons. A script sends it and shows the next page, or what went wrong."""
    problem = tag("p", class_="problem", role="alert")
    return tag("form", content, problem, method="post", action=action, class_=kind, data_press=True)


def search_form(what: str, words: str, *more: Node, action: str = "", kind: str = "live") -> Markup:
    """Return the field that filters while one types: by the server ("live") or in the file ("local")."""
    name = f"Filter {what}"
    field = tag("input", type="search", name="words", value=words, placeholder=name, aria_label=name)
    attrs: dict[str, Attribute] = {f"data-{kind}": True}
    attrs |= {"method": "get", "action": action} if action else {}
    button = tag("button", "Filter", type="submit", data_noscript=True) if action else None
    return tag("form", field, more, button, role="search", class_="filters", attrs=attrs)


def run_box(name: str, label: str, run_ids: Iterable[str], chosen: str, *, none: bool = False) -> Markup:
    """Return a box with the ids of runs behind its label."""
    options = [("", "none")] * none + [(run_id, short(run_id, 60)) for run_id in run_ids]
    return tag("label", f"{label} ", select_box(name, options, chosen, label))


def hidden_fields(pairs: Iterable[tuple[str, str | None]]) -> list[Markup]:
    """Return what a form keeps of the address."""
    return [tag("input", type="hidden", name=name, value=value) for name, value in pairs if value]


def group_row(columns: int, name: str, about: str = "") -> Markup:
    """Return a row that names the rows below it."""
    words = tag("th", tag("b", name), f" {about}" if about else None, colspan=columns, scope="colgroup")
    return tag("tr", words, class_="group")


def notes(texts: Iterable[str]) -> Markup:
    """Return notes below a table, each on its own line."""
    return join(tag("p", text, class_="note") for text in texts)


def column_menu(
    names: Iterable[str], shown: Sequence[str], kept: Iterable[tuple[str, str | None]], action: str
) -> Markup:
    """Return the menu in which the columns of a table are chosen."""
    boxes = (
        tag("label", tag("input", type="checkbox", name="col", value=name, checked=name in shown), name)
        for name in names
    )
    show = tag("button", "Show", type="submit")
    form = tag("form", hidden_fields(kept), boxes, show, method="get", action=action)
    return tag("details", tag("summary", "Columns ⌄", class_="button"), form, class_="menu")


def turns(words: str, links: Iterable[tuple[str, str, str]]) -> Node:
    """Return the links to the pages before and after this one, each a text, a relation and an address."""
    drawn = [(tag("a", text, href=href, rel=rel), " ") for text, rel, href in links]
    return tag("p", f"{words} ", drawn) if drawn else None


# Panels and controls.


def lead(*content: Node) -> Markup:
    """Return the first words of a page."""
    return tag("p", *content, class_="lead")


def folded(title: Node, *content: Node, kind: str | None = None) -> Markup:
    """Return what is shown on demand."""
    return tag("details", tag("summary", title), content, class_=kind)


def card(title: Node, *content: Node, about: Node = None, kind: str = "") -> Markup:
    """Return a panel with a heading."""
    head = tag("header", tag("h2", title), tag("span", about, class_="end mute") if about else None)
    return tag("section", head, content, class_=f"card {kind}".strip())


def section(title: Node, *content: Node, about: Node = None, anchor: str | None = None) -> Markup:
    """Return a part of a page with a heading."""
    head = tag("header", tag("h2", title, id=anchor), tag("span", about, class_="mute") if about else None)
    return tag("section", head, content, class_="part")


def menu(text: Node, links: Iterable[Node], *, label: str = "", kind: str = "quiet") -> Markup:
    """Return a menu that opens without a script."""
    summary = tag("summary", text, class_=f"button {kind}", aria_label=label or None)
    return tag("details", summary, tag("ul", (tag("li", each) for each in links)), class_="menu")


def button_link(text: Node, href: str) -> Markup:
    """Return a link that looks like a button."""
    return tag("a", text, href=href, class_="button")


def facts(pairs: Iterable[tuple[str, Node]]) -> Markup:
    """Return names and values, one pair per line."""
    return tag("dl", (join(tag("dt", name), tag("dd", value)) for name, value in pairs), class_="facts")
