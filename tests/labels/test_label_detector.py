"""The FHRI detector: the order of its rules, its pairs, its profiles, and what it must not know."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from auepora_eval.core.types import EvaluationSample, SystemOutputs
from auepora_eval.demo.world import demo_labels
from auepora_eval.errors import DataError, ScoringError
from auepora_eval.io.datasets.label_sets import ScoredSample
from auepora_eval.io.loader import load_dataset
from auepora_eval.labels.detector import FhriDetector, LabelDecision, stored_output
from auepora_eval.labels.profile import ContradictionLimits, labels_by_score, load_profile
from auepora_eval.metrics.parse import parse_metric
from auepora_eval.text.label_terms import LABELS, SCENARIO_NAMES
from tests.builders import a_failure, an_output
from tests.labels.labelled import REAL, a_labelled, real_data

SEED = load_profile("seed")


def decided(samples: Sequence[EvaluationSample], **options: Any) -> list[LabelDecision]:
    detector = FhriDetector(options.pop("profile", SEED), **options)
    return detector.decide(samples, [stored_output(sample) for sample in samples])


BY_SCENARIO = {
    #                  seed  final  G     N     T     C     E
    "numeric_kpi": (0.80, 0.70, 0.20, 0.50, 0.20, 0.05, 0.05),
    "intraday": (0.80, 0.65, 0.20, 0.50, 0.20, 0.05, 0.05),
    "directional": (0.75, 0.65, 0.25, 0.45, 0.20, 0.05, 0.05),
    "regulatory": (0.75, 0.55, 0.20, 0.05, 0.20, 0.40, 0.15),
    "fundamentals": (0.70, 0.70, 0.25, 0.40, 0.15, 0.10, 0.10),
    "multi_ticker": (0.70, 0.55, 0.30, 0.30, 0.15, 0.15, 0.10),
    "news": (0.70, 0.60, 0.45, 0.10, 0.20, 0.15, 0.10),
    "crypto": (0.70, 0.60, 0.35, 0.15, 0.20, 0.20, 0.10),
    "advice": (0.55, 0.60, 0.25, 0.30, 0.15, 0.10, 0.20),
    "portfolio_advice": (0.55, 0.50, 0.25, 0.30, 0.15, 0.10, 0.20),
    "default": (0.65, 0.70, 0.40, 0.20, 0.15, 0.15, 0.10),
}


@pytest.mark.parametrize(("place", "name", "floor"), [(0, "seed", 0.85), (1, "final", None)])
def test_the_included_profiles(place: int, name: str, floor: float | None) -> None:
    profile = load_profile(name)
    assert set(BY_SCENARIO) == set(SCENARIO_NAMES)
    assert profile.thresholds == {scenario: row[place] for scenario, row in BY_SCENARIO.items()}
    assert profile.weights == {
        scenario: dict(zip("GNTCE", row[2:], strict=True)) for scenario, row in BY_SCENARIO.items()
    }
    assert (profile.name, profile.high_risk.floor) == (name, floor)
    assert profile.high_risk.scenarios == {"numeric_kpi", "intraday", "directional", "regulatory"}
    assert profile.high_risk.by_question
    assert profile.contradiction == ContradictionLimits(hard=0.40, soft=0.15)


def test_a_profile_may_have_the_name_of_an_included_one(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: seed\nthresholds: {news: 0.9}\n")
    assert load_profile(path) == replace(SEED, thresholds={**SEED.thresholds, "news": 0.9})
    path.write_text("thresholds: {news: 0.7}\n")
    assert load_profile(path) == replace(SEED, name="mine.yaml")


def test_at_the_floor_nothing_is_breached() -> None:
    sample = a_labelled(scenario="regulatory")
    index = decided([sample])[0].fhri
    assert index is not None
    low = {**SEED.thresholds, "regulatory": 0.01}
    for floor, label in ((index, "accurate"), (index + 0.001, "hallucination")):
        profile = replace(SEED, high_risk=replace(SEED.high_risk, floor=floor), thresholds=low)
        assert decided([sample], profile=profile)[0].label == label


def test_a_profile_of_ones_own_needs_only_what_differs(tmp_path: Path) -> None:
    path = tmp_path / "strict.yaml"
    path.write_text("name: strict\nbase: final\nthresholds: {news: 0.9}\ncontradiction: {hard: 0.7}\n")
    strict = load_profile(path)
    assert (strict.name, strict.thresholds["news"], strict.thresholds["crypto"]) == ("strict", 0.9, 0.6)
    assert strict.contradiction == ContradictionLimits(hard=0.7, soft=0.15)
    assert strict.high_risk.floor is None


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "weights: {multi_tiker: {G: 1}}",
            "p.yaml: the scenario 'multi_tiker' has no threshold. Did you mean multi_ticker?",
        ),
        ("thresholds: {news: 1.5}", "p.yaml: thresholds.news: 1.5 is not a number from 0 to 1."),
        ("thresholds: {news: true}", "p.yaml: thresholds[...]: a number was expected, not a boolean."),
        ("treshold: 0.5", "p.yaml: there is no field 'treshold'. Did you mean thresholds?"),
        ("thresholds: 0.5", "p.yaml: thresholds: an object was expected, not a number."),
        ("weights: {news: {G: 0, N: 0}}", "p.yaml: weights.news: {'G': 0.0, 'N': 0.0} has no weight above 0"),
        (
            "weights: {news: {X: 1}}",
            "p.yaml: weights.news: {'X': 1.0} has no weight above 0, or",
        ),
        ("base: null", "p.yaml: base: a string was expected, not null."),
        ("base: [seed]", "p.yaml: base: a string was expected, not an array."),
        ("name: 3", "p.yaml: name: a string was expected, not a number."),
        ("thresholds: null", "p.yaml: thresholds: an object was expected, not null."),
        ("weights: {news: null}", "p.yaml: weights[...]: an object was expected, not null."),
        ("high_risk: {scenarios: [[news]]}", "p.yaml: high_risk.scenarios[0]: a string was expected"),
        ("high_risk: {scenarios: null}", "p.yaml: high_risk.scenarios: an array was expected, not null."),
        ("high_risk: {by_question: 'no'}", "p.yaml: high_risk.by_question: true or false was expected"),
        ("contradiction: {soft: 0.5}", "p.yaml: contradiction.soft: 0.5 is above contradiction.hard, 0.4."),
        ("contradiction: {hard: 0.1}", "p.yaml: contradiction.soft: 0.15 is above contradiction.hard, 0.1."),
        ("base: other", "p.yaml: base: 'other' is not known."),
        (
            "high_risk: {scenarios: [sea]}",
            "p.yaml: the scenario 'sea' has no threshold. Add it to thresholds.",
        ),
        ("[1]", "p.yaml: an object was expected."),
    ],
)
def test_a_wrong_profile_is_refused(tmp_path: Path, text: str, error: str) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        load_profile(path)
    assert str(caught.value).startswith(error)


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
    (decision,) = FhriDetector(SEED).decide([a_labelled(scenario=scenario)], [output])
    assert (decision.label, decision.reason) == (label, reason)


def test_at_the_threshold(tmp_path: Path) -> None:
    sample = a_labelled(scenario="advice")
    index = decided([sample])[0].fhri
    path = tmp_path / "p.yaml"
    path.write_text(f"thresholds: {{advice: {index}}}")
    profile = load_profile(path)
    assert decided([sample], profile=profile)[0].label == "hallucination"
    assert decided([sample], profile=replace(profile, inclusive=True))[0].label == "accurate"


@pytest.mark.parametrize(
    ("score", "soft", "label", "review"),
    [
        (0.40, "label", "contradiction", True),
        (0.40, "flag", "contradiction", True),
        (0.39, "label", "contradiction", True),
        (0.39, "flag", "hallucination", True),
        (0.14, "label", "hallucination", True),
    ],
)
def test_hard_and_soft_contradictions(score: float, soft: Any, label: str, review: bool) -> None:
    samples = [a_labelled("1", pair="p"), a_labelled("2", pair="p")]
    profile = replace(SEED, contradiction=ContradictionLimits(0.40, 0.15, soft))
    second = decided(samples, profile=profile, contradiction=lambda premise, hypothesis: score)[1]
    assert (second.label, second.needs_review, second.contradiction_score) == (label, review, score)


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


def test_where_the_nearest_earlier_one_failed_the_next_earlier_one_is_met() -> None:
    seen: list[tuple[str, str]] = []

    def score(premise: str, hypothesis: str) -> float:
        seen.append((premise, hypothesis))
        return 0.0

    samples = [a_labelled(str(n), answer=answer, pair="p") for n, answer in enumerate(["a", "", "c"])]
    decided(samples, contradiction=score)
    assert seen == [("a", "c"), ("c", "a")]


def test_no_answer_is_a_failure() -> None:
    first, second = decided([a_labelled("1", answer="", pair="p"), a_labelled("2", pair="p")])
    assert first.label is None
    assert first.as_output().error is not None
    assert second.contradiction_score is None
    (failed,) = FhriDetector(SEED).decide([a_labelled()], [a_failure()])
    assert failed.reason == "RuntimeError: no luck"


@pytest.mark.parametrize(
    "stored",
    [
        None,
        "The pier",
        ["a"],
        {"answer": 3},
        {"answer": "a", "passages": "b"},
        {"answer": "a", "turns": [1, 2]},
    ],
)
def test_any_stored_output_is_judged_or_a_failure(stored: Any) -> None:
    sample = a_labelled(scenario="news", pair="p")
    sample.metadata = {"stored_output": stored}
    sample.labels["contradiction_pair_id"] = ["p"]
    (decision,) = decided([sample])
    assert decision.label == (
        "hallucination" if isinstance(stored, dict) and stored["answer"] == "a" else None
    )


def test_a_contradiction_score_is_a_share() -> None:
    samples = [a_labelled("1", pair="p"), a_labelled("2", pair="p")]
    wrong: Any
    for wrong in (7.0, -0.1, float("nan"), "high", None, [0.5]):
        with pytest.raises(ScoringError, match="a contradiction is scored from 0 to 1, not"):
            decided(samples, contradiction=lambda premise, hypothesis, said=wrong: said)


def test_a_sample_without_a_scenario_gets_the_default() -> None:
    samples = [a_labelled("1", scenario="news"), a_labelled("2")]
    assert [decision.scenario for decision in decided(samples)] == ["news", "default"]


def test_a_profile_may_have_scenarios_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="sample '1': the profile 'seed' has no scenario 'sea'"):
        decided([a_labelled(scenario="sea")])
    path = tmp_path / "mine.yaml"
    path.write_text("thresholds: {sea: 0.01}\nweights: {sea: {N: 1}}\n")
    profile = load_profile(path)
    assert profile.own_scenarios == ["sea"]
    (decision,) = decided([a_labelled(scenario="sea")], profile=profile)
    assert (decision.scenario, decision.threshold, decision.label) == ("sea", 0.01, "accurate")
    assert decision.fhri == 0.5  # N alone: neither a figure nor a direction


def test_a_profile_may_leave_contradictions_out(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("contradiction: null\n")
    samples = [a_labelled("1", pair="p"), a_labelled("2", pair="p")]
    second = decided(samples, profile=load_profile(path), contradiction=lambda premise, hypothesis: 1.0)[1]
    assert (second.label, second.contradiction_score) == ("hallucination", None)


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
    (output,) = labels_by_score([a_labelled(scenario=scenario)], [scored], SEED)
    assert output.extra.get("predicted_label") == label
    assert (output.error is None) == (label is not None)


def test_an_answer_that_nothing_scores_is_a_failure() -> None:
    weights = {name: {"E": 1.0} for name in SEED.weights}  # and there is no entropy
    (decision,) = decided([a_labelled()], profile=replace(SEED, weights=weights))
    assert (decision.label, decision.reason) == (None, "there is nothing to score it by")


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
@pytest.mark.parametrize("labels", [False, True])
def test_the_same_on_the_public_label_set(labels: bool) -> None:
    samples = list(load_dataset(REAL / "data__evaluation_dataset.json"))
    assert decided(_scrambled(samples, 7, labels=labels)) == decided(samples)


@real_data
def test_the_index_without_a_leak_is_no_detector() -> None:
    samples = list(load_dataset(REAL / "data__evaluation_dataset.json"))
    found = decided(samples, contradiction=None)
    by_id = {decision.sample_id: decision.fhri for decision in found}
    assert (by_id["fhri_002"], by_id["fhri_062"]) == (0.432, 0.670)
    outputs = [decision.as_output() for decision in found]
    assert parse_metric("label_accuracy").compute(samples, outputs).value == pytest.approx(0.27)
    assert parse_metric("label_macro_f1").compute(samples, outputs).value == pytest.approx(0.150, abs=5e-4)
