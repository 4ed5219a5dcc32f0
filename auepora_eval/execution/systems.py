"""A system by its name: `module:attribute`, `file.py:attribute`, `openai:URL#model` or `http:URL`.

A system that was named can be sent to other processes and machines: its name goes there, not its content,
and no key with it.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from ..core.rag_interface import RAGSystemProtocol, as_system
from ..errors import DataError


class NamedSystem:
    """A system that remembers its name; the workers of an executor load it by that."""

    def __init__(self, name: str, folder: str, options: Mapping[str, Any], system: RAGSystemProtocol) -> None:
        self._origin = (name, folder, dict(options))
        self._system = system
        self.run = system.run
        own = getattr(system, "name", None)
        self.name = own if isinstance(own, str) and own else type(system).__name__

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):
            raise AttributeError(attribute)
        return getattr(self._system, attribute)

    def __reduce__(self) -> Any:
        return _loaded, self._origin


def load_system(name: str, options: Mapping[str, Any] | None = None) -> RAGSystemProtocol:
    """The system of that name.

    A class is instantiated, a function without parameters is called: what it returns is the system.
    `options` are those of an endpoint: api_key_env, headers, timeout, plain_http, prompt, fields,
    request. Of Python code there is one: with `arguments`, a class or function is called with these by name.
    """
    return _loaded(name, str(Path.cwd()), dict(options or {}))


def origin_of(system: Any) -> tuple[str, str, dict[str, Any]] | None:
    """The name, the folder and the options that a system was loaded by; None if it was not."""
    return system._origin if isinstance(system, NamedSystem) else None


def is_endpoint(name: str) -> bool:
    """Whether a name stands for a server rather than for Python code."""
    return name.startswith(("openai:", "http:", "https:"))


def _loaded(name: str, folder: str, options: dict[str, Any]) -> RAGSystemProtocol:
    if is_endpoint(name):
        from .endpoints import endpoint_system

        system: Any = endpoint_system(name, options)
    else:
        system = _imported(name, folder, options.get("arguments") or {})
    return cast(RAGSystemProtocol, NamedSystem(name, folder, options, system))


def _imported(name: str, folder: str, arguments: Mapping[str, Any]) -> RAGSystemProtocol:
    module_name, _, attribute = name.rpartition(":")
    if not module_name or not attribute:
        raise DataError(
            f"--system {name}",
            "is not module:attribute.",
            fix="Write, for example, my_rag.py:system, or openai:http://127.0.0.1:8000/v1#model.",
        )
    module = _module(module_name, name, Path(folder))
    if not hasattr(module, attribute):
        public = [key for key in vars(module) if not key.startswith("_")]
        raise DataError(
            f"--system {name}",
            f"{module_name} has no {attribute!r}.",
            fix=f"It has {', '.join(public[-8:])}." if public else "It is empty.",
        )
    thing = getattr(module, attribute)
    try:
        if arguments:
            thing = thing(**arguments)
        elif inspect.isclass(thing) or (inspect.isroutine(thing) and not inspect.signature(thing).parameters):
            thing = thing()
        return as_system(thing)
    except (Exception, SystemExit) as error:
        raise DataError(f"--system {name}", _in_one_line(error)) from error


def _module(module_name: str, name: str, folder: Path) -> ModuleType:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        if module_name.endswith(".py"):
            return _from_file(folder / module_name)
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and module_name.startswith(error.name):
            raise DataError(
                f"--system {name}",
                f"there is no module {error.name!r}.",
                fix="Run from the folder that holds it.",
            ) from error
        raise DataError(f"--system {name}", _in_one_line(error)) from error
    except FileNotFoundError as error:
        raise DataError(f"--system {name}", "there is no such file.") from error
    except (Exception, SystemExit) as error:
        raise DataError(f"--system {name}", _in_one_line(error)) from error


def _from_file(path: Path) -> ModuleType:
    # Not its own name: a file called json.py must not stand in for the module of that name.
    name = f"auepora_system_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    if not path.is_file():
        raise FileNotFoundError(path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickling look the module up by its name
    sys.path.insert(0, str(path.parent.resolve()))
    spec.loader.exec_module(module)
    return module


def _in_one_line(error: Any) -> str:
    """The user's own exception, with the place in the user's own code where it arose."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    if isinstance(error, SyntaxError):
        place = ""  # its text names the file and the line; the frames are those of the import
    return f"{type(error).__name__}: {error}{place}."
