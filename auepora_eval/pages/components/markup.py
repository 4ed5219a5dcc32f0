"""Build HTML in which text can only be text: whatever is not Markup is escaped.

`tag("p", "a < b", class_="note")` is `<p class="note">a &lt; b</p>`. Nothing else joins strings to HTML:
to know whether text can become part of a page, read this file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from ...core.display import html_text

_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9-]*")
_VOID = frozenset("br circle col hr img input line link meta path polygon polyline rect wbr".split())
# HTML allows these end tags to be left out where the parent ends or the next one of the kind starts, as it
# always does here. A report of 160 samples has some 20,000 of them.
_NO_END = frozenset("dd dt li option tbody td th thead tr".split())
_RAW = frozenset({"script", "style"})
_ADDRESSES = frozenset({"action", "formaction", "href", "src"})
_OWN = re.compile(r"[#?.]|/(?![/\\])")  # addresses that stay here
# Attributes whose value is a program or a style; a page without them works under the strictest CSP.
_FORBIDDEN = re.compile(r"on.*|hx-on.*|style|srcdoc")


# Not frozen: that takes three times as long to make, and a page has thousands.
@dataclass(slots=True)
class Markup:
    """HTML that is safe to put into a page. Only this module makes it from text."""

    text: str

    def __str__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        return bool(self.text)


# A sequence of nodes is allowed too; a type checker cannot express that of `str`, which is one itself.
Node = Markup | str | int | None | Iterable["Node"]
Attribute = str | int | float | bool | None


def escaped(text: str) -> str:
    """Return text for HTML, without control characters and overrides of the reading direction."""
    # Most texts have none of these, and are looked through three times as fast as `escape` replaces them.
    if text.isprintable() and not ("&" in text or "<" in text or ">" in text or '"' in text or "'" in text):
        return text
    return html_text(text)


def join(*children: Node) -> Markup:
    """Return nodes one after the other; None is nothing."""
    parts: list[str] = []
    _add(parts, children)
    return Markup("".join(parts))


def tag(
    name: str, /, *children: Node, attrs: Mapping[str, Attribute] | None = None, **named: Attribute
) -> Markup:
    """Return an element. `class_` is written for class, `data_id` for data-id; `attrs` takes any name.

    An attribute that is None or False is left out; True is written without a value.
    """
    start, end = _ends(name)
    parts = [start]
    for key, value in named.items():
        if value is not None and value is not False:
            parts.append(_attribute(key, value))
    if attrs:
        parts += [_attribute(key, value) for key, value in attrs.items()]
    if name in _VOID:
        # An element of SVG is closed by its slash; HTML ignores it.
        parts.append("/>")
    else:
        parts.append(">")
        _add(parts, children)
        parts.append(end)
    return Markup("".join(parts))


Span = tuple[int, int]  # of characters, the end excluded
Layer = tuple[Span, Callable[[Node], Markup]]  # a part of a text, and the element around it


def layered(text: str, layers: Iterable[Layer], after: Mapping[int, Node] | None = None) -> Markup:
    """Return text with elements around parts of it, which may overlap: the first layer is the innermost.

    `after` has what follows a character, by the place behind it.
    """
    inside = [(span, around) for span, around in layers if 0 <= span[0] < span[1] <= len(text)]
    cuts = sorted({0, len(text), *(end for span, _ in inside for end in span)})
    pieces: list[Node] = []
    for start, end in pairwise(cuts):
        piece: Node = text[start:end]
        for span, around in inside:
            if span[0] <= start and end <= span[1]:
                piece = around(piece)
        pieces += [piece, (after or {}).get(end)]
    return join(pieces)


def raw_element(name: str, text: str, **named: Attribute) -> Markup:
    """Return a <script> or <style> with a text of our own, or of JSON, whose "<" is written as an escape."""
    if name not in _RAW or re.search(r"</|<!--", text):
        raise ValueError(f"a {name!r:.20} element cannot have this text")
    written = "".join(_attribute(key, value) for key, value in named.items())
    return Markup(f"<{name}{written}>{text}</{name}>")


def _add(parts: list[str], children: Iterable[Node]) -> None:
    for child in children:
        if isinstance(child, Markup):
            parts.append(child.text)
        elif isinstance(child, str):
            parts.append(escaped(child))
        elif child is None:
            continue
        elif isinstance(child, int):
            parts.append(str(child))
        else:
            _add(parts, child)


# Names are few, and a page has thousands of elements: each name is checked once.


@lru_cache(maxsize=500)
def _ends(name: str) -> tuple[str, str]:
    """Return the start of an element without its attributes, and its end."""
    if not _NAME.fullmatch(name) or name in _RAW:
        raise ValueError(f"{name!r:.40} cannot be the name of an element here")
    return f"<{name}", "" if name in _NO_END else f"</{name}>"


@lru_cache(maxsize=500)
def _attribute_name(key: str) -> str:
    name = key.rstrip("_").replace("_", "-")
    if not _NAME.fullmatch(name) or _FORBIDDEN.fullmatch(name.lower()):
        raise ValueError(f"{name!r:.40} cannot be the name of an attribute here")
    return name


@lru_cache(maxsize=1000, typed=True)  # typed: True is not 1 here
def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = _attribute_name(key)
    if value is True:
        return f" {name}"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    # Two slashes, or a slash and a backslash, lead to another host.
    if name in _ADDRESSES and not _OWN.match(text):
        raise ValueError(f"{text!r:.60} leads out of the page")
    return f' {name}="{escaped(text)}"'
