"""Writing files so that a reader sees the old one or the new one, never a half."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from ..errors import StorageError
from .put_in_place import sync_folder


@contextmanager
def written(path: Path, *, force: bool = False) -> Iterator[BinaryIO]:
    """A file to write to; it gets its name only when everything is on the disk.

    Without `force` an existing file is an error, also when it appears while we write. A pipe or a device is
    never replaced.
    """
    if "\0" in str(path):
        raise StorageError(f"{str(path)!r:.80} cannot be a file name.")
    if not path.name:
        raise StorageError(f"{path} is a folder, not a file to write.")
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}.tmp")
    made: list[Path] = []
    try:
        if path.exists() and not path.is_file():
            raise StorageError(f"{path} cannot be written: it is a folder, a pipe or a device. Name a file.")
        if path.exists() and not force:
            raise StorageError(f"{path} exists already. Choose another name, or use --force to replace it.")
        made = [folder for folder in path.parents if not folder.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if force:
            temporary.replace(path)
        else:
            # link() fails if the name was taken meanwhile; replace() would overwrite silently.
            _link(temporary, path)
        sync_folder(path.parent)
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        with suppress(OSError):
            temporary.unlink()
        with suppress(OSError):  # nothing is left behind: a folder that has something in it stays
            for folder in made:
                folder.rmdir()


def write_bytes(path: Path, content: bytes, *, force: bool = False) -> None:
    """Write a whole file at once."""
    with written(path, force=force) as file:
        file.write(content)


def remove_leftovers(folder: Path, names: Collection[str]) -> None:
    """Remove what processes that are dead left when they were killed while they wrote these files.

    Only our own temporary files are looked at, and what cannot be removed stays.
    """
    with suppress(OSError):
        for path in list(folder.iterdir()):
            found = _TEMPORARY.fullmatch(path.name)
            if found is not None and found["name"] in names and not _is_alive(int(found["process"])):
                with suppress(OSError):
                    path.unlink()


def _is_alive(process: int) -> bool:
    import psutil

    return bool(psutil.pid_exists(process))


_TEMPORARY = re.compile(r"\.(?P<name>.+)\.(?P<process>\d{1,10})-[0-9a-f]{8}\.tmp")


def _link(temporary: Path, path: Path) -> None:
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise StorageError(f"{path} was written by someone else meanwhile; it is left as it is.") from None
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        temporary.replace(path)


# What a file system says that has no hard links.
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
