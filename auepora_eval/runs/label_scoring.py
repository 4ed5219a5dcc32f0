"""How good a detector's labels are: every figure with its interval, whole and by slice.

In *static* mode a label describes the answer that is stored with it, which is what the detector judged. In
*live* mode a system has answered anew, and the label is the class that was expected of it: a label
"hallucination" then says nothing about the new answer, and a warning says so.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..core.batch import Batch
from ..core.label_terms import ACCURATE, LABELS, PAIR, TRUE_LABEL, scenario_id
from ..core.metrics_base import SampleMetric
from ..core.types import EvaluationSample, MetricResult, SystemOutputs
from ..errors import DataError, ScoringError
from ..metrics.labels import predicted_label, true_label
from ..metrics.parse import parse_metric
from ..stats.classification import accuracy, class_counts, confusion_table, macro_f1
from ..stats.intervals import Interval, wilson_interval
from ..stats.significance import PairedTest, mcnemar_exact
from .label_pairs import PairAccuracy, pair_accuracy, warn_of_missing_partners

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
class ScenarioAccuracy:
    """How often the detected scenario was the expected one, among the samples whose expectation has an id.

    Samples whose scenario is set beforehand (`overridden`) are left out: what is reported for them is mostly
    what was set, and would measure the label set, not the detector.
    """

    right: int
    total: int
    not_named: int
    overridden: int
    interval: Interval | None

    def as_record(self) -> dict[str, Any]:
        return {
            "right": self.right,
            "total": self.total,
            "accuracy": self.right / self.total if self.total else None,
            "confidence_interval": None if self.interval is None else [self.interval.low, self.interval.high],
            "expected_without_id": self.not_named,
            "left_out_as_overridden": self.overridden,
        }


@dataclass(frozen=True)
class LabelTable:
    """A confusion table and what follows from it."""

    confusion: dict[str, dict[str, int]]
    overall: dict[str, MetricResult]
    classes: dict[str, dict[str, MetricResult]]

    @property
    def support(self) -> dict[str, int]:
        """How many predicted samples have each label."""
        return {label: sum(row.values()) for label, row in self.confusion.items()}

    def as_record(self) -> dict[str, Any]:
        details = self.overall["accuracy"].details
        metrics: dict[str, Any] = {
            label: {**_values(self.classes[label]), **self._counts(label)} for label in LABELS
        }
        metrics["overall"] = {
            **_values(self.overall),
            "total_samples": details["num_total"],
            "predicted_samples": details["num_samples"],
            "failed_samples": details["num_failed"],
            "correct_predictions": sum(self.confusion[label][label] for label in LABELS),
        }
        record = {"metrics": metrics, "confusion_matrix": self.confusion}
        record["intervals"] = self._each("confidence_interval")
        record["interval_methods"] = self._each("interval_method")
        if details["num_failed"]:
            record["bounds_if_failed"] = self._each("bounds_if_failed")
        return record

    def _counts(self, label: str) -> dict[str, int]:
        """One label against the rest, as published reports count it."""
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

    def _each(self, detail: str) -> dict[str, Any]:
        groups = {**self.classes, "overall": self.overall}
        return {
            group: {name: result.details[detail] for name, result in results.items()}
            for group, results in groups.items()
        }


@dataclass(frozen=True)
class LabelReport:
    """Everything that can be said about a detector's labels on a dataset."""

    table: LabelTable
    mode: Mode
    slices: Slices
    pairs: PairAccuracy | None
    scenarios: ScenarioAccuracy | None
    baseline: dict[str, float]
    failures: Counter[tuple[str, str]]

    def as_record(self) -> dict[str, Any]:
        """The report as one JSON document."""
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
    seed: int = 0,
) -> LabelReport:
    """Score predicted labels against true ones. A sample without a prediction is a failure, not left out."""
    refuse_unlabelled(samples)
    if mode == "live":
        _warn_of_stored_labels(samples)
    warn_of_missing_partners(samples)
    metrics = _metrics()
    table = _table(samples, outputs, metrics, seed)
    found: Slices = {}
    for name, label in SLICES.items() if slices else ():
        places = _places(samples, label)
        found[name] = {
            value: _table([samples[n] for n in chosen], [outputs[n] for n in chosen], metrics, seed)
            for value, chosen in places.items()
        }
    return LabelReport(
        table=table,
        mode=mode,
        slices={name: tables for name, tables in found.items() if tables},
        pairs=pair_accuracy(samples, outputs),
        scenarios=scenario_accuracy(samples, outputs),
        baseline=_always_accurate(samples),
        failures=_failures(table.overall["accuracy"], outputs),
    )


def detailed_results(
    samples: Sequence[EvaluationSample], outputs: Sequence[SystemOutputs]
) -> list[dict[str, Any]]:
    """A record for each sample: what it is, what was predicted, and, where that is known, how.

    It is what `labels score --predictions` reads: a report can be compared with another one.
    """
    records = []
    for sample, output in zip(samples, outputs, strict=True):
        try:
            predicted = None if output.error is not None else predicted_label(output)
        except ScoringError:
            predicted = None
        decision = output.extra.get("decision")
        record = dict(decision) if isinstance(decision, dict) else {}
        record.pop("label", None)
        records.append(
            {
                "sample_id": sample.sample_id,
                "true_label": true_label(sample),
                "predicted_label": predicted,
                "correct": predicted == true_label(sample),
                "error": None if output.error is None else f"{output.error.type}: {output.error.message}",
                **record,
            }
        )
    return records


