"""The difference of two texts, word by word."""

from __future__ import annotations

import re
from itertools import groupby

from .markup import Markup, join, tag

MOST_WORDS = 3_000  # of one text; longer ones are shown without marks
ALIKE = 0.5  # the least share of words in common; below, marks would cover everything and say nothing
CONTAINED = 0.8  # the share of the shorter text's words, of three or more, that makes it a part of the longer

_WORDS = re.compile(r"\w+|\s+|[^\w\s]")

Span = tuple[int, int]  # of characters, the end excluded


def word_diff(before: str, after: str) -> tuple[Markup, Markup]:
    """Return both texts: words that only the first has in <del>, words that only the second has in <ins>."""
    only_before, only_after = changed_spans(before, after)
    return _marked(before, only_before, "del"), _marked(after, only_after, "ins")


def changed_spans(before: str, after: str) -> tuple[list[Span], list[Span]]:
    """Return where the first text has words that the second has not, and the other way round.

    Texts that have little in common, or that are very long, have no such places.
    """
    ours, theirs = _WORDS.findall(before), _WORDS.findall(after)
    if before == after or max(len(ours), len(theirs)) > MOST_WORDS:
        return [], []
    from rapidfuzz.distance import Indel

    if not _are_alike(_only_words(ours), _only_words(theirs)):
        return [], []
    steps = list(Indel.opcodes(ours, theirs))
    left = [
        (step.tag == "delete", ours[step.src_start : step.src_end]) for step in steps if step.tag != "insert"
    ]
    right = [
        (step.tag == "insert", theirs[step.dest_start : step.dest_end])
        for step in steps
        if step.tag != "delete"
    ]
    return _spans(left), _spans(right)


def _are_alike(ours: list[str], theirs: list[str]) -> bool:
    from rapidfuzz.distance import LCSseq

    common = LCSseq.similarity(ours, theirs)
    if common >= 3 and common >= CONTAINED * min(len(ours), len(theirs)):
        return True  # an answer that says more than the other: only what it adds is marked
    return 2 * common >= ALIKE * (len(ours) + len(theirs))


def _only_words(pieces: list[str]) -> list[str]:
    return [piece for piece in pieces if piece[0].isalnum()]


def _spans(pieces: list[tuple[bool, list[str]]]) -> list[Span]:
    changed = [is_changed for is_changed, _ in pieces]
    texts = ["".join(words) for _, words in pieces]
    # Words that changed one after the other are one mark, with the spaces between them.
    for place in range(1, len(texts) - 1):
        changed[place] |= texts[place].isspace() and changed[place - 1] and changed[place + 1]
    spans, start = [], 0
    for is_changed, members in groupby(zip(changed, texts, strict=True), key=lambda pair: pair[0]):
        text = "".join(text for _, text in members)
        if is_changed and text.strip():
            spans.append((start, start + len(text)))
        start += len(text)
    return spans


def _marked(text: str, spans: list[Span], name: str) -> Markup:
    parts, done = [], 0
    for start, end in spans:
        parts += [join(text[done:start]), tag(name, text[start:end])]
        done = end
    return join(parts, text[done:])
