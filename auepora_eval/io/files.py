"""Write files so that a reader sees the old content or the new one, never half of it; check their names.

One file is written under a temporary name and renamed. Several files are written under temporary names and
then renamed one after the other, the manifest last: it holds the hashes of the others, so a reader that goes
by the manifest notices if a build was killed between two renames.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePath
from typing import BinaryIO

from ..errors import DataError, StorageError

# A temporary file: its final name, and the process that writes it.
_TEMPORARY = re.compile(r"\.(?P<name>.+)\.(?P<process>\d{1,10})-[0-9a-f]{8}\.tmp")
_BLOCK = 1 << 18  # bytes that are hashed at a time: they fit the cache of a core
# Errors of file systems without hard links.
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


@contextmanager
def written(path: Path, *, force: bool = False, private: bool = False) -> Iterator[BinaryIO]:
    """Yield a file to write to; it gets its name only when everything is on the disk.

    Without `force` an existing file is an error, also when it appears while we write. A pipe or a device is
    never replaced. A `private` file can be read by its owner only.
    """
    _check_name(path)
    temporary = temporary_name(path)
    folders: list[Path] = []
    try:
        if path.exists() and not path.is_file():
            raise StorageError(f"{path} cannot be written: it is a folder, a pipe or a device. Name a file.")
        check_absent([path], force=force)
        folders = made_folders(path)
        mode = 0o600 if private else 0o666
        # open() with an opener, not os.fdopen(): the file then knows its name.
        with open(temporary, "wb", opener=lambda name, _: _created(name, mode)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if force:
            temporary.replace(path)
        else:
            # link() fails if the name was taken meanwhile; replace() would overwrite silently.
            link(temporary, path)
        sync_folder(path.parent)
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        _remove([temporary], folders)


def write_bytes(path: Path, content: bytes, *, force: bool = False, private: bool = False) -> None:
    """Write a whole file at once."""
    with written(path, force=force, private=private) as file:
        file.write(content)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add the name of the file to an error of the system: that of a write does not have it."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


@contextmanager
def written_together(paths: Sequence[Path], *, force: bool = False) -> Iterator[dict[Path, BinaryIO]]:
    """Yield files to write, by their paths; they get their names when the block ends. The manifest is last.

    Nothing is changed unless the block ends without an error. Without `force` an existing file is an error.
    A path that is removed from the dict is left as it is.
    """
    temporary = {path: temporary_name(path) for path in paths}
    files: dict[Path, BinaryIO] = {}
    folders: list[Path] = []
    consequence = "Nothing was changed."
    with ExitStack() as stack:
        stack.callback(lambda: _remove(temporary.values(), folders))
        try:
            for path in paths:
                _check_name(path)
                remove_leftovers(path.parent, [path.name])
            check_absent(paths, force=force)
            for path in paths:
                folders += made_folders(path)
                files[path] = stack.enter_context(temporary[path].open("xb"))
            yield files
            check_absent(list(files), force=force)  # another process may have been quicker
            for path, file in files.items():
                with naming(path):
                    file.flush()
                    os.fsync(file.fileno())
                    file.close()
            # From here on an error can no longer be undone: some names are new.
            consequence = "Some files are replaced: run it again."
            for path in files:
                temporary[path].replace(path)
            for folder in {path.parent for path in files}:
                sync_folder(folder)
        except OSError as error:
            if isinstance(error, StorageError):
                raise
            place = getattr(error, "filename", None) or paths[-1]
            what = f"{place} cannot be written: {error.strerror or error}. {consequence}"
            raise StorageError(what) from error


def check_absent(paths: Sequence[Path], *, force: bool) -> None:
    """StorageError if a path is taken and may not be replaced."""
    for path in paths:
        if path.is_dir():
            raise StorageError(f"{path} is a folder, not a file to write.")
        if path.exists() and not path.is_file():
            raise StorageError(f"{path} is a pipe or a device, not a file to write. Name a file.")
        if path.exists() and not force:
            fix = "Choose another name, or replace it: --force (in Python force=True)."
            raise StorageError(f"{path} exists already. {fix}")


def sync_folder(folder: Path) -> None:
    """Let a folder's new names survive a loss of power."""
    with suppress(OSError):  # not every system lets a folder be opened
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove_leftovers(folder: Path, names: Collection[str]) -> None:
    """Remove temporary files of these names whose writers were killed; those of living processes stay."""
    with suppress(OSError):
        for path in list(folder.iterdir()):
            match = _TEMPORARY.fullmatch(path.name)
            if match is not None and match["name"] in names and not is_alive(int(match["process"])):
                with suppress(OSError):
                    path.unlink()


