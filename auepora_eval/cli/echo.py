"""Print to the terminal: results to stdout, everything else to stderr.

Texts of models and files reach the screen through this module only. Control characters are removed, and lines
that a CI runner would take for a command are changed so that it only shows them.
"""

from __future__ import annotations

import json
import os
import re
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

# Commands of CI runners: "::add-mask::" at the start of a line (GitHub), "##[group]" and "##vso[" anywhere
# (GitHub, Azure), "##teamcity[".
_RUNNER_COMMAND = re.compile(r"^([^\S\n]*:)(?=:)|(##)(?=\w*\[)", re.MULTILINE)
# What a terminal acts on although it is part of a JSON text: control characters and the reading direction.
_UNSAFE_IN_JSON = re.compile(
    r"[\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]|##(?=\w*\[)"
)


def prepare_streams() -> None:
    """Make printing safe where a stream is missing or its encoding lacks some of our characters."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - open until the process ends
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _print(text: str, stream: TextIO | None = None) -> None:
    """Print lines as they will be on the screen; none of them is a command to a CI runner."""
    print(_RUNNER_COMMAND.sub(lambda match: f"{match[0]} ", text), file=stream or sys.stdout)


def say(text: object = "") -> None:
    """Print a result."""
    _print(clean(text))


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
    _print("\n".join(wrapped(clean(text), text_width())))


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
    _print("\n".join(lines) or message, sys.stderr)


def annotate(line: str) -> None:
    """Print a command to the CI runner, which is the one line that it should act on."""
    print(clean(line), file=sys.stderr)


def say_json(document: Any) -> None:
    """Print one JSON document, indented; what a terminal or a CI runner would act on is escaped."""
    import msgspec

    from ..core.dataset import plain

    text = msgspec.json.format(msgspec.json.encode(document, enc_hook=plain), indent=2).decode()
    print(_UNSAFE_IN_JSON.sub(_json_escape, text))


def _json_escape(match: re.Match[str]) -> str:
    """Return the characters as JSON escapes, so that the document has the same content."""
    return json.dumps(match[0])[1:-1] if match[0] != "##" else "\\u0023#"


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
    _print(table.to_terminal(screen_width(), bold=bold))


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
