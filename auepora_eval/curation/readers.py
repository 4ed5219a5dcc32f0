"""One file to plain text: HTML and PDF become text with Markdown's marks for headings and lists."""

from __future__ import annotations

import logging
import re
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import DataError, MissingDependencyError

MAX_PAGES = 20_000

_BLOCKS = frozenset(
    """address article aside blockquote br dd div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5
    h6 header hr li main nav ol p pre section table td th tr ul""".split()
)
_SILENT = frozenset(("script", "style", "noscript", "template", "svg", "iframe", "select", "textarea"))
_BROKEN_WORD = re.compile(r"(?<=[a-z])-\n(?=[a-z])")


class Text(NamedTuple):
    """What a file says: its text, its title if it has one, and the offsets where its pages begin."""

    text: str
    title: str = ""
    page_starts: tuple[int, ...] = ()


def plain_text(content: bytes, where: str) -> Text:
    """The text of a .txt or .md file; form feeds part its pages, its only heading of level 1 is its title."""
    text = _decoded(content, where)
    highest = re.findall(r"^# +(\S.*?)[ #]*$", text, re.MULTILINE)
    title = highest[0] if len(highest) == 1 else ""  # two of them are two topics
    pages = (0, *(match.end() for match in re.finditer("\f", text))) if "\f" in text else ()
    return Text(text, title, pages)


def html_text(content: bytes, where: str) -> Text:
    """What a reader of a page sees, headings and list items marked as in Markdown."""
    page = _Page()
    page.feed(_well_tagged(_decoded(content, where)))
    page.close()
    text = re.sub(r"[^\S\n]+", " ", "".join(page.parts))
    lines = [line.strip() for line in text.split("\n")]
    joined = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    return Text(joined, page.title)


def pdf_text(path: Path, where: str) -> Text:
    """The text of a PDF, page by page; words broken at a line's end are put together."""
    try:
        pypdf: Any = import_module("pypdf")
    except ImportError as error:
        raise MissingDependencyError("needs pypdf: pip install 'auepora-eval[pdf]'") from error
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it reports every oddity of a file
    try:
        reader = pypdf.PdfReader(path)
        if reader.is_encrypted and not reader.decrypt(""):
            raise DataError(where, "is locked with a password.")
        if len(reader.pages) > MAX_PAGES:
            raise DataError(where, f"has more than {MAX_PAGES} pages.")
        pages = [_BROKEN_WORD.sub("", _clean(page.extract_text() or "")) for page in reader.pages]
        title = str((reader.metadata or {}).get("/Title") or "")
    except DataError:
        raise
    except (pypdf.errors.PyPdfError, *_WHAT_BROKEN_PDFS_RAISE) as error:
        raise DataError(where, f"is a PDF that cannot be read ({type(error).__name__}).") from error
    starts, length = [], 0
    for page in pages:
        starts.append(length)
        length += len(page) + 2
    return Text("\n\n".join(pages), _clean(title), tuple(starts))


# A damaged file takes pypdf anywhere: these are what its own fuzzing has turned up.
_WHAT_BROKEN_PDFS_RAISE = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    AssertionError,
    NotImplementedError,
    RecursionError,
    EOFError,
    MemoryError,
)


def _well_tagged(page: str) -> str:
    """A page without comments, scripts and styles, and without a < that begins no tag.

    The parser looks for the end of a tag from every < anew: on a page of unclosed ones that takes hours.
    """
    for opening, closing in (("<!--", "-->"), ("<script", "</script"), ("<style", "</style")):
        page = _without(page, opening, closing)
    return re.sub(r"<(?=[^<>]*(?:<|\Z))", "&lt;", page)


def _without(page: str, opening: str, closing: str) -> str:
    """A page without what stands from one mark to the other; without all that follows one never closed."""
    small = page.lower() if len(page.lower()) == len(page) else page
    kept, begin = [], 0
    while (found := small.find(opening, begin)) >= 0:
        kept.append(page[begin:found])
        end = small.find(closing, found + len(opening))
        if end < 0:
            return "".join(kept)
        begin = end + len(closing)
        if closing.startswith("</"):
            begin = small.find(">", begin) + 1 or len(page)
    return "".join([*kept, page[begin:]])


class _Page(HTMLParser):
    """Collects the text of an HTML page; tags that are never closed or never opened do no harm."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.title = ""
        self._silent = ""
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._silent:
            return
        if tag in _SILENT:
            self._silent = tag
        elif tag == "title":
            self._in_title = True
        elif tag in _BLOCKS:
            self.parts.append("\n" if tag in ("br", "li", "tr") else "\n\n")
            if re.fullmatch(r"h[1-6]", tag):
                self.parts.append("#" * int(tag[1]) + " ")
            elif tag == "li":
                self.parts.append("- ")
            elif tag in ("td", "th"):
                self.parts[-1] = " | "

    def handle_endtag(self, tag: str) -> None:
        if tag == self._silent:
            self._silent = ""
        elif tag == "title":
            self._in_title = False
        elif tag in _BLOCKS and tag not in ("td", "th", "li", "tr", "br"):
            self.parts.append("\n\n")

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title = f"{self.title}{data}"[:500]
        elif not self._silent:
            self.parts.append(data.replace("\n", " "))


def _decoded(content: bytes, where: str) -> str:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    else:
        encoding = "utf-8-sig"
        if b"\0" in content:
            raise DataError(where, "is not text: it holds zero bytes.")
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        raise DataError(where, f"is not UTF-8 text (byte {error.start + 1}).") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _clean(text: str) -> str:
    """Without halves of surrogate pairs and zero bytes, which a PDF may hold and UTF-8 or a file may not."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
