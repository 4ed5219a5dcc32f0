"""The manifest that describes a split: beside the split or in the folder above, whatever it is called."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..errors import DataError
from .manifest import MANIFEST_NAME, Snapshot, file_sha256, read_manifest
from .put_in_place import read_journal
from .together import wait_until_in_place

_MOST_FILES = 200  # of a folder that are looked at
_KEY = b'"source_offline_dataset"'  # stands near the beginning of every manifest


def manifest_of(path: Path) -> tuple[Snapshot, str] | None:
    """The manifest that names this very file, and the split's name in it; None if there is none.

    DataError if there is one, but of other bytes than the file's: it was changed after it was built.
    """
    if "\0" in str(path) or not path.is_file():
        return None
    _wait_for_writers(path)
    sha256, other = "", None
    for snapshot, name in _naming(path):
        expected = snapshot.manifest.splits[name].sha256
        sha256 = sha256 or file_sha256(path)
        if expected in ("", sha256):
            return snapshot, name
        if snapshot.path.name == MANIFEST_NAME and snapshot.path.parent == path.parent:
            raise _other_bytes(path, snapshot)
        other = other or snapshot  # it may be kept from an earlier version, with a newer one beside it
    if other is not None:
        raise _other_bytes(path, other)
    return None


def is_found_from(split: Path, manifest: Path) -> bool:
    """Whether a split's manifest is where it is looked for when the split is loaded."""
    folder, place = split.absolute().parent.resolve(), manifest.absolute().parent.resolve()
    return manifest.name.endswith(".json") and place in (folder, folder.parent)


def _naming(path: Path) -> Iterator[tuple[Snapshot, str]]:
    for candidate in _candidates(path):
        try:
            snapshot = read_manifest(candidate)
            splits = snapshot.splits
        except DataError:
            continue  # some other tool's
        for name, place in splits.items():
            if place.exists() and place.samefile(path):
                yield snapshot, name


def _candidates(path: Path) -> Iterator[Path]:
    folder = path.absolute().parent
    for place in (folder, folder.parent):
        found = sorted(place.glob("*.json"), key=lambda each: (each.name != MANIFEST_NAME, each.name))
        yield from (each for each in found[:_MOST_FILES] if _looks_like_one(each))


def _looks_like_one(path: Path) -> bool:
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return _KEY in file.read(4096)
    except OSError:
        return False


def _wait_for_writers(path: Path) -> None:
    """Wait while files are put in place, if this is one of them."""
    place = path.absolute()
    wait_until_in_place(place.with_name(MANIFEST_NAME))
    for folder in (place.parent, place.parent.parent):
        for journal in folder.glob(".*.json.journal"):
            content = read_journal(journal) or {}
            targets = [
                pair[1] for pair in content.get("renames", ()) if isinstance(pair, list) and len(pair) > 1
            ]
            if any((folder / str(target)).resolve() == place.resolve() for target in targets):
                manifest = journal.with_name(journal.name.removeprefix(".").removesuffix(".journal"))
                wait_until_in_place(manifest)


def _other_bytes(path: Path, snapshot: Snapshot) -> DataError:
    return DataError(
        str(path),
        f"it is not the file that {snapshot.path.name} describes as {snapshot.manifest.version}: "
        "its sha256 is another.",
        fix="Build the dataset anew, or load a copy of the file from a folder without that manifest.",
    )
