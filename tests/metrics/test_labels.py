"""Metrics of labels: scikit-learn as the judge, and failures bounded by trying everything."""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sklearn  # type: ignore[import-untyped]

from auepora_eval.core.types import EvaluationSample, Response, SystemOutputs
from auepora_eval.errors import ScoringError
from auepora_eval.metrics.labels import predicted_label
from auepora_eval.metrics.parse import parse_metric
from auepora_eval.text.label_terms import LABELS
from tests.builders import a_failure, a_sample, an_output

NAMES = [
    "label_accuracy",
    "label_macro_f1",
    "label_macro_f1[supported=true]",
    "label_balanced_accuracy",
    "label_kappa",
    "label_mcc",
    *(f"label_{kind}[{label}]" for kind in ("precision", "recall", "f1") for label in LABELS),
]
LABEL = st.sampled_from(LABELS)


def _labelled(label: str, place: int = 0) -> EvaluationSample:
    return a_sample(str(place), labels={"ground_truth_label": label})


def _predicted(label: str) -> SystemOutputs:
    return an_output(extra={"predicted_label": label})


def _value(name: str, true: list[str], predicted: list[str]) -> float:
    samples = [_labelled(label, place) for place, label in enumerate(true)]
    return parse_metric(name).compute(samples, [_predicted(label) for label in predicted]).value


@pytest.mark.filterwarnings("ignore")
@given(pairs=st.lists(st.tuples(LABEL, LABEL), min_size=1, max_size=25))
@settings(max_examples=30, deadline=None)
def test_scikit_learn_agrees(pairs: list[tuple[str, str]]) -> None:
    true, predicted = ([pair[side] for pair in pairs] for side in (0, 1))
    same = pytest.approx
    assert _value("label_accuracy", true, predicted) == same(sklearn.accuracy_score(true, predicted))
    macro = sklearn.f1_score(true, predicted, labels=LABELS, average="macro", zero_division=0)
    assert _value("label_macro_f1", true, predicted) == same(macro)
    assert _value("label_mcc", true, predicted) == same(sklearn.matthews_corrcoef(true, predicted))
    by_label = sklearn.precision_recall_fscore_support(true, predicted, labels=LABELS, zero_division=math.nan)
    for place, label in enumerate(LABELS):
        assert _value(f"label_precision[{label}]", true, predicted) == same(by_label[0][place], nan_ok=True)
        assert _value(f"label_recall[{label}]", true, predicted) == same(by_label[1][place], nan_ok=True)


@pytest.mark.parametrize("name", NAMES)
@given(
    known=st.lists(st.tuples(LABEL, LABEL), max_size=5),
    failed=st.lists(LABEL, min_size=1, max_size=3),
)
@settings(max_examples=12, deadline=None)
def test_no_way_to_label_the_failures_is_outside_the_bounds(
    name: str, known: list[tuple[str, str]], failed: list[str]
) -> None:
    true = [label for label, _ in known] + failed
    samples = [_labelled(label, place) for place, label in enumerate(true)]
    outputs = [_predicted(label) for _, label in known] + [a_failure()] * len(failed)
    result = parse_metric(name).compute(samples, outputs)
    assert result.details["num_failed"] == len(failed)
    possible = [
        _value(name, true, [label for _, label in known] + list(filled))
        for filled in product(LABELS, repeat=len(failed))
    ]
    possible = [value for value in possible if not math.isnan(value)]
    bounds = result.details["bounds_if_failed"]
    assert bounds is not None
    if possible and all(bound is not None for bound in bounds):
        assert bounds[0] - 1e-9 <= min(possible)
        assert max(possible) <= bounds[1] + 1e-9


@pytest.mark.parametrize(
    "output",
    [
        pytest.param(_predicted("accurate"), id="extra"),
        pytest.param(an_output(answer=" Accurate\n"), id="the whole text"),
        pytest.param(
            SystemOutputs([], Response("so it is", structured={"predicted_label": "accurate"})),
            id="structured",
        ),
        pytest.param(
            SystemOutputs([], Response("so it is", metadata={"predicted_label": "accurate"})), id="metadata"
        ),
    ],
)
def test_where_a_predicted_label_is_found(output: SystemOutputs) -> None:
    assert predicted_label(output) == "accurate"


@pytest.mark.parametrize("output", [an_output(answer="it is accurate"), _predicted("acurate"), an_output()])
def test_what_is_no_label_is_a_failure(output: SystemOutputs) -> None:
    with pytest.raises(ScoringError, match="use accurate, hallucination, contradiction"):
        predicted_label(output)
    result = parse_metric("label_accuracy").compute([_labelled("accurate")], [output])
    assert result.details["num_failed"] == 1


def test_an_unknown_true_label_is_a_failure_without_bounds() -> None:
    result = parse_metric("label_macro_f1").compute([_labelled("maybe")], [_predicted("accurate")])
    assert result.details["num_failed"] == 1
    assert result.details["bounds_if_failed"] is None
