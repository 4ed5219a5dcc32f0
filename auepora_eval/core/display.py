"""Show values and texts: numbers as text, and text from models and files made safe for its place.

The places are a terminal and Markdown. HTML is made by pages/components/markup.py.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress

# Escape sequences, control characters, bidirectional overrides, invisible tags: model output may hold them.
_UNSAFE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-_])"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)


def terminal_text(text: object) -> str:
    """Return text that a terminal can only show, never obey."""
    return _UNSAFE.sub("", str(text).replace("\r\n", "\n")).encode("utf-8", "replace").decode("utf-8")


def terminal_line(text: object, limit: int = 300) -> str:
    """Return the same text on one line, cut to `limit` characters."""
    flat = " ".join(terminal_text(text).split())
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"


def terminal_width(otherwise: int = 80) -> int:
    """Return the width of the terminal that stdout or stderr goes to, or else another number of columns."""
    import os
    import shutil
    import sys

    # None in a process without streams, an object without a number in a notebook.
    with suppress(AttributeError, OSError, ValueError):
        otherwise = os.get_terminal_size(sys.__stderr__.fileno()).columns or otherwise  # type: ignore[union-attr]
    return shutil.get_terminal_size((otherwise, 24)).columns


def failures_text(reasons: Iterable[str], total: int) -> str:
    """Return how many calls failed, and the most common reasons; "" if none failed."""
    counts = Counter(reasons)
    most = "; ".join(f"{count} × {reason:.200}" for reason, count in counts.most_common(3))
    more = "; ..." if len(counts) > 3 else ""
    about = f"{counts.total():,} of {total:,} calls failed (run.failures() lists them)"
    return f"{about}: {most}{more}" if counts else ""


# Characters that Markdown acts on. A bracket is only itself unless an address follows; so is an underscore
# inside a word.
_MARKUP = r"[\\`*~$|]|&(?=[#\w]+;)|\](?=[(\[:])|(?<![^\W_])_|_(?![^\W_])"
_LINE_START = r"^([#>=]|[-+](?!\d)|\d+(?=[.)](?:\s|$)))"
_JOINERS = "\u200c\u200d"  # join letters in Persian and Hindi, and emoji: invisible, but needed


def markdown_text(text: str) -> str:
    """Return a sentence for Markdown in which names from files are only text."""
    return re.sub(_LINE_START, _escape_line_start, markdown_cell(text))


def markdown_cell(text: str) -> str:
    """Return the same for anywhere but the start of a line, where a heading or a list could begin."""
    flat = " ".join(visible_text(text).split())
    return re.sub(_MARKUP, r"\\\g<0>", flat).replace("<", "&lt;")


def visible_text(text: str) -> str:
    """Return text without control characters and without those that change the reading direction."""
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" or letter in _JOINERS else " " * letter.isspace()
        for letter in text
    )


def html_text(text: str) -> str:
    """Return text for HTML, between tags or in an attribute, without control characters."""
    from html import escape  # with a table of 2,000 names, which commands without pages do not need

    return escape(text if text.isprintable() else visible_text(text))


def _escape_line_start(match: re.Match[str]) -> str:
    start = match[1]
    # "1." begins a list: the backslash belongs between the number and its dot.
    return f"{start}\\" if start.isdigit() else f"\\{start}"


# Numbers, intervals and lists as the text of a cell or a sentence.

NOT_MEASURED = "n/a"
TOO_FEW = "too few"  # samples to detect any change


def number_or_null(value: float) -> float | None:
    """Return a value for JSON, which has neither NaN nor infinity: None if nothing was measured."""
    return value if math.isfinite(value) else None


def value_text(
    value: float | None, unit: str = "", *, signed: bool = False, interval: Sequence[float] | None = None
) -> str:
    """Return a value with four decimals, a time with its unit, "n/a" if nothing was measured.

    Beside an interval the value has as many decimals as the limits have.
    """
    if value is None or not math.isfinite(value):
        return NOT_MEASURED
    # A difference shows its sign even if it is positive.
    sign = "+" if signed else ""
    if not unit:
        return f"{value:{sign}.{_decimals(interval)}f}"
    name, factor = _scaled_unit(value, unit)
    return f"{value * factor:{sign}.3g} {name}"


def interval_text(interval: Sequence[float] | None, unit: str = "", *, signed: bool = False) -> str:
    """Return the limits with the decimals of a value, and with more where they would look alike."""
    if not interval:
        return "-"
    sign = "+" if signed else ""
    if not unit:
        return f"[{', '.join(f'{limit:{sign}.{_decimals(interval)}f}' for limit in interval)}]"
    # Both limits have the unit of the larger one.
    name, factor = _scaled_unit(max(interval, key=abs), unit)
    return f"[{', '.join(f'{limit * factor:{sign}.3g}' for limit in interval)}] {name}"


def _decimals(interval: Sequence[float] | None) -> int:
    """Return four, or as many as show two digits of an interval's width: a million samples need six."""
    width = interval[-1] - interval[0] if interval else 0.0
    return max(4, 1 - math.floor(math.log10(width))) if width > 0 else 4


def _scaled_unit(value: float, unit: str) -> tuple[str, float]:
    """Return the unit in which a value is easiest to read, and how many of it make one; times are scaled."""
    units = (("s", 1.0), ("ms", 1e3), ("µs", 1e6)) if unit == "s" else ((unit, 1.0),)
    return next((each for each in units if abs(value) * each[1] >= 1), units[-1])


def bounds_text(bounds: Sequence[float | None] | None, unit: str = "") -> str:
    """Return the range of the value if the failures had been scored, from the lowest to the highest."""
    if not bounds:
        return "-"
    return " to ".join("unbounded" if bound is None else value_text(bound, unit) for bound in bounds)


def ago(timestamp: str) -> str:
    """Return how long ago a time was: "2 min ago"; the day of what is more than a week ago.

    >>> ago("2001-01-05T02:00:00Z")
    '2001-01-05'
    """
    from datetime import UTC, datetime  # `score` needs no dates

    try:
        seconds = (datetime.now(UTC) - datetime.fromisoformat(timestamp)).total_seconds()
    except (ValueError, TypeError):  # of another tool, or without a zone
        return timestamp
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size and seconds < 7 * 86_400:
            count = int(seconds // size)
            return f"{count} {unit if count > 1 else unit.removesuffix('s')} ago"
    return "just now" if 0 <= seconds < 60 else timestamp[:10]


def listed(items: Sequence[str]) -> str:
    """Return "a, b and c"."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def p_text(p: float | None) -> str:
    """Return "p = 0.012", for a sentence."""
    if p is None or math.isnan(p):
        return "no p"
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def p_cell(p: float | None) -> str:
    """Return the p-value for a column of its own; "-" if there was no test."""
    if p is None or math.isnan(p):
        return "-"
    return "<0.001" if p < 0.001 else f"{p:.3f}"
