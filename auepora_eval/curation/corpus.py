"""A folder of documents as texts: .txt, .md, .html, .pdf (extra `pdf`) and .jsonl with a document a line.

What cannot be read is left out and named with its reason, never half-read. Offsets everywhere in this room
are characters of `SourceDocument.text`, counted from 0.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from ..errors import DataError, MissingDependencyError
from .readers import Text, html_text, pdf_text, plain_text

MAX_FILE_BYTES = 64_000_000
MAX_TOTAL_CHARACTERS = 500_000_000
KINDS = (".txt", ".md", ".markdown", ".html", ".htm", ".pdf", ".jsonl")

_ONE_TOPIC = 100_000

_TEXT_FIELDS = ("text", "contents", "content", "body", "page_content")
_ID_FIELDS = ("doc_id", "_id", "id", "docid")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """A document: its name in the corpus, the file it came from, its text, and where its pages begin."""

    name: str
    source_path: str
    text: str
    title: str = ""
    page_starts: tuple[int, ...] = ()

    def page_at(self, offset: int) -> int | None:
        """The page that a character is on, counted from 1; None for a document without pages."""
        return bisect_right(self.page_starts, offset) if self.page_starts else None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file or a record that is not in the corpus, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class Corpus:
    """The documents of a folder, in the order of their names, and what was left out."""

    documents: list[SourceDocument]
    left_out: list[LeftOut]


def read_corpus(place: str | Path, *, max_file_bytes: int = MAX_FILE_BYTES) -> Corpus:
    """Read every document under a folder, or those of a single file; an error if there is not one."""
    root = Path(place)
    if "\0" in str(root) or not root.exists():
        raise DataError(f"{str(root)!r:.120}", "there is no such folder.", fix="Check the name.")
    reader = _Reader(root, max_file_bytes)
    try:
        documents = list(reader.documents())
    except _TooMuchError:
        raise DataError(
            f"{root!s:.120}",
            f"the documents hold more than {MAX_TOTAL_CHARACTERS / 1e6:g} million characters.",
            fix="Give a part of the folder at a time.",
        ) from None
    if not documents:
        found = f" ({len(reader.left_out)} left out: {reader.left_out[0].reason})" if reader.left_out else ""
        raise DataError(
            f"{root!s:.120}",
            f"there is no document in it{found}.",
            fix=f"Put {', '.join(KINDS)} files there.",
        )
    return Corpus(documents, reader.left_out)


class _TooMuchError(Exception):
    """The folder as a whole is too large: unlike a bad file, that stops the walk."""


class _Reader:
    """One walk over a folder; collects what it leaves out."""

    def __init__(self, root: Path, max_file_bytes: int) -> None:
        self.root = root
        self.left_out: list[LeftOut] = []
        self._limit = max_file_bytes
        self._characters = 0
        self._names: set[str] = set()

    def documents(self) -> Iterator[SourceDocument]:
        for path in self._files():
            name = _written_out(path, self.root)
            try:
                for document in self._read(path, name):
                    if self._is_new(document):
                        yield document
            except MissingDependencyError as error:
                self.left_out.append(LeftOut(name, str(error)))
            except DataError as error:
                self.left_out.append(LeftOut(name, error.what.rstrip(".")))
            except OSError as error:
                self.left_out.append(LeftOut(name, f"cannot be read: {error.strerror or error}"))

    def _is_new(self, document: SourceDocument) -> bool:
        if document.name in self._names:
            self.left_out.append(LeftOut(document.name, "another document has the same name"))
            return False
        self._names.add(document.name)
        self._characters += len(document.text)
        if self._characters > MAX_TOTAL_CHARACTERS:
            raise _TooMuchError
        return True

    def _files(self) -> Iterator[Path]:
        if self.root.is_file():
            yield self.root
            return
        inside = self.root.resolve()
        for folder, folders, files in os.walk(self.root):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in folders:
                if (Path(folder) / name).is_symlink():  # os.walk does not go there, and so it is said
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
        self.left_out.append(LeftOut(_written_out(path, self.root), reason))

    def _read(self, path: Path, name: str) -> Iterator[SourceDocument]:
        kind = path.suffix.lower()
        if kind == ".jsonl":
            yield from self._records(path, name)
            return
        size = path.stat().st_size
        if size > self._limit:
            raise DataError(name, f"is larger than {self._limit / 1e6:g} MB; cut it into parts.")
        if kind == ".pdf":
            found = pdf_text(path, name)
        elif kind in (".html", ".htm"):
            found = html_text(path.read_bytes(), name)
        else:
            found = plain_text(path.read_bytes(), name)
        yield _document(name, name, found)

    def _records(self, path: Path, name: str) -> Iterator[SourceDocument]:
        """A document a line; a line that is none is left out by itself."""
        from ..io.jsonl import parse_line, read_lines

        for number, line in enumerate(read_lines(path), start=1):
            if not line.strip():
                continue
            where = f"{name}:{number}"
            try:
                record = parse_line(line.removeprefix(b"\xef\xbb\xbf"), where)
                yield _document_of(record, name, where, number)
            except DataError as error:
                self.left_out.append(LeftOut(where, error.what.rstrip(".")))


def _document_of(record: dict[str, Any], source: str, where: str, number: int) -> SourceDocument:
    text = next((record[name] for name in _TEXT_FIELDS if isinstance(record.get(name), str)), None)
    if text is None or not text.strip():
        raise DataError(where, f"has no text in any of {', '.join(_TEXT_FIELDS)}.")
    given = next((record[name] for name in _ID_FIELDS if isinstance(record.get(name), str | int)), number)
    more = record.get("metadata")
    title = record.get("title") or (more.get("title") if isinstance(more, dict) else "")
    found = Text(text, title.strip() if isinstance(title, str) else "")
    name = f"{source}#{given}"
    return _document(name, name, found)  # the file alone would not say which of its documents it is


def _document(name: str, source: str, found: Text) -> SourceDocument:
    if not found.text.strip():
        raise DataError(name, "holds no text.")
    title = " ".join(found.title.split()) or _title_of_file(name, found.text)
    return SourceDocument(name, source, found.text, title, found.page_starts)


def _title_of_file(name: str, text: str) -> str:
    """`annual_report-2031.txt` tells what a text is about; `data.txt` does not, nor does a book's name."""
    stem = re.sub(r"\.\w+$", "", name.rpartition("/")[2])
    words = re.sub(r"[_-]+", " ", stem).split()
    telling = [word for word in words if re.fullmatch(r"[^\W\d_]{3,}", word)]
    plain = re.fullmatch(r"[\w -]+", stem) is not None
    return " ".join(words) if plain and len(telling) >= 2 and len(text) < _ONE_TOPIC else ""


def _written_out(path: Path, root: Path) -> str:
    """A file's path within the folder, with / between the parts, what no line can show written as %0A."""
    relative = path.name if path == root else path.relative_to(root)
    text = PurePosixPath(*Path(relative).parts).as_posix()
    return _UNPRINTABLE.sub(
        lambda match: "".join(f"%{byte:02X}" for byte in os.fsencode(match.group())), text
    )
