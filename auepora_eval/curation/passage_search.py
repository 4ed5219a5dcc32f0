"""BM25 over the passages of a corpus: distractors for the tasks, and how easy a question is to find."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..metrics.text import words
from .chunks import Chunk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DEPTH = 100


class PassageSearch:
    """Ranks passages by BM25 over stemmed words of title and text; equal scores in the corpus' order."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        import bm25s

        logging.getLogger("bm25s").setLevel(logging.WARNING)  # it reports every index that it builds
        self.chunks = chunks
        self._index = bm25s.BM25()
        self._index.index(
            [words(f"{chunk.title} {chunk.text}", stemmed=True) or [""] for chunk in chunks],
            show_progress=False,
        )

    def ranked(self, query: str, limit: int = DEPTH) -> list[tuple[Chunk, float]]:
        """The best passages with their scores; those that share no word with the query are not among them."""
        import numpy as np

        wanted = words(query, stemmed=True)
        if not wanted:
            return []
        scores: NDArray[np.float32] = self._index.get_scores(wanted)
        kept = min(limit, len(scores))
        edge = np.partition(scores, -kept)[-kept]
        best = np.flatnonzero((scores >= edge) & (scores > 0))
        order = best[np.argsort(-scores[best], kind="stable")][:kept]
        return [(self.chunks[place], round(float(scores[place]), 4)) for place in order]
