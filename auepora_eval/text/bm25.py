"""BM25 over lists of words, by the optional package bm25s."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from ..errors import MissingDependencyError, install_command


def bm25_index(documents: Sequence[Sequence[str]]) -> Any:
    """Return an index of bm25s over documents that are given as lists of words."""
    # The package is optional: only the demo and the generator need it.
    try:
        import bm25s
    except ImportError as error:
        raise MissingDependencyError(
            f"the demo, dataset generate and stress need bm25s: {install_command('demo')}"
        ) from error
    logging.getLogger("bm25s").setLevel(logging.WARNING)  # it reports every index that it builds
    index = bm25s.BM25()
    index.index([list(words) for words in documents], show_progress=False)
    return index
