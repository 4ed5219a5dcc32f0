"""The FHRI detector: the order of its rules, its pairs, its thresholds, and what it must not know."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.core.types import EvaluationSample, SystemOutputs
from auepora_eval.demo.world import demo_labels
from auepora_eval.errors import DataError
from auepora_eval.io.label_set import ScoredSample
from auepora_eval.io.loader import load_dataset
from auepora_eval.labels.detector import FhriDetector, LabelDecision, stored_output
from auepora_eval.labels.fhri import SCENARIO_WEIGHTS
from auepora_eval.labels.thresholds import SCENARIO_FHRI_THRESHOLDS, labels_by_score, read_thresholds
from auepora_eval.metrics.parse import parse_metric
from auepora_eval.text.label_terms import LABELS, SCENARIO_NAMES
from tests.builders import a_failure, an_output
from tests.labels.labelled import REAL, a_labelled, real_data


def decided(samples: Sequence[EvaluationSample], **options: Any) -> list[LabelDecision]:
    return FhriDetector(**options).decide(samples, [stored_output(sample) for sample in samples])


def test_every_scenario_has_a_threshold_and_weights() -> None:
    assert set(SCENARIO_FHRI_THRESHOLDS) == set(SCENARIO_WEIGHTS) == set(SCENARIO_NAMES)
    assert SCENARIO_FHRI_THRESHOLDS["multi_ticker"] == 0.70  # the example of the annotation guide
    assert all(sum(weights.values()) == pytest.approx(1) for weights in SCENARIO_WEIGHTS.values())


def test_thresholds_of_ones_own(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="sample '1': the scenario 'sea' has no threshold"):
        decided([a_labelled(scenario="sea")])
    path = tmp_path / "mine.yaml"
    path.write_text("sea: 0.01\nnews: 0.9\n")
    thresholds = read_thresholds(path)
    assert thresholds == {**SCENARIO_FHRI_THRESHOLDS, "sea": 0.01, "news": 0.9}
    (decision,) = decided([a_labelled(scenario="sea")], thresholds=thresholds)
    assert (decision.scenario, decision.threshold, decision.label) == ("sea", 0.01, "accurate")


GOOD = "According to Reuters and Bloomberg the price is $100.00 in the annual report."


@pytest.mark.parametrize(
    ("output", "scenario", "label", "reason"),
    [
        pytest.param(
            an_output(
                answer="Revenue fell 5%.",
                extra={"earlier_answers": ["Revenue rose 5%."]},
            ),
            "numeric_kpi",
            "contradiction",
            "contradicts an earlier answer (hard)",
            id="contradiction comes first",
        ),
        pytest.param(
            an_output(answer="It sails."),
            "regulatory",
            "hallucination",
            "below the floor for high risk",
            id="then the floor",
        ),
        pytest.param(
            an_output(answer=GOOD),
            "advice",
            "accurate",
            "above the threshold",
            id="then the threshold: above",
        ),
        pytest.param(
            an_output(answer="It sails."), "advice", "hallucination", "not above the threshold", id="below"
        ),
    ],
)
def test_the_rules_in_their_order(output: SystemOutputs, scenario: str, label: str, reason: str) -> None:
    (decision,) = FhriDetector().decide([a_labelled(scenario=scenario)], [output])
    assert (decision.label, decision.reason) == (label, reason)


@pytest.mark.parametrize(
    ("score", "label", "reason"),
    [(0.40, "contradiction", "(hard)"), (0.39, "contradiction", "(soft)"), (0.14, "hallucination", "")],
)
def test_hard_and_soft_contradictions(score: float, label: str, reason: str) -> None:
    samples = [a_labelled("1", pair="p"), a_labelled("2", pair="p")]
    second = decided(samples, contradiction=lambda premise, hypothesis: score)[1]
    assert (second.label, second.needs_review, second.contradiction_score) == (label, True, score)
    assert reason in second.reason


def test_each_later_member_meets_the_nearest_earlier_one_in_both_directions() -> None:
    seen: list[tuple[str, str]] = []

    def score(premise: str, hypothesis: str) -> float:
        seen.append((premise, hypothesis))
        return 1.0 if (premise, hypothesis) == ("c", "b") else 0.0

    samples = [
        a_labelled("1", "contradiction", "a", pair="p"),
        a_labelled("2", answer="x"),
        a_labelled("3", answer="b", pair="p"),
        a_labelled("4", answer="y", pair="q"),
        a_labelled("5", answer="c", pair="p"),
    ]
    found = decided(samples, contradiction=score)
    assert seen == [("a", "b"), ("b", "a"), ("b", "c"), ("c", "b")]
    assert [decision.contradiction_score for decision in found] == [None, None, 0.0, None, 1.0]


def test_no_answer_is_a_failure() -> None:
    first, second = decided([a_labelled("1", answer="", pair="p"), a_labelled("2", pair="p")])
    assert first.label is None
    assert first.as_output().error is not None
    assert second.contradiction_score is None
    (failed,) = FhriDetector().decide([a_labelled()], [a_failure()])
    assert failed.reason == "RuntimeError: no luck"


SCORES = [
    pytest.param("multi_ticker", ScoredSample(0.71, False), "accurate", id="above its threshold of .70"),
    pytest.param("multi_ticker", ScoredSample(0.70, False), "hallucination", id="at it"),
    pytest.param("numeric_kpi", ScoredSample(0.81, False), "accurate", id="the floor is the FHRI's alone"),
    pytest.param(None, ScoredSample(0.66, False), "accurate", id="no scenario is default, .65"),
    pytest.param(None, ScoredSample(0.64, False), "hallucination", id="below the default"),
    pytest.param("news", ScoredSample(0.99, True), "contradiction", id="what was called one stays one"),
    pytest.param("news", ScoredSample(None, True), "contradiction", id="even without a score"),
    pytest.param("news", ScoredSample(None, False), None, id="no score is a failure"),
]


@pytest.mark.parametrize(("scenario", "scored", "label"), SCORES)
def test_the_thresholds_of_scenarios_label_any_scores(
    scenario: str | None, scored: ScoredSample, label: str | None
) -> None:
    (output,) = labels_by_score([a_labelled(scenario=scenario)], [scored])
    assert output.extra.get("predicted_label") == label
    assert (output.error is None) == (label is not None)


def _scrambled(samples: Sequence[EvaluationSample], seed: int, *, labels: bool) -> list[EvaluationSample]:
    """The samples with other words of people, and, if asked for, with other true labels."""
    rng = random.Random(seed)
    changed = []
    for sample in samples:
        metadata = {
            **sample.metadata,
            "notes": f"accurate {rng.random()}",
            "rubric": [f"hallucination {rng.random()}"],
            "your_annotation": rng.choice(LABELS),
            "expected_behavior": rng.choice(LABELS),
            "ground_truth_hint": rng.choice(LABELS),
            "expected_scenario": rng.choice(sorted(SCENARIO_NAMES)),
        }
        own = {**sample.labels}
        if labels:
            own["ground_truth_label"] = rng.choice(LABELS)
        changed.append(EvaluationSample(sample.sample_id, sample.query, labels=own, metadata=metadata))
    return changed


@given(seed=st.integers(0, 2**32), labels=st.booleans())
@settings(max_examples=15, deadline=None)
def test_neither_labels_nor_the_words_of_people_change_a_prediction(seed: int, labels: bool) -> None:
    samples = list(demo_labels())
    before = [asdict(decision) for decision in decided(samples)]
    assert [asdict(d) for d in decided(_scrambled(samples, seed, labels=labels))] == before


@real_data
def test_the_index_without_a_leak_is_no_detector() -> None:
    samples = list(load_dataset(REAL / "data__evaluation_dataset.json"))
    found = decided(samples, contradiction=None)
    by_id = {decision.sample_id: decision.fhri for decision in found}
    assert (by_id["fhri_002"], by_id["fhri_062"]) == (0.432, 0.670)
    outputs = [decision.as_output() for decision in found]
    assert parse_metric("label_accuracy").compute(samples, outputs).value == pytest.approx(0.27)
    assert parse_metric("label_macro_f1").compute(samples, outputs).value == pytest.approx(0.150, abs=5e-4)
