"""Match the file names of citations with the documents of a corpus."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class DocumentNames(Generic[T]):
    """Find the document that a file name refers to: by path, base name, stem, id, then title.

    >>> names: DocumentNames[str] = DocumentNames()
    >>> names.add("document 1", "d1", "docs/ferries.pdf", "Ferries")
    >>> names.find("ferries.pdf"), names.find("ferries"), names.find("tides.pdf")
    ('document 1', 'document 1', None)
    """

    def __init__(self) -> None:
        self._named: dict[tuple[str, str], list[T]] = {}

    def add(self, document: T, document_id: str, file_path: str = "", title: str = "") -> None:
        """Add a document with its names; a missing name is an empty text."""
        base = base_name(file_path)
        names = {"path": file_path, "base": base, "stem": stem_of(base), "id": document_id, "title": title}
        for kind, name in names.items():
            named = self._named.setdefault((kind, name), []) if name else []
            if len(named) < 2 and document not in named:  # two are enough for an ambiguous name
                named.append(document)

    def find(self, file_name: str) -> T | None:
        """Return the document of that name; None if there is none, or more than one."""
        named = self._all(file_name)
        return named[0] if len(named) == 1 else None

    def is_ambiguous(self, file_name: str) -> bool:
        """Return whether a name fits more than one document."""
        return len(self._all(file_name)) > 1

    def _all(self, file_name: str) -> list[T]:
        base = base_name(file_name)
        stem = stem_of(base)
        wanted = {"path": (file_name,), "base": (base,), "stem": (base, stem)}
        wanted |= {"id": (file_name, base, stem), "title": (file_name, stem)}
        keys = ((kind, name) for kind, names in wanted.items() for name in names)
        # The first kind of name that fits decides, even if it is ambiguous.
        return next((self._named[key] for key in keys if key in self._named), [])


def base_name(path: str) -> str:
    """Return the last part of a path with slashes or backslashes."""
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def stem_of(base: str) -> str:
    """Return a file name without its last suffix."""
    stem, dot, _ = base.rpartition(".")
    return stem if dot and stem else base
