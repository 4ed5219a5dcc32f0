"""Text as Markdown in which names, questions and answers stand for themselves, whatever they hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_ACTS = re.compile(r"((?<!\w)@(?=\w)|:(?=//)|\bwww(?=\.)|#(?=\d))", re.IGNORECASE)
_BEGINS = re.compile(r"^([#>=]|[-+](?=\s|$)|\d+(?=[.)]))")


def escaped(text: str) -> str:
    """Text that cannot end a Markdown cell, open a tag or code."""
    flat = " ".join(text.split()).replace("\\", "\\\\")
    return flat.replace("|", "\\|").replace("`", "\\`").replace("<", "&lt;")


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose cells cannot break it."""
    lines = [
        "| " + " | ".join(map(escaped, headings)) + " |",
        "|" + "|".join("-" * (len(h) + 2) for h in headings) + "|",
    ]
    for cells in rows:
        lines.append("| " + " | ".join(escaped(cell) for cell in cells) + " |")
    return "\n".join(lines)


def safe_text(text: str) -> str:
    """A sentence in which a name from a file is only a name: it mentions nobody and links nowhere."""
    calm = _mended(escaped(_tame(text)))
    # What begins a line begins a heading, a list or a quotation; a number with a dot does too.
    return _BEGINS.sub(lambda found: f"\\{found[1]}" if not found[1].isdigit() else f"{found[1]}\\", calm)


def safe_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The same as a table."""
    tamed = ([_tame(cell) for cell in row] for row in rows)
    return _mended(markdown_table([_tame(heading) for heading in headings], tamed))


def _tame(text: str) -> str:
    """Text that mentions nobody and links nowhere: a space stands where either would begin."""
    visible = "".join(letter for letter in text if letter.isprintable() or letter.isspace())
    return _ACTS.sub(r"\1 ", visible)


def _mended(text: str) -> str:
    """Brackets make links, stars and underscores make type: they stand for themselves here."""
    return re.sub(r"([\[\]*_~])", r"\\\1", text)
