"""Score a detector's labels: every figure with its interval, overall and by slice.

In *static* mode a label describes the answer that is stored with it, which is what the detector judged. In
*live* mode a system has answered again, and the label is the class that was expected of it: a label
"hallucination" then says nothing about the new answer, and a warning says so.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..core.scores import Batch, shared_or_none
from ..core.types import PAIR, TRUE_LABEL, EvaluationSample, MetricResult, SystemOutputs
from ..errors import DataError, ScoringError
from ..metrics.labels import predicted_label, true_label
from ..metrics.parse import parse_metric
from ..stats.classification import accuracy, class_counts, confusion_table, macro_f1
from ..stats.intervals import Interval, mean_interval
from ..stats.significance import mcnemar_exact
from ..text.label_terms import ACCURATE, CONTRADICTION, LABELS, scenario_id
from .profile import scenario_of

Mode = Literal["static", "live"]
OVERALL = {
    "accuracy": "label_accuracy",
    "macro_f1": "label_macro_f1",
    "macro_f1_supported": "label_macro_f1[supported=true]",
    "balanced_accuracy": "label_balanced_accuracy",
    "kappa": "label_kappa",
    "mcc": "label_mcc",
}
OF_A_CLASS = {"precision": "label_precision", "recall": "label_recall", "f1_score": "label_f1"}
SLICES = {
    "scenario": "scenario",
    "risk_tier": "risk_tier",
    "category": "category",
    "compliance_tag": "compliance_tag",
    "pair": PAIR,
}
Slices = dict[str, dict[str, "LabelTable"]]


class LiveLabelWarning(UserWarning):
    """Labels that describe a stored answer are used for a new one."""


@dataclass(frozen=True)
class LabelShare:
    """A share of right ones with its interval, and what was counted beside it."""

    right: int
    total: int
    interval: Interval | None
    counts: Mapping[str, int]  # by their names in the report

    @property
    def accuracy(self) -> float | None:
        return self.right / self.total if self.total else None

    def as_record(self) -> dict[str, object]:
        return {
            "right": self.right,
            "accuracy": self.accuracy,
            "confidence_interval": None if self.interval is None else [self.interval.low, self.interval.high],
            **self.counts,
        }


@dataclass(frozen=True)
class LabelTable:
    """A confusion table and the metrics computed from it."""

    confusion: dict[str, dict[str, int]]
    overall: dict[str, MetricResult]
    classes: dict[str, dict[str, MetricResult]]

    @property
    def support(self) -> dict[str, int]:
        """Return how many predicted samples have each label."""
        return {label: sum(row.values()) for label, row in self.confusion.items()}

    def as_record(self) -> dict[str, Any]:
        coverage = self.overall["accuracy"].coverage
        metrics: dict[str, Any] = {
            label: {**_values(self.classes[label]), **self._counts(label)} for label in LABELS
        }
        metrics["overall"] = {
            **_values(self.overall),
            "total_samples": coverage.total,
            "predicted_samples": coverage.scored,
            "failed_samples": coverage.failed,
            "correct_predictions": sum(self.confusion[label][label] for label in LABELS),
        }
        record = {"metrics": metrics, "confusion_matrix": self.confusion}
        record["intervals"] = self._each("interval")
        record["interval_methods"] = self._each("interval_method")
        if coverage.failed:
            record["bounds_if_failed"] = self._each("if_failed")
        return record

    def _counts(self, label: str) -> dict[str, int]:
        """Count one label against the rest, as published reports do."""
        right = self.confusion[label][label]
        called = sum(row[label] for row in self.confusion.values())
        support, total = self.support[label], sum(self.support.values())
        return {
            "support": support,
            "true_positives": right,
            "false_positives": called - right,
            "false_negatives": support - right,
            "true_negatives": total - called - support + right,
        }

    def _each(self, name: str) -> dict[str, dict[str, object]]:
        """Return a property of every result, by label and metric; pairs are lists, as in JSON."""
        record: dict[str, dict[str, object]] = {}
        for group, results in {**self.classes, "overall": self.overall}.items():
            values = {metric: getattr(result, name) for metric, result in results.items()}
            record[group] = {
                metric: list(value) if isinstance(value, tuple) else value for metric, value in values.items()
            }
        return record


@dataclass(frozen=True)
class LabelReport:
    """The scores of a detector's labels on a dataset."""

    table: LabelTable
    mode: Mode
    slices: Slices
    pairs: LabelShare | None
    scenarios: LabelShare | None
    baseline: dict[str, float]
    failures: Counter[tuple[str, str]]

    def as_record(self) -> dict[str, Any]:
        """Return the report as one JSON document."""
        return {
            "mode": self.mode,
            **self.table.as_record(),
            "baseline_always_accurate": self.baseline,
            "pair_accuracy": None if self.pairs is None else self.pairs.as_record(),
            "scenario_accuracy": None if self.scenarios is None else self.scenarios.as_record(),
            "slices": {
                name: {value: table.as_record() for value, table in tables.items()}
                for name, tables in self.slices.items()
            },
            "failures": [
                {"type": kind, "message": message, "count": count}
                for (kind, message), count in self.failures.most_common(20)
            ],
        }


