"""--log-level: events of the work on stderr, through the one door to the terminal."""

from __future__ import annotations

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from . import echo

LEVELS = ("debug", "info", "warning", "error")
_OF_A_KIND = 5


def add_log_level(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--log-level",
        choices=LEVELS,
        metavar="LEVEL",
        help="say on stderr what happens: debug, info, warning (default: the first of a kind), error",
    )


@contextmanager
def events_on_stderr(level: str | None) -> Iterator[None]:
    """While a command runs, events of that level and above are lines on stderr.

    Where no level was asked for, a thousand failures are not a thousand lines: the first five of a kind are
    said; how a run ended, the command says itself.
    """
    import logging

    from ..core.log import LOGGER
    from ..core.redaction import without_secrets

    seen: Counter[str] = Counter()

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            event = str(getattr(record, "event", record.name))
            if level is None:
                seen[event] += 1
                if event.startswith("run.") or seen[event] > _OF_A_KIND + 1:
                    return
                if seen[event] > _OF_A_KIND:
                    echo.note(f"warning: ... and more {event}; --log-level warning says all")
                    return
            # Anybody may tell the logger something, a system's own code too.
            said = echo.one_line(without_secrets(record.getMessage()), 1000)
            echo.note(f"{record.levelname.lower()}: {said}")

    handler, before = Handler(), (LOGGER.level, LOGGER.propagate)
    LOGGER.addHandler(handler)
    LOGGER.setLevel((level or "warning").upper())
    LOGGER.propagate = False
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(before[0])
        LOGGER.propagate = before[1]
