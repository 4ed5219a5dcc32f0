"""Putting several finished files in place, and standing by for a writer that is killed while it does so.

Run as a program it waits, in a session of its own. When the writer begins to rename it renames too: whoever
comes first does it, and a kill of the one does not stop the other. When the writer ends it looks for a
journal that was left: then everything was written, and what is not yet renamed is; if there is none, what
was written so far is removed. It needs nothing but the standard library.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any


def read_journal(journal: Path) -> dict[str, Any] | None:
    """What a journal says: {"token", "renames": [[from, to], ...]}, paths from where it lies."""
    try:
        content = json.loads(journal.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) and isinstance(content.get("renames"), list) else None


def carry_out(
    journal: Path, token: str, renames: list[list[str]], call_for_help: Callable[[], None], *, sync: bool
) -> bool:
    """Put files in place, all of them; False if another writer is just doing so.

    What takes long is done before and after: between the journal's appearance and the last rename, the
    time in which a kill or a reader could find a mixture, there is nothing but the renames. That is also
    why the old files are kept under other names meanwhile: to free a large file takes its time.
    """
    folder = journal.parent
    old = [(folder / target).with_name(f".{Path(target).name}.{token}.old") for _, target in renames]
    draft = journal.with_name(f"{journal.name}.{token}.part")
    try:
        for (_, target), kept in zip(renames, old, strict=True):
            with suppress(OSError):  # there is none, or the file system has no links
                os.link(folder / target, kept)
        with draft.open("x", encoding="utf-8") as file:
            json.dump({"token": token, "renames": renames}, file)
            file.flush()
            if sync:
                os.fsync(file.fileno())
        if sync:
            sync_folder(folder)
        if not _appear(draft, journal):
            return False
        call_for_help()
        finish(journal, renames, sync=sync)
        return True
    finally:
        for path in (draft, *old):
            with suppress(OSError):
                path.unlink()


def _appear(draft: Path, journal: Path) -> bool:
    """Give the journal its name; False if there is one."""
    try:
        os.link(draft, journal)
    except FileExistsError:
        return False
    except OSError:  # a file system without hard links
        if journal.exists():
            return False
        draft.replace(journal)
    return True


def finish(journal: Path, renames: list[list[str]], *, sync: bool = True) -> None:
    """Rename what is not yet renamed, then remove the journal. It can be done twice, and by two at once."""
    folder = journal.parent
    pairs = [(str(folder / written), str(folder / target)) for written, target in renames]
    _rename(pairs)
    for parent in {Path(target).parent for _, target in pairs} if sync else ():
        sync_folder(parent)
    with suppress(FileNotFoundError):
        journal.unlink()
    if sync:
        sync_folder(folder)


def _rename(pairs: Iterable[Sequence[str]]) -> None:
    for written, target in pairs:
        with suppress(FileNotFoundError):  # it is in place already
            os.replace(written, target)  # noqa: PTH105 - one system call, nothing else


def sync_folder(folder: Path) -> None:
    """Let a folder's new names survive a loss of power."""
    with suppress(OSError):  # not every system lets a folder be opened
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def stand_by() -> None:
    """The program: help to rename, wait for the writer's end, finish what it decided, remove what it left."""
    line = sys.stdin.buffer.readline()
    if not line:
        return
    task = json.loads(line)
    if sys.stdin.buffer.read(1):
        _rename(task["renames"])
        sys.stdin.buffer.read()
    journal, token = Path(task["journal"]), task["token"]
    content = read_journal(journal)
    if content is not None and content.get("token") == token:
        finish(journal, content["renames"])
    for name in (*(target for _, target in task["renames"]), journal):
        folder, name = Path(name).parent, Path(name).name
        for leftover in (f"{name}.{token}.part", f".{name}.{token}.part", f".{name}.{token}.old"):
            with suppress(OSError):
                (folder / leftover).unlink()


if __name__ == "__main__":
    stand_by()
