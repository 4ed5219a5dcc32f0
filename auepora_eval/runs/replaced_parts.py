"""The parts of a run that is being replaced: until the new results have their name, the old run is whole.

A results file goes with the samples in the run's folder and, if it is large, with a file of rows. These get
their names before it does; meanwhile the old ones are kept in `<id>.run/before-<hash>/`, by the hash of the
outputs that the old results are of. A reader of these results takes them from there.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..errors import StorageError


def outputs_hash(results: Mapping[str, Any]) -> str | None:
    """The sha256 over the outputs that results are of; None of a document that does not say."""
    metadata = results.get("metadata")
    found = metadata.get("outputs_sha256") if isinstance(metadata, dict) else None
    return found if isinstance(found, str) else None


def keep_parts(folder: Path, parts: Iterable[Path], sha256: str) -> None:
    """Keep what is about to be replaced. What was kept before, when a writer was killed, is the older."""
    kept = _kept(folder, sha256)
    kept.mkdir(exist_ok=True)
    for part in parts:
        if not part.exists() or (kept / part.name).exists():
            continue
        try:
            os.link(part, kept / part.name)
        except OSError:  # a file system without hard links
            draft = kept / f"{part.name}.part"
            shutil.copyfile(part, draft)
            draft.replace(kept / part.name)


def forget_parts(folder: Path) -> None:
    """The new results have their name: what was kept is of no use."""
    for kept in folder.glob("before-*"):
        shutil.rmtree(kept, ignore_errors=True)


def part_there(folder: Path, part: Path, sha256: Callable[[], str | None]) -> Path:
    """Where the part is that goes with results of that hash, which is asked for only if it matters."""
    if any(folder.glob("before-*")):
        found = sha256()
        kept = part if found is None else _kept(folder, found) / part.name
        if kept.exists():
            return kept
    return part


def _kept(folder: Path, sha256: str) -> Path:
    # Of a document that somebody edited, too, the hash names nothing but a folder of this one.
    return folder / f"before-{''.join(each for each in sha256[:16] if each.isalnum())}"


@contextmanager
def made_folder(folder: Path) -> Iterator[None]:
    """A folder that is there, and goes again if nothing comes into it."""
    new = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{folder} cannot be written: {error.strerror or error}.") from error
    try:
        yield
    finally:
        with suppress(OSError):
            for each in new:
                each.rmdir()
