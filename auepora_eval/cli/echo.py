"""Print to the terminal: results to stdout, everything else to stderr, control characters removed."""

from __future__ import annotations

import os
import sys
import warnings
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from ..core.display import terminal_line as one_line
from ..core.display import terminal_text as clean

if TYPE_CHECKING:
    from ..core.table import Table

__all__ = ["one_line"]

_PIPE_WIDTH = 140  # columns of a table that is piped or redirected
_MAX_TEXT_WIDTH = 100  # columns of sentences: longer lines are hard to read


def prepare_streams() -> None:
    """Make printing safe where a stream is missing or its encoding lacks some of our characters."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - open until the process ends
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def say(text: object = "") -> None:
    """Print a result."""
    print(clean(text))


def text_width() -> int:
    """Return the columns for sentences and help: those of the terminal, at most 100."""
    import shutil

    return min(_MAX_TEXT_WIDTH, shutil.get_terminal_size((_MAX_TEXT_WIDTH, 24)).columns)


def wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a text wrapped between words; paths, flags and commands are never broken."""
    import textwrap

    return textwrap.wrap(text, width=width, break_on_hyphens=False, break_long_words=False)


def say_words(text: object) -> None:
    """Print sentences, wrapped between words."""
    print("\n".join(wrapped(clean(text), text_width())))


def note(text: object) -> None:
    """Print a message about the work to stderr; on a terminal it is wrapped between words.

    In a pipe or a log each message stays on one line, so that it can be searched.
    """
    message = clean(text)
    lines = message.splitlines() if sys.stderr.isatty() else []
    for place, line in enumerate(lines):
        # Tracebacks and lists are indented already: they stay as they are.
        if not line.startswith(" "):
            lines[place] = "\n".join(wrapped(line, text_width()))
    print("\n".join(lines) or message, file=sys.stderr)


def say_json(document: Any) -> None:
    """Print one JSON document, indented."""
    import msgspec

    from ..core.dataset import plain

    print(msgspec.json.format(msgspec.json.encode(document, enc_hook=plain), indent=2).decode())


def is_interactive(stream: TextIO) -> bool:
    """Return whether a person is watching: a terminal that is not a CI log."""
    return stream.isatty() and not os.environ.get("CI") and os.environ.get("TERM") != "dumb"


def say_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], *, numeric: Container[int] = ()
) -> None:
    """Print a table; the columns in `numeric` are aligned to the right, a row of one cell is a heading."""
    from ..core.table import Table

    show(Table(headings, rows, numeric=numeric))


def show(table: Table) -> None:
    """Print a table that fits the terminal."""
    # Bold headings only where a person looks: escape sequences in a file are noise.
    bold = sys.stdout.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")
    print(table.to_terminal(screen_width(), bold=bold))


def show_all(tables: Iterable[Table]) -> None:
    """Print tables with an empty line between them."""
    for number, table in enumerate(tables):
        if number:
            say()
        show(table)


def screen_width() -> int:
    """Return the width of the terminal; a pipe has none, so it gets one that fits our tables."""
    import shutil

    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _PIPE_WIDTH


def fits(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether this screen is wide enough for the columns of a table."""
    from ..core.table import Table

    return Table(headings, rows).fits(screen_width())


def notes_from_warnings() -> None:
    """Print warnings as notes on stderr from now on, without the line of our code that issued them."""
    # A dataset of a million samples must not print a million warnings: five of each kind are enough.
    seen: Counter[str] = Counter()

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        seen[category.__name__] += 1
        if seen[category.__name__] <= 5:
            note(f"note: {message}")
        elif seen[category.__name__] == 6:
            note("note: ... and more warnings of the same kind")

    warnings.simplefilter("always", UserWarning)
    warnings.showwarning = show
