"""Correctness of an answer as text: how well it agrees with the reference answer.

A sample may have several right answers: `reference_answer.text` and the list in
`reference_answer.metadata["alternatives"]`. Each answer is scored against all of them, and the best counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.metrics_base import METRICS, SampleMetric
from ..core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from ..errors import ScoringError
from .text import squad_normalised, tokens_13a, words

if TYPE_CHECKING:
    from ..core.scores import Rows


class AnswerMetric(SampleMetric):
    """A metric of the answer's text and one reference text; the best of several references counts."""

    target = TargetCategory.GENERATION_CORRECTNESS
    requires = ("reference_answer",)

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        answer = output.response.text
        return max(self.agreement(answer, reference) for reference in references(sample))

    def agreement(self, answer: str, reference: str) -> float:
        """How well an answer agrees with one reference."""
        raise NotImplementedError


@METRICS.add("exact_match")
@dataclass
class ExactMatch(AnswerMetric):
    """1 if the answer equals a reference, but for case, punctuation, articles and spaces."""

    oracle = "SQuAD evaluate-v2.0"

    def __post_init__(self) -> None:
        self.name = "exact_match"

    def agreement(self, answer: str, reference: str) -> float:
        return float(squad_normalised(answer) == squad_normalised(reference))


@METRICS.add("token_f1")
@dataclass
class TokenF1(AnswerMetric):
    """Harmonic mean of precision and recall of the answer's words (normalised as in exact_match).

    2 · shared / (words of the answer + words of the reference), repeated words counted; two empty
    texts agree fully, an empty and a non-empty one not at all.
    """

    oracle = "SQuAD evaluate-v2.0"

    def __post_init__(self) -> None:
        self.name = "token_f1"

    def agreement(self, answer: str, reference: str) -> float:
        given, gold = squad_normalised(answer).split(), squad_normalised(reference).split()
        if not given or not gold:
            return float(given == gold)
        return _f_measure((Counter(given) & Counter(gold)).total(), len(given), len(gold))


class RougeN(AnswerMetric):
    """F-measure of shared n-grams."""

    n: int
    stem: bool
    oracle = "rouge-score 0.1.2"

    def agreement(self, answer: str, reference: str) -> float:
        given, gold = (_ngrams(words(text, stemmed=self.stem), self.n) for text in (answer, reference))
        return _f_measure((given & gold).total(), given.total(), gold.total())

    def signature(self) -> dict[str, Any]:
        return _rouge_signature(self.stem)


@METRICS.add("rouge1")
@dataclass
class Rouge1(RougeN):
    """ROUGE-1: F-measure of the words that answer and reference share (stemmed)."""

    stem: bool = True
    n = 1

    def __post_init__(self) -> None:
        self.name = _rouge_name("rouge1", self.stem)


@METRICS.add("rouge2")
@dataclass
class Rouge2(RougeN):
    """ROUGE-2: F-measure of the pairs of neighbouring words that answer and reference share (stemmed)."""

    stem: bool = True
    n = 2

    def __post_init__(self) -> None:
        self.name = _rouge_name("rouge2", self.stem)


@METRICS.add("rougeL_answer")
@dataclass
class RougeLAnswer(AnswerMetric):
    """ROUGE-L: F-measure of the longest common subsequence of words (stemmed).

    Equal to rouge-score on ASCII text; unlike it, 1.0 for identical texts in any script.
    """

    stem: bool = True
    oracle = "rouge-score 0.1.2"

    def __post_init__(self) -> None:
        self.name = _rouge_name("rougeL_answer", self.stem)

    def agreement(self, answer: str, reference: str) -> float:
        from rapidfuzz.distance import LCSseq

        given, gold = words(answer, stemmed=self.stem), words(reference, stemmed=self.stem)
        return _f_measure(LCSseq.similarity(given, gold), len(given), len(gold))

    def signature(self) -> dict[str, Any]:
        return _rouge_signature(self.stem)


@METRICS.add("bleu")
@dataclass
class Bleu(SampleMetric):
    """Corpus BLEU, 0 to 100, as sacrebleu prints it (13a tokens, mixed case, exponential smoothing).

    The corpus value comes from n-gram counts summed over all answers, not from the mean of the
    samples' values; a sample's own value is its sentence BLEU.
    """

    target = TargetCategory.GENERATION_CORRECTNESS
    requires = ("reference_answer",)
    bounds = (0.0, 100.0)
    oracle = "sacrebleu 2.6 corpus_bleu"

    def __post_init__(self) -> None:
        self.name = "bleu"

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> SampleScore:
        return self._scored(output.response.text, references(sample))

    def score_if_failed(self, sample: EvaluationSample, *, high: bool) -> SampleScore:
        golds = references(sample)
        return self._scored(golds[0] if high else "", golds)

    def aggregate(self, rows: Rows) -> Rows:
        return _bleu(rows[..., 1:].sum(axis=-2))

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
        value = float(_bleu(np.array(parts), effective_order=True))
        return SampleScore(value, parts=parts)


def references(sample: EvaluationSample) -> list[str]:
    """The right answers of a sample: the reference, then its alternatives."""
    if sample.reference_answer is None:
        raise ScoringError("the sample has no reference_answer")
    alternatives = sample.reference_answer.metadata.get("alternatives") or []
    if not isinstance(alternatives, list | tuple) or not all(isinstance(text, str) for text in alternatives):
        raise ScoringError(
            f"the alternatives of the reference must be a list of texts, not {alternatives!r:.80}"
        )
    return [sample.reference_answer.text, *alternatives]


def bleu_statistics(answer: str, golds: Sequence[str]) -> tuple[float, ...]:
    """Matches of orders 1-4, totals of orders 1-4, length of the answer, length of the nearest reference."""
    given = tokens_13a(answer.rstrip())
    targets = [tokens_13a(gold.rstrip()) for gold in golds]
    matches, totals = [], []
    for n in range(1, 5):
        grams = _ngrams(given, n)
        allowed: Counter[tuple[str, ...]] = Counter()
        for target in targets:
            allowed |= _ngrams(target, n)
        matches.append(float((grams & allowed).total()))
        totals.append(float(grams.total()))
    nearest = min((len(target) for target in targets), key=lambda size: (abs(size - len(given)), size))
    return (*matches, *totals, float(len(given)), float(nearest))


def _bleu(sums: Rows, *, effective_order: bool = False) -> Rows:
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


def _ngrams(tokens: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(tokens[start:] for start in range(n)), strict=False))


def _f_measure(shared: int, given: int, gold: int) -> float:
    # Precision and recall first, in this order: the last bit then equals the reference tools'.
    if shared == 0:
        return 0.0
    precision, recall = shared / given, shared / gold
    return 2 * precision * recall / (precision + recall)


def _rouge_name(base: str, stemmed: bool) -> str:
    return base if stemmed else f"{base}[stem=false]"


def _rouge_signature(stemmed: bool) -> dict[str, Any]:
    return {"stemmer": "porter (nltk)" if stemmed else "none", "words": "unicode, cjk per character"}
