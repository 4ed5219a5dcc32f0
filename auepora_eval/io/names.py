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
    plain = text == identifier and _SAFE.fullmatch(text) and ".." not in text and not text.endswith(".")
    if not plain or text.split(".", maxsplit=1)[0].lower() in _RESERVED:
        raise DataError(
            f"{what} {text[:80]!r}",
            "cannot be a file name.",
            fix="Use up to 128 letters, digits and . _ - + @, starting with a letter or digit.",
        )
    return identifier


_ENDINGS = re.compile(
    r"\.(?:eval|gt|results|benchmark|config|labels)\.(?:json|yaml|yml|csv|parquet|h5)$|\.[^.]*$",
    re.IGNORECASE,
)


def stem(path: PurePath) -> str:
    """What a file is called without its endings: `policies.eval.json.gz` is `policies`."""
    name = path.name.removesuffix(".gz")
    return _ENDINGS.sub("", name) or name