def is_alive(process: int) -> bool:
    """Return whether there is a process with this number on this machine."""
    import psutil

    return bool(psutil.pid_exists(process))


def _check_name(path: Path) -> None:
    if "\0" in str(path):
        raise StorageError(f"{str(path)!r:.80} cannot be a file name.")
    if not path.name:
        raise StorageError(f"{path} is a folder, not a file to write.")


def temporary_name(path: Path) -> Path:
    """Return a hidden name beside a path, for a file that is not complete yet."""
    return path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}.tmp")


def _created(path: str | Path, mode: int) -> int:
    """Create a file; it has this mode, less what the umask takes away."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)


def made_folders(path: Path) -> list[Path]:
    """Make the folders that a path lacks, and return them, the innermost first."""
    # Remembered, so that a failed write leaves no empty folders behind.
    missing = [folder for folder in path.parents if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    return missing


def _remove(files: Collection[Path], folders: Sequence[Path]) -> None:
    """Remove what is left of temporary files, and folders that were made and stayed empty."""
    for file in files:
        with suppress(OSError):
            file.unlink()
    for folder in folders:
        with suppress(OSError):  # a folder that has something in it stays
            folder.rmdir()


def link(temporary: Path, path: Path) -> None:
    """Give a complete file its name; StorageError if the name was taken meanwhile."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise StorageError(f"{path} was written by someone else meanwhile; it is left as it is.") from None
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        temporary.replace(path)


# Ids that become file names: checked, never repaired, never joined to a path unchecked.

# No slash, no leading dot or dash: neither a path, nor hidden, nor a flag.
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+~-]{0,127}")


def file_name(identifier: str, what: str = "id") -> str:
    """Return the id if every file system accepts it as a plain name; DataError otherwise."""
    text = str(identifier)
    if text != identifier or ".." in text or text.endswith(".") or not _SAFE.fullmatch(text):
        fix = "Use up to 128 ASCII letters, digits and ._-+@~ with a letter or digit first and no dot last."
        raise DataError(f"{what} {text[:80]!r}", "cannot be a file name.", fix=fix)
    return identifier


_ENDINGS = re.compile(
    r"\.(?:eval|gt|results|benchmark|config|labels)\.(?:json|yaml|yml|csv|parquet|h5)$|\.[^.]*$",
    re.IGNORECASE,
)


def stem(path: PurePath) -> str:
    """Return the name of a file without its endings: `policies.eval.json.gz` is `policies`."""
    name = path.name.removesuffix(".gz")
    return _ENDINGS.sub("", name) or name


def file_sha256(path: Path) -> str:
    """The sha256 of a file's bytes, as they are on the disk."""
    try:
        digest, block = hashlib.sha256(), memoryview(bytearray(_BLOCK))
        with path.open("rb", buffering=0) as file:
            while size := file.readinto(block):
                digest.update(block[:size])
        return digest.hexdigest()
    except FileNotFoundError:
        raise DataError(str(path), "there is no such file.", fix="Check the name.") from None
    except OSError as error:
        raise DataError(
            str(path), f"cannot be read: {error.strerror or error}.", fix="Check the name and its rights."
        ) from error
