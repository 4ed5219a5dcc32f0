"""The one door to the terminal: results to stdout, everything else to stderr, nothing that could steer it."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console

# Escape sequences, control characters, bidirectional overrides, invisible tags: model output may hold them.
_UNSAFE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-_])"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
_PIPE_WIDTH = 140
_LONG = 200  # rows of a table


def prepare_streams() -> None:
    """Make sure that printing cannot fail: no stream at all, or one that lacks a letter of ours."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - for the life of the process
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def clean(text: object) -> str:
    """Text that a terminal only shows."""
    return _UNSAFE.sub("", str(text).replace("\r\n", "\n")).encode("utf-8", "replace").decode("utf-8")


def one_line(text: object, limit: int = 300) -> str:
    """The same on one line, cut to a length."""
    flat = " ".join(clean(text).split())
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"


def say(text: object = "") -> None:
    """Print a result."""
    print(clean(text))


def say_words(text: object) -> None:
    """Print sentences, wrapped to a width that reads well; a path or command stays whole."""
    import shutil
    import textwrap

    width = min(100, shutil.get_terminal_size((100, 24)).columns)
    print("\n".join(textwrap.wrap(clean(text), width=width, break_on_hyphens=False, break_long_words=False)))


def note(text: object) -> None:
    """Print something about the work, beside the results."""
    print(clean(text), file=sys.stderr)


def say_json(document: Any) -> None:
    """Print one JSON document."""
    import msgspec

    from ..core.fingerprint import plain

    print(msgspec.json.format(msgspec.json.encode(document, enc_hook=plain), indent=2).decode())


def is_interactive(stream: TextIO) -> bool:
    """Whether a person watches: a terminal that is not a CI log."""
    return stream.isatty() and not os.environ.get("CI") and os.environ.get("TERM") != "dumb"


def console() -> Console:
    """Where tables go; a pipe has no width of its own, so it gets one that fits them."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH, highlight=False, soft_wrap=False)


def say_table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, numeric: Sequence[int] = ()) -> None:
    """Print a table; the columns in `numeric` are aligned to the right, a row of one cell is a heading.

    Where the screen is too narrow for it, the cells of a row stand below each other: nothing is cut off.
    """
    flat = [[one_line(cell) for cell in row] for row in rows]
    if len(flat) > _LONG:
        _say_long(headings, flat, numeric)
        return
    screen = console()
    if _least_width(headings, flat) > screen.width:
        _say_stacked(headings, flat, screen.width)
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    padding = (0, int(screen.width >= 100), 0, 0)
    table = Table(box=box.SIMPLE_HEAD, padding=padding, show_edge=False, header_style="bold")
    for place, heading in enumerate(headings):
        right, last = place in numeric, place == len(headings) - 1
        table.add_column(heading, justify="right" if right else "left", overflow="fold", no_wrap=not last)
    for row in flat:
        style = "bold" if len(row) == 1 < len(headings) else ""
        table.add_row(*(Text(cell, style=style) for cell in row))
    screen.print(table)


def fits(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether this screen is wide enough for the columns of a table."""
    return _least_width(headings, [[one_line(cell) for cell in row] for row in rows]) <= console().width


def _say_long(headings: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[int]) -> None:
    """A table of many rows, in the same columns: to lay out a thousand with care takes a second."""
    import shutil

    screen = shutil.get_terminal_size().columns if sys.stdout.isatty() else _PIPE_WIDTH
    if _least_width(headings, rows) > screen:
        _say_stacked(headings, rows, screen)
        return
    full = [row for row in [headings, *rows] if len(row) == len(headings)]
    widths = [max(_columns(row[place]) for row in full) for place in range(len(headings))]
    gap = "  " if screen >= 100 else " "

    def line(row: Sequence[str]) -> str:
        cells = []
        for place, cell in enumerate(row):
            space = " " * (widths[place] - _columns(cell))
            cells.append(space + cell if place in numeric else cell + space)
        return gap.join(cells).rstrip()

    whole = sum(widths) + len(gap) * (len(widths) - 1)
    print("\n".join([line(headings), "─" * min(whole, screen), *map(line, rows)]))


def _columns(text: str) -> int:
    """How many columns of a terminal a text takes: a Chinese letter takes two, an accent by itself none."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(
        0 if unicodedata.combining(letter) else 1 + (unicodedata.east_asian_width(letter) in "WF")
        for letter in text
    )


def _least_width(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """How wide a table is at least: only its last column may be folded, between words."""
    full = [row for row in [headings, *rows] if len(row) == len(headings)]
    widths = [max(len(row[place]) for row in full) for place in range(len(headings) - 1)]
    last = max(len(word) for row in full for word in (row[-1] or " ").split(" "))
    return sum(widths) + last + len(widths)


def _say_stacked(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> None:
    import textwrap

    for row in rows:
        print("\n".join(textwrap.wrap(row[0], width, break_on_hyphens=False) or [""]))
        for heading, cell in zip(headings[1:], row[1:], strict=False):
            text = f"{heading}: {cell}"
            print("\n".join(textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="    ")))


def notes_from_warnings() -> None:
    """From here on a warning is a line on stderr: what it says, not where in our code it arose."""
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
            note("note: ... and more of the same kind")

    warnings.simplefilter("always", UserWarning)
    warnings.showwarning = show
