"""The bundled systems: a plain one to start from, and two that improve on it.

    bm25     BM25 over words (bm25s), answers by shared words
    hybrid   BM25 and static embeddings (wordllama, extra `embeddings`), answers by the type of the question
    bigram   BM25 over words and word pairs with the same answers, if no embeddings are installed

A sample that brings its own closed context (`metadata["closed_context"]`) is answered from that alone: so
that noise and counterfactual documents reach the system as they are labelled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from ..core.rag_interface import Generator, RAGSystem
from ..core.types import Document, EvaluationSample, RetrievedDocument, SystemOutputs
from ..errors import MissingDependencyError
from ..models.embeddings import embedder
from ..text.bm25 import bm25_index
from ..text.tokens import words
from .answers import ExtractiveAnswerer, TypedAnswerer, sentences, titled
from .spelling import Spelling
from .world import demo_corpus

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Scores = NDArray[np.float32]

Ranker = Callable[[Sequence[Document]], Callable[[str], "Scores"]]

Vector = Callable[[str], "Scores"]

_DENSE_WEIGHT = 0.8  # of the embeddings beside BM25, each scaled to 0-1; chosen on the tuning half


class DemoSystem(RAGSystem):
    """Ranks the corpus, or a sample's closed context, and answers from the best documents."""

    def __init__(self, name: str, ranker: Ranker, answerer: Generator) -> None:
        self.name = name
        self._ranker = ranker
        self._corpus: Sequence[Document] = demo_corpus()
        self._rank_corpus = ranker(self._corpus)
        self._answerer = answerer

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
        start = perf_counter()
        retrieved = self._retrieve(sample, top_k)
        ranked = perf_counter()
        response = self._answerer.generate(sample.query, [hit.doc for hit in retrieved])
        done = perf_counter()
        timings = {"retrieval": ranked - start, "generation": done - ranked, "end_to_end": done - start}
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
    return DemoSystem(
        "bm25", lambda documents: _bm25_scorer(documents, _terms), ExtractiveAnswerer(demo_corpus())
    )


def bigram() -> DemoSystem:
    """Return BM25 over stemmed words and word pairs, which rewards the word order of the query."""
    spelling = Spelling(map(titled, demo_corpus()))

    def rank(documents: Sequence[Document]) -> Callable[[str], Scores]:
        lexical = _bm25_scorer(documents, _terms_and_pairs)
        return lambda query: lexical(spelling.corrected(query))

    return DemoSystem("bigram", rank, TypedAnswerer(demo_corpus(), spelling))


def hybrid() -> DemoSystem:
    """Return BM25 and embeddings, the sum of both scores."""
    model = embedder("wordllama")
    spelling = Spelling(map(titled, demo_corpus()))

    @cache
    def vector(text: str) -> Scores:
        row: Scores = model.embed([text])[0]
        return row

    def rank(documents: Sequence[Document]) -> Callable[[str], Scores]:
        lexical, dense = _bm25_scorer(documents, _terms), _dense_scorer(documents, vector)

        def scores(query: str) -> Scores:
            query = spelling.corrected(query)
            return _scaled(lexical(query)) + np.float32(_DENSE_WEIGHT) * _scaled(dense(query))

        return scores

    return DemoSystem("hybrid", rank, TypedAnswerer(demo_corpus(), spelling, vector))


def second_system() -> DemoSystem:
    """Return the best installed system to compare BM25 with."""
    try:
        return hybrid()
    except MissingDependencyError:
        return bigram()


def _bm25_scorer(documents: Sequence[Document], terms: Callable[[str], list[str]]) -> Callable[[str], Scores]:
    index = bm25_index([terms(titled(doc)) for doc in documents])

    def scores(query: str) -> Scores:
        wanted = terms(query)
        if not wanted:  # bm25s fails on a query without words
            return np.zeros(len(documents), dtype=np.float32)
        scored: Scores = index.get_scores(wanted)
        return scored

    return scores


def _dense_scorer(documents: Sequence[Document], vector: Vector) -> Callable[[str], Scores]:
    """Rank documents by their most similar sentence: an average over all sentences would blur each fact."""
    pieces = [(place, sentence) for place, doc in enumerate(documents) for sentence in sentences(doc.text)]
    owners = np.array([place for place, _ in pieces])
    matrix = np.stack([vector(titled(documents[place], text)) for place, text in pieces])

    def scores(query: str) -> Scores:
        nearest = np.full(len(documents), -1.0, dtype=np.float32)
        np.maximum.at(nearest, owners, matrix @ vector(query))
        return nearest

    return scores


def _scaled(scores: Scores) -> Scores:
    """Return scores from 0 to 1: those of BM25 have no upper limit."""
    spread = scores.max() - scores.min()
    scaled: Scores = (scores - scores.min()) / (spread or np.float32(1))
    return scaled


def _terms(text: str) -> list[str]:
    return words(text, stemmed=True)


def _terms_and_pairs(text: str) -> list[str]:
    terms = _terms(text)
    return terms + [f"{first} {second}" for first, second in pairwise(terms)]
