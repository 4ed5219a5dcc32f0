"""Match the file names of citations with the documents of a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class DocumentName(NamedTuple):
    """The names of a document; a missing one is an empty text."""

    document_id: str
    file_path: str = ""
    title: str = ""


class _Names(dict[str, int | None]):
    def note(self, name: str, place: int) -> None:
        """Add a name; one that comes twice is ambiguous, and maps to None."""
        if name:
            self[name] = None if name in self else place


class DocumentNames:
    """Find the document that a file name refers to: by path, base name, stem, id, then title.

    For a name that fits two documents `place_of` is None, as for a name that fits none; `is_ambiguous` is
    True only for the first.

    >>> names = DocumentNames([DocumentName("d1", "docs/ferries.pdf", "Ferries")])
    >>> names.place_of("ferries.pdf"), names.place_of("ferries"), names.place_of("tides.pdf")
    (0, 0, None)
    """

    def __init__(self, documents: Iterable[DocumentName]) -> None:
        self._paths, self._bases, self._stems, self._ids, self._titles = (_Names() for _ in range(5))
        for place, document in enumerate(documents):
            base = base_name(document.file_path)
            self._paths.note(document.file_path, place)
            self._bases.note(base, place)
            self._stems.note(stem_of(base), place)
            self._ids.note(document.document_id, place)
            self._titles.note(document.title, place)

    def place_of(self, file_name: str) -> int | None:
        """Return the index of the document in the list, or None."""
        return next(self._matches(file_name), None)

    def is_ambiguous(self, file_name: str) -> bool:
        """Return whether a name fits more than one document."""
        return next(self._matches(file_name), 0) is None

    def _matches(self, file_name: str) -> Iterator[int | None]:
        base = base_name(file_name)
        stem = stem_of(base)
        # The first table that has the name decides, even if the name is ambiguous there.
        lookups = (
            (self._paths, file_name),
            (self._bases, base),
            (self._stems, base),
            (self._stems, stem),
            (self._ids, file_name),
            (self._ids, stem),
            (self._titles, file_name),
            (self._titles, stem),
        )
        return (names[name] for names, name in lookups if name in names)


def base_name(path: str) -> str:
    """Return the last part of a path with slashes or backslashes."""
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def stem_of(base: str) -> str:
    """Return a file name without its last suffix."""
    stem, dot, _ = base.rpartition(".")
    return stem if dot and stem else base
