"""The difference of two texts, word by word."""

from __future__ import annotations

import re
from functools import partial

from .markup import Markup, Span, layered, tag

MOST_WORDS = 3_000  # of one text; longer ones are shown without marks
ALIKE = 0.5  # the least share of words in common; below, marks would cover everything and say nothing
CONTAINED = 0.8  # the share of the shorter text's words, of three or more, that makes it a part of the longer

_WORDS = re.compile(r"\w+|[^\w\s]")


def word_diff(before: str, after: str) -> tuple[Markup, Markup]:
    """Return both texts: words that only the first has in <del>, words that only the second has in <ins>."""
    only_before, only_after = changed_spans(before, after)
    return (
        layered(before, [(span, partial(tag, "del")) for span in only_before]),
        layered(after, [(span, partial(tag, "ins")) for span in only_after]),
    )


def changed_spans(before: str, after: str) -> tuple[list[Span], list[Span]]:
    """Return where the first text has words that the second has not, and the other way round.

    Texts that have little in common, or that are very long, have no such places.
    """
    ours, theirs = (list(_WORDS.finditer(text)) for text in (before, after))
    words = [[match[0] for match in matches] for matches in (ours, theirs)]
    if before == after or max(map(len, words)) > MOST_WORDS or not _are_alike(*words):
        return [], []
    from rapidfuzz.distance import Indel

    steps = list(Indel.opcodes(*words))
    return (
        [(ours[s.src_start].start(), ours[s.src_end - 1].end()) for s in steps if s.tag == "delete"],
        [(theirs[s.dest_start].start(), theirs[s.dest_end - 1].end()) for s in steps if s.tag == "insert"],
    )


def _are_alike(*words: list[str]) -> bool:
    from rapidfuzz.distance import LCSseq

    ours, theirs = ([word for word in each if word[0].isalnum()] for each in words)
    common = LCSseq.similarity(ours, theirs)
    if common >= 3 and common >= CONTAINED * min(len(ours), len(theirs)):
        return True  # an answer that says more than the other: only what it adds is marked
    return 2 * common >= ALIKE * (len(ours) + len(theirs))
