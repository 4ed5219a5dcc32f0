"""BLEU, chrF and chrF++ as sacrebleu computes them, from sums that make resampling cheap."""

from __future__ import annotations

import string
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from ...core.metrics_base import SampleMetric, metric
from ...core.scores import Rows, Scores
from ...core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from ...errors import ScoringError
from ...text.ngrams import ngrams, shared_ngrams
from ...text.tokens import tokens_13a
from .pairs import compared_texts, references

ORDERS = 4
_PARTS = 2 * ORDERS + 2


class CorpusOverlap(SampleMetric):
    """A metric of n-grams that answers share with references, from counts summed over all answers."""

    target = TargetCategory.GENERATION_CORRECTNESS
    requires = ("reference_answer",)
    bounds = (0.0, 100.0)
    of_sums = True

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> SampleScore:
        return self.compared(*compared_texts(sample, output))

    @abstractmethod
    def compared(self, answer: str, golds: Sequence[str]) -> SampleScore:
        """Return the score of an answer, with its counts as parts."""

    def score_if_failed(self, sample: EvaluationSample, *, high: bool) -> SampleScore:
        try:
            golds = references(sample)
        except ScoringError as error:  # the sample failed for its references: nothing can be said
            return SampleScore(None, str(error))
        if high:
            return self.compared(golds[0], golds)
        return SampleScore(0.0, parts=tuple(self.without_a_match(golds)))

    def counted_if_failed(self, sample: EvaluationSample, usual: Sequence[float]) -> SampleScore:
        worst = self.score_if_failed(sample, high=False)
        if worst.value is None or not usual:
            return worst
        return SampleScore(0.0, parts=tuple(self.as_long_as(np.array(worst.parts), usual).tolist()))

    def bounds_if_failed(self, scores: Scores) -> list[float | None] | None:
        rows = scores.rows()
        if scores.if_failed is None or not len(rows) or not len(scores.if_failed[0]):
            return super().bounds_if_failed(scores)
        # A system must not gain by failing where it would give one of its long wrong answers.
        lowest, highest = scores.if_failed
        scores, lowest = copy(scores), lowest.copy()
        lowest[:, 1:] = self.as_long_as(lowest[:, 1:], rows[:, 1:].mean(axis=0).tolist())
        scores.if_failed = (lowest, highest)
        return super().bounds_if_failed(scores)

    @abstractmethod
    def without_a_match(self, golds: Sequence[str]) -> Iterable[float]:
        """Return the parts of an answer as long as the longest reference, without a match."""

    @abstractmethod
    def as_long_as(self, parts: Rows, usual: Sequence[float]) -> Rows:
        """Return such parts (..., parts) for answers that are no shorter than one with the `usual` parts."""


