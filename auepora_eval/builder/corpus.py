"""Read a folder of documents: .txt, .md, .html, .pdf (extra `pdf`) and .jsonl with one document per line.

Unreadable files are left out and reported with the reason, never read in part.
"""

from __future__ import annotations

import logging
import os
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from ..errors import DataError, MissingDependencyError, install_command
from ..io.jsonl import read_lines
from ..read.names import DOCUMENT_ID, DOCUMENT_TEXT
from ..read.text import parse_line

# The limit of files that were named by mistake or made to exhaust the memory.
MAX_FILE_BYTES = 64_000_000
KINDS = (".txt", ".md", ".markdown", ".html", ".htm", ".pdf", ".jsonl")

_TEXT_FIELDS = ("contents", *DOCUMENT_TEXT)
_ID_FIELDS = ("docid", *DOCUMENT_ID)
# Names of files are printed, and these could move the cursor or reverse the text of a terminal.
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """A document: its name in the corpus, its file, its text, and the offsets of its pages.

    `doc_id` is its own id in a .jsonl file, where the name has the file before it.
    """

    name: str
    source_path: str
    text: str
    title: str = ""
    page_starts: tuple[int, ...] = ()
    doc_id: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def page_at(self, offset: int) -> int | None:
        """Return the page of a character, counted from 1, or None for a document without pages."""
        return bisect_right(self.page_starts, offset) if self.page_starts else None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file or record that was left out, and the reason."""

    name: str
    reason: str


@dataclass(frozen=True)
class Corpus:
    """The documents of a folder in the order of their names, and what was left out."""

    documents: list[SourceDocument]
    left_out: list[LeftOut]


def read_corpus(place: str | Path) -> Corpus:
    """Read all documents under a folder, or those of a single file. DataError if there are none."""
    root = Path(place)
    if "\0" in str(root) or not root.exists():
        raise DataError(f"{str(root)!r:.120}", "there is no such file or folder.", fix="Check the name.")
    reader = _Reader(root)
    documents: dict[str, SourceDocument] = {}
    for document in reader.documents():
        if document.name in documents:
            reader.left_out.append(LeftOut(document.name, "another document has the same name"))
            continue
        documents[document.name] = document
    if not documents:
        note = f" ({len(reader.left_out)} left out: {reader.left_out[0].reason})" if reader.left_out else ""
        raise DataError(
            f"{root!s:.120}",
            f"there is no document in it{note}.",
            fix=f"Put {', '.join(KINDS)} files there.",
        )
    return Corpus(list(documents.values()), reader.left_out)


class _Reader:
    """Reads one folder and collects what it leaves out."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.left_out: list[LeftOut] = []

    def documents(self) -> Iterator[SourceDocument]:
        for path in self._files():
            name = _escaped_name(path, self.root)
            try:
                yield from self._read(path, name)
            except MissingDependencyError as error:
                self.left_out.append(LeftOut(name, str(error)))
            except DataError as error:
                self.left_out.append(LeftOut(name, error.what.rstrip(".")))
            except OSError as error:
                self.left_out.append(LeftOut(name, f"cannot be read: {error.strerror or error}"))

    def _files(self) -> Iterator[Path]:
        if self.root.is_file():
            yield self.root
            return
        inside = self.root.resolve()
        for folder, folders, files in os.walk(self.root):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in folders:
                if (Path(folder) / name).is_symlink():  # os.walk does not follow it, so it is reported
                    self._leave_out(Path(folder) / name, "is a link to a folder")
            for name in sorted(files):
                path = Path(folder) / name
                if name.startswith("."):
                    continue
                if path.suffix.lower() not in KINDS:
                    self._leave_out(path, f"not one of {', '.join(KINDS)}")
                elif path.is_symlink() and not path.resolve().is_relative_to(inside):
                    self._leave_out(path, "is a link out of the folder")
                elif not path.is_file():
                    self._leave_out(path, "is not a plain file")
                else:
                    yield path

    def _leave_out(self, path: Path, reason: str) -> None:
        self.left_out.append(LeftOut(_escaped_name(path, self.root), reason))

    def _read(self, path: Path, name: str) -> Iterator[SourceDocument]:
        kind = path.suffix.lower()
        if kind == ".jsonl":
            yield from self._records(path, name)
            return
        if path.stat().st_size > MAX_FILE_BYTES:
            raise DataError(name, f"is larger than {MAX_FILE_BYTES / 1e6:g} MB; cut it into parts.")
        if kind == ".pdf":
            content = pdf_text(path, name)
        elif kind in (".html", ".htm"):
            content = html_text(path.read_bytes(), name)
        else:
            content = plain_text(path.read_bytes(), name)
        yield _document(name, content)

    def _records(self, path: Path, name: str) -> Iterator[SourceDocument]:
        """Yield one document per line, and leave out lines that are not documents."""
        for number, line in enumerate(read_lines(path), start=1):
            if not line.strip():
                continue
            where = f"{name}:{number}"
            try:
                record = parse_line(line.removeprefix(b"\xef\xbb\xbf"), where)
                yield _document_of(record, name, where, number)
            except DataError as error:
                self.left_out.append(LeftOut(where, error.what.rstrip(".")))