def score_labels(
    samples: Sequence[EvaluationSample],
    outputs: Sequence[SystemOutputs],
    *,
    mode: Mode = "static",
    slices: bool = True,
) -> LabelReport:
    """Score predicted labels against true ones. A sample without a prediction is a failure, not left out."""
    check_labelled(samples)
    if mode == "live":
        _warn_of_stored_labels(samples)
    warn_of_missing_partners(samples)
    table = _table(samples, outputs)
    by_slice: Slices = {}
    for name, label in SLICES.items() if slices else ():
        by_slice[name] = {
            value: _table([samples[n] for n in places], [outputs[n] for n in places])
            for value, places in _places(samples, label).items()
        }
    return LabelReport(
        table=table,
        mode=mode,
        slices={name: tables for name, tables in by_slice.items() if tables},
        pairs=pair_accuracy(samples, outputs),
        scenarios=scenario_accuracy(samples, outputs),
        baseline=_always_accurate(samples),
        failures=_failures(table.overall["accuracy"], outputs),
    )


def detailed_results(
    samples: Sequence[EvaluationSample], outputs: Sequence[SystemOutputs]
) -> list[dict[str, Any]]:
    """Return a record for each sample: its true label, its predicted label and, where known, the decision.

    `labels score --predictions` reads these records, so two reports can be compared.
    """
    records = []
    for sample, output in zip(samples, outputs, strict=True):
        predicted = _prediction(output)
        decision = output.extra.get("decision")
        record = dict(decision) if isinstance(decision, dict) else {}
        # The label is in the record already, as predicted_label.
        record.pop("label", None)
        records.append(
            {
                "sample_id": sample.sample_id,
                "true_label": true_label(sample),
                "predicted_label": predicted,
                "correct": predicted == true_label(sample),
                "error": None if output.error is None else f"{output.error.type}: {output.error.message}",
                "scenario_detected": output.extra.get("scenario_detected"),
                **record,
            }
        )
    return records


def check_labelled(samples: Sequence[EvaluationSample]) -> None:
    """Raise DataError for the first sample without a known true label."""
    for place, sample in enumerate(samples):
        try:
            true_label(sample)
        except ScoringError as error:
            where = f"samples[{place}] ({sample.sample_id:.80})"
            raise DataError(
                where, f"labels.{TRUE_LABEL}: {error}.", fix="Label it, or leave it out."
            ) from None


