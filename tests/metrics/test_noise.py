"""What noise does to a score: by ratio, and pair by pair."""

from __future__ import annotations

import math
import statistics
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import linregress

from auepora_eval.core.types import EvaluationSample, MetricResult, SystemOutputs
from auepora_eval.metrics.parse import parse_metric
from tests.builders import a_failure, a_sample, an_output

World = tuple[list[EvaluationSample], list[SystemOutputs]]
RATIOS = (0.0, 0.2, 0.4, 0.6, 0.8)

# Published accuracies in % at those ratios, n = 300 (Chen et al., RGB, AAAI 2024), and what follows from
# them: slope in points, drop in points, retention (shared/design/metrics.md, 3.3).
RGB = {
    "ChatGPT en": ((96.33, 94.67, 94.00, 90.00, 76.00), (-22.67, 20.33, 0.789)),
    "ChatGLM2-6B en": ((91.33, 89.67, 83.00, 77.33, 57.33), (-40.17, 34.00, 0.628)),
    "Vicuna-7B zh": ((85.67, 82.67, 77.00, 69.33, 49.67), (-42.67, 36.00, 0.580)),
}


def noisy_world(by_ratio: dict[float, list[bool]]) -> World:
    """Question n at ratio r is answered right if by_ratio[r][n]; all ratios of a question are one cluster."""
    samples, outputs = [], []
    for ratio, rights in by_ratio.items():
        for n, right in enumerate(rights):
            labels = {"noise_ratio": ratio, "scenario": "noise"}
            samples.append(a_sample(f"{n}@{ratio}", reference="Tampa", cluster=str(n), labels=labels))
            outputs.append(an_output(answer="Tampa" if right else "Glendale"))
    return samples, outputs


def computed(name: str, world: World) -> MetricResult:
    return parse_metric(name).compute(*world)


@pytest.mark.parametrize(("accuracies", "expected"), RGB.values(), ids=RGB)
def test_rgbs_published_table(accuracies: tuple[float, ...], expected: tuple[float, ...]) -> None:
    counts = [round(accuracy * 3) for accuracy in accuracies]
    world = noisy_world({r: [n < count for n in range(300)] for r, count in zip(RATIOS, counts, strict=True)})
    slope, drop, retention = expected
    for ratio, accuracy in zip(RATIOS, accuracies, strict=True):
        assert round(100 * computed(f"noise_accuracy@{ratio}", world).value, 2) == accuracy
    assert round(100 * computed("noise_slope", world).value, 2) == slope
    assert round(100 * computed("noise_drop", world).value, 2) == drop
    assert round(computed("noise_retention", world).value, 3) == retention


cells = st.tuples(st.sampled_from((0.0, 0.1 + 0.2, 0.5, 1.0)), st.booleans())


@given(st.lists(cells, min_size=1, max_size=25))
@settings(max_examples=60, deadline=None)
def test_plain_python_agrees(pairs: list[tuple[float, bool]]) -> None:
    pairs = [(round(ratio, 9), right) for ratio, right in pairs]
    samples = [a_sample(str(n), reference="a", labels={"noise_ratio": r}) for n, (r, _) in enumerate(pairs)]
    world = samples, [an_output(answer="a" if right else "b") for _, right in pairs]
    levels = sorted({ratio for ratio, _ in pairs})
    means = {level: statistics.fmean(s for r, s in pairs if r == level) for level in levels}
    for level in levels:
        assert computed(f"noise_accuracy@{level}", world).value == pytest.approx(means[level])
    expected = dict.fromkeys(("noise_slope", "noise_drop", "noise_retention"), math.nan)
    if len(levels) > 1:
        if any(right for _, right in pairs):  # else there is nothing to lose
            expected["noise_slope"] = linregress([r for r, _ in pairs], [float(s) for _, s in pairs]).slope
        if levels[0] == 0 and means[0.0]:
            expected["noise_drop"] = means[0.0] - means[levels[-1]]
            expected["noise_retention"] = means[levels[-1]] / means[0.0]
    for name, value in expected.items():
        assert computed(name, world).value == pytest.approx(value, nan_ok=True, abs=1e-12), name


@pytest.mark.parametrize(
    ("ratios", "name", "reason"),
    [
        pytest.param((0.2, 0.8), "noise_drop", "no sample has noise_ratio 0", id="no clean samples"),
        pytest.param((0.0,), "noise_drop", "the same noise_ratio", id="only clean samples"),
        pytest.param((0.5,), "noise_slope", "the same noise_ratio", id="no slope of a point"),
        pytest.param((0.0, 0.5), "noise_accuracy@0.7", "not 0.7", id="another ratio"),
    ],
)
def test_what_cannot_be_said_is_not_said(ratios: tuple[float, ...], name: str, reason: str) -> None:
    result = computed(name, noisy_world({ratio: [True] for ratio in ratios}))
    assert math.isnan(result.value)
    assert reason in result.scores[0].reason


@pytest.mark.parametrize("name", ["noise_drop", "noise_retention", "noise_slope"])
def test_without_scores_of_the_base_its_own_reason_is_given(name: str) -> None:
    result = computed(f"{name}[numeric_match]", noisy_world({0.0: [True], 0.8: [False]}))
    assert {score.reason for score in result.scores} == {"the reference has no number in digits"}


