"""Likeness of an answer to a reference in meaning, through the embedding seam."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.batch import Batch
from ..core.metrics_base import METRICS, SampleMetric
from ..core.scores import Note, Scores
from ..core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from .pairs import text_pairs

if TYPE_CHECKING:
    from ..judges.embeddings import Vectors

_CHUNK = 4096  # texts that are embedded at once: their vectors take a few megabytes


@METRICS.add("semantic_similarity")
@dataclass
class SemanticSimilarity(SampleMetric):
    """How near the answer is to the reference in an embedding space: the cosine of their vectors.

    cos(e(reference), e(answer)), from -1 to 1, the highest over the references. An answer without tokens says
    nothing and scores 0; a reference without tokens is skipped. Values of different models are not comparable
    (ragas' answer similarity uses a larger one), and a wrong name or number hardly moves them: on
    RAGChecker's pairs this follows people's overall preference less well than token_f1 does.
    """

    model: str = "wordllama"
    target = TargetCategory.GENERATION_CORRECTNESS
    requires = ("reference_answer",)
    bounds = (-1.0, 1.0)

    def __post_init__(self) -> None:
        base = "semantic_similarity"
        self.name = base if self.model == "wordllama" else f"{base}[{self.model}]"

    def ready(self) -> None:
        from ..judges.embeddings import embedder

        embedder(self.model)

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> SampleScore:
        return self.score_all(Batch([sample], [output]))[0]

    def score_all(self, batch: Batch) -> Scores:
        import numpy as np

        pairs = batch.once(text_pairs)
        cosines = np.full(len(pairs.places), np.nan)
        for start in range(0, len(pairs.places), _CHUNK):
            chunk = slice(start, start + _CHUNK)
            given, gold = _vectors(pairs.answers[chunk], self.model), _vectors(pairs.golds[chunk], self.model)
            values = np.clip((given * gold).sum(axis=1, dtype=np.float64), -1.0, 1.0)
            cosines[chunk] = np.where(gold.any(axis=1), values, -np.inf)  # never the best of several
        scores = pairs.best(batch, cosines)
        for place in np.flatnonzero(np.isneginf(scores.values)).tolist():
            scores.values[place] = np.nan
            scores.notes[place] = Note(f"{self.model} has no vector for the reference")
        return scores

    def signature(self) -> dict[str, Any]:
        return {"model": self.model}


def _vectors(texts: list[str], model: str) -> Vectors:
    """A vector for each text; a text that stands there several times is embedded once."""
    import numpy as np

    from ..judges.embeddings import embedder

    places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    # Tokenizers take no lone surrogates.
    found = embedder(model).embed([text.encode("utf-8", "replace").decode() for text in places])
    return np.asarray(found)[[places[text] for text in texts]]