def scenario_accuracy(
    samples: Sequence[EvaluationSample], outputs: Sequence[SystemOutputs]
) -> LabelShare | None:
    """Compare the detected scenario (`extra["scenario_detected"]`) with `metadata["expected_scenario"]`.

    Both may be ids or names. An expectation that is neither ("Ticker Lookup") cannot be met and is only
    counted. So are samples whose scenario is set beforehand: what is reported for them is mostly what was
    set, and would measure the label set, not the detector. None where no output names a scenario.
    """
    right = total = unnamed = overridden = 0
    if not any(isinstance(output.extra.get("scenario_detected"), str) for output in outputs):
        return None
    for sample, output in zip(samples, outputs, strict=True):
        expected = sample.metadata.get("expected_scenario")
        if not isinstance(expected, str) or not expected.strip():
            continue
        wanted = scenario_id(expected)
        if sample.labels.get("scenario") not in (None, ""):
            overridden += 1
        elif wanted is None:
            unnamed += 1
        else:
            detected = output.extra.get("scenario_detected")
            total += 1
            right += isinstance(detected, str) and scenario_id(detected) == wanted
    is_right = np.repeat([1.0, 0.0], [right, total - right])
    interval = mean_interval(is_right, bounds=(0.0, 1.0))
    counts = {"total": total, "expected_without_id": unnamed, "left_out_as_overridden": overridden}
    return LabelShare(right, total, interval, counts)


@dataclass(frozen=True)
class DetectorComparison:
    """Two detectors on the same samples: how often both, one or neither was right, and McNemar's test."""

    both_right: int
    only_first_right: int
    only_second_right: int
    neither_right: int
    p_value: float
    method: str


def compare_detectors(
    samples: Sequence[EvaluationSample], first: Sequence[SystemOutputs], second: Sequence[SystemOutputs]
) -> DetectorComparison:
    """Compare two detectors by McNemar's exact test; a missing prediction counts as wrong."""
    check_labelled(samples)
    counts = Counter(
        (_prediction(a) == true_label(sample), _prediction(b) == true_label(sample))
        for sample, a, b in zip(samples, first, second, strict=True)
    )
    only_first, only_second = counts[True, False], counts[False, True]
    test = mcnemar_exact(only_first, only_second)
    return DetectorComparison(
        counts[True, True], only_first, only_second, counts[False, False], test.p_value, test.method
    )


def _prediction(output: SystemOutputs) -> str | None:
    """Return the predicted label, or None where the detector failed or gave no known label."""
    try:
        return None if output.error is not None else predicted_label(output)
    except ScoringError:
        return None


def _table(samples: Sequence[EvaluationSample], outputs: Sequence[SystemOutputs]) -> LabelTable:
    batch = Batch(samples, outputs)

    def scored(names: Mapping[str, str]) -> dict[str, MetricResult]:
        metrics = {figure: parse_metric(name) for figure, name in names.items()}
        return {figure: metric.summarise(metric.score_batch(batch)) for figure, metric in metrics.items()}

    overall = scored(OVERALL)
    classes = {
        label: scored({figure: f"{name}[{label}]" for figure, name in OF_A_CLASS.items()}) for label in LABELS
    }
    confusion = {true: dict.fromkeys(LABELS, 0) for true in LABELS}
    for place, score in enumerate(overall["accuracy"].scores):
        if score.value is not None:
            confusion[true_label(samples[place])][predicted_label(outputs[place])] += 1
    return LabelTable(confusion, overall, classes)


def _places(samples: Sequence[EvaluationSample], label: str) -> dict[str, list[int]]:
    """Return the places of the samples of each value of a label, the largest group first.

    A sample without a scenario is one of `default`, as for thresholds, unless no sample has one.
    """
    groups: dict[str, list[int]] = {}
    if not any(sample.labels.get(label) not in (None, "") for sample in samples):
        return groups
    for place, sample in enumerate(samples):
        value = scenario_of(sample) if label == SLICES["scenario"] else sample.labels.get(label)
        if value not in (None, ""):
            groups.setdefault(str(value), []).append(place)
    return dict(sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])))


def _always_accurate(samples: Sequence[EvaluationSample]) -> dict[str, float]:
    """Return the figures of labelling everything as accurate: the baseline that a detector must beat."""
    true = [LABELS.index(true_label(sample)) for sample in samples]
    table = confusion_table(true, [LABELS.index(ACCURATE)] * len(true), len(LABELS))
    return {"accuracy": float(accuracy(table)), "macro_f1": float(macro_f1(class_counts(table)))}


