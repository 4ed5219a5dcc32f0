"""The embedding seam: texts to vectors of length one, by a model that has a name.

A model of your own is a class with `embed(texts)`, registered under its name:

    @EMBEDDERS.add("mine")
    class Mine:
        def embed(self, texts): ...        # an array of shape (texts, dimensions), rows of length one
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ..core.registry import Registry
from ..errors import MissingDependencyError, install_command

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """Turns texts into vectors whose dot product is their cosine similarity."""

    def embed(self, texts: Sequence[str]) -> Vectors: ...


EMBEDDERS: Registry[Callable[[], Embedder]] = Registry("embedder")

_WORDLLAMA = "the embedder 'wordllama' needs its package"


@cache
def embedder(name: str) -> Embedder:
    """The embedder of that name, made once."""
    return EMBEDDERS.get(name)()


@EMBEDDERS.add("wordllama")
class StaticEmbedder:
    """The token vectors that come inside the wordllama package, averaged over a text.

    The files are read from the package's folder: importing it would import an HTTP client, which opens a
    socket to try out IPv6; a library that promises silence must not. The vectors equal those of its `embed`.
    """

    def __init__(self) -> None:
        try:
            from safetensors.numpy import load_file
            from tokenizers import Tokenizer
        except ImportError as error:
            raise MissingDependencyError(f"{_WORDLLAMA}: {install_command('embeddings')}") from error
        package = find_spec("wordllama")
        if package is None or not package.submodule_search_locations:
            raise MissingDependencyError(f"{_WORDLLAMA}: {install_command('embeddings')}")
        folder = Path(package.submodule_search_locations[0])
        self._vectors = load_file(folder / "weights" / "l2_supercat_256.safetensors")["embedding.weight"]
        self._tokenizer = Tokenizer.from_file(
            str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json")
        )
        # Padded texts would have more tokens, and another mean.
        self._tokenizer.no_padding()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """A vector of length one for each text; of zeros for a text without tokens."""
        rows = np.zeros((len(texts), self._vectors.shape[1]), dtype=np.float32)
        for place, encoded in enumerate(self._tokenizer.encode_batch(list(texts), add_special_tokens=False)):
            if encoded.ids:
                mean = self._vectors[encoded.ids].astype(np.float32).mean(axis=0)
                rows[place] = mean / np.linalg.norm(mean)
        return rows
