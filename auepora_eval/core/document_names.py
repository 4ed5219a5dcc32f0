"""Citations name files, corpora hold documents: which document does a file name mean?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple


class DocumentName(NamedTuple):
    """What a document may be called by; what it lacks is an empty text."""

    document_id: str
    file_path: str = ""
    title: str = ""


class DocumentNames:
    """Finds the document that a file name means: by path, base name, stem, id, then title.

    A name that fits two documents means neither: `place_of` is None, as for a name that fits none, and
    `is_ambiguous` tells the two apart.

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
        """The place of the document in the list that was given, or None."""
        return next(self._found(file_name), None)

    def is_ambiguous(self, file_name: str) -> bool:
        """Whether a name means no document because it fits more than one."""
        return next(self._found(file_name), 0) is None

    def _found(self, file_name: str) -> Iterator[int | None]:
        base = base_name(file_name)
        stem = stem_of(base)
        tries: tuple[tuple[Mapping[str, int | None], str], ...] = (
            (self._paths, file_name),
            (self._bases, base),
            (self._stems, base),
            (self._stems, stem),
            (self._ids, file_name),
            (self._ids, stem),
            (self._titles, file_name),
            (self._titles, stem),
        )
        return (names[name] for names, name in tries if name in names)


def base_name(path: str) -> str:
    """The last part of a path, whichever way its slashes lean."""
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def stem_of(base: str) -> str:
    """A file name without its last suffix."""
    stem, dot, _ = base.rpartition(".")
    return stem if dot and stem else base


def _note(names: dict[str, int | None], name: str, place: int) -> None:
    if name:
        names[name] = None if name in names else place
