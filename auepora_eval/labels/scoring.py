"""Score a detector's labels: every figure with its interval, overall and by slice.

A label describes the answer that is stored with it, which is what the detector judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.scores import Batch, shared_or_none
from ..core.types import PAIR, TRUE_LABEL, EvaluationSample, MetricResult, SystemOutputs
from ..errors import DataError, ScoringError
from ..metrics.labels import predicted_label, true_label
from ..metrics.parse import parse_metric
from ..stats.arrays import Array
from ..stats.classification import accuracy, class_counts, confusion_table, macro_f1
from ..stats.intervals import mean_interval
from ..text.label_terms import ACCURATE, CONTRADICTION, FHRI_SCENARIO, LABELS, scenario_id
from .thresholds import scenario_of

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
    "scenario": FHRI_SCENARIO,
    "risk_tier": "risk_tier",
    "category": "category",
    "compliance_tag": "compliance_tag",
    "pair": PAIR,
}
Record = dict[str, Any]  # as JSON has it


def score_labels(
    samples: Sequence[EvaluationSample], outputs: Sequence[SystemOutputs], *, slices: bool = True
) -> Record:
    """Score predicted labels against true ones, and return the report as one JSON document.

    A sample without a prediction is a failure, not left out.
    """
    check_labelled(samples)
    whole, of_accuracy = _scored(samples, outputs)
    by_slice: dict[str, dict[str, Record]] = {}
    for name, label in SLICES.items() if slices else ():
        for value, places in _places(samples, label).items():
            part, _ = _scored([samples[n] for n in places], [outputs[n] for n in places])
            by_slice.setdefault(name, {})[value] = part
    return {
        **whole,
        "baseline_always_accurate": _always_accurate(samples),
        "pair_accuracy": pair_accuracy(samples, outputs),
        "scenario_accuracy": scenario_accuracy(samples, outputs),
        "slices": by_slice,
        "failures": [
            {"type": kind, "message": message, "count": count}
            for (kind, message), count in _failures(of_accuracy, outputs).most_common(20)
        ],
    }


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


def scenario_accuracy(samples: Sequence[EvaluationSample], outputs: Sequence[SystemOutputs]) -> Record | None:
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
        if sample.labels.get(FHRI_SCENARIO) not in (None, ""):
            overridden += 1
        elif wanted is None:
            unnamed += 1
        else:
            detected = output.extra.get("scenario_detected")
            total += 1
            right += isinstance(detected, str) and scenario_id(detected) == wanted
    counts = {"total": total, "expected_without_id": unnamed, "left_out_as_overridden": overridden}
    return {**_share(np.repeat([1.0, 0.0], [right, total - right])), **counts}


def _share(is_right: Array, clusters: list[Hashable] | None = None) -> Record:
    """Return a share of right ones with its interval."""
    interval = mean_interval(is_right, clusters=clusters, bounds=(0.0, 1.0))
    return {
        "right": int(is_right.sum()),
        "accuracy": float(is_right.mean()) if len(is_right) else None,
        "confidence_interval": None if interval is None else [interval.low, interval.high],
    }


def _prediction(output: SystemOutputs) -> str | None:
    """Return the predicted label, or None where the detector failed or gave no known label."""
    try:
        return None if output.error is not None else predicted_label(output)
    except ScoringError:
        return None


def _scored(
    samples: Sequence[EvaluationSample], outputs: Sequence[SystemOutputs]
) -> tuple[Record, MetricResult]:
    """Return the figures of some samples with their intervals, and the result of the accuracy."""
    batch = Batch(samples, outputs)

    def results_of(names: Mapping[str, str]) -> dict[str, MetricResult]:
        metrics = {figure: parse_metric(name) for figure, name in names.items()}
        return {figure: metric.summarise(metric.score_batch(batch)) for figure, metric in metrics.items()}

    results = {
        label: results_of({figure: f"{name}[{label}]" for figure, name in OF_A_CLASS.items()})
        for label in LABELS
    }
    results["overall"] = results_of(OVERALL)
    accuracy_result = results["overall"]["accuracy"]
    confusion = {true: dict.fromkeys(LABELS, 0) for true in LABELS}
    for place, score in enumerate(accuracy_result.scores):
        if score.value is not None:
            confusion[true_label(samples[place])][predicted_label(outputs[place])] += 1
    coverage = accuracy_result.coverage
    counts = {label: _counts(confusion, label) for label in LABELS}
    counts["overall"] = {
        "total_samples": coverage.total,
        "predicted_samples": coverage.scored,
        "failed_samples": coverage.failed,
        "correct_predictions": sum(confusion[label][label] for label in LABELS),
    }

    def each(field: str) -> dict[str, Record]:
        """Return a field of every result, by label and figure, as JSON has it: no pairs, no NaN."""

        def plain(value: Any) -> Any:
            return list(value) if isinstance(value, tuple) else None if value != value else value

        return {
            group: {figure: plain(getattr(result, field)) for figure, result in figures.items()}
            for group, figures in results.items()
        }

    record: Record = {
        "metrics": {group: {**values, **counts[group]} for group, values in each("value").items()},
        "confusion_matrix": confusion,
        "intervals": each("interval"),
        "interval_methods": each("interval_method"),
    }
    if coverage.failed:
        record["bounds_if_failed"] = each("if_failed")
    return record, accuracy_result


def _counts(confusion: Mapping[str, Mapping[str, int]], label: str) -> dict[str, int]:
    """Count one label against the rest, as published reports do."""
    right, support = confusion[label][label], sum(confusion[label].values())
    called = sum(row[label] for row in confusion.values())
    total = sum(sum(row.values()) for row in confusion.values())
    return {
        "support": support,
        "true_positives": right,
        "false_positives": called - right,
        "false_negatives": support - right,
        "true_negatives": total - called - support + right,
    }


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


# Pairs of questions whose answers must not contradict each other: samples with one contradiction_pair_id.
#
# Each later member of a group is compared with the nearest earlier one that was answered, in the order of
# the file, whatever their labels are.


def nearest_earlier(
    groups: Sequence[Hashable | None], answered: Sequence[bool] | None = None
) -> list[int | None]:
    """Return, for each place, the last earlier place of the same group that has an answer, or None.

    >>> nearest_earlier(["a", None, "a", "a"])
    [None, None, 0, 2]
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


def pair_accuracy(samples: Sequence[EvaluationSample], outputs: Sequence[SystemOutputs]) -> Record | None:
    """Return how often both answers of a pair got their true label; None without pairs.

    A pair is a later member with the nearest earlier one. Without a prediction for both it is a wrong one,
    but nothing is measured if there is no prediction at all.
    """
    groups = pairs_of(samples)
    pairs = [(earlier, later) for later, earlier in enumerate(nearest_earlier(groups)) if earlier is not None]
    if not pairs:
        return None
    true = [true_label(sample) for sample in samples]
    predicted = [_prediction(output) for output in outputs]
    judged = pairs if any(label is not None for label in predicted) else []
    is_right = [all(predicted[place] == true[place] for place in pair) for pair in judged]
    clusters = shared_or_none([groups[later] for _, later in judged])
    contradictions = [later for _, later in pairs if true[later] == CONTRADICTION]
    return {
        **_share(np.array(is_right, dtype=np.float64), clusters),
        "pairs": len(pairs),
        "contradictions": len(contradictions),
        "contradictions_found": sum(predicted[later] == CONTRADICTION for later in contradictions),
        "not_predicted": sum(any(predicted[place] is None for place in pair) for pair in pairs),
    }