@metric("bleu")
class Bleu(CorpusOverlap):
    """Corpus BLEU, 0 to 100, as sacrebleu prints it (13a tokens, mixed case, exponential smoothing).

    From counts summed over all answers, so it is not the mean of the samples' values, which are sentence
    BLEU. Of several references each n-gram counts as often as in the one that has it most often, and the
    nearest length counts. 13a leaves Chinese and Japanese uncut: use chrf there.
    """

    oracle = "sacrebleu 2.6 corpus_bleu"

    def compared(self, answer: str, golds: Sequence[str]) -> SampleScore:
        targets = [tokens_13a(gold.rstrip()) for gold in golds]
        parts = statistics(tokens_13a(answer.rstrip()), most_ngrams(targets), map(len, targets))
        # A sentence shorter than four words has no 4-grams: its own value uses the orders that it has.
        return SampleScore(float(bleu(np.array(parts), effective_order=True)), parts=parts)

    def without_a_match(self, golds: Sequence[str]) -> Iterable[float]:
        # Its words lower the precisions, but pay for the brevity of other answers, and silence does it the
        # other way round. Which is worse depends on the others: so they are parts of their own.
        longest = max(len(tokens_13a(gold.rstrip())) for gold in golds)
        words = [float(max(longest - n, 0)) for n in (*range(ORDERS), 0)]
        return (*[0.0] * (2 * ORDERS + 1), float(longest), *words)

    def as_long_as(self, parts: Rows, usual: Sequence[float]) -> Rows:
        words = np.maximum(parts[..., _PARTS:], usual[ORDERS : 2 * ORDERS + 1])
        return np.concatenate([parts[..., :_PARTS], words], axis=-1)

    def aggregate(self, rows: Rows) -> Rows:
        if not rows.shape[-2]:
            return np.full(rows.shape[:-2], np.nan)
        sums = rows[..., 1:].sum(axis=-2)
        # The columns after the tenth are the words of failed answers (`without_a_match`).
        silent, words = sums[..., :_PARTS], sums[..., _PARTS:]
        if not words.shape[-1]:
            return bleu(silent)
        spoken = silent.copy()
        spoken[..., ORDERS : 2 * ORDERS + 1] += words
        return np.minimum(bleu(silent), bleu(spoken))  # the worse of the two, of answers that failed

    def bounds_if_failed(self, scores: Scores) -> list[float | None] | None:
        bounds = super().bounds_if_failed(scores)
        # References of fewer than four words have no 4-grams: then even equal answers have 0, but longer ones
        # do not. The best of these is not known, so the scale is the bound.
        return [bounds[0], self.bounds[1]] if bounds and bounds[1] == 0 else bounds

    def signature(self) -> Mapping[str, object]:
        return {
            "signature": "case:mixed|eff:no|tok:13a|smooth:exp",
            "references": "best length, clipped by maximum",
        }


def most_ngrams(targets: Iterable[Sequence[str]]) -> list[Counter[Any]]:
    """Return how often each n-gram, n = 1-4, is in the reference that has it most often."""
    most: list[Counter[Any]] = [Counter() for _ in range(ORDERS)]
    for target in targets:
        for n, counts in enumerate(most, start=1):
            for gram, times in ngrams(target, n).items():
                # Counter's own union goes through all that was counted so far.
                counts[gram] = max(times, counts.get(gram, 0))
    return most


def statistics(given: Sequence[str], most: Sequence[Counter[Any]], sizes: Iterable[int]) -> tuple[float, ...]:
    """Return matches and totals of orders 1-4, and the lengths of the answer and the nearest reference."""
    grams = [ngrams(given, n) for n in range(1, ORDERS + 1)]
    matches = [float((own & allowed).total()) for own, allowed in zip(grams, most, strict=True)]
    totals = [float(own.total()) for own in grams]
    nearest = min(sizes, key=lambda size: (abs(size - len(given)), size))
    return (*matches, *totals, float(len(given)), float(nearest))


def bleu(sums: Rows, *, effective_order: bool = False) -> Rows:
    """Return BLEU of summed statistics (..., 10): brevity penalty · geometric mean of the precisions."""
    matches, totals = sums[..., 0:4], sums[..., 4:8]
    given, gold = sums[..., 8], sums[..., 9]
    with np.errstate(divide="ignore", invalid="ignore"):
        # Exponential smoothing: the first order without a match counts 1/2 of one, the next 1/4, ...
        misses = np.cumsum((matches == 0) & (totals > 0), axis=-1)
        smoothed = np.where(matches > 0, matches, 0.5**misses)
        precisions = np.where(totals > 0, 100.0 * smoothed / totals, 0.0)
        orders = np.maximum((totals > 0).sum(axis=-1), 1) if effective_order else np.full(given.shape, 4)
        used = np.arange(1, 5) <= orders[..., np.newaxis]
        mean_log = np.where(used, np.log(precisions), 0.0).sum(axis=-1) / orders
        penalty = np.where(given >= gold, 1.0, np.where(given > 0, np.exp(1 - gold / given), 0.0))
        value = penalty * np.exp(mean_log)
    # Nothing matched at all: sacrebleu gives 0 rather than a smoothed crumb.
    return np.asarray(np.where(matches.any(axis=-1), value, 0.0))


# chrF: n-grams of characters, and in chrF++ also of words.

CHARACTER_ORDERS = 6
RECALL_WEIGHT = 4  # beta squared, beta = 2


