"""What noise does to a score: among the documents (`labels.noise_ratio`), or in the query (`variant_of`).

Every metric contrasts a base metric, any that scores single answers from 0 to 1: noise_drop[recall@5].
Noise levels and variants of one question are not independent: give them one `metadata["cluster"]`, and the
intervals resample whole questions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import numpy as np

from ...core.metrics_base import metric
from ...core.scores import Batch, Note, Rows, Scores, saw_documents
from ...core.types import EvaluationSample, SampleScore, TargetCategory
from .paired_samples import DEFAULT_BASE, ConditionalRate, Contrast, base_questions, scenario

# Variants that ask for something else than the same answer in spite of noise.
NOT_NOISE = ("base", "closed_book", "counterfactual", "unanswerable")


class ByRatio(Contrast):
    """A metric of the base's scores by the share of irrelevant documents, `labels.noise_ratio`, 0 to 1."""

    target = TargetCategory.NOISE_ROBUSTNESS
    requires = ("labels.noise_ratio",)

    def score_all(self, batch: Batch) -> Scores:
        base = self.base_scores(batch)
        ratios = batch.once(noise_ratios)
        levels = self.levels(batch)
        parts = [self.parts(ratios.get(place, math.nan), levels) for place in range(len(batch))]
        return Scores(
            base.sample_ids, base.values.copy(), parts=parts if any(parts) else None, notes=base.notes
        )

    def parts(self, ratio: float, levels: list[float]) -> tuple[float, ...]:
        """Return what the aggregate needs beside a sample's score."""
        return ()

    def score_if_failed(self, sample: EvaluationSample, *, high: bool) -> SampleScore:
        ratio = _number(sample.labels.get("noise_ratio")) or 0.0
        return SampleScore(float(high), parts=self.parts(ratio, []))

    def levels(self, batch: Batch) -> list[float]:
        """Return the different ratios of the samples that the base scores or failed on, in order."""
        skipped = {place for place, note in self.base_scores(batch).notes.items() if not note.failed}
        return sorted({ratio for place, ratio in batch.once(noise_ratios).items() if place not in skipped})

    def left_out(self, batch: Batch) -> Mapping[int, Note]:
        ratios, levels = batch.once(noise_ratios), self.levels(batch)
        notes = {}
        for place, sample in enumerate(batch.samples):
            label = sample.labels.get("noise_ratio")
            if place in ratios:
                # Without any level the base has scored nothing, and says why.
                reason = self.why_not(ratios[place], levels) if levels else ""
            elif _number(label) is None:
                reason = f"labels.noise_ratio is {label!r:.60}, not a number from 0 to 1"
            else:
                continue  # its documents did not reach the system
            if reason and label is not None:
                notes[place] = Note(reason)
        return notes

    def why_not(self, ratio: float, levels: list[float]) -> str:
        """Return why a sample with this ratio is left out; "" if it is not."""
        return "" if len(levels) > 1 else "every sample has the same noise_ratio"


@metric("noise_accuracy@{ratio?:.9g}[{base?}]", ranges={"ratio": "[0, 1]"})
class NoiseAccuracy(ByRatio):
    """Mean of the base metric over the samples with one noise ratio: noise_accuracy@0.8.

    Without a ratio, over all samples that have any.
    """

    ratio: float | None = None
    base: str = DEFAULT_BASE
    whole_batch = False

    def why_not(self, ratio: float, levels: list[float]) -> str:
        if self.ratio is None or ratio == round(self.ratio, 9):
            return ""
        return f"its noise_ratio is {ratio:g}, not {self.ratio:g}"


