"""What is known of a system beyond its name, so that a run that is gone on with does not mix two."""

from __future__ import annotations

import functools
import inspect
import sys
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..core.rag_interface import parts_of
from ..execution.systems import is_endpoint, origin_of

NO_PROGRAM = sha256(b"").hexdigest()  # of a system whose file is not known


@dataclass(frozen=True)
class SystemIdentity:
    """What is known of a system beyond its name, for a run that is gone on with.

    Another server, model or prompt (`asks`), and another module or file (`named`, as it was loaded) are
    refused. Another text of the program is only told: people mend what crashed and go on. `begun_in` is the
    folder from which files were named. `budgets` are those that a run begins with, or is given when it is
    gone on with: each its limit, and what was spent before it counts.
    """

    asks: dict[str, Any] | None = None
    program_sha256: str | None = None
    begun_in: str | None = None
    budgets: dict[str, Any] | None = None
    named: str | None = None

    def as_header(self) -> dict[str, Any]:
        """What of it is known, by the names of a header."""
        return {name: fact for name, fact in vars(self).items() if fact is not None}


def identity_of(system: Any, *, begun_in: str | None = None) -> SystemIdentity:
    """What can be known of a system that was loaded by its name, or made in Python."""
    origin = origin_of(system)
    if origin is not None:
        name, folder, options = origin
        asks = endpoint_identity(name, system, options.get("fields"))
        named = None if is_endpoint(name) else name  # of a server `asks` has what may be told
        return SystemIdentity(asks, program_sha256(name, Path(folder)), begun_in or folder, named=named)
    files = {file for part in parts_of(system) if (file := _file_of(part)) is not None}
    content = b"".join(file.read_bytes() for file in sorted(files))
    return SystemIdentity(None, sha256(content).hexdigest() if files else None, begun_in)


def endpoint_identity(name: str, system: Any, fields: object = None) -> dict[str, Any] | None:
    """What decides the answers of a server, as far as this side knows; None of Python code."""
    identity = getattr(system, "identity", None)
    if not is_endpoint(name) or not isinstance(identity, dict):
        return None
    return {**identity, **({"fields": fields} if fields else {})}


def program_sha256(name: str, folder: Path = Path()) -> str:
    """The hash of the text of the file that a system is in; of nothing where there is no such file."""
    file = program_file(name, folder)
    try:
        return NO_PROGRAM if file is None else sha256(file.read_bytes()).hexdigest()
    except OSError:
        return NO_PROGRAM


def program_file(name: str, folder: Path = Path()) -> Path | None:
    """The file that a system of that name is in, seen from a folder; it need not be there.

    A module is looked up in that folder first, as it was when it was loaded from there; then from here.
    """
    from importlib.util import find_spec

    module = name.rpartition(":")[0]
    if module.endswith(".py"):
        return folder / module
    if folder.resolve() != Path.cwd() and (file := _module_file(module, folder)) is not None:
        return file
    try:
        origin = getattr(find_spec(module), "origin", None)
    except (OSError, ImportError, ValueError):
        return None
    return Path(origin) if origin else None


def _module_file(module: str, folder: Path) -> Path | None:
    """The file of a module that lies in a folder; nothing is imported to find it."""
    place = folder.joinpath(*module.split("."))
    found = (place / "__init__.py", place.with_name(f"{place.name}.py"))  # in the order of an import
    return next((file for file in found if file.is_file()), None)


def _file_of(thing: Any) -> Path | None:
    """The file in which a function, or the class of an object, is written; None where there is none."""
    while isinstance(thing, functools.partial):
        thing = thing.func
    code = getattr(inspect.unwrap(thing) if callable(thing) else thing, "__code__", None)
    if code is None:
        kind = thing if isinstance(thing, type) else type(thing)
        name = getattr(sys.modules.get(kind.__module__), "__file__", None)
    else:
        name = code.co_filename
    file = Path(name) if isinstance(name, str) else None
    return file if file is not None and file.suffix == ".py" and file.is_file() else None
