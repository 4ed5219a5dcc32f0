"""What a page is made from and what it returns: plain values, so that no page depends on the server.

A page is a function that takes an `Ask` and returns a `Reply`. `app.py` lists them as routes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .workspace import Workspace

Pairs = list[tuple[str, str | None]]


@dataclass(frozen=True)
class Ask:
    """A request: where the runs are, the parts of the path, and the fields of the query or form."""

    workspace: Workspace
    path: Mapping[str, str] = field(default_factory=dict)
    lists: Mapping[str, list[str]] = field(default_factory=dict)  # each field with all its values
    address: str = "/"
    rows: int | None = None  # of a list, in one file; None if a server asks

    @cached_property
    def values(self) -> dict[str, str]:
        """Return the last value of each field."""
        return {name: given[-1] for name, given in self.lists.items() if given}

    def number(self, name: str) -> int | None:
        """Return a field as a whole number from 0; None if it is not one."""
        text = self.values.get(name, "")
        # No run has a billion samples, and int() raises on more than 4,300 digits.
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None

    def query(self, **changed: str | None) -> Pairs:
        """Return the query of this address with some fields changed; None leaves one out."""
        kept: Pairs = [(name, text) for name, given in self.lists.items() for text in given]
        return [*(pair for pair in kept if pair[0] not in changed), *changed.items()]


@dataclass(frozen=True)
class Page:
    """A page: its title with facts and actions beside it, and the content below.

    `crumbs` lead to the pages above it, `command` prints the same in a terminal.
    """

    title: str
    main: Any  # nodes of components.markup, as `facts` and `actions`
    command: str = ""
    facts: Any = None
    actions: Any = None
    crumbs: Sequence[tuple[str, str]] = ()  # (text, address)
    run: str = ""  # whose samples a search looks through first
    status: int = 200
    refresh: int | None = None  # seconds after which the browser loads it again


@dataclass(frozen=True)
class Redirect:
    """Another address of this server: the answer to a form that changed something."""

    address: str


@dataclass(frozen=True)
class Download:
    """A CSV file that the browser saves, row by row."""

    name: str
    rows: Iterable[Sequence[Any]]


Reply = Page | Redirect | Download


@dataclass(frozen=True)
class Route:
    """The function of an address, such as "/run/{run}"; `changes` marks those that only POST may call."""

    path: str
    handler: Callable[[Ask], Reply]
    changes: bool = False
