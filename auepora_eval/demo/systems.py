"""The bundled systems: BM25 with an extractive answerer, and the same combined with embeddings.

    bm25     BM25 over words (bm25s)
    bigram   BM25 over words and word pairs, in the place of `hybrid` where no embeddings are installed
    hybrid   BM25 and static embeddings (wordllama, extra `embeddings`), fused by rank

A sample that brings its own closed context (`metadata["closed_context"]`) is answered from that alone: so
that noise and counterfactual documents reach the system as they are labelled.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from ..core.rag_interface import Generator, RAGSystem
from ..core.types import Document, EvaluationSample, Response, RetrievedDocument, SystemOutputs
from ..errors import MissingDependencyError
from ..models.embeddings import Embedder, embedder
from ..text.bm25 import bm25_index
from ..text.tokens import words
from .world import demo_corpus

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Scores = NDArray[np.float32]

Ranker = Callable[[Sequence[Document]], Callable[[str], "Scores"]]

_FUSION_CONSTANT = 60  # of reciprocal rank fusion, as its authors set it (Cormack et al. 2009)


class DemoSystem(RAGSystem):
    """Ranks the corpus, or a sample's closed context, and answers from the best documents."""

    def __init__(self, name: str, ranker: Ranker, corpus: Sequence[Document] | None = None) -> None:
        self.name = name
        self._ranker = ranker
        self._corpus = demo_corpus() if corpus is None else corpus
        self._rank_corpus = ranker(self._corpus)
        self._answerer = ExtractiveAnswerer(self._corpus)

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
        start = perf_counter()
        retrieved = self._retrieve(sample, top_k)
        found = perf_counter()
        response = self._answerer.generate(sample.query, [hit.doc for hit in retrieved])
        done = perf_counter()
        timings = {"retrieval": found - start, "generation": done - found, "end_to_end": done - start}
        return SystemOutputs(retrieved, response, timings)

    def _retrieve(self, sample: EvaluationSample, top_k: int) -> list[RetrievedDocument]:
        documents, rank = self._corpus, self._rank_corpus
        if sample.metadata.get("closed_context") and sample.candidate_docs:
            documents = sample.candidate_docs
            rank = self._ranker(documents)
        scores = rank(sample.query)
        best = sorted(range(len(documents)), key=lambda place: (-scores[place], documents[place].doc_id))
        return [
            RetrievedDocument(documents[place], float(scores[place]), rank)
            for rank, place in enumerate(best[:top_k], start=1)
        ]


def bm25() -> DemoSystem:
    """Return BM25 over stemmed words."""
    return DemoSystem("bm25", lambda documents: _bm25_scorer(documents, _terms))


def bigram() -> DemoSystem:
    """Return BM25 over stemmed words and word pairs, which rewards the word order of the query."""
    return DemoSystem("bigram", lambda documents: _bm25_scorer(documents, _terms_and_pairs))


def hybrid() -> DemoSystem:
    """Return BM25 and embeddings, fused by reciprocal rank."""
    model = embedder("wordllama")

    def rank(documents: Sequence[Document]) -> Callable[[str], Scores]:
        lexical, dense = _bm25_scorer(documents, _terms), _dense_scorer(documents, model)
        return lambda query: _fused(lexical(query), dense(query))

    return DemoSystem("hybrid", rank)


def second_system() -> DemoSystem:
    """Return the best installed system to compare BM25 with."""
    try:
        return hybrid()
    except MissingDependencyError:
        return bigram()


def _bm25_scorer(documents: Sequence[Document], terms: Callable[[str], list[str]]) -> Callable[[str], Scores]:
    index = bm25_index([terms(_text(doc)) for doc in documents])

    def scores(query: str) -> Scores:
        wanted = terms(query)
        if not wanted:  # bm25s fails on a query without words
            return np.zeros(len(documents), dtype=np.float32)
        found: Scores = index.get_scores(wanted)
        return found

    return scores


