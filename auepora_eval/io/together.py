"""Writing several files so that a reader finds all the old ones or all the new ones.

No file system renames three files at once. So everything is written under other names first; then a journal
that lists the renames appears, and at once they are done, some ten microseconds each, by this process and by
a second one that stands by and that a kill of the first does not reach (`put_in_place`). Only if both are
killed within these microseconds, as by a loss of power, do files of both kinds stay side by side: then the
journal is still there, our readers refuse to go by the files, and the next writer finishes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from ..errors import DataError, StorageError
from . import put_in_place

_PATIENCE = 5.0  # seconds for which a journal may be someone else's that is just being carried out


class FilesTogether:
    """Files that are being written; they get their names when the block ends, all of them or none."""

    def __init__(self, paths: Sequence[Path], token: str, *, sync: bool = True) -> None:
        self.token, self.sync = token, sync
        self.journal = journal_of(paths[-1])
        self.temporary = {path: path.with_name(f".{path.name}.{token}.part") for path in paths}
        self.files: dict[Path, BinaryIO] = {}
        self.made: list[Path] = []

    def __getitem__(self, path: Path) -> BinaryIO:
        """The file to write what will be at the path."""
        return self.files[path]

    def leave_unchanged(self, *paths: Path) -> None:
        """Put nothing in place at these paths after all; what is there stays."""
        for path in paths:
            self.files.pop(path).close()
            self.temporary.pop(path).unlink()

    def open(self) -> None:
        for path, temporary in self.temporary.items():
            self.made += [folder for folder in path.parents if not folder.exists()]
            path.parent.mkdir(parents=True, exist_ok=True)
            self.files[path] = temporary.open("xb")

    def discard(self) -> None:
        """Remove what was written, unless it has been decided that it stays."""
        decided = put_in_place.read_journal(self.journal)
        if decided is not None and decided.get("token") == self.token:
            put_in_place.finish(self.journal, decided["renames"])
        for path, temporary in self.temporary.items():
            with suppress(OSError):
                if path in self.files:
                    self.files[path].close()
            with suppress(OSError):
                temporary.unlink()
        for folder in self.made:
            with suppress(OSError):  # a folder that has something in it stays
                folder.rmdir()

    def complete(self) -> list[list[str]]:
        """Let go of every byte; what is to be renamed to what, from where the journal lies."""
        for path, file in self.files.items():
            try:
                file.flush()
                if self.sync:
                    os.fsync(file.fileno())
                else:
                    begin_to_store(file.fileno())
                file.close()
            except OSError as error:  # by itself it does not say which file did not fit
                raise OSError(error.errno, error.strerror, str(path)) from error
        folder = self.journal.parent
        return [
            [os.path.relpath(temporary, folder), os.path.relpath(path, folder)]
            for path, temporary in self.temporary.items()
        ]


@contextmanager
def written_together(
    paths: Sequence[Path], *, force: bool = False, sync: bool = True
) -> Iterator[FilesTogether]:
    """Files to write, `together[path]` each; the last one is the manifest, beside which the journal lies.

    Without `force` an existing file is an error. Symbolic links are never followed, nor replaced. Without
    `sync` the disk is not waited for: a kill cannot hurt then either, but a loss of power can.
    """
    token = f"{os.getpid()}-{os.urandom(4).hex()}"
    together = FilesTogether(paths, token, sync=sync)
    try:
        _refuse_links(paths)
        _finish_earlier(together.journal, paths)
        refuse_existing(paths, force)
        with _standing_by(together) as call_for_help:
            try:
                together.open()
                yield together
                refuse_existing(list(together.files), force)  # someone may have been quicker
                if together.files:
                    _put_in_place(together, call_for_help)
            finally:
                together.discard()
    except StorageError:
        raise
    except OSError as error:
        place = getattr(error, "filename", None) or paths[-1]
        changed = "Run it again to finish." if together.journal.exists() else "Nothing was changed."
        raise StorageError(f"{place} cannot be written: {error.strerror or error}. {changed}") from error


def begin_to_store(descriptor: int, start: int = 0, size: int = 0) -> None:
    """Let the disk begin with what was written, and do not wait for it.

    Otherwise it begins with the rename, which then takes as long as the file is large.
    """
    if hasattr(os, "posix_fadvise"):
        with suppress(OSError):
            os.posix_fadvise(descriptor, start, size, os.POSIX_FADV_DONTNEED)


def journal_of(manifest: Path) -> Path:
    """Where the journal of a manifest's files lies while they are put in place."""
    return manifest.with_name(f".{manifest.name}.journal")


