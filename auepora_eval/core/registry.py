"""The registry of everything that can be added: metrics, formats, executors."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, Generic, TypeVar

from ..errors import UnknownNameError, did_you_mean, warn_user

T = TypeVar("T")


class Registry(Generic[T]):
    """Names to things. Other packages add theirs by an entry point in `auepora_eval.<kind>s`.

    `search` lists our modules that register things. They are imported one after the other until one has
    registered the name that is asked for. `base` is the class that things are subclasses of, if they are
    classes. A plug-in that cannot be loaded is a warning.
    """

    def __init__(self, kind: str, search: Sequence[str] = (), base: type | None = None) -> None:
        self.kind, self._search, self._base = kind, search, base
        self._things: dict[str, T] = {}
        self._plugins_loaded = False

    def add(self, name: str) -> Callable[[T], T]:
        """Register what is decorated under this name."""

        def register(thing: T) -> T:
            # Ours first: no other package can take a name of the library.
            if not _module(thing).startswith("auepora_eval."):
                self._import()
            if name in self._things and _source(self._things[name]) != _source(thing):
                raise ValueError(f"there is a {self.kind} {name!r} already")
            self._things[name] = thing
            return thing

        return register

    def get(self, name: str) -> T:
        """Return the thing of that name, or raise an error with the nearest names."""
        self._import(name)
        if name not in self._things:
            self._load_plugins()
        if name not in self._things:
            hint = did_you_mean(name, list(self), f"Known: {', '.join(self)}.", count=3, cutoff=0.5)
            raise UnknownNameError(f"there is no {self.kind} {name!r}. {hint}")
        return self._things[name]

    def __contains__(self, name: str) -> bool:
        return name in self._things or name in set(self)

    def __iter__(self) -> Iterator[str]:
        self._import()
        self._load_plugins()
        return iter(sorted(self._things))

    def _import(self, name: str | None = None) -> None:
        """Import our modules in their order until one has registered the name; all of them without one."""
        for module in self._search:
            if name in self._things:
                return
            import_module(module)

    def _load_plugins(self) -> None:
        if self._plugins_loaded:
            return
        # Set first: a plug-in that asks for the registry while it loads must not recurse.
        self._plugins_loaded = True
        from importlib.metadata import entry_points  # takes 20 ms

        for point in entry_points(group=f"auepora_eval.{self.kind}s"):
            try:
                thing = point.load()
                if self._base is not None and not (isinstance(thing, type) and issubclass(thing, self._base)):
                    raise TypeError(f"it is not a {self.kind} class")
                self.add(point.name)(thing)
            except Exception as error:  # noqa: BLE001 - the code of another package must not end every command
                package = point.dist.name if point.dist else "another package"
                why = f"{type(error).__name__}: {error}"
                warn_user(f"The {self.kind} {point.name!r} of {package} cannot be used: {why}.")


def _source(thing: Any) -> tuple[str, str]:
    """Return where a thing is defined. A cell or a file that is run again replaces its own definitions."""
    module = _module(thing)
    file = getattr(sys.modules.get(module), "__file__", None)
    return file or module, getattr(thing, "__qualname__", str(id(thing)))


def _module(thing: Any) -> str:
    return str(getattr(thing, "__module__", ""))
