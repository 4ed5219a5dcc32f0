"""BM25 over lists of words, by the optional package bm25s."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..errors import MissingDependencyError, install_command

Scorer = Callable[[Sequence[str]], NDArray[np.float32]]


def bm25_scorer(documents: Sequence[Sequence[str]]) -> Scorer:
    """Return what scores the documents, which are given as lists of words, for the words of a query."""
    # The package is optional: only the demo and the generator need it.
    try:
        import bm25s
    except ImportError as error:
        raise MissingDependencyError(
            f"the demo, dataset generate and stress need bm25s: {install_command('demo')}"
        ) from error
    logging.getLogger("bm25s").setLevel(logging.WARNING)  # it reports every index that it builds
    index = bm25s.BM25()
    if documents:
        index.index([list(words) or [""] for words in documents], show_progress=False)

    def scores(query: Sequence[str]) -> NDArray[np.float32]:
        if not query or not documents:
            return np.zeros(len(documents), np.float32)
        scored: NDArray[np.float32] = index.get_scores(list(query))
        return scored

    return scores
