"""The difference of two texts, word by word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

from .markup import Markup, join, tag

MOST_WORDS = 3_000  # of one text; longer ones are shown without marks
ALIKE = 0.5  # the least share of words in common; below, marks would cover everything and say nothing

_WORDS = re.compile(r"\w+|\s+|[^\w\s]")


def word_diff(before: str, after: str) -> tuple[Markup, Markup]:
    """Return both texts: words that only the first has in <del>, words that only the second has in <ins>.

    Texts that have little in common, or that are very long, are returned without marks.
    """
    ours, theirs = _WORDS.findall(before), _WORDS.findall(after)
    if before == after or max(len(ours), len(theirs)) > MOST_WORDS:
        return join(before), join(after)
    from rapidfuzz.distance import Indel

    if Indel.normalized_similarity(_only_words(ours), _only_words(theirs)) < ALIKE:
        return join(before), join(after)
    steps = list(Indel.opcodes(ours, theirs))
    left = [
        (step.tag == "delete", ours[step.src_start : step.src_end]) for step in steps if step.tag != "insert"
    ]
    right = [
        (step.tag == "insert", theirs[step.dest_start : step.dest_end])
        for step in steps
        if step.tag != "delete"
    ]
    return join(_marked(left, "del")), join(_marked(right, "ins"))


def _only_words(pieces: list[str]) -> list[str]:
    return [piece for piece in pieces if piece[0].isalnum()]


def _marked(pieces: list[tuple[bool, list[str]]], name: str) -> Iterator[Markup]:
    changed = [is_changed for is_changed, _ in pieces]
    texts = ["".join(words) for _, words in pieces]
    # Words that changed one after the other are one mark, with the spaces between them.
    for place in range(1, len(texts) - 1):
        changed[place] |= texts[place].isspace() and changed[place - 1] and changed[place + 1]
    for is_changed, members in groupby(zip(changed, texts, strict=True), key=lambda pair: pair[0]):
        text = "".join(text for _, text in members)
        yield tag(name, text) if is_changed and text.strip() else join(text)
