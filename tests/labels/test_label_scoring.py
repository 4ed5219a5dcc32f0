"""Reports about labels: the published one comes out again, and nothing is dropped."""

from __future__ import annotations

import json
from typing import Any

import pytest

from auepora_eval.demo.world import demo_labels
from auepora_eval.io.label_set import read_predicted_labels
from auepora_eval.io.loader import load_dataset
from auepora_eval.io.outputs import ForeignPredictions
from auepora_eval.labels.scoring import pair_accuracy, score_labels
from auepora_eval.text.label_terms import LABELS
from tests.builders import a_failure
from tests.labels.labelled import REAL, a_labelled, predicting, real_data


@real_data
def test_the_published_report_comes_out_again() -> None:
    path = REAL / "results__eval_100_samples_moderate_fhri.json"
    samples = list(load_dataset(REAL / "data__evaluation_dataset.json"))
    predicted = ForeignPredictions(path.name, read_predicted_labels(path))
    outputs = list(predicted.outputs(sample.sample_id for sample in samples))
    record = score_labels(samples, outputs)
    published = json.loads(path.read_text(encoding="utf-8"))
    overall = record["metrics"]["overall"]
    assert (overall["accuracy"], round(overall["macro_f1"], 4), overall["correct_predictions"]) == (
        0.63,
        0.6196,
        63,
    )
    for label in LABELS:
        for figure in set(published["metrics"][label]) - {"accuracy"}:
            assert round(record["metrics"][label][figure], 4) == published["metrics"][label][figure]
        row = {name: count for name, count in record["confusion_matrix"][label].items() if count}
        assert row == published["confusion_matrix"][label]
        for low_high in record["intervals"][label].values():
            assert low_high is not None
    assert all(low <= overall[name] <= high for name, (low, high) in record["intervals"]["overall"].items())
    assert set(record["slices"]) == {"scenario", "risk_tier", "category", "compliance_tag", "pair"}
    assert record["pair_accuracy"]["pairs"] == 22
    # Every one of the public samples has a scenario_override, and the report gives it back.
    assert (record["scenario_accuracy"]["total"], record["scenario_accuracy"]["accuracy"]) == (0, None)
    assert record["scenario_accuracy"]["left_out_as_overridden"] == 100
    assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_a_sample_without_a_prediction_is_counted_and_bounded() -> None:
    samples = [a_labelled("1"), a_labelled("2", "hallucination"), a_labelled("3")]
    outputs = [predicting("accurate"), predicting("hallucination"), a_failure()]
    record = score_labels(samples, outputs)
    assert record["metrics"]["overall"]["accuracy"] == 1.0
    assert record["metrics"]["overall"]["total_samples"] == 3
    assert record["metrics"]["overall"]["failed_samples"] == 1
    assert record["bounds_if_failed"]["overall"]["accuracy"] == [pytest.approx(2 / 3), 1.0]
    assert record["failures"] == [{"type": "RuntimeError", "message": "no luck", "count": 1}]


def sizes(report: dict[str, Any], name: str) -> dict[str, int]:
    parts = report["slices"].get(name, {})
    return {value: part["metrics"]["overall"]["total_samples"] for value, part in parts.items()}


def test_slices_add_up_to_the_whole() -> None:
    samples = list(demo_labels())
    outputs = [predicting("accurate")] * len(samples)
    report = score_labels(samples, outputs)
    for name in ("scenario", "risk_tier", "category", "compliance_tag"):
        assert sum(sizes(report, name).values()) == len(samples)
    parts = report["slices"]["risk_tier"].values()
    right = sum(part["confusion_matrix"]["accurate"]["accurate"] for part in parts)
    assert right == report["confusion_matrix"]["accurate"]["accurate"] == 13
    assert report["baseline_always_accurate"]["accuracy"] == pytest.approx(13 / 24)
    assert not score_labels(samples, outputs, slices=False)["slices"]


PAIRS = [a_labelled("1", pair="p"), a_labelled("2", "contradiction", pair="p")]


@pytest.mark.parametrize(
    ("labels", "right", "detected"),
    [
        pytest.param(("accurate", "contradiction"), 1, 1, id="both are right"),
        pytest.param(("contradiction", "contradiction"), 0, 1, id="always a contradiction"),
        pytest.param(("hallucination", "contradiction"), 0, 1, id="the first is wrong"),
        pytest.param(("accurate", "accurate"), 0, 0, id="the contradiction is missed"),
    ],
)
def test_both_answers_of_a_pair_must_be_right(labels: tuple[str, str], right: int, detected: int) -> None:
    pairs = pair_accuracy(PAIRS, [predicting(label) for label in labels])
    assert pairs is not None
    assert (pairs["right"], pairs["pairs"]) == (right, 1)
    assert (pairs["contradictions"], pairs["contradictions_found"]) == (1, detected)


def test_pairs_without_any_prediction_are_not_measured() -> None:
    pairs = pair_accuracy(PAIRS, [a_failure(), a_failure()])
    assert pairs is not None
    assert (pairs["accuracy"], pairs["confidence_interval"], pairs["not_predicted"]) == (None, None, 1)
    pairs = pair_accuracy(PAIRS, [predicting("accurate"), a_failure()])
    assert pairs is not None
    assert pairs["accuracy"] == 0.0


def test_each_later_member_of_a_pair_counts_with_the_nearest_earlier_one() -> None:
    samples = [*PAIRS, a_labelled("3", pair="p"), a_labelled("4", pair="q"), a_labelled("5", pair="q")]
    outputs = [predicting(label) for label in ("accurate", "contradiction", "accurate", "accurate")]
    pairs = pair_accuracy(samples, [*outputs, a_failure()])
    assert pairs is not None
    low, high = pairs.pop("confidence_interval")
    assert low < 2 / 3 < high
    assert pairs.pop("accuracy") == pytest.approx(2 / 3)
    assert pairs == {
        "right": 2,
        "pairs": 3,
        "contradictions": 1,
        "contradictions_found": 1,
        "not_predicted": 1,
    }
