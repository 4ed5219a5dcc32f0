"""Two real systems on board: BM25 with an extractive answerer, and the same with a dense second opinion.

    bm25     BM25 over words (bm25s)
    bigram   BM25 over words and word pairs, in the place of `hybrid` where no embeddings are installed
    hybrid   BM25 and static embeddings (wordllama, extra `embeddings`), fused by rank

A sample that brings its own closed context (`metadata["closed_context"]`) is answered from that alone: so
that noise and counterfactual documents reach the system as they are labelled.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from itertools import pairwise
from time import perf_counter
from typing import TYPE_CHECKING

from ..core.rag_interface import RAGSystem
from ..core.types import Document, EvaluationSample, RetrievedDocument, SystemOutputs
from ..errors import MissingDependencyError
from ..judges.embeddings import Embedder, embedder
from ..metrics.text import words
from .answerer import ExtractiveAnswerer, sentences
from .world import demo_corpus

if TYPE_CHECKING:
    import numpy as np
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
    """BM25 over stemmed words."""
    return DemoSystem("bm25", lambda documents: _bm25_scorer(documents, _terms))


def bigram() -> DemoSystem:
    """BM25 over stemmed words and pairs of them: rewards documents that keep the query's word order."""
    return DemoSystem("bigram", lambda documents: _bm25_scorer(documents, _terms_and_pairs))


def hybrid() -> DemoSystem:
    """BM25 and embeddings, fused by reciprocal rank."""
    model = embedder("wordllama")

    def rank(documents: Sequence[Document]) -> Callable[[str], Scores]:
        lexical, dense = _bm25_scorer(documents, _terms), _dense_scorer(documents, model)
        return lambda query: _fused(lexical(query), dense(query))

    return DemoSystem("hybrid", rank)


def second_system() -> DemoSystem:
    """The best that is installed to compare BM25 with."""
    try:
        return hybrid()
    except MissingDependencyError:
        return bigram()


def _bm25_scorer(documents: Sequence[Document], terms: Callable[[str], list[str]]) -> Callable[[str], Scores]:
    import bm25s
    import numpy as np

    logging.getLogger("bm25s").setLevel(logging.WARNING)  # it reports every index that it builds
    index = bm25s.BM25()
    index.index([terms(_text(doc)) for doc in documents], show_progress=False)

    def scores(query: str) -> Scores:
        wanted = terms(query)
        if not wanted:  # bm25s has no answer to a query without words
            return np.zeros(len(documents), dtype=np.float32)
        found: Scores = index.get_scores(wanted)
        return found

    return scores


def _dense_scorer(documents: Sequence[Document], model: Embedder) -> Callable[[str], Scores]:
    """A document is as near to the query as its nearest sentence: an average over all blurs every fact."""
    import numpy as np

    pieces = [(place, sentence) for place, doc in enumerate(documents) for sentence in sentences(doc.text)]
    owners = np.array([place for place, _ in pieces])
    matrix = model.embed([f"{documents[place].metadata.get('title', '')} {text}" for place, text in pieces])

    def scores(query: str) -> Scores:
        nearest = np.full(len(documents), -1.0, dtype=np.float32)
        np.maximum.at(nearest, owners, matrix @ model.embed([query])[0])
        return nearest

    return scores


def _fused(*rankings: Scores) -> Scores:
    import numpy as np

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
