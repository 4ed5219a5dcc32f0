"""BLEU as sacrebleu computes it, from sufficient statistics that make resampling free."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.batch import Batch
from ..core.metrics_base import METRICS, SampleMetric
from ..core.scores import Scores
from ..core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from ..errors import ScoringError
from .ngrams import ngrams, shared_ngrams
from .pairs import Codes, Pairs, answer_text, lengths, references, text_pairs
from .text import tokens_13a, tokens_of_word_13a, words_13a

if TYPE_CHECKING:
    from ..core.scores import Rows

ORDERS = 4
_PARTS = 2 * ORDERS + 2


@METRICS.add("bleu")
@dataclass
class Bleu(SampleMetric):
    """Corpus BLEU, 0 to 100, as sacrebleu prints it (13a tokens, mixed case, exponential smoothing).

    Brevity penalty · geometric mean of the n-gram precisions, n = 1-4, over counts that are summed over all
    answers: not the mean of the samples' values. A sample's own value is its sentence BLEU. Of several
    references each n-gram counts as often as the one that has it most often, and the nearest length
    counts. 13a leaves Chinese and Japanese uncut: use chrf there. NLTK's and other tools' BLEU differ by
    tokens and smoothing. A failed answer is bounded by the reference, and by silence or an answer of its
    length without any match, whichever is worse for the whole.
    """

    target = TargetCategory.GENERATION_CORRECTNESS
    requires = ("reference_answer",)
    bounds = (0.0, 100.0)
    oracle = "sacrebleu 2.6 corpus_bleu"
    of_sums = True

    def __post_init__(self) -> None:
        self.name = "bleu"

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> SampleScore:
        return self._scored(answer_text(output), references(sample))

    def score_all(self, batch: Batch) -> Scores:
        import numpy as np

        pairs = batch.once(text_pairs)
        try:
            statistics = _statistics(pairs)
        except OverflowError:  # a pair with more than a million different words: take the plain way
            return super().score_all(batch)
        parts = np.zeros((len(batch), 2 * ORDERS + 2))
        values = np.full(len(batch), np.nan)
        if pairs.places:
            places = np.asarray(pairs.places)[pairs.firsts()]
            parts[places] = statistics
            values[places] = bleu(statistics, effective_order=True)
        return Scores(batch.sample_ids(), values, parts=parts, notes=pairs.notes)

    def score_if_failed(self, sample: EvaluationSample, *, high: bool) -> SampleScore:
        try:
            golds = references(sample)
        except ScoringError as error:  # the sample failed for its references: nothing can be said
            return SampleScore(None, str(error), parts=(0.0,) * (_PARTS if high else _PARTS + ORDERS + 1))
        return self._scored(golds[0], golds) if high else self._without_a_match(golds, ())

    def counted_if_failed(self, sample: EvaluationSample, usual: Sequence[float]) -> SampleScore:
        try:
            return self._without_a_match(references(sample), usual)
        except ScoringError:
            return self.score_if_failed(sample, high=False)

    @staticmethod
    def _without_a_match(golds: Sequence[str], usual: Sequence[float]) -> SampleScore:
        """An answer as long as the longest reference, or as usual, that shares nothing with any.

        Its words lower the precisions, but pay for the brevity of other answers, and silence does it the
        other way round. Which is worse depends on the others: so they are parts of their own.
        """
        longest = max(len(tokens_13a(gold.rstrip())) for gold in golds)
        words = [float(max(longest - n, 0)) for n in (*range(ORDERS), 0)]
        if usual:
            words = [max(pair) for pair in zip(words, usual[ORDERS : 2 * ORDERS + 1], strict=True)]
        return SampleScore(0.0, parts=(*[0.0] * (2 * ORDERS + 1), float(longest), *words))

    def aggregate(self, rows: Rows) -> Rows:
        import numpy as np

        if not rows.shape[-2]:
            return np.full(rows.shape[:-2], np.nan)
        sums = rows[..., 1:].sum(axis=-2)
        silent, words = sums[..., :_PARTS], sums[..., _PARTS:]
        if not words.shape[-1]:
            return bleu(silent)
        spoken = silent.copy()
        spoken[..., ORDERS : 2 * ORDERS + 1] += words
        return np.minimum(bleu(silent), bleu(spoken))  # the worse of the two, of answers that failed

    def signature(self) -> dict[str, Any]:
        return {
            "signature": "case:mixed|eff:no|tok:13a|smooth:exp",
            "references": "best length, clipped by maximum",
        }

    @staticmethod
    def _scored(answer: str, golds: Sequence[str]) -> SampleScore:
        import numpy as np

        parts = bleu_statistics(answer, golds)
        # A sentence shorter than four words has no 4-grams: its own value uses the orders that it has.
        value = float(bleu(np.array(parts), effective_order=True))
        return SampleScore(value, parts=parts)


def bleu_statistics(answer: str, golds: Sequence[str]) -> tuple[float, ...]:
    """Matches of orders 1-4, totals of orders 1-4, length of the answer, length of the nearest reference."""
    return _of_tokens(tokens_13a(answer.rstrip()), [tokens_13a(gold.rstrip()) for gold in golds])


def _of_tokens(given: Sequence[str], targets: Sequence[Sequence[str]]) -> tuple[float, ...]:
    """The same from tokens: lists of words, or strings with a character for each."""
    matches, totals = [], []
    for n in range(1, ORDERS + 1):
        grams = ngrams(given, n)
        allowed: Counter[Any] = Counter()
        for target in targets:
            allowed |= ngrams(target, n)
        matches.append(float((grams & allowed).total()))
        totals.append(float(grams.total()))
    nearest = min((len(target) for target in targets), key=lambda size: (abs(size - len(given)), size))
    return (*matches, *totals, float(len(given)), float(nearest))


def _statistics(pairs: Pairs) -> Rows:
    """bleu_statistics for each sample of the pairs."""
    import numpy as np

    given, gold = Codes(tokens_of_word_13a).of_pairs(pairs, _words)
    sizes, gold_sizes = lengths(given), lengths(gold)
    firsts = pairs.firsts()
    counts = np.diff(firsts, append=len(given))
    statistics = np.zeros((len(firsts), 2 * ORDERS + 2))
    alone = counts == 1
    single = firsts[alone]
    statistics[alone, :ORDERS] = shared_ngrams([given[n] for n in single], [gold[n] for n in single], ORDERS)
    totals = sizes[single, np.newaxis] - np.arange(ORDERS)
    statistics[alone, ORDERS : 2 * ORDERS] = np.maximum(totals, 0)
    statistics[alone, -2], statistics[alone, -1] = sizes[single], gold_sizes[single]
    for place in np.flatnonzero(~alone).tolist():
        first, count = int(firsts[place]), int(counts[place])
        statistics[place] = _of_tokens(given[first], gold[first : first + count])
    return statistics


def _words(text: str) -> list[str]:
    return words_13a(text.rstrip())


def bleu(sums: Rows, *, effective_order: bool = False) -> Rows:
    """BLEU of summed statistics (..., 10): geometric mean of the precisions times the brevity penalty."""
    import numpy as np

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
