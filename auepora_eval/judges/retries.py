"""How long to wait for an endpoint that does not answer, when to ask it again, and what it said."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from ..errors import DataError


@dataclass(frozen=True)
class Clock:
    """Time and chance, so that a test need not wait for either."""

    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.time  # only to read a Retry-After that is a date
    chance: Callable[[], float] = random.Random().random  # noqa: S311 - spreads retries, guards nothing


@dataclass(frozen=True)
class Patience:
    """How long to wait for an endpoint, and how often to ask it again. Seconds, bytes."""

    timeout: float = 60.0
    connect_timeout: float = 10.0
    retries: int = 4
    first_wait: float = 0.5
    longest_wait: float = 30.0
    longest_retry_after: float = 120.0
    max_bytes: int = 4_000_000

    def __post_init__(self) -> None:
        for name in ("timeout", "connect_timeout", "max_bytes"):
            if not 0 < getattr(self, name) < float("inf"):
                raise DataError(name, "must be a positive number.")
        if self.retries < 0:
            raise DataError("retries", f"must not be negative: {self.retries}.")

    def wait(self, attempt: int, asked: float | None, chance: float) -> float:
        """Seconds until the next attempt: what the server asked for, or up to twice as long as last time."""
        if asked is not None:
            return min(asked, self.longest_retry_after) + chance * self.first_wait
        return chance * min(self.longest_wait, self.first_wait * 2.0 ** min(attempt - 1, 30))


def tidy(text: object, limit: int = 300) -> str:
    """Somebody else's text on one line, without what could steer a terminal, cut to a length."""
    flat = " ".join("".join(sign if sign.isprintable() else " " for sign in str(text)[:5000]).split())
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"


def message_in(content: bytes) -> str:
    """What a server says went wrong, in the shapes in which servers say it."""
    try:
        document = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return content.decode("utf-8", "replace")
    for key in ("error", "message", "detail"):
        if isinstance(document, dict) and key in document:
            document = document[key]
    return document if isinstance(document, str) else content.decode("utf-8", "replace")
