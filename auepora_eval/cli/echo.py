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
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from ..core.display import terminal_line as one_line
from ..core.display import terminal_text as clean
from ..core.display import terminal_width

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


def _print(text: str, stream: TextIO | None = None, style: str = "", words: Mapping[str, str] = {}) -> None:
    """Print lines as they will be on the screen; none of them is a command to a CI runner.

    On a terminal the text has a style, and so has what matches a pattern of `words`.
    """
    stream = stream or sys.stdout
    text = _RUNNER_COMMAND.sub(lambda match: f"{match[0]} ", text)
    if not (style or words) or not _is_coloured(stream):
        print(text, file=stream)
        return
    from rich.console import Console
    from rich.text import Text

    shown = Text(text, style)
    for pattern, its_style in words.items():
        shown.highlight_regex(pattern, its_style)
    Console(file=stream, force_terminal=True, highlight=False).print(shown, soft_wrap=True)


def _is_coloured(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")


def say(text: object = "", style: str = "") -> None:
    """Print a result, on a terminal in a style of rich such as "bold red"."""
    _print(clean(text), style=style)


def text_width() -> int:
    """Return the columns for sentences and help: those of the terminal, at most 100."""
    return min(_MAX_TEXT_WIDTH, terminal_width(_MAX_TEXT_WIDTH))


def wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a text wrapped between words; paths, flags and commands are never broken."""
    import textwrap

    indent = " " * (len(text) - len(text.lstrip()))
    return textwrap.wrap(
        text, width=width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )


def say_words(text: object, style: str = "") -> None:
    """Print sentences, wrapped between words."""
    _print("\n".join(wrapped(clean(text), text_width())), style=style)


def note(text: object, style: str = "") -> None:
    """Print a message about the work to stderr; on a terminal it is wrapped between words.

    In a pipe or a log each message stays on one line, so that it can be searched.
    """
    message = clean(text)
    lines = message.splitlines() if sys.stderr.isatty() else []
    for place, line in enumerate(lines):
        # Tracebacks and lists are indented already: they stay as they are.
        if not line.startswith(" "):
            lines[place] = "\n".join(wrapped(line, text_width()))
    _print("\n".join(lines) or message, sys.stderr, style)


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


# What a table has in bold and in colour: the headings, those of groups, and verdicts.
_IN_TABLES = {
    r"(?m)^.*(?=\n─)|^[A-Z_]+$": "bold",
    r"\bbetter\b|\bpass(ed)?\b": "green",
    r"(?<!no )\bworse\b|\bFAIL(ED)?\b": "bold red",
    r"\binconclusive\b|\bn/a\b|\btoo few\b|\bnot measured\b": "yellow",
}


def show(table: Table) -> None:
    """Print a table that fits the terminal."""
    _print(table.to_terminal(screen_width()), words=_IN_TABLES)


def show_all(tables: Iterable[Table]) -> None:
    """Print tables with an empty line between them."""
    for number, table in enumerate(tables):
        if number:
            say()
        show(table)


def screen_width() -> int:
    """Return the width of the terminal; a pipe has none, so it gets one that fits our tables."""
    return terminal_width() if sys.stdout.isatty() else _PIPE_WIDTH


def notes_from_warnings() -> None:
    """Print warnings as notes on stderr from now on, without the line of our code that issued them."""
    # A dataset of a million samples must not print a million warnings: five of each kind are enough.
    seen: Counter[str] = Counter()
    printed: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if str(message) in printed:  # a file may be read more than once
            return
        printed.add(str(message))
        seen[category.__name__] += 1
        if seen[category.__name__] <= 5:
            note(f"note: {message}")
        elif seen[category.__name__] == 6:
            note("note: ... and more warnings of the same kind")

    warnings.simplefilter("always", UserWarning)
    warnings.showwarning = show
