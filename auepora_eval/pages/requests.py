"""What a page is made from and what it returns: plain values, so that no page depends on the server.

A page is a function that takes an `Ask` and returns a `Reply`. A module of pages lists them as `ROUTES`, and
`server.py` joins the lists.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .workspace import Workspace

__all__ = ["Ask", "Events", "Page", "Redirect", "Reply", "Route"]


@dataclass(frozen=True)
class Ask:
    """A request: the parts of the path, the query or form by name, and where the runs are.

    A field that is given several times has all its values in `lists`.
    """

    workspace: Workspace
    path: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    lists: Mapping[str, list[str]] = field(default_factory=dict)
    address: str = "/"
    rows: int | None = None  # of a list, in one file; None if a server asks

    def number(self, name: str) -> int | None:
        """Return a field as a whole number from 0; None if it is not one."""
        text = self.values.get(name, "")
        # No run has a billion samples, and int() raises on more than 4,300 digits.
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


@dataclass(frozen=True)
class Page:
    """A page: its title, and the content below the heading. `command` prints the same in a terminal."""

    title: str
    main: Any  # a node of components.markup
    command: str = ""
    status: int = 200
    refresh: int | None = None  # seconds after which the browser loads it again


@dataclass(frozen=True)
class Redirect:
    """Another address of this server: the answer to a form that changed something."""

    address: str


@dataclass(frozen=True)
class Events:
    """Events for a page that stays open: each is a text."""

    events: AsyncIterator[str]


@dataclass(frozen=True)
class Json:
    """Data for a script of a page."""

    data: Any
    status: int = 200


Reply = Page | Redirect | Events | Json
Handler = Callable[[Ask], Reply]


@dataclass(frozen=True)
class Route:
    """The function of an address, such as "/run/{run}"; `changes` marks those that only POST may call."""

    path: str
    handler: Handler
    changes: bool = False
