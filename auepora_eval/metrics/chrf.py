"""chrF and chrF++ as sacrebleu computes them: n-grams of characters, and of words beside them."""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.batch import Batch
from ..core.metrics_base import METRICS, SampleMetric
from ..core.scores import Scores
from ..core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from ..errors import ScoringError
from .ngrams import ngrams, shared_ngrams
from .pairs import Codes, answer_text, lengths, references, text_pairs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..core.scores import Rows

    Counts = NDArray[np.int64]

CHARACTER_ORDERS = 6
RECALL_WEIGHT = 4  # beta squared, beta = 2


class CharacterF(SampleMetric):
    """chrF with n-grams of words up to `word_orders`."""

    word_orders: int
    base: str
    target = TargetCategory.GENERATION_CORRECTNESS
    requires = ("reference_answer",)
    bounds = (0.0, 100.0)
    of_sums = True

    def __post_init__(self) -> None:
        self.name = self.base

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> SampleScore:
        return self._scored(answer_text(output), references(sample))

    def score_all(self, batch: Batch) -> Scores:
        import numpy as np

        pairs = batch.once(text_pairs)
        try:
            statistics = batch.once(character_statistics)
            if self.word_orders:
                statistics = np.concatenate([statistics, batch.once(word_statistics)], axis=1)
        except OverflowError:  # a pair with more than a million different words: take the plain way
            return super().score_all(batch)
        parts = np.zeros((len(batch), statistics.shape[1]))
        values = np.full(len(batch), np.nan)
        of_pairs = chrf(statistics)
        best = pairs.firsts_of_the_best(of_pairs)
        places = np.asarray(pairs.places, dtype=np.int64)[best]
        parts[places], values[places] = statistics[best], of_pairs[best]
        return Scores(batch.sample_ids(), values, parts=parts, notes=pairs.notes)

    def score_if_failed(self, sample: EvaluationSample, *, high: bool) -> SampleScore:
        try:
            golds = references(sample)
        except ScoringError as error:  # the sample failed for its references: nothing can be said
            return SampleScore(None, str(error), parts=(0.0,) * 3 * (CHARACTER_ORDERS + self.word_orders))
        return self._scored(golds[0], golds) if high else self._without_a_match(golds, ())

    def counted_if_failed(self, sample: EvaluationSample, usual: Sequence[float]) -> SampleScore:
        try:
            return self._without_a_match(references(sample), usual)
        except ScoringError:
            return self.score_if_failed(sample, high=False)

    def _without_a_match(self, golds: Sequence[str], usual: Sequence[float]) -> SampleScore:
        """As long as the longest reference, or as usual: silence would leave the precision as it is."""
        right = chrf_statistics("", max(golds, key=len), self.word_orders)
        parts: list[float] = []
        for order in range(0, len(right), 3):
            given = max(right[order + 1], usual[order]) if usual else right[order + 1]
            # Of an order that the reference does not have, nothing is counted.
            parts += [given if right[order + 1] else 0.0, right[order + 1], 0.0]
        return SampleScore(0.0, parts=tuple(parts))

    def aggregate(self, rows: Rows) -> Rows:
        import numpy as np

        return chrf(rows[..., 1:].sum(axis=-2)) if rows.shape[-2] else np.full(rows.shape[:-2], np.nan)

    def signature(self) -> dict[str, Any]:
        return {"signature": f"case:mixed|eff:yes|nc:{CHARACTER_ORDERS}|nw:{self.word_orders}|space:no"}

    def _scored(self, answer: str, golds: Sequence[str]) -> SampleScore:
        import numpy as np

        scored = []
        for gold in golds:
            parts = chrf_statistics(answer, gold, self.word_orders)
            scored.append(SampleScore(float(chrf(np.array(parts))), parts=parts))
        return max(scored, key=lambda score: score.value or 0.0)


@METRICS.add("chrf")
@dataclass
class ChrF(CharacterF):
    """chrF: F-measure of shared character n-grams, 0 to 100, as sacrebleu prints it; for any script.

    Precision and recall of n-grams of 1-6 characters without spaces, each averaged over the orders that both
    texts have, then 5PR / (4P + R): recall counts double (beta = 2). The corpus value comes from counts
    that are summed over all answers; of several references the one with the best value counts. Tools
    that smooth with an epsilon (NLTK, chrF++.py) print other values for short texts. A failed answer is
    bounded by the reference, and by one of its length without any match.
    """

    word_orders = 0
    base = "chrf"
    oracle = "sacrebleu 2.6 CHRF()"


@METRICS.add("chrfpp")
@dataclass
class ChrFPlusPlus(CharacterF):
    """chrF++: chrF with single words and pairs of words beside the characters, 0 to 100.

    As chrf, with words (cut at spaces; punctuation at their end or start set apart) as two more orders.
    """

    word_orders = 2
    base = "chrfpp"
    oracle = "sacrebleu 2.6 CHRF(word_order=2)"


def chrf_statistics(answer: str, gold: str, word_orders: int) -> tuple[float, ...]:
    """For each order: n-grams of the answer, n-grams of the reference, n-grams that they share."""
    statistics: list[float] = []
    given, right = ("".join(text.split()) for text in (answer, gold))
    given_words, right_words = (
        [token for word in text.split() for token in _without_punctuation(word)] for text in (answer, gold)
    )
    levels: list[tuple[Sequence[str], Sequence[str], int]] = [(given, right, CHARACTER_ORDERS)]
    levels.append((given_words, right_words, word_orders))
    for ours, theirs, orders in levels:
        for n in range(1, orders + 1):
            of_answer, of_gold = ngrams(ours, n), ngrams(theirs, n)
            # sacrebleu does not count an answer's n-grams where the reference has none of that order.
            statistics.append(float(of_answer.total() if of_gold else 0))
            statistics += [float(of_gold.total()), float((of_answer & of_gold).total())]
    return tuple(statistics)


def character_statistics(batch: Batch) -> Rows:
    """The statistics of all orders of characters, a row for each pair; for batch.once."""
    pairs = batch.once(text_pairs)
    given, gold = (["".join(text.split()) for text in texts] for texts in (pairs.answers, pairs.golds))
    return _statistics(given, gold, CHARACTER_ORDERS)


def word_statistics(batch: Batch) -> Rows:
    """The statistics of single words and pairs of words, a row for each pair; for batch.once."""
    given, gold = Codes(_without_punctuation).of_pairs(batch.once(text_pairs), str.split)
    return _statistics(given, gold, 2)


def _statistics(given: list[str], gold: list[str], orders: int) -> Rows:
    import numpy as np

    statistics = np.zeros((len(given), 3 * orders))
    in_given, in_gold = (
        np.maximum(lengths(texts)[:, np.newaxis] - np.arange(orders), 0) for texts in (given, gold)
    )
    statistics[:, 0::3] = np.where(in_gold > 0, in_given, 0)
    statistics[:, 1::3] = in_gold
    statistics[:, 2::3] = shared_ngrams(given, gold, orders)
    return statistics


def chrf(sums: Rows) -> Rows:
    """chrF of summed statistics (..., 3 · orders); the operations in sacrebleu's order, for the last bit."""
    import numpy as np

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


def _without_punctuation(word: str) -> tuple[str, ...]:
    """A word, and beside it the punctuation mark at its end, else the one at its start."""
    if len(word) == 1:
        return (word,)
    if word[-1] in string.punctuation:
        return word[:-1], word[-1]
    if word[0] in string.punctuation:
        return word[0], word[1:]
    return (word,)
