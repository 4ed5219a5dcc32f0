"""How well a detector labels answers as accurate, hallucination or contradiction.

The true label is `labels.ground_truth_label` of the sample. The predicted one is `predicted_label` in the
output's `extra`, in `response.structured` or in `response.metadata`, or else the whole text of the response.
An output without a label is a failure: counted, and bounded by the best and the worst it could have been.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..core.metrics_base import OutputNeed, SampleMetric, metric
from ..core.scores import Rows, Scores
from ..core.types import TRUE_LABEL, EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from ..errors import BadOutputError, ScoringError
from ..stats import classification
from ..stats.arrays import Mask
from ..stats.intervals import Interval, Share
from ..text.label_terms import LABELS, PREDICTED_LABEL, label_of
from .robustness.paired_samples import ConditionalRate

_SHAPE = (len(LABELS), len(LABELS))
_CELLS = tuple(map(tuple, np.eye(len(LABELS) ** 2).tolist()))  # cells of the flattened table


def true_label(sample: EvaluationSample) -> str:
    """Return the label that people gave; ScoringError for an unknown one."""
    label = sample.labels.get(TRUE_LABEL)
    if label not in LABELS:
        raise ScoringError(f"{label!r:.60} is not a label: use {', '.join(LABELS)}")
    return str(label)


def predicted_label(output: SystemOutputs) -> str:
    """Return the label that a detector gave; ScoringError if there is none."""
    places = (output.extra, output.response.structured, output.response.metadata)
    given = [place.get(PREDICTED_LABEL) for place in places if isinstance(place, dict)]
    label = next((one for one in given if one is not None), output.response.text)
    known_label = label_of(label)
    if known_label is None:
        raise BadOutputError(f"{label!r:.60} is not a predicted label: use {', '.join(LABELS)}")
    return known_label


def has_label(output: SystemOutputs) -> bool:
    """Return whether a detector gave a label."""
    with suppress(ScoringError):
        return bool(predicted_label(output))
    return False


class _Labelled(SampleMetric):
    """What the metrics of labels share."""

    target = TargetCategory.GENERATION_FAITHFULNESS
    requires = (f"labels.{TRUE_LABEL}",)
    listed = False
    # A system that answers the questions of a label set is not a detector that failed on all of them.
    output_needs = (OutputNeed(has_label, "no output has a label, as detectors return"),)

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> SampleScore:
        return self.of_labels(true_label(sample), predicted_label(output))

    def of_labels(self, true: str, predicted: str) -> SampleScore:
        """Return the score of a sample of one label with this one predicted."""
        return SampleScore(float(true == predicted))

    def score_if_failed(self, sample: EvaluationSample, *, high: bool) -> SampleScore:
        try:
            true = true_label(sample)
        except ScoringError as error:
            return SampleScore(None, str(error))
        return self.of_labels(true, true if high else self.wrong_label(true))

    def wrong_label(self, true: str) -> str:
        """Return the label that a failed sample counts as: a missed error, or a false alarm."""
        return LABELS[1] if true == LABELS[0] else LABELS[0]


@metric("label_accuracy")
class LabelAccuracy(_Labelled):
    """Share of the samples whose label was predicted.

    Compare it with always predicting the most frequent label: on unequal classes that is high already.
    """

    oracle = "scikit-learn accuracy_score"


@dataclass
class _OfClass(_Labelled):
    label: str = "hallucination"

    def __post_init__(self) -> None:
        if self.label not in LABELS:
            raise ValueError(f"there is no label {self.label!r:.60}: use {', '.join(LABELS)}")

    def wrong_label(self, true: str) -> str:
        return super().wrong_label(true) if true == self.label else self.label


class _ShareOfClass(_OfClass, ConditionalRate):
    """The share of right labels among the samples that count for one label."""

    def counts(self, true: str, predicted: str) -> bool:
        """Return whether a sample is in the denominator."""
        raise NotImplementedError

    def of_labels(self, true: str, predicted: str) -> SampleScore:
        counted = self.counts(true, predicted)
        return SampleScore(float(counted and true == predicted), parts=(float(counted),))


@metric("label_precision[{label?}]")
class LabelPrecision(_ShareOfClass):
    """Of the answers that were labelled so, the share that is: label_precision[accurate], ...

    n/a where the label was never predicted.
    """

    oracle = "scikit-learn precision_score"

    def counts(self, true: str, predicted: str) -> bool:
        return predicted == self.label


@metric("label_recall[{label?}]")
class LabelRecall(_ShareOfClass):
    """Of the answers that are so, the share that was labelled so: label_recall[accurate], ...

    n/a where no sample has the label.
    """

    oracle = "scikit-learn recall_score"

    def counts(self, true: str, predicted: str) -> bool:
        return true == self.label


class _OfTable(_Labelled):
    """A number of the whole confusion table; a sample's parts are its cell."""

    of_sums = True

    def of_table(self, tables: Rows) -> Rows:
        """Return the number, of tables (..., labels, labels)."""
        raise NotImplementedError

    def of_labels(self, true: str, predicted: str) -> SampleScore:
        cell = LABELS.index(true) * len(LABELS) + LABELS.index(predicted)
        return SampleScore(float(true == predicted), parts=_CELLS[cell])

    def aggregate(self, rows: Rows) -> Rows:
        return self.of_table(_table(rows))