def _document_of(record: Mapping[str, object], file: str, where: str, number: int) -> SourceDocument:
    texts = (record.get(name) for name in _TEXT_FIELDS)
    text = next((text for text in texts if isinstance(text, str)), "")
    if not text.strip():
        raise DataError(where, f"has no text in any of {', '.join(_TEXT_FIELDS)}.")
    ids = (record.get(name) for name in _ID_FIELDS)
    doc_id = str(next((value for value in ids if isinstance(value, str | int)), number))
    metadata = record.get("metadata")
    about = metadata if isinstance(metadata, dict) else {}
    title = record.get("title") or about.get("title")
    content = Text(text, title if isinstance(title, str) else "")
    # The id alone would be ambiguous.
    return _document(f"{file}#{doc_id}", content, doc_id, about)


def _document(
    name: str, content: Text, doc_id: str = "", metadata: Mapping[str, Any] | None = None
) -> SourceDocument:
    if not content.text.strip():
        raise DataError(name, "holds no text.")
    title = " ".join(content.title.split())
    return SourceDocument(
        name, name, content.text, title, content.page_starts, doc_id or name, metadata or {}
    )


def _escaped_name(path: Path, root: Path) -> str:
    """Return the path within the folder with / as separator and unprintable characters as %0A."""
    relative = path.name if path == root else path.relative_to(root)
    text = PurePosixPath(*Path(relative).parts).as_posix()
    return _UNPRINTABLE.sub(
        lambda match: "".join(f"%{byte:02X}" for byte in os.fsencode(match.group())), text
    )


# Text extraction: HTML and PDF become text with Markdown marks for headings and lists.

_BLOCKS = frozenset(
    """address article aside blockquote br dd div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5
    h6 header hr li main nav ol p pre section table td th tr ul""".split()
)
# Content that is not text. Each alternative also ends at the end of the page, so that it is searched once.
_NOT_TEXT = re.compile(
    r"<!--.*?(?:-->|\Z)"
    r"|<(script|style|noscript|template|svg|iframe|select|textarea)\b.*?(?:</\1[^>]*(?:>|\Z)|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_BROKEN_WORD = re.compile(r"(?<=[a-z])-\n(?=[a-z])")


class Text(NamedTuple):
    """The text of a file, its title if it has one, and the offsets of its pages."""

    text: str
    title: str = ""
    page_starts: tuple[int, ...] = ()


def plain_text(content: bytes, where: str) -> Text:
    """Return the text of a .txt or .md file. Form feeds separate pages. A single # heading is the title."""
    text = _decoded(content, where)
    highest = re.findall(r"^# +(\S.*)$", text, re.MULTILINE)
    title = highest[0].rstrip(" #") if len(highest) == 1 else ""  # two of them are two topics
    pages = (0, *(match.end() for match in re.finditer("\f", text))) if "\f" in text else ()
    return Text(text, title, pages)


def html_text(content: bytes, where: str) -> Text:
    """Return the visible text of a page, with headings and list items marked as in Markdown."""
    page = _Page()
    page.feed(_well_tagged(_decoded(content, where)))
    page.close()
    text = re.sub(r"[^\S\n]+", " ", "".join(page.parts))
    lines = [line.strip() for line in text.split("\n")]
    joined = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    return Text(joined, page.title)


def pdf_text(path: Path, where: str) -> Text:
    """Return the text of a PDF, page by page, with words broken at line ends joined."""
    try:
        pypdf: Any = import_module("pypdf")
    except ImportError as error:
        raise MissingDependencyError(f"needs pypdf: {install_command('pdf')}") from error
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it reports every oddity of a file
    try:
        reader = pypdf.PdfReader(path)
        if reader.is_encrypted and not reader.decrypt(""):
            raise DataError(where, "is locked with a password.")
        pages = [_BROKEN_WORD.sub("", _clean(page.extract_text() or "")) for page in reader.pages]
        title = str((reader.metadata or {}).get("/Title") or "")
    except DataError:
        raise
    except Exception as error:  # a damaged file makes pypdf raise nearly anything
        raise DataError(where, f"is a PDF that cannot be read ({type(error).__name__}).") from error
    starts, length = [], 0
    for page in pages:
        starts.append(length)
        length += len(page) + 2
    return Text("\n\n".join(pages), _clean(title), tuple(starts))


def _well_tagged(page: str) -> str:
    """Return a page without comments, scripts and styles, and without a < that does not start a tag.

    The parser searches for the end of a tag from every <, which takes hours on a page of unclosed ones.
    """
    return re.sub(r"<(?=[^<>]*(?:<|\Z))", "&lt;", _NOT_TEXT.sub("", page))


class _Page(HTMLParser):
    """Collects the text of an HTML page; unclosed and unopened tags are harmless."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.title = ""
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title":
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
        if tag == "title":
            self._in_title = False
        elif tag in _BLOCKS and tag not in ("td", "th", "li", "tr", "br"):
            self.parts.append("\n\n")

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title = f"{self.title}{data}"[:500]
        else:
            self.parts.append(data.replace("\n", " "))


def _decoded(content: bytes, where: str) -> str:
    encoding = "utf-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    if encoding != "utf-16" and b"\0" in content:
        raise DataError(where, "is not text: it holds zero bytes.")
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        raise DataError(where, f"is not UTF-8 text (byte {error.start + 1}).") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _clean(text: str) -> str:
    """Without halves of surrogate pairs and zero bytes, which a PDF may hold and UTF-8 or a file may not."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