def wait_until_in_place(manifest: Path) -> None:
    """Return when no files are being put in place beside a manifest; DataError if that stopped half-way."""
    if not _gone(journal_of(manifest)):
        raise DataError(
            str(manifest),
            "its files were being put in place when everything stopped; some may be old and some new.",
            fix="Run the same auepora dataset build again: it finishes the work.",
        )


def refuse_existing(paths: Sequence[Path], force: bool) -> None:
    """StorageError if a path is taken and may not be replaced."""
    for path in paths:
        if path.is_dir():
            raise StorageError(f"{path} is a folder, not a file to write.")
        if path.exists() and not path.is_file():
            raise StorageError(f"{path} is a pipe or a device, not a file to write. Name a file.")
        if path.exists() and not force:
            raise StorageError(f"{path} exists already. Choose another name, or use --force to replace it.")


def _refuse_links(paths: Sequence[Path]) -> None:
    for path in paths:
        if "\0" in str(path) or not path.name:
            raise StorageError(f"{str(path)!r:.80} cannot be a file name.")
        if path.is_symlink():
            raise StorageError(f"{path} is a symbolic link. Name the file itself, or remove the link.")


def _gone(journal: Path) -> bool:
    """Whether there is no journal, or it goes away while we watch."""
    end = time.monotonic() + _PATIENCE
    while journal.exists():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def _finish_earlier(journal: Path, paths: Sequence[Path]) -> None:
    """Carry out what an earlier writer decided; only between files that are ours to write."""
    if not journal.exists() or _gone(journal):
        _remove_leftovers(paths)
        return
    content = put_in_place.read_journal(journal)
    renames = content["renames"] if content else []
    ours = {os.path.relpath(path, journal.parent): path for path in paths}
    for pair in renames:
        if not (isinstance(pair, list) and len(pair) == 2 and pair[1] in ours):
            raise StorageError(f"{journal} is of other files than these. Build those again, or remove it.")
        source, name = journal.parent / str(pair[0]), ours[pair[1]].name
        if source.parent.resolve() != ours[pair[1]].parent.resolve() or not _is_part(source.name, name):
            raise StorageError(f"{journal} was not written by auepora. Remove it.")
    put_in_place.finish(journal, renames)
    _remove_leftovers(paths)


def _is_part(name: str, of: str) -> bool:
    return name.startswith(f".{of}.") and name.endswith((".part", ".old"))


def _remove_leftovers(paths: Sequence[Path]) -> None:
    """Remove what writers left that were killed together with their stand-by."""
    for path in paths:
        if not path.parent.is_dir():
            continue
        for entry in path.parent.iterdir():
            if _is_part(entry.name, path.name):
                process = entry.name.removeprefix(f".{path.name}.").partition("-")[0]
                if process.isdigit() and not _is_alive(int(process)):
                    entry.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    import psutil

    return bool(psutil.pid_exists(process))


@contextmanager
def _standing_by(together: FilesTogether) -> Iterator[Callable[[], None]]:
    """While this lasts, another process waits to help, or to tidy up should this one be killed."""
    renames = [[str(part.absolute()), str(path.absolute())] for path, part in together.temporary.items()]
    task = {"journal": str(together.journal.absolute()), "token": together.token, "renames": renames}
    try:
        keeper = subprocess.Popen(  # noqa: S603 - our own program, with our own interpreter
            [sys.executable, "-I", "-S", str(Path(put_in_place.__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,  # Ctrl-C and a kill of our process group are not meant for it
        )
    except (OSError, ValueError):  # no process can be started here: then it goes without
        yield lambda: None
        return

    def tell(words: bytes) -> None:
        with suppress(OSError):  # it may be gone
            if keeper.stdin is not None:
                keeper.stdin.write(words)

    with keeper:
        tell(json.dumps(task).encode() + b"\n")
        yield lambda: tell(b"!")


def _put_in_place(together: FilesTogether, call_for_help: Callable[[], None]) -> None:
    renames = together.complete()
    token, sync = together.token, together.sync
    if not put_in_place.carry_out(together.journal, token, renames, call_for_help, sync=sync):
        raise StorageError(
            f"another build is just putting its files at {together.journal.parent}. Try again."
        )