class _OfCounts(_OfTable):
    """A number of each label's right, wrong and missed ones; one more right never lowers it."""

    def of_counts(self, counts: classification.ClassCounts) -> Rows:
        """Return the number, of counts (..., labels)."""
        raise NotImplementedError

    def of_table(self, tables: Rows) -> Rows:
        return self.of_counts(classification.class_counts(tables))

    def bounds_if_failed(self, scores: Scores) -> list[float | None] | None:
        if scores.if_failed is None or not len(scores.if_failed[0]):
            return None
        rows = scores.rows()
        known = _table(rows) if len(rows) else np.zeros(_SHAPE)
        # At their best they are on the diagonal, which gives their true labels: the worst follows from these.
        failed = np.diagonal(_table(scores.if_failed[1]))
        right, wrong, missed = classification.class_counts(known)
        # Each label by itself at its worst: what is of it was missed, and all else was taken for it.
        worst = classification.ClassCounts(right, wrong + failed.sum() - failed, missed + failed)
        low, high = float(self.of_counts(worst)), float(self.of_table(known + np.diag(failed)))
        return [low, low if math.isnan(high) else high]


@metric("label_f1[{label?}]")
class LabelF1(_OfClass, _OfCounts):
    """F1 of one label: 2 TP / (2 TP + FP + FN); label_f1[accurate], label_f1[contradiction]."""

    oracle = "scikit-learn f1_score"

    def of_counts(self, counts: classification.ClassCounts) -> Rows:
        f1: Rows = classification.f1(counts)[..., LABELS.index(self.label)]
        return f1

    def value_shares(self, rows: Rows) -> list[Share]:
        return [Share(self.aggregate, _concerned(rows)[:, LABELS.index(self.label)])]


@metric("label_macro_f1[supported={supported?}]")
class LabelMacroF1(_OfCounts):
    """Mean of the F1 of all three labels; one that neither occurs nor is predicted counts 0.

    label_macro_f1[supported=true] is the mean over the labels that some sample has.
    """

    supported: bool = False
    oracle = "scikit-learn f1_score, average macro"

    def of_counts(self, counts: classification.ClassCounts) -> Rows:
        macro_f1 = classification.macro_f1_supported if self.supported else classification.macro_f1
        return macro_f1(counts)

    def value_shares(self, rows: Rows) -> list[Share]:
        occurs = _is_of(rows).any(axis=0)
        concerned = _concerned(rows) & (occurs if self.supported else True)
        weight = 1 / (occurs.sum() if self.supported else len(LABELS))
        return [
            Share(partial(_of_label, classification.f1, place), concerned[:, place], weight)
            for place in range(len(LABELS))
        ]

    def interval(self, rows: Rows, clusters: Sequence[Hashable] | None) -> Interval | None:
        interval = super().interval(rows, clusters)
        # A label that neither occurs nor is predicted counts 0 here, though more samples may have it.
        is_complete = self.supported or bool(_concerned(rows).any(axis=0).all())
        return interval if interval is None or is_complete else interval.of_labels(len(rows))


@metric("label_balanced_accuracy")
class LabelBalancedAccuracy(_OfCounts):
    """Mean of the recalls of the labels that occur: 1/3 for a guess among three, whatever their sizes."""

    oracle = "scikit-learn balanced_accuracy_score"

    def of_counts(self, counts: classification.ClassCounts) -> Rows:
        return classification.balanced_accuracy(counts)

    def value_shares(self, rows: Rows) -> list[Share]:
        is_of = _is_of(rows)
        weight = 1 / is_of.any(axis=0).sum()
        return [
            Share(partial(_of_label, classification.recall, place), is_of[:, place], weight)
            for place in range(len(LABELS))
        ]


class _OfAgreement(_OfTable):
    """A number of the whole table, of which every sample is a part."""

    bounds = (-1.0, 1.0)

    def bounds_if_failed(self, scores: Scores) -> list[float | None] | None:
        # A label in another place changes what chance gives: the bounds are those of the scale.
        failed = scores.if_failed
        return None if failed is None or not len(failed[0]) else list(self.bounds)

    def interval(self, rows: Rows, clusters: Sequence[Hashable] | None) -> Interval | None:
        interval = super().interval(rows, clusters)
        return interval and interval.of_labels(len(rows))


@metric("label_kappa")
class LabelKappa(_OfAgreement):
    """Cohen's kappa: agreement of predicted and true labels beyond what their frequencies give by chance."""

    oracle = "scikit-learn cohen_kappa_score"

    def of_table(self, tables: Rows) -> Rows:
        return classification.cohen_kappa(tables)


@metric("label_mcc")
class LabelMatthews(_OfAgreement):
    """Matthews' correlation of predicted and true labels: 0 for a constant one, 1 for a perfect one."""

    oracle = "scikit-learn matthews_corrcoef"

    def of_table(self, tables: Rows) -> Rows:
        return classification.matthews(tables)


def _table(rows: Rows) -> Rows:
    """Return the confusion table of rows (..., samples, 1 + cells)."""
    sums = rows[..., 1:].sum(axis=-2)
    return np.asarray(sums.reshape(*sums.shape[:-1], *_SHAPE))


def _of_label(statistic: Callable[[classification.ClassCounts], Rows], place: int, rows: Rows) -> Rows:
    """Return the F1 or the recall of one label; 0 where the label is neither there nor predicted."""
    return np.asarray(np.nan_to_num(statistic(classification.class_counts(_table(rows)))[..., place]))


def _is_of(rows: Rows) -> Mask:
    """Return which samples have which label: (samples, labels)."""
    return np.asarray(rows[:, 1:].reshape(-1, *_SHAPE).sum(axis=2) > 0)


def _concerned(rows: Rows) -> Mask:
    """Return which samples have a label, or were given it: the others play no part in its F1."""
    return np.asarray(_is_of(rows) | (rows[:, 1:].reshape(-1, *_SHAPE).sum(axis=1) > 0))