def refuse_unlabelled(samples: Sequence[EvaluationSample]) -> None:
    """DataError that names the first sample without a true label of ours."""
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
) -> ScenarioAccuracy | None:
    """The detected scenario (`extra["scenario_detected"]`) against `metadata["expected_scenario"]`.

    Both may be ids or names. An expectation that is neither ("Ticker Lookup") cannot be met, and is only
    counted, as are samples with a scenario of their own. None where no output names a scenario.
    """
    right = total = unnamed = overridden = 0
    if not any(isinstance(output.extra.get("scenario_detected"), str) for output in outputs):
        return None
    for sample, output in zip(samples, outputs, strict=True):
        expected = sample.metadata.get("expected_scenario")
        if not isinstance(expected, str) or not expected.strip():
            continue
        if sample.labels.get("scenario") not in (None, ""):
            overridden += 1
            continue
        wanted = scenario_id(expected)
        if wanted is None:
            unnamed += 1
            continue
        detected = output.extra.get("scenario_detected")
        total += 1
        right += isinstance(detected, str) and scenario_id(detected) == wanted
    interval = wilson_interval(right, total) if total else None
    return ScenarioAccuracy(right, total, unnamed, overridden, interval)


@dataclass(frozen=True)
class DetectorComparison:
    """Two detectors on the same samples, by who was right where."""

    both: int
    only_first: int
    only_second: int
    neither: int
    test: PairedTest

    def as_record(self) -> dict[str, Any]:
        return {
            "both_right": self.both,
            "only_first_right": self.only_first,
            "only_second_right": self.only_second,
            "neither_right": self.neither,
            "p_value": self.test.p_value,
            "method": self.test.method,
        }


def compare_detectors(
    samples: Sequence[EvaluationSample], first: Sequence[SystemOutputs], second: Sequence[SystemOutputs]
) -> DetectorComparison:
    """McNemar's exact test between two detectors; where one predicted nothing, it was not right."""
    refuse_unlabelled(samples)
    counts = Counter(
        (_is_right(sample, a), _is_right(sample, b))
        for sample, a, b in zip(samples, first, second, strict=True)
    )
    only_first, only_second = counts[True, False], counts[False, True]
    return DetectorComparison(
        counts[True, True],
        only_first,
        only_second,
        counts[False, False],
        mcnemar_exact(only_first, only_second),
    )


def _is_right(sample: EvaluationSample, output: SystemOutputs) -> bool:
    if output.error is not None:
        return False
    try:
        return predicted_label(output) == true_label(sample)
    except ScoringError:
        return False


def _metrics() -> tuple[dict[str, SampleMetric], dict[str, dict[str, SampleMetric]]]:
    overall = {name: parse_metric(metric) for name, metric in OVERALL.items()}
    classes = {
        label: {name: parse_metric(f"{metric}[{label}]") for name, metric in OF_A_CLASS.items()}
        for label in LABELS
    }
    return overall, classes


def _table(
    samples: Sequence[EvaluationSample],
    outputs: Sequence[SystemOutputs],
    metrics: tuple[Mapping[str, SampleMetric], Mapping[str, Mapping[str, SampleMetric]]],
    seed: int,
) -> LabelTable:
    batch = Batch(samples, outputs)
    overall, classes = metrics

    def scored(group: Mapping[str, SampleMetric]) -> dict[str, MetricResult]:
        return {
            name: metric.summarise(metric.score_batch(batch), seed=seed) for name, metric in group.items()
        }

    results = scored(overall)
    confusion = {true: dict.fromkeys(LABELS, 0) for true in LABELS}
    for place, score in enumerate(results["accuracy"].scores):
        if score.value is not None:
            confusion[true_label(samples[place])][predicted_label(outputs[place])] += 1
    return LabelTable(confusion, results, {label: scored(group) for label, group in classes.items()})


def _places(samples: Sequence[EvaluationSample], label: str) -> dict[str, list[int]]:
    """The samples of each value of a label, the largest group first."""
    found: dict[str, list[int]] = {}
    for place, sample in enumerate(samples):
        if sample.labels.get(label) is not None:
            found.setdefault(str(sample.labels[label]), []).append(place)
    return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))


def _always_accurate(samples: Sequence[EvaluationSample]) -> dict[str, float]:
    """What a detector gets that calls everything accurate: the least that one must beat."""
    true = [LABELS.index(true_label(sample)) for sample in samples]
    table = confusion_table(true, [LABELS.index(ACCURATE)] * len(true), len(LABELS))
    return {"accuracy": float(accuracy(table)), "macro_f1": float(macro_f1(class_counts(table)))}


def _failures(result: MetricResult, outputs: Sequence[SystemOutputs]) -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    for score, output in zip(result.scores, outputs, strict=True):
        if score.failed:
            kind = "NoLabel" if output.error is None else output.error.type
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
