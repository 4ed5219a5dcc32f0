"""Ids that become file names: checked, never repaired, never joined to a path unchecked."""

from __future__ import annotations

import re
from pathlib import PurePath

from ..errors import DataError

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}")
_RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))}


def file_name(identifier: str, what: str = "id") -> str:
    """The id itself, if every file system takes it as a plain name; DataError otherwise."""
    text = str(identifier)
    wrong = _wrong(text) if text == identifier else ("cannot be a file name: it is no text.", _PLAIN)
    if wrong is not None:
        raise DataError(f"{what} {text[:80]!r}", wrong[0], fix=wrong[1])
    return identifier


def _wrong(text: str) -> tuple[str, str] | None:
    """Why a text is no name of a file, and what to do; None if it is one."""
    if text.split(".", maxsplit=1)[0].lower() in _RESERVED:
        return "cannot be a file name: Windows reserves it for a device.", "Choose another."
    if text.strip(".") and ".." not in text and text.endswith(".") and _SAFE.fullmatch(text):
        return "cannot be a file name that ends in a dot.", "Remove the dot."
    if not text.isascii() and text.isprintable() and _SAFE.fullmatch(_IN_ASCII.sub("a", text)):
        return "cannot be a file name: only ASCII letters are safe everywhere.", "Write it without accents."
    if ".." in text or not _SAFE.fullmatch(text):
        return "cannot be a file name.", _PLAIN
    return None


_IN_ASCII = re.compile(r"[^\x00-\x7f]")
_PLAIN = "Use up to 128 letters, digits and . _ - + @, starting with a letter or digit."


_ENDINGS = re.compile(
    r"\.(?:eval|gt|results|benchmark|config|labels)\.(?:json|yaml|yml|csv|parquet|h5)$|\.[^.]*$",
    re.IGNORECASE,
)


def stem(path: PurePath) -> str:
    """What a file is called without its endings: `policies.eval.json.gz` is `policies`."""
    name = path.name.removesuffix(".gz")
    return _ENDINGS.sub("", name) or name
