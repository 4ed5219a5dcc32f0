"""Markdown as a reader of it sees it: what is text, and that nothing in it is markup."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt

_READER = MarkdownIt("commonmark").enable("table")
_OF_BLOCKS = {"paragraph", "heading", "table", "thead", "tbody", "tr", "th", "td", "bullet_list", "list_item"}


def read(page: str) -> list[str]:
    """The lines and cells of a page, as they are shown; it fails if anything in them is markup."""
    shown = []
    for token in _READER.parse(page):
        if token.type == "html_block":
            assert re.fullmatch(r"</?details>(<summary>[^<>]*</summary>)?\n?", token.content), token.content
        elif token.type != "inline":
            assert token.type.rpartition("_")[0] in _OF_BLOCKS, token
        else:
            parts = token.children or []
            assert {part.type for part in parts} <= {"text", "text_special"}, parts
            shown.append("".join(part.content for part in parts))
    return shown


def cells(page: str) -> list[int]:
    """How many cells each row of the tables has."""
    counts: list[int] = []
    for token in _READER.parse(page):
        if token.type == "tr_open":
            counts.append(0)
        elif token.type in ("td_open", "th_open"):
            counts[-1] += 1
    return counts
