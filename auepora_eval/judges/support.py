"""The support function `trained`: how far documents support a claim, by 16 signed features and no LLM.

A logistic model gives each sentence of the claim a score from 0 to 1. The claim's score is their mean, where
a sentence counts as much as it has content words: a long sentence says more. The score is a rank, not a
chance, until it is calibrated on your labels (`stats.calibration.fit_platt`).

There are two sets of weights in support_weights.json. `vectors` uses all features and needs the extra
`embeddings`; `words` does without the two features of word vectors. Which of them is in use is part of the
identity, `trained/vectors@...`, and so of the signature of every metric: their scores are not compared.

Limits: minimal edits are near chance, and paraphrase, inference and swapped roles are out of reach. The
features of negation and opposite words know English only. docs/how-to/support-model.md has the figures,
printed by benchmarks/support.py; benchmarks/train_support.py makes the weights.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from ..errors import MissingDependencyError
from ..models.embeddings import embedder
from ..models.entailment import SUPPORTS
from ..stats.arrays import Array
from ..text.content_words import without_marks
from ..text.sentences import sentences
from .support_features import FEATURES, Evidence, read_claim

WeightSet = Literal["vectors", "words"]

WEIGHTS_FILE = "support_weights.json"
_REMEMBERED = 64  # texts: a document is looked at again for each claim of an answer


class Weights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A logistic model: the intercept, and the weight of each feature as it is measured."""

    intercept: float
    features: Mapping[str, float]


class WeightsFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The trained weights and their origin."""

    weights: Mapping[WeightSet, Weights]
    sources: Sequence[Mapping[str, str | int]]
    trained_by: Mapping[str, str]


class TrainedSupport:
    """A support function with one of the two sets of weights."""

    def __init__(self, weights: Weights, name: WeightSet, version: str) -> None:
        self.version = f"{name}@{version}"
        self._uses_vectors = name == "vectors"
        self._intercept = weights.intercept
        # The set `words` has no weights for word vectors: 0 leaves these features out.
        self._weights = np.array([weights.features.get(feature, 0.0) for feature in FEATURES])

    def __call__(self, premise: str, hypothesis: str) -> float:
        """Return the mean score of the hypothesis's sentences; 0 if there is nothing to compare."""
        compared = compare(premise, hypothesis, vectors=self._uses_vectors)
        if not len(compared.rows):
            return 0.0
        scores = 1 / (1 + np.exp(-(compared.rows @ self._weights + self._intercept)))
        return float(np.average(scores, weights=compared.sizes))


class Compared(NamedTuple):
    """A row of features for each sentence of a claim, and its number of content words."""

    rows: Array
    sizes: Array


def compare(premise: str, hypothesis: str, *, vectors: bool) -> Compared:
    """Return the features of each sentence of the hypothesis that has content words."""
    evidence = _evidence(premise)
    read = [] if evidence.is_empty else map(read_claim, sentences(without_marks(hypothesis)))
    claims = [claim for claim in read if claim.content]
    rows = [evidence.features(claim, vectors=vectors) for claim in claims]
    sizes = [float(len(claim.content)) for claim in claims]
    return Compared(np.array(rows).reshape(-1, len(FEATURES)), np.array(sizes))


@lru_cache(maxsize=_REMEMBERED)
def _evidence(text: str) -> Evidence:
    return Evidence(text)


@cache
def _read_weights() -> tuple[WeightsFile, str]:
    """Return the content of the weights file, and the first eight digits of the hash of the weights."""
    content = msgspec.json.decode((files(__package__) / WEIGHTS_FILE).read_bytes(), type=WeightsFile)
    # Not of the whole file: another note on the sources must not make stored scores incomparable.
    return content, hashlib.sha256(msgspec.json.encode(content.weights)).hexdigest()[:8]


def trained_support(name: WeightSet) -> TrainedSupport:
    """Return the support function with the weights of that name."""
    content, version = _read_weights()
    return TrainedSupport(content.weights[name], name, version)


@SUPPORTS.add("trained")
def _trained() -> TrainedSupport:
    try:
        # Loaded now: the set of weights is part of the identity, which must not change during a run.
        embedder("wordllama")
    except MissingDependencyError:
        return trained_support("words")
    return trained_support("vectors")
