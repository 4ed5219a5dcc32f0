"""Match the file names of citations with the documents of a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple


class DocumentName(NamedTuple):
    """The names of a document; a missing one is an empty text."""

    document_id: str
    file_path: str = ""
    title: str = ""


class DocumentNames:
    """Find the document that a file name refers to: by path, base name, stem, id, then title.

    For a name that fits two documents `place_of` is None, as for a name that fits none; `is_ambiguous` is
    True only for the first.

    >>> names = DocumentNames([DocumentName("d1", "docs/ferries.pdf", "Ferries")])
    >>> names.place_of("ferries.pdf"), names.place_of("ferries"), names.place_of("tides.pdf")
    (0, 0, None)
    """

    def __init__(self, documents: Iterable[DocumentName]) -> None:
        self._paths: dict[str, int | None] = {}
        self._bases: dict[str, int | None] = {}
        self._stems: dict[str, int | None] = {}
        self._ids: dict[str, int | None] = {}
        self._titles: dict[str, int | None] = {}
        for place, document in enumerate(documents):
            base = base_name(document.file_path)
            _note(self._paths, document.file_path, place)
            _note(self._bases, base, place)
            _note(self._stems, stem_of(base), place)
            _note(self._ids, document.document_id, place)
            _note(self._titles, document.title, place)

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
        lookups: tuple[tuple[Mapping[str, int | None], str], ...] = (
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


# A name that comes twice maps to None: it is ambiguous.
def _note(names: dict[str, int | None], name: str, place: int) -> None:
    if name:
        names[name] = None if name in names else place
