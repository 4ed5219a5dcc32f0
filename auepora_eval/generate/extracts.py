"""Tasks whose answer is sentences of the text: summaries, and statements to cite."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from random import Random

from ..text.content_words import content_words
from ..text.tokens import words
from .passages import CONTEXT_PASSAGES, CutDocument, PassageSearch, Span
from .questions import POINTING, has_clause, is_plain
from .records import Task

SUMMARY_SENTENCES = 3
# The least share of the characters that must be plain statements: less is a table, a list or a dialogue.
_LEAST_PROSE = 0.3
# A passage with this share of the content words of a statement may support it, too.
_SAYS_THE_SAME = 0.85


def summary(document: CutDocument, chance: Random) -> Iterator[Task]:
    """Yield a summary in sentences of the text: the first, and the two with the most frequent words.

    For a long document it covers four consecutive passages.
    """
    chunks, text = document.chunks, document.source.text
    begin = chance.randrange(max(1, len(chunks) - CONTEXT_PASSAGES + 1))
    part = chunks[begin : begin + CONTEXT_PASSAGES]
    spans = [
        (start, end) for start, end in document.sentences if part[0].start <= start and end <= part[-1].end
    ]
    if not spans:
        return
    # The first sentence of a document leans on no other.
    opening = spans[:1] if begin == 0 and text[spans[0][1] - 1] == "." else []
    plain = [span for span in spans if span in opening or is_plain(text[slice(*span)])]
    plain_share = sum(end - start for start, end in plain) / (part[-1].end - part[0].start)
    if len(plain) < SUMMARY_SENTENCES or plain_share < _LEAST_PROSE:
        return
    stems = {span: set(content_words(text[slice(*span)], stemmed=True)) for span in spans}
    frequency = Counter(stem for said in stems.values() for stem in said)

    def weight(span: Span) -> float:
        return sum(frequency[stem] for stem in stems[span]) / (len(stems[span]) + 5)

    best = sorted(plain[1:], key=weight, reverse=True)[: SUMMARY_SENTENCES - 1]
    chosen = sorted([plain[0], *best])
    first_words = " ".join(text[spans[0][0] :].split()[:10])
    yield Task(
        "summaries",
        "summary",
        f'Summarise the text that begins with "{first_words}" in three sentences.',
        " ".join(text[slice(*span)] for span in chosen),
        document.source,
        tuple((chunk, None) for chunk in part),
        tuple(chunk.id for chunk in part),
        {"scenario": "base", "answerable": True, "query_type": "summary"},
        spans=tuple(chosen),
        closed=len(part) < len(chunks),
    )


def statements(document: CutDocument, search: PassageSearch, chance: Random) -> Iterator[Task]:
    """Yield statements to be repeated with the number of the passage that supports them."""
    text = document.source.text
    for start, end in chance.sample(document.sentences, len(document.sentences)):
        statement, gold = " ".join(text[start:end].split()), document.chunks_with(start, end)
        stems = set(content_words(statement, stemmed=True))
        is_clear = is_plain(statement) and has_clause(statement) and not POINTING & set(words(statement))
        if not gold or not is_clear or not re.search(" [A-Z]", statement) or len(stems) < 5:
            continue
        others = [hit for hit in search.ranked(statement, 20) if hit[0] not in gold]
        said = (len(stems & set(content_words(chunk.text, stemmed=True))) for chunk, _ in others)
        if not others or max(said) >= _SAYS_THE_SAME * len(stems):
            continue  # there is no distractor, or it supports the statement, too
        shown = [(gold[0], None), *others[: CONTEXT_PASSAGES - 1]]
        context = chance.sample(shown, len(shown))
        number = 1 + [chunk.id for chunk, _ in context].index(gold[0].id)
        yield Task(
            "citations",
            "statement",
            f"Which passage supports this statement? Repeat it with the passage's number: {statement}",
            f"{statement} [{number}]",
            document.source,
            tuple(context),
            (gold[0].id,),
            {"scenario": "base", "answerable": True, "query_type": "citation"},
            span=(start, end),
            closed=True,
        )
