"""What is compared between a claim and the documents that should support it: 14 features.

Each feature has a fixed sign: more of it speaks for support (+1) or against it (-1), whatever the training
data say. That keeps a model of few features from learning the habits of one dataset.

Documents are prepared once (`Evidence`); each sentence of a claim is then one row of numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np

from ..metrics.answers.contradiction import clash
from ..stats.arrays import Array
from ..text.content_words import content_words, names, numbers
from ..text.sentences import sentences
from ..text.tokens import stemmed_word, words

SIGNS = {
    "words": +1,  # share of the claim's content words that the documents have
    "bigrams": +1,  # share of its adjacent word pairs that are adjacent in the documents
    "copied_run": +1,  # longest run of such pairs, as a share of all pairs
    "best_window": +1,  # share of the content words in the best three adjacent sentences
    "best_two": +1,  # ... in the best two sentences, wherever they are
    "same_window": +1,  # share of the pairs of content words that three adjacent sentences have together
    "gap": -1,  # longest run of content words that are missing, as a share
    "number_absent": -1,  # share of the claim's numbers that the documents do not have
    "name_absent": -1,  # ... of its names
    "number_elsewhere": -1,  # ... of its numbers that are not in the best two sentences
    "negated": -1,  # either the claim or the best sentence negates
    "opposite": -1,  # the best sentence has an opposite word or direction
    "only_negation": -1,  # the claim negates, and no sentence of the documents does
    "lost_modal": -1,  # the best sentence says may or might, the claim does not
}
FEATURES = tuple(SIGNS)

_WINDOW = 3  # adjacent sentences: what a claim says is seldom in one sentence alone
_REMEMBERED_CLAIMS = 1_024
_NEGATION = re.compile(
    r"\b(?:not|no|never|none|cannot|without|neither|nor|nothing)\b|n['’]t\b", re.IGNORECASE
)
_MODAL = re.compile(
    r"\b(?:may|might|could|perhaps|possibly|probably|likely|suggests?|appears?|seems?)\b", re.IGNORECASE
)


class Claim(NamedTuple):
    """One sentence of a claim, cut up once for all documents."""

    text: str
    stems: tuple[str, ...]
    content: tuple[str, ...]  # stems of the content words, in order, repeated as they are
    numbers: tuple[str, ...]
    names: tuple[str, ...]  # stems


@lru_cache(maxsize=_REMEMBERED_CLAIMS)
def read_claim(text: str) -> Claim:
    """Return what the features need of one sentence."""
    content = content_words(text)
    return Claim(
        text,
        tuple(words(text, stemmed=True)),
        tuple(map(stemmed_word, content)),
        tuple(numbers(text)),
        tuple(map(stemmed_word, names(text))),
    )


class Evidence:
    """Documents, prepared for any number of claims."""

    def __init__(self, text: str) -> None:
        self._sentences = list(dict.fromkeys(sentences(text)))
        stems = [words(sentence, stemmed=True) for sentence in self._sentences]
        self._bigrams = {pair for listed in stems for pair in pairwise(listed)}
        self._places: dict[str, list[int]] = {}  # the sentences that have a word
        for place, listed in enumerate(stems):
            for stem in set(listed):
                self._places.setdefault(stem, []).append(place)
        self._numbers = frozenset(numbers(text))
        self._negates = _NEGATION.search(text) is not None

    @property
    def is_empty(self) -> bool:
        return not self._places

    def features(self, claim: Claim) -> Array:
        """Return the features of a sentence with content words."""
        distinct = tuple(dict.fromkeys(claim.content))
        has = np.zeros((len(distinct), len(self._sentences)))
        for number, word in enumerate(distinct):
            has[number, self._places.get(word, [])] = 1.0
        windows = _windows(has)
        best, second = _best_two(has)
        row = {
            **self._of_words(claim),
            **self._of_numbers(claim, best, second),
            **self._of_polarity(claim, self._sentences[best]),
            "best_two": float(np.maximum(has[:, best], has[:, second]).mean()),
            "best_window": float(windows.mean(axis=0).max()),
            "same_window": _share_together(windows),
        }
        return np.array([row.get(name, 0.0) for name in FEATURES])

    def _of_words(self, claim: Claim) -> dict[str, float]:
        present = [word in self._places for word in claim.content]
        copied = [pair in self._bigrams for pair in pairwise(claim.stems)]
        return {
            "words": _share(present),
            # A claim of one word has no pairs: the word itself is all there is to copy.
            "bigrams": _share(copied or present),
            "copied_run": _longest_run(copied or present),
            "gap": _longest_run(not each for each in present),
            "name_absent": _share([name not in self._places for name in claim.names]),
        }

    def _of_numbers(self, claim: Claim, best: int, second: int) -> dict[str, float]:
        if not claim.numbers:
            return {}
        near = {*numbers(self._sentences[best]), *numbers(self._sentences[second])}
        return {
            "number_absent": _share([number not in self._numbers for number in claim.numbers]),
            "number_elsewhere": _share([number not in near for number in claim.numbers]),
        }

    def _of_polarity(self, claim: Claim, nearest: str) -> dict[str, float]:
        negated, opposite = clash(nearest, claim.text)
        negates = _NEGATION.search(claim.text) is not None
        modal = _MODAL.search(nearest) is not None and _MODAL.search(claim.text) is None
        return {
            "negated": float(negated),
            "opposite": float(opposite),
            "only_negation": float(negates and not self._negates),
            "lost_modal": float(modal),
        }


def _windows(has: Array) -> Array:
    """Return which window has which word: three adjacent sentences, fewer at the end of the documents."""
    windows = has.copy()
    for step in range(1, min(_WINDOW, has.shape[1])):
        np.maximum(windows[:, :-step], has[:, step:], out=windows[:, :-step])
    return windows


def _share_together(has: Array) -> float:
    """Return the share of the pairs of rows that have a column in common."""
    together = (has @ has.T)[np.triu_indices(len(has), 1)] > 0
    return float(together.mean() if len(together) else has.max())


def _best_two(has: Array) -> tuple[int, int]:
    """Return the sentence with the most words, and the one that adds the most to it."""
    best = int(has.sum(axis=0).argmax())
    return best, int((has * (1 - has[:, [best]])).sum(axis=0).argmax())


def _share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags) if flags else 0.0


def _longest_run(flags: Iterable[bool]) -> float:
    """Return the longest run of true, as a share of all."""
    runs = [(is_true, len(list(run))) for is_true, run in groupby(flags)]
    whole = sum(length for _, length in runs)
    return max((length for is_true, length in runs if is_true), default=0) / whole if whole else 0.0
