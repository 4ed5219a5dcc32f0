"""Build HTML in which text can only be text: whatever is not Markup is escaped.

`tag("p", "a < b", class_="note")` is `<p class="note">a &lt; b</p>`. Nothing else joins strings to HTML:
to know whether text can become part of a page, read this file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from html import escape

from ...core.display import visible_text

_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9-]*")
_VOID = frozenset(
    {"br", "circle", "col", "hr", "img", "input", "line", "link", "meta", "path", "rect", "wbr"}
)
# HTML allows these end tags to be left out where the parent ends or the next one of the kind starts, as it
# always does here. A report of 160 samples has some 20,000 of them.
_NO_END = frozenset({"dd", "dt", "li", "option", "tbody", "td", "th", "thead", "tr"})
_RAW = frozenset({"script", "style"})
_ADDRESSES = frozenset({"action", "formaction", "href", "src"})
_OWN = re.compile(r"[#?.]|/(?![/\\])")  # addresses that stay here
# Attributes whose value is a program or a style; a page without them works under the strictest CSP.
_FORBIDDEN = re.compile(r"on.*|hx-on.*|style|srcdoc")


@dataclass(frozen=True, slots=True)
class Markup:
    """HTML that is safe to put into a page. Only this module makes it from text."""

    text: str

    def __str__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        return bool(self.text)

    def __html__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.text


# A sequence of nodes is allowed too; a type checker cannot express that of `str`, which is one itself.
Node = Markup | str | int | None | Iterable["Node"]
Attribute = str | int | float | bool | None


def escaped(text: str) -> str:
    """Return text for HTML, without control characters and overrides of the reading direction."""
    return escape(text if text.isprintable() else visible_text(text))


def join(*children: Node) -> Markup:
    """Return nodes one after the other; None is nothing."""
    return Markup("".join(_texts(children)))


def tag(
    name: str, /, *children: Node, attrs: Mapping[str, Attribute] | None = None, **named: Attribute
) -> Markup:
    """Return an element. `class_` is written for class, `data_id` for data-id; `attrs` takes any name.

    An attribute that is None or False is left out; True is written without a value.
    """
    _check_element(name)
    written = [_attribute(key.rstrip("_").replace("_", "-"), value) for key, value in named.items()]
    written += [_attribute(key, value) for key, value in (attrs or {}).items()]
    start = f"<{name}{''.join(written)}>"
    if name in _VOID:
        # An element of SVG is closed by its slash; HTML ignores it.
        return Markup(f"{start[:-1]}/>")
    return Markup(f"{start}{''.join(_texts(children))}{'' if name in _NO_END else f'</{name}>'}")


def raw_element(name: str, text: str, **named: Attribute) -> Markup:
    """Return a <script> or <style> with a text of our own, or of JSON, whose "<" is written as an escape."""
    if name not in _RAW or re.search(r"</|<!--", text):
        raise ValueError(f"a {name!r:.20} element cannot have this text")
    written = "".join(_attribute(key.rstrip("_").replace("_", "-"), value) for key, value in named.items())
    return Markup(f"<{name}{written}>{text}</{name}>")


def _texts(children: Iterable[Node]) -> Iterable[str]:
    for child in children:
        if child is None:
            continue
        if isinstance(child, Markup):
            yield child.text
        elif isinstance(child, str):
            yield escaped(child)
        elif isinstance(child, int):
            yield str(child)
        else:
            yield from _texts(child)


# Names are few, and a page has thousands of elements: each name is checked once.


@lru_cache(maxsize=500)
def _check_element(name: str) -> None:
    if not _NAME.fullmatch(name) or name in _RAW:
        raise ValueError(f"{name!r:.40} cannot be the name of an element here")


@lru_cache(maxsize=500)
def _check_attribute(name: str) -> None:
    if not _NAME.fullmatch(name) or _FORBIDDEN.fullmatch(name.lower()):
        raise ValueError(f"{name!r:.40} cannot be the name of an attribute here")


def _attribute(name: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    _check_attribute(name)
    if value is True:
        return f" {name}"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    # Two slashes, or a slash and a backslash, lead to another host.
    if name in _ADDRESSES and not _OWN.match(text):
        raise ValueError(f"{text!r:.60} leads out of the page")
    return f' {name}="{escaped(text)}"'