def _dense_scorer(documents: Sequence[Document], model: Embedder) -> Callable[[str], Scores]:
    """Rank documents by their most similar sentence: an average over all sentences would blur each fact."""
    pieces = [(place, sentence) for place, doc in enumerate(documents) for sentence in sentences(doc.text)]
    owners = np.array([place for place, _ in pieces])
    matrix = model.embed([f"{documents[place].metadata.get('title', '')} {text}" for place, text in pieces])

    def scores(query: str) -> Scores:
        nearest = np.full(len(documents), -1.0, dtype=np.float32)
        np.maximum.at(nearest, owners, matrix @ model.embed([query])[0])
        return nearest

    return scores


def _fused(*rankings: Scores) -> Scores:
    total = np.zeros(len(rankings[0]), dtype=np.float32)
    for scores in rankings:
        places = np.empty(len(scores), dtype=np.int64)
        places[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
        total += (1 / (_FUSION_CONSTANT + places)).astype(np.float32)
    return total


def _text(document: Document) -> str:
    return f"{document.metadata.get('title', '')} {document.text}"


def _terms(text: str) -> list[str]:
    return words(text, stemmed=True)


def _terms_and_pairs(text: str) -> list[str]:
    terms = _terms(text)
    return terms + [f"{first} {second}" for first, second in pairwise(terms)]


# An extractive answerer without a model: it quotes a sentence, or the part that the question asks for.

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
# Kinds of question: the words that ask, and the pattern of an answer.
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
    """Quotes the sentence that shares the rarest words with the query, and declines if none shares enough."""

    def __init__(self, corpus: Sequence[Document], *, least_support: float = 0.15) -> None:
        frequency = Counter(term for doc in corpus for term in set(_answer_terms(doc.text)))
        self._weights = {term: math.log(1 + len(corpus) / count) for term, count in frequency.items()}
        self._unseen = math.log(1 + len(corpus))
        self._least_support = least_support

    def generate(self, query: str, context_docs: list[Document]) -> Response:
        wanted = set(_answer_terms(query))
        shape = _asked_for(query)
        best, best_support, source = "", 0.0, ""
        for place, doc in enumerate(context_docs):
            about = self._share(wanted, f"{doc.metadata.get('title', '')} {doc.text}")
            before = 0.0
            for sentence in sentences(doc.text):
                here = self._share(wanted, sentence)
                answer = sentence if shape is None else _first_new(shape, sentence, query)
                # The title and the sentence before have the noun for a pronoun. A sentence without the
                # kind of answer that is asked for is only a fallback.
                support = (0.6 * here + 0.25 * about + 0.15 * before) * (1 - 0.03 * place)
                support *= 1.0 if answer else 0.5
                before = here
                if support > best_support:
                    best, best_support, source = answer or sentence, support, doc.doc_id
        if best_support < self._least_support:
            return Response(DECLINED, structured={"declined": True}, metadata={"support": best_support})
        return Response(best, metadata={"support": best_support, "source": source})

    def _share(self, wanted: set[str], text: str) -> float:
        """Return the share of the query's weight that a text has, from 0 to 1."""
        total = sum(self._weight(term) for term in wanted)
        return sum(self._weight(term) for term in wanted & set(_answer_terms(text))) / total if total else 0.0

    def _weight(self, term: str) -> float:
        return self._weights.get(term, self._unseen)


def sentences(text: str) -> list[str]:
    """Return the sentences of a plain text."""
    return _SENTENCE_END.split(text)


def _asked_for(query: str) -> re.Pattern[str] | None:
    """Return the pattern of the answer: a date, an amount, a name; None for other questions."""
    lowered = query.lower()
    return next((shape for cue, shape in _KINDS if cue.search(lowered)), None)


def _first_new(shape: re.Pattern[str], sentence: str, query: str) -> str:
    """Return the first match of the pattern that is not in the query already."""
    known = set(words(query)) | _OPENERS
    return next((m.group() for m in shape.finditer(sentence) if not set(words(m.group())) & known), "")


def _answer_terms(text: str) -> list[str]:
    return [term for term in words(text, stemmed=True) if term not in _STOP]