def _failures(result: MetricResult, outputs: Sequence[SystemOutputs]) -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    for score, output in zip(result.scores, outputs, strict=True):
        if score.failed:
            kind = "NoLabel" if output.error is None else output.error.type
            # A reply without a known label is a failure of the detector, not of the call.
            counts[kind, score.reason if output.error is None else output.error.message] += 1
    return counts


def _warn_of_stored_labels(samples: Sequence[EvaluationSample]) -> None:
    other = sum(sample.labels[TRUE_LABEL] != ACCURATE for sample in samples)
    if other:
        warnings.warn(
            f"{other} labels say that the stored answer is a hallucination or a contradiction; in live mode "
            "another answer is judged, which may well be accurate. Label the new answers to measure it.",
            LiveLabelWarning,
            stacklevel=3,
        )


def _values(results: Mapping[str, MetricResult]) -> dict[str, float | None]:
    return {name: None if math.isnan(r.value) else r.value for name, r in results.items()}


# Pairs of questions whose answers must not contradict each other: samples with one contradiction_pair_id.
#
# Each later member of a group is compared with the nearest earlier one that was answered, in the order of
# the file, whatever their labels are.


class MissingPartnerWarning(UserWarning):
    """A sample that names a pair in which it is alone."""


def nearest_earlier(
    groups: Sequence[Hashable | None], answered: Sequence[bool] | None = None
) -> list[int | None]:
    """Return, for each place, the last earlier place of the same group; None where there is none.

    Where `answered` is False, there is no answer to compare with: the one before that is the nearest.

    >>> nearest_earlier(["a", None, "a", "a"])
    [None, None, 0, 2]
    >>> nearest_earlier(["a", None, "a", "a"], [True, True, False, True])
    [None, None, 0, 0]
    """
    last: dict[Hashable, int] = {}
    earlier: list[int | None] = []
    for place, group in enumerate(groups):
        earlier.append(None if group is None else last.get(group))
        if group is not None and (answered is None or answered[place]):
            last[group] = place
    return earlier


def pairs_of(samples: Sequence[EvaluationSample]) -> list[str | None]:
    """Return the pair of each sample, or None."""
    pairs = [sample.labels.get(PAIR) for sample in samples]
    return [None if pair is None else str(pair) for pair in pairs]


def warn_of_missing_partners(samples: Sequence[EvaluationSample]) -> None:
    """Warn of the pairs that only one sample names."""
    sizes = Counter(pair for pair in pairs_of(samples) if pair is not None)
    alone = [pair for pair, size in sizes.items() if size == 1]
    if alone:
        more = f" and {len(alone) - 3} more" if len(alone) > 3 else ""
        warnings.warn(
            f"no partner for {', '.join(alone[:3])}{more}: a contradiction needs two answers.",
            MissingPartnerWarning,
            stacklevel=2,
        )


def pair_accuracy(samples: Sequence[EvaluationSample], outputs: Sequence[SystemOutputs]) -> LabelShare | None:
    """Return how often both answers of a pair got their true label; None without pairs.

    A pair is a later member with the nearest earlier one. Without a prediction for both it is a wrong one.
    """
    groups = pairs_of(samples)
    pairs = [(earlier, later) for later, earlier in enumerate(nearest_earlier(groups)) if earlier is not None]
    if not pairs:
        return None
    true = [true_label(sample) for sample in samples]
    predicted = [_prediction(output) for output in outputs]
    is_right = [all(predicted[place] == true[place] for place in pair) for pair in pairs]
    clusters = shared_or_none([groups[later] for _, later in pairs])
    interval = mean_interval(np.array(is_right, dtype=float), clusters=clusters, bounds=(0.0, 1.0))
    contradictions = [later for _, later in pairs if true[later] == CONTRADICTION]
    counts = {
        "pairs": len(pairs),
        "contradictions": len(contradictions),
        "contradictions_found": sum(predicted[later] == CONTRADICTION for later in contradictions),
        "not_predicted": sum(any(predicted[place] is None for place in pair) for pair in pairs),
    }
    return LabelShare(sum(is_right), len(pairs), interval, counts)