class CharacterF(CorpusOverlap):
    """chrF with n-grams of words up to `word_orders`."""

    word_orders: int

    def compared(self, answer: str, golds: Sequence[str]) -> SampleScore:
        parts = [self._statistics(answer, gold) for gold in golds]
        values = chrf(np.array(parts))
        best = int(values.argmax())  # the first of several
        return SampleScore(float(values[best]), parts=parts[best])

    def _statistics(self, answer: str, gold: str) -> tuple[float, ...]:
        """Return for each order the n-grams of the answer, of the reference, and of both."""
        of_characters = _counts("".join(answer.split()), "".join(gold.split()), CHARACTER_ORDERS)
        return (*of_characters, *_counts(_tokens(answer), _tokens(gold), self.word_orders))

    def without_a_match(self, golds: Sequence[str]) -> Iterable[float]:
        # Silence would leave the precision as it is.
        of_gold = self._statistics("", max(golds, key=len))[1::3]
        return (count for total in of_gold for count in (total, total, 0.0))

    def as_long_as(self, parts: Rows, usual: Sequence[float]) -> Rows:
        longer = parts.copy()
        # Of an order that the reference does not have, nothing is counted.
        longer[..., ::3] = np.where(parts[..., 1::3] > 0, np.maximum(parts[..., ::3], usual[::3]), 0.0)
        return longer

    def aggregate(self, rows: Rows) -> Rows:
        return chrf(rows[..., 1:].sum(axis=-2)) if rows.shape[-2] else np.full(rows.shape[:-2], np.nan)

    def signature(self) -> Mapping[str, object]:
        return {"signature": f"case:mixed|eff:yes|nc:{CHARACTER_ORDERS}|nw:{self.word_orders}|space:no"}


@metric("chrf")
class ChrF(CharacterF):
    """chrF: F-measure of shared character n-grams, 0 to 100, as sacrebleu prints it; for any script.

    Precision and recall of n-grams of 1-6 characters without spaces, each averaged over the orders that both
    texts have, then 5PR / (4P + R). From counts summed over all answers; of several references the best one
    counts.
    """

    word_orders = 0
    oracle = "sacrebleu 2.6 CHRF()"


@metric("chrfpp")
class ChrFPlusPlus(CharacterF):
    """chrF++: chrF with single words and pairs of words beside the characters, 0 to 100."""

    word_orders = 2
    oracle = "sacrebleu 2.6 CHRF(word_order=2)"


def _counts(given: Sequence[str], gold: Sequence[str], orders: int) -> Iterator[float]:
    for n in range(1, orders + 1):
        in_gold = max(len(gold) - n + 1, 0)
        # Of an order that the reference does not have, nothing is counted.
        yield float(max(len(given) - n + 1, 0)) if in_gold else 0.0
        yield float(in_gold)
        yield float(shared_ngrams(given, gold, n))


def chrf(sums: Rows) -> Rows:
    """Return chrF of summed statistics (..., 3 · orders)."""
    # The operations are in the order of sacrebleu, for the last bit.
    precision = np.zeros(sums.shape[:-1])
    recall = np.zeros(sums.shape[:-1])
    used = np.zeros(sums.shape[:-1])
    with np.errstate(divide="ignore", invalid="ignore"):
        for order in range(0, sums.shape[-1], 3):
            given, gold, shared = (sums[..., order + part] for part in range(3))
            counts = (given > 0) & (gold > 0)
            precision += np.where(counts, shared / given, 0.0)
            recall += np.where(counts, shared / gold, 0.0)
            used += counts
        precision, recall = precision / used, recall / used
        score = (1 + RECALL_WEIGHT) * precision * recall / (RECALL_WEIGHT * precision + recall)
        return np.asarray(np.where(precision + recall > 0, 100 * score, 0.0))


def _tokens(text: str) -> list[str]:
    return [token for word in text.split() for token in _without_punctuation(word)]


def _without_punctuation(word: str) -> tuple[str, ...]:
    """Return a word, and beside it the punctuation mark at its end, else the one at its start."""
    if len(word) == 1:
        return (word,)
    if word[-1] in string.punctuation:
        return word[:-1], word[-1]
    if word[0] in string.punctuation:
        return word[0], word[1:]
    return (word,)
