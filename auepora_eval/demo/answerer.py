"""An extractive answerer: no model, no invention; it quotes a sentence, or the part that was asked for."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from ..core.rag_interface import Generator
from ..core.types import Document, Response
from ..metrics.text import words

DECLINED = "The documents do not say."

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(])")
_STOP = frozenset(
    """a an and any are as at be been by can did do does for from had has have how i if in into is it its many
    me much my of on or our than that the their there these they this to us was we were what when where which
    who whom whose why will with would you your""".split()
)
_MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_NUMBER = (
    r"(?:\d[\d,]*(?:\.\d+)?|(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)(?:-[a-z]+)?|one|two|three|four"
    r"|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen)"
)
# What is asked for, the words that ask for it, and what an answer to that looks like.
_KINDS = (
    (
        re.compile(r"\b(when|what day|what date|which day|which year|what year|what time)\b"),
        re.compile(
            rf"\b(?:\d{{1,2}} {_MONTH}(?: \d{{4}})?|{_MONTH} \d{{4}}|\d{{1,2}}[:.]\d\d|\d{{4}}|{_MONTH})\b"
        ),
    ),
    (
        re.compile(
            r"\bhow (many|much|long|far|often|old|high|deep|fast|heavy|wide)\b|\bwhat (price|fee|speed)\b"
        ),
        re.compile(
            rf"\b{_NUMBER}(?: (?:million|per cent))?(?: (?!and|of|in|on|at|a|the|with)[a-z]+)?", re.IGNORECASE
        ),
    ),
    (
        re.compile(r"\b(who|whose|whom|where|name the)\b"),
        re.compile(r"\b[A-Z][a-z'-]+(?: (?:of |the )?[A-Z][a-z'-]+)*"),
    ),
)
_OPENERS = frozenset(
    """a after all an and as at before but each every for from he her his if in it its no on one only our she
    since some the their there they this to until when while with you""".split()
)


class ExtractiveAnswerer(Generator):
    """Picks the sentence that shares the rarest words with the query; declines when none shares enough."""

    def __init__(self, corpus: Sequence[Document], *, least_support: float = 0.15) -> None:
        frequency = Counter(term for doc in corpus for term in set(_terms(doc.text)))
        self._weights = {term: math.log(1 + len(corpus) / count) for term, count in frequency.items()}
        self._unseen = math.log(1 + len(corpus))
        self._least_support = least_support

    def generate(self, query: str, context_docs: list[Document]) -> Response:
        wanted = set(_terms(query))
        shape = _asked_for(query)
        best, best_support, source = "", 0.0, ""
        for place, doc in enumerate(context_docs):
            about = self._share(wanted, f"{doc.metadata.get('title', '')} {doc.text}")
            before = 0.0
            for sentence in sentences(doc.text):
                here = self._share(wanted, sentence)
                answer = sentence if shape is None else _first_new(shape, sentence, query)
                # The document's subject and the sentence before carry what a pronoun leaves out; a
                # sentence without what was asked for can at best be a fallback.
                support = (0.6 * here + 0.25 * about + 0.15 * before) * (1 - 0.03 * place)
                support *= 1.0 if answer else 0.5
                before = here
                if support > best_support:
                    best, best_support, source = answer or sentence, support, doc.doc_id
        if best_support < self._least_support:
            return Response(DECLINED, structured={"declined": True}, metadata={"support": best_support})
        return Response(best, metadata={"support": best_support, "source": source})

    def _share(self, wanted: set[str], text: str) -> float:
        """How much of the query's weight a text holds, from 0 to 1."""
        total = sum(self._weight(term) for term in wanted)
        return sum(self._weight(term) for term in wanted & set(_terms(text))) / total if total else 0.0

    def _weight(self, term: str) -> float:
        return self._weights.get(term, self._unseen)


def sentences(text: str) -> list[str]:
    """The sentences of a plain text."""
    return _SENTENCE_END.split(text)


def _asked_for(query: str) -> re.Pattern[str] | None:
    """The shape of what a query asks for: a date, an amount, a name; None for anything else."""
    lowered = query.lower()
    return next((shape for cue, shape in _KINDS if cue.search(lowered)), None)


def _first_new(shape: re.Pattern[str], sentence: str, query: str) -> str:
    """The first part of that shape that is not in the query already."""
    known = set(words(query)) | _OPENERS
    return next((m.group() for m in shape.finditer(sentence) if not set(words(m.group())) & known), "")


def _terms(text: str) -> list[str]:
    return [term for term in words(text, stemmed=True) if term not in _STOP]