@pytest.mark.parametrize("label", [True, "much", -0.1, 1.5, math.nan, [0.5]])
def test_a_ratio_that_is_none_is_left_out_with_the_reason(label: Any) -> None:
    samples, outputs = noisy_world({0.0: [True], 0.5: [True]})
    samples.append(a_sample("odd", reference="x", labels={"noise_ratio": label}))
    for name in ("noise_accuracy", "noise_slope", "noise_drop", "noise_retention"):
        for output in (an_output(answer="y"), a_failure()):
            result = parse_metric(name).compute(samples, [*outputs, output])
            assert "not a number from 0 to 1" in result.scores[-1].reason
            assert result.details["num_failed"] == 0


def test_ratios_in_between_and_their_failures_do_not_touch_the_drop() -> None:
    samples, outputs = noisy_world({0.0: [True], 0.4: [True], 0.8: [False]})
    result = parse_metric("noise_drop").compute(samples, [outputs[0], a_failure(), outputs[2]])
    assert (result.value, result.details["num_samples"], result.details["num_failed"]) == (1.0, 2, 0)
    assert result.scores[1].reason == "its noise_ratio 0.4 is neither 0 nor 0.8"


@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        # right at 0, wrong at 0.8; the failed one at 0 or at 0.8 could have been either
        ("noise_drop", {0.0: [0.5, 1.0], 0.8: [0.5, 1.0]}),
        ("noise_retention", {0.0: [0.0, 0.0], 0.8: [0.0, 0.5]}),
        ("noise_slope", {0.0: [-1.25, -0.625], 0.8: [-1.25, -0.625]}),
    ],
)
def test_what_a_failed_answer_could_have_made_of_it(name: str, bounds: dict[float, list[float]]) -> None:
    for ratio, expected in bounds.items():
        samples, outputs = noisy_world({0.0: [True], 0.8: [False]})
        samples.append(a_sample("failed", reference="x", labels={"noise_ratio": ratio}))
        result = parse_metric(name).compute(samples, [*outputs, a_failure()])
        assert result.details["bounds_if_failed"] == pytest.approx(expected), ratio


def variants(*answers: tuple[str, str, bool]) -> World:
    """(base question, scenario, right): scenario "base" is the question itself."""
    samples, outputs = [], []
    for n, (question, kind, right) in enumerate(answers):
        labels = {"scenario": kind} | ({} if kind == "base" else {"variant_of": question})
        name = question if kind == "base" else f"{question}-{n}"
        samples.append(a_sample(name, reference="Tampa", cluster=question, labels=labels))
        outputs.append(an_output(answer="Tampa" if right else "Glendale"))
    return samples, outputs


PAIRS = variants(
    ("q1", "typo", False),  # before its base question: order does not matter
    ("q1", "base", True),
    ("q1", "paraphrase", True),
    ("q2", "base", False),
    ("q2", "typo", True),
    ("q2", "typo", False),
    ("q3", "base", True),
    ("q3", "noise", True),
    ("q3", "counterfactual", False),
    ("q4", "typo", False),
)


@pytest.mark.parametrize(
    ("name", "value", "counted"),
    [
        pytest.param("flip_rate", 1 / 3, 3, id="q1 twice and q3; q2 was wrong before"),
        pytest.param("flip_rate[scenario=typo]", 1.0, 1, id="q1's typo"),
        pytest.param("flip_rate[scenario=paraphrase]", 0.0, 1, id="q1's paraphrase"),
        pytest.param("flip_rate[scenario=counterfactual]", 1.0, 1, id="asked for by name"),
        pytest.param("flip_rate[scenario=dialect]", math.nan, 0, id="none of that kind"),
    ],
)
def test_flip_rate(name: str, value: float, counted: int) -> None:
    result = computed(name, PAIRS)
    assert result.value == pytest.approx(value, nan_ok=True)
    assert result.details["denominator"] == counted


def test_variant_drop_is_paired() -> None:
    result = computed("variant_drop", PAIRS)
    assert [score.value for score in result.scores] == [
        1.0,
        None,
        0.0,
        None,
        -1.0,
        0.0,
        None,
        0.0,
        None,
        None,
    ]
    assert result.value == pytest.approx((1 + 0 - 1 + 0 + 0) / 5)
    assert result.scores[8].reason == "its scenario is 'counterfactual', not noise of any kind"
    assert result.scores[9].reason == "its base question 'q4' is not among the samples"


def test_a_failed_base_question_leaves_its_variants_open() -> None:
    samples, outputs = variants(
        ("q1", "base", True), ("q1", "typo", True), ("q2", "base", True), ("q2", "typo", True)
    )
    for name, bounds in (("flip_rate", [0.0, 0.5]), ("variant_drop", [-0.5, 0.5])):
        result = parse_metric(name).compute(samples, [a_failure(), *outputs[1:]])
        assert result.scores[1].failed
        assert result.scores[1].reason == "its base question has no score: RuntimeError: no luck"
        assert result.details["bounds_if_failed"] == bounds


@pytest.mark.parametrize("name", ["noise_slope", "noise_drop", "noise_retention"])
def test_equal_scores_are_no_proof_that_noise_does_nothing(name: str) -> None:
    details = computed(name, noisy_world({0.0: [True] * 3, 0.8: [True] * 3})).details
    limits = details["confidence_interval"]
    assert limits is None if name == "noise_slope" else limits[1] - limits[0] > 0.9