@metric("noise_slope[{base?}]")
class NoiseSlope(ByRatio):
    """How much the base metric changes from no noise to nothing but noise, as a straight line has it.

    Least-squares slope of the score on the noise ratio, over all samples; below 0 where noise does harm. A
    line understates a system that holds on and then breaks: look at noise_accuracy@r as well. Not a number
    where every score is 0: then there is nothing to lose.
    """

    base: str = DEFAULT_BASE
    bounds = (-math.inf, math.inf)
    oracle = "scipy.stats.linregress"

    def parts(self, ratio: float, levels: list[float]) -> tuple[float, ...]:
        return ratio, 0.0

    def score_if_failed(self, sample: EvaluationSample, *, high: bool) -> SampleScore:
        # Whether a high score lifts or lowers the slope depends on the mean ratio, which aggregate knows.
        ratio = _number(sample.labels.get("noise_ratio")) or 0.0
        return SampleScore(float(high), parts=(ratio, 1.0 if high else -1.0))

    def aggregate(self, rows: Rows) -> Rows:
        scores, ratios, unknown = rows[..., 0], rows[..., 1], rows[..., 2]
        # Σ away = 0, so the mean of the scores cancels out of the slope.
        away = ratios - ratios.mean(axis=-1, keepdims=True)
        scores = np.where(unknown == 0, scores, away * unknown > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = (away * scores).sum(axis=-1) / (away * away).sum(axis=-1)
        is_defined = (np.ptp(ratios, axis=-1) > 0) & (scores != 0).any(axis=-1)
        return np.asarray(np.where(is_defined, slope, np.nan))


class ZeroAgainstHighest(ByRatio):
    """A metric of the samples without noise (ratio 0) and with the highest ratio; others are skipped."""

    def parts(self, ratio: float, levels: list[float]) -> tuple[float, ...]:
        return (float(ratio > 0),)

    def why_not(self, ratio: float, levels: list[float]) -> str:
        if levels[0] > 0:
            return "no sample has noise_ratio 0 to compare with"
        if len(levels) > 1 and ratio in (0.0, levels[-1]):
            return ""
        return super().why_not(ratio, levels) or f"its noise_ratio {ratio:g} is neither 0 nor {levels[-1]:g}"

    def _means(self, rows: Rows) -> tuple[Rows, Rows]:
        """Return the means without noise and with most of it; NaN where a resample lacks one of them."""
        values, noisy = rows[..., 0], rows[..., 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            clean_mean = np.where(noisy > 0, 0.0, values).sum(axis=-1) / (1 - noisy).sum(axis=-1)
            noisy_mean = np.where(noisy > 0, values, 0.0).sum(axis=-1) / noisy.sum(axis=-1)
        return clean_mean, noisy_mean


@metric("noise_drop[{base?}]")
class NoiseDrop(ZeroAgainstHighest):
    """How much of the base metric is lost at the highest noise ratio: mean without noise - mean there.

    A sample's own value is what it adds to the drop: its score at ratio 0, minus its score at the highest.
    Not a number where the mean without noise is 0: who is never right, or declines always, has nothing to
    lose.
    """

    base: str = DEFAULT_BASE
    bounds = (-1.0, 1.0)
    higher_is_better = False

    def score_all(self, batch: Batch) -> Scores:
        scores = super().score_all(batch)
        noisy = np.zeros(0) if scores.parts is None else scores.parts[:, 0]
        scores.values = np.where(noisy > 0, 0.0 - scores.values, scores.values)
        return scores

    def score_if_failed(self, sample: EvaluationSample, *, high: bool) -> SampleScore:
        noisy = bool(_number(sample.labels.get("noise_ratio")))
        return SampleScore(float(high) - noisy, parts=(float(noisy),))

    def aggregate(self, rows: Rows) -> Rows:
        clean, noisy = self._means(rows)
        return np.asarray(np.where(clean == 0, np.nan, clean + noisy))


@metric("noise_retention[{base?}]")
class NoiseRetention(ZeroAgainstHighest):
    """What share of the base metric is left at the highest noise ratio: mean there / mean without noise.

    Not a number where the mean without noise is 0; above 1 where noise did no harm.
    """

    base: str = DEFAULT_BASE
    bounds = (0.0, math.inf)

    def score_if_failed(self, sample: EvaluationSample, *, high: bool) -> SampleScore:
        noisy = bool(_number(sample.labels.get("noise_ratio")))
        return SampleScore(float(high == noisy), parts=(float(noisy),))

    def aggregate(self, rows: Rows) -> Rows:
        clean, noisy = self._means(rows)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(clean == 0, np.nan, noisy / clean))


class Paired(Contrast):
    """A metric of variants beside their base question: `labels.variant_of`, and a scenario that is noise."""

    scenario: str
    target = TargetCategory.NOISE_ROBUSTNESS
    requires = ("labels.variant_of",)
    higher_is_better = False

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[\w-]*", self.scenario):
            raise ValueError(f"a scenario is one word, not {self.scenario!r}")
        super().__post_init__()

    def score_all(self, batch: Batch) -> Scores:
        base, questions = self.base_scores(batch), batch.once(base_questions)
        scores = []
        for place in range(len(batch)):
            question = questions.get(place)
            own, lost = base.notes.get(place), None if question is None else base.notes.get(question)
            if lost is not None:
                reason = f"its base question has no score: {lost.reason}"
                scores.append(SampleScore(None, reason, failed=lost.failed, of_metric=lost.of_metric))
            elif question is None or own is not None:
                scores.append(base[place] if own else SampleScore(None))
            else:
                scores.append(self.of_pair(base.values[question], base.values[place]))
        return Scores.of(scores)

    def of_pair(self, base_question: float, variant: float) -> SampleScore:
        """Return the score of a variant from the base's scores of its question and of itself."""
        raise NotImplementedError

    def left_out(self, batch: Batch) -> Mapping[int, Note]:
        bases = batch.once(base_questions)
        notes = {}
        for place, sample in enumerate(batch.samples):
            kind, base = scenario(sample), sample.labels.get("variant_of")
            if base is None:
                continue
            if kind != self.scenario if self.scenario else kind in NOT_NOISE:
                notes[place] = Note(f"its scenario is {kind!r}, not {self.scenario or 'noise of any kind'}")
            elif place not in bases:
                notes[place] = Note(f"its base question {base!r:.60} is not among the samples")
            elif bases[place] == place:
                notes[place] = Note("it is its own base question")
        return notes


@metric("flip_rate@{threshold?:.15g}[{base?},scenario={scenario?}]")
class FlipRate(ConditionalRate, Paired):
    """Share of right answers that turn wrong when the question is put with noise.

    variants that are wrong and whose base question is right / variants whose base question is right, where
    right is a base score of at least the threshold. flip_rate[scenario=typo] looks at one kind of variant.
    Gains do not count against it.
    """

    base: str = DEFAULT_BASE
    scenario: str = ""
    threshold: float = 0.5

    def of_pair(self, base_question: float, variant: float) -> SampleScore:
        right = base_question >= self.threshold
        return SampleScore(float(right and variant < self.threshold), parts=(float(right),))


@metric("variant_drop[{base?},scenario={scenario?}]")
class VariantDrop(Paired):
    """How much of the base metric is lost when the question is put with noise: paraphrased, misspelt.

    Mean over the variants of (score of the base question - score of the variant). variant_drop[scenario=typo]
    looks at one kind of variant. A system that is never right has nothing to lose: read it with the base
    metric.
    """

    base: str = DEFAULT_BASE
    scenario: str = ""
    bounds = (-1.0, 1.0)

    def of_pair(self, base_question: float, variant: float) -> SampleScore:
        return SampleScore(float(base_question - variant))


def noise_ratios(batch: Batch) -> dict[int, float]:
    """Return the noise ratio, from 0 to 1, of each sample whose documents the system got; for batch.once."""
    ratios = {}
    for place, (sample, output) in enumerate(zip(batch.samples, batch.outputs, strict=True)):
        ratio = _number(sample.labels.get("noise_ratio"))
        if ratio is not None and saw_documents(sample, output):
            ratios[place] = ratio
    return ratios


def _number(label: object) -> float | None:
    if isinstance(label, bool) or not isinstance(label, int | float) or not 0 <= label <= 1:
        return None
    return round(float(label), 9)  # 0.1 + 0.2 is the level 0.3
