"""Does the cited text bear out the claim? The support functions on board, by name.

    lexical      the share of the claim's content words that the text has, or of its numbers, if that is less
    embedding    the cosine between the claim and the nearest sentence of the text, cut off at 0

Neither sees a negation or two things that changed places. A model for entailment, or a person's verdict,
comes in as a function (premise, hypothesis) -> score: `judges.entailment` says how. How far a function agrees
with people is what `auepora judge-audit` measures; docs/how-to/citations.md shows it for these.
"""

from __future__ import annotations

from functools import lru_cache

from ..judges.entailment import SUPPORTS, Support
from .content import content_words, numbers, without_marks
from .sentences import sentences
from .text import words

_REMEMBERED = 256  # texts: a document is looked at again for each claim of an answer


def lexical_support(premise: str, hypothesis: str) -> float:
    """The share of the hypothesis's content words, or of its numbers, that are in the premise; the less.

    >>> lexical_support("The Annet moors at the north pier.", "The Annet moors at 2 piers")
    0.0
    """
    claimed, figures = _content(hypothesis)
    if not claimed:
        return 0.0
    known, known_figures = _vocabulary(premise)
    shares = [sum(word in known for word in claimed) / len(claimed)]
    if figures:
        shares.append(sum(figure in known_figures for figure in figures) / len(figures))
    return min(shares)


@SUPPORTS.add("lexical")
def _lexical() -> Support:
    return lexical_support


@SUPPORTS.add("embedding")
def _embedding() -> Support:
    from ..judges.embeddings import embedder

    embedder("wordllama")  # a missing package is told of before the first claim
    return embedding_support


def embedding_support(premise: str, hypothesis: str) -> float:
    """The cosine between a hypothesis and the sentence of the premise that is nearest to it, at least 0."""
    found = _vectors(premise, True) @ _vectors(hypothesis, False).T
    return min(1.0, max(0.0, float(found.max()))) if found.size else 0.0


@lru_cache(maxsize=_REMEMBERED)
def _content(text: str) -> tuple[list[str], list[str]]:
    bare = without_marks(text)
    return content_words(bare), numbers(bare)


@lru_cache(maxsize=_REMEMBERED)
def _vocabulary(text: str) -> tuple[frozenset[str], frozenset[str]]:
    return frozenset(words(text)), frozenset(numbers(text))


@lru_cache(maxsize=_REMEMBERED)
def _vectors(text: str, by_sentence: bool):  # type: ignore[no-untyped-def]  # an array, of a package imported late
    from ..judges.embeddings import embedder

    pieces = sentences(text) if by_sentence else [text]
    return embedder("wordllama").embed([piece.encode("utf-8", "replace").decode() for piece in pieces])
