"""Text as Markdown in which names, questions and answers stand for themselves, whatever they hold.

GitHub and its like make links and mentions of much that no escape prevents: names behind an @, addresses,
numbers of issues, hashes of commits, entities that spell one of these. In code they make nothing. So a word
that is not surely plain is shown as code, with the words beside it that are not plain either.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

# What no reader of Markdown acts upon, once stars and underscores are escaped: letters, numbers, points;
# an @ within a metric's name, the brackets of an interval, the colon behind a word or in a time, "<0.001".
_PLAIN = re.compile(
    r"(?:[^\x00-\x7f]|[\w.,;!?()%+=/'\"*>-]"
    r"|(?<=\w)@(?=\w+(?![\w@-])(?!\.\w))"
    r"|(?<=[\w)\]'\"%]):(?=$|[)'\",])|(?<=\d):(?=\d)"
    r"|\[(?=[-+\d])|(?<=\d)\](?=$|[,.;)])"
    r"|<(?=\d|$))*"
)
# Plain letters that are a link all the same: addresses, commits, issues (GH-12) and advisories.
_LINKS = re.compile(
    r"www\.|ghsa-|(?<![a-z])(?:gh|cve)-\d|(?<!\w)[0-9a-f]{7,64}(?!\w)|(?<!\w)[!%](?=\w)", re.IGNORECASE
)
_BEGINS = re.compile(r"^([#>=]|[-+](?!\d)|\d+(?=[.)](?:\s|$)))")
_TYPE = re.compile(r"\*|(?<![^\W_])_|_(?![^\W_])")
_JOINERS = "\u200c\u200d"  # of letters in Persian and Hindi, and of emoji


def safe_text(text: str) -> str:
    """A sentence in which a name from a file is only a name: it mentions nobody and links nowhere."""
    # What begins a line begins a heading, a list or a quotation; a number with a dot does too.
    return _BEGINS.sub(
        lambda found: f"\\{found[1]}" if not found[1].isdigit() else f"{found[1]}\\", calm(text)
    )


def safe_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose cells cannot break it, and hold no more than text."""
    lines = [
        "| " + " | ".join(map(calm, headings)) + " |",
        "|" + "|".join("-" * (len(h) + 2) for h in headings) + "|",
    ]
    lines += ["| " + " | ".join(map(calm, cells)) + " |" for cells in rows]
    return "\n".join(lines)


def visible(text: str) -> str:
    """Text without what is not seen: control characters, and those that turn the direction of reading."""
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" or letter in _JOINERS else " " * letter.isspace()
        for letter in text
    )


def calm(text: str) -> str:
    """Text on one line in which nothing acts, for anywhere but the beginning of a line."""
    flat = " ".join(visible(text).split())
    # A bar ends a cell even within code: it is escaped, and stands outside.
    return "\\|".join(_words(part) for part in flat.split("|"))


def _words(text: str) -> str:
    parts = groupby(text.split(" "), key=_is_plain)
    return " ".join(_escaped(" ".join(words)) if plain else _code(" ".join(words)) for plain, words in parts)


def _is_plain(word: str) -> bool:
    return _PLAIN.fullmatch(word) is not None and _LINKS.search(word) is None


def _escaped(text: str) -> str:
    return _TYPE.sub(r"\\\g<0>", text.replace("<", "&lt;"))


def _code(text: str) -> str:
    """Text between more backticks than it has in a row; the point or comma behind it is of the sentence."""
    inner = text.rstrip(",.;:") or text
    fence = "`" * (1 + max(map(len, re.findall("`+", inner)), default=0))
    edge = " " if inner.startswith("`") or inner.endswith("`") else ""
    return f"{fence}{edge}{inner}{edge}{fence}{text.removeprefix(inner)}"
