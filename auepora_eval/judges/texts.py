"""Texts as a judge is shown them: claims, chunks of passages, and long texts cut to what matters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from ..core.types import Response, SystemOutputs
from ..metrics.citations.answer import CitedAnswer, Claim
from ..metrics.citations.sources import Sources
from ..text.content_words import content_words
from ..text.sentences import sentence_spans
from ..text.tokens import words
from .question import Judgement, Kind, Question, kind_named, numbered

Span = tuple[int, int]

CHUNK_WORDS = 350  # of a passage that is compared with one claim
CONTEXT_WORDS = 6_000  # of all passages that a judge is shown at once; the others are left out, with a note
MOST_WORDS = 1_000  # of any other text; longer ones are cut
# A text without spaces may be one long word: no language has words of this length on average.
_LETTERS_PER_WORD = 20


class Passage(NamedTuple):
    """A retrieved document as a judge is shown it, and its whole text."""

    passage_id: str
    text: str
    whole: str
    is_cut: bool = False


def shown_passages(output: SystemOutputs, most: int = CONTEXT_WORDS) -> list[Passage]:
    """Return the retrieved documents that have a text, by their rank, as far as they fit into `most` words.

    The first that does not fit is cut to its best match of the answer; those behind it are left out.
    """
    hits = [hit for hit in sorted(output.retrieved, key=lambda hit: hit.rank) if hit.doc.text.strip()]
    # A word has a letter at least: nothing has to be counted where the letters are few enough.
    if sum(len(hit.doc.text) for hit in hits) <= most:
        return [Passage(hit.doc.doc_id, hit.doc.text, hit.doc.text) for hit in hits]
    passages: list[Passage] = []
    room = most
    for hit in hits:
        text = hit.doc.text
        size = length(text)
        if size > room:
            if passages:
                passages[-1] = passages[-1]._replace(is_cut=True)
            if room >= CHUNK_WORDS:
                shown = cut_around(text, output.response.text, room)
                passages.append(Passage(hit.doc.doc_id, shown, text, is_cut=True))
            break
        passages.append(Passage(hit.doc.doc_id, text, text))
        room -= size
    return passages


@lru_cache(maxsize=1_000)
def chunk_spans(text: str, most: int = CHUNK_WORDS) -> tuple[Span, ...]:
    """Return where the chunks of a text start and end: whole sentences, at most `most` words together.

    >>> text = "The Annet moors here. She carries cars. It rains."
    >>> [text[start:end] for start, end in chunk_spans(text, 7)]
    ['The Annet moors here. She carries cars.', 'It rains.']
    """
    if length(text) <= most:  # most passages: there is nothing to cut
        bare = text.strip()
        start = text.find(bare)
        return ((start, start + len(bare)),) if bare else ()
    chunks: list[Span] = []
    room = 0
    for start, end in (short for at in sentence_spans(text) for short in _halved(text, *at, most)):
        size = length(text[start:end])
        if chunks and size <= room:
            chunks[-1] = (chunks[-1][0], end)
            room -= size
        else:
            chunks.append((start, end))
            room = most - size
    return tuple(chunks)


def length(text: str) -> int:
    """Return how long a text is, in words; an ideograph is a word."""
    return max(len(words(text)), len(text) // _LETTERS_PER_WORD)


def cut_around(text: str, about: str, most: int = MOST_WORDS) -> str:
    """Return a text, or if it is longer than `most` words its chunk with most content words of another."""
    if length(text) <= most:
        return text
    spans = list(chunk_spans(text, most))
    start, end = spans[_best_place(text, spans, about) or 0]
    return text[start:end]


def best_sentence(text: str, about: str) -> Span | None:
    """Return the sentence with most content words of another text; None if no sentence has any."""
    spans = sentence_spans(text)
    place = _best_place(text, spans, about)
    return None if place is None else spans[place]


def _best_place(text: str, spans: list[Span], about: str) -> int | None:
    wanted = set(content_words(about, stemmed=True))
    shared = [len(wanted & set(words(text[start:end], stemmed=True))) for start, end in spans]
    return shared.index(max(shared)) if any(shared) else None


def _halved(text: str, start: int, end: int, most: int) -> Iterator[Span]:
    """Yield a sentence, or its halves if it is too long: cut at a space, if there is one near the middle."""
    if length(text[start:end]) <= most:
        yield start, end
        return
    middle = (start + end) // 2
    space = text.rfind(" ", start + 1, middle)
    cut = space + 1 if space > (start + middle) // 2 else middle
    yield from _halved(text, start, cut, most)
    yield from _halved(text, cut, end, most)


def question_about(kind: str | Kind, query: str, texts: Mapping[str, tuple[str, str]]) -> Question:
    """Return a question about texts. A text that is too long is cut around the other text of its pair."""
    shown = {name: cut_around(text, other) for name, (text, other) in texts.items()}
    known = kind_named(kind) if isinstance(kind, str) else kind
    return Question(known, {"question": query, **shown})


def claims_question(claims: Sequence[Claim], passages: Sequence[str]) -> Question:
    """Return the question about all claims and all passages at once; a very long claim is cut."""
    whole = "\n".join(passages)
    shown = [cut_around(claim.text, whole, CHUNK_WORDS) for claim in claims]
    return Question(kind_named("grounding"), {**numbered("passage", passages), **numbered("claim", shown)})


def claims_in(
    text: str, query: str = "", ask: Callable[[list[Question]], list[Judgement]] | None = None
) -> list[Claim]:
    """Return the claims of a text with their places: its sentences with content words.

    With `ask`, they are what a judge finds in the text; one in other words than the text has no place.
    """
    split = None
    if ask is not None:
        # In chunks, since a list of all claims of a long text is cut off by the limit of a reply.
        chunks = [text[start:end] for start, end in chunk_spans(text)]
        verdicts = ask([Question(kind_named("claims"), {"question": query, "text": each}) for each in chunks])
        listed = [claim for verdict in verdicts for claim in verdict.texts if claim.strip()]
        split = lambda _: listed  # noqa: E731
    return CitedAnswer(Response(text), None, Sources((), ()), split=split).claims
