"""The support function `trained`: how far documents support a claim, by 14 signed features and no LLM.

A logistic model gives each sentence of the claim a score from 0 to 1. The claim's score is their mean, where
a sentence counts as much as it has content words: a long sentence says more. The score is a rank, not a
chance, until it is calibrated on your labels (`stats.calibration.fit_platt`).

The hash of the weights is part of its identity: scores by other weights are not compared. The limits are in
docs/explanation/support-model.md, with figures of benchmarks/support.py. The weights are made by
benchmarks/train_support.py.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files

import msgspec
import numpy as np

from ..metrics.entailment import SUPPORTS
from ..stats.arrays import Array
from ..text.content_words import without_marks
from ..text.sentences import sentences
from .support_features import FEATURES, Evidence, read_claim

WEIGHTS_FILE = "support_weights.json"
_REMEMBERED = 64  # texts: a document is looked at again for each claim of an answer


class Weights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A logistic model: the intercept, and the weight of each feature as it is measured."""

    intercept: float
    features: Mapping[str, float]


class WeightsFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The trained weights and their origin."""

    weights: Weights
    sources: Sequence[Mapping[str, str | int]]
    trained_by: Mapping[str, str]


class TrainedSupport:
    """The support function with its weights."""

    def __init__(self, weights: Weights, version: str) -> None:
        self.version = version
        self._intercept = weights.intercept
        self._weights = np.array([weights.features[feature] for feature in FEATURES])

    def __call__(self, premise: str, hypothesis: str) -> float:
        """Return the mean score of the hypothesis's sentences; 0 if there is nothing to compare."""
        rows, sizes = compare(premise, hypothesis)
        if not sizes:
            return 0.0
        scores = 1 / (1 + np.exp(-(rows @ self._weights + self._intercept)))
        return float(np.average(scores, weights=sizes))


def compare(premise: str, hypothesis: str) -> tuple[Array, list[int]]:
    """Return the features, and the number of content words, of each sentence that has any."""
    evidence = _evidence(premise)
    read = [] if evidence.is_empty else map(read_claim, sentences(without_marks(hypothesis)))
    claims = [claim for claim in read if claim.content]
    rows = [evidence.features(claim) for claim in claims]
    return np.array(rows).reshape(-1, len(FEATURES)), [len(claim.content) for claim in claims]


_evidence = lru_cache(maxsize=_REMEMBERED)(Evidence)


@cache
def trained_support() -> TrainedSupport:
    """Return the support function with the weights that ship; its version is a hash of them."""
    content = msgspec.json.decode((files(__package__) / WEIGHTS_FILE).read_bytes(), type=WeightsFile)
    # Not of the whole file: another note on the sources must not make stored scores incomparable.
    version = hashlib.sha256(msgspec.json.encode(content.weights)).hexdigest()[:8]
    return TrainedSupport(content.weights, version)


SUPPORTS.add("trained")(trained_support)
