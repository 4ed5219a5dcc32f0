"""One registry for everything that can be added: metrics, formats, executors."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from ..errors import UnknownNameError

T = TypeVar("T")


class Registry(Generic[T]):
    """Names to things. Other packages add theirs by an entry point in `auepora_eval.<kind>s`."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._things: dict[str, T] = {}
        self._plugins_loaded = False

    def add(self, name: str) -> Callable[[T], T]:
        """Decorator: register what follows under this name."""

        def register(thing: T) -> T:
            if name in self._things and self._things[name] is not thing:
                raise ValueError(f"there is a {self.kind} {name!r} already")
            self._things[name] = thing
            return thing

        return register

    def get(self, name: str) -> T:
        """The thing of that name, or an error with the nearest names."""
        if name not in self._things:
            self._load_plugins()
        if name not in self._things:
            near = difflib.get_close_matches(name, self._things, n=3, cutoff=0.5)
            hint = f" Did you mean {' or '.join(near)}?" if near else f" Known: {', '.join(self)}."
            raise UnknownNameError(f"there is no {self.kind} {name!r}.{hint}")
        return self._things[name]

    def __iter__(self) -> Iterator[str]:
        self._load_plugins()
        return iter(sorted(self._things))

    def _load_plugins(self) -> None:
        if self._plugins_loaded:
            return
        self._plugins_loaded = True
        from importlib.metadata import entry_points

        for point in entry_points(group=f"auepora_eval.{self.kind}s"):
            self.add(point.name)(point.load())
