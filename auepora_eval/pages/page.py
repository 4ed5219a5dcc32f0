"""The shell of a page: head, landmarks, and the stylesheet and script either inside or linked."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from importlib.resources import files

from .components.markup import Markup, Node, join, raw_element, tag


@dataclass(frozen=True)
class Assets:
    """What a page loads: `head` goes into its head, `end` behind its content."""

    head: Markup
    end: Markup | None = None


def page(title: str, *, assets: Assets, header: Node = None, main: Node = None, footer: Node = None) -> str:
    """Return a whole page with the landmarks banner, main and contentinfo."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        assets.head,
    )
    body = tag(
        "body",
        tag("a", "Skip to the content", class_="skip", href="#main"),
        tag("header", tag("div", header, class_="wrap"), class_="top"),
        # Without a tabindex, the skip link would scroll here but leave the focus behind.
        tag("main", tag("div", main, class_="wrap"), id="main", tabindex=-1),
        tag("footer", tag("div", footer, class_="wrap")) if footer else None,
        assets.end,
        class_="auepora",
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def inside(script: str = "", *styles: str) -> Assets:
    """Return the assets of a page that is one file; its policy allows this style and script by hash."""
    # Packed before it is hashed: a browser hashes every byte between the tags.
    css = _packed("".join(map(own_file, styles)))
    allowed = _hash(script) if script else "none"
    # A report is opened from the disk, where no server sends headers. The page has model output in it: if
    # markup ever escaped, it could neither run nor load anything.
    policy = (
        f"default-src 'none'; style-src '{_hash(css)}'; script-src '{allowed}'; "
        "base-uri 'none'; form-action 'none'"
    )
    meta = tag("meta", attrs={"http-equiv": "Content-Security-Policy", "content": policy})
    return Assets(join(meta, raw_element("style", css)), raw_element("script", script) if script else None)


def linked(style: str, *scripts: str) -> Assets:
    """Return assets that a server has at these addresses; the policy is in its headers."""
    head = [tag("link", rel="stylesheet", href=style)]
    return Assets(join(head, (_script_at(address) for address in scripts)))


def own_file(name: str) -> str:
    """Return the text of a file of this package."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _script_at(address: str) -> Markup:
    return raw_element("script", "", src=address, defer=True)


def _packed(css: str) -> str:
    """Return the style without its comments and line breaks."""
    code = "".join(part.rpartition("*/")[2] for part in css.split("/*"))
    return " ".join(code.split())


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
