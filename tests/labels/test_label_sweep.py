"""Sweeps: the quick way is the plain way, the rule is the rule, and a fitted figure is not a promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sklearn  # type: ignore[import-untyped]

from auepora_eval.labels.sweep import THRESHOLDS, ScoredLabels, sweep
from auepora_eval.text.label_terms import LABELS

ROW = st.tuples(
    st.sampled_from(LABELS),
    st.none() | st.sampled_from([0.0, 0.05, 0.3, 0.35, 0.65, 0.95, 1.0]),
    st.booleans(),
)


def _plainly(row: tuple[str, float | None, bool], threshold: float) -> str | None:
    _, score, contradiction = row
    if contradiction:
        return "contradiction"
    if score is None:
        return None
    return "accurate" if score > threshold else "hallucination"


@pytest.mark.filterwarnings("ignore")
@given(rows=st.lists(ROW, min_size=1, max_size=25))
@settings(max_examples=25, deadline=None)
def test_every_threshold_is_what_scikit_learn_says_of_the_plain_labels(
    rows: list[tuple[str, float | None, bool]],
) -> None:
    data = ScoredLabels(
        [row[0] for row in rows],
        [row[1] for row in rows],
        contradictions=[row[2] for row in rows],
    )
    result = sweep(data, folds=0)
    assert [row["threshold"] for row in result.parts[0].rows] == list(THRESHOLDS)
    for found in result.parts[0].rows[::3]:  # each third threshold: scikit-learn is slow
        labels = [(row[0], _plainly(row, found["threshold"] or 0)) for row in rows]
        pairs = [(label, predicted) for label, predicted in labels if predicted is not None]
        if not pairs:
            assert found["accuracy"] is None
            assert found["macro_f1"] is None
            continue
        true, predicted = zip(*pairs, strict=True)
        macro = sklearn.f1_score(true, predicted, labels=LABELS, average="macro", zero_division=0)
        assert found["macro_f1"] == pytest.approx(macro)
        assert found["accuracy"] == pytest.approx(sklearn.accuracy_score(true, predicted))
        recalls = sklearn.recall_score(true, predicted, labels=LABELS, average=None, zero_division=math.nan)
        for label, short in (("accurate", "accurate"), ("hallucination", "hall"), ("contradiction", "contr")):
            value = found[f"{short}_recall"]
            expected = recalls[LABELS.index(label)]
            assert value is None if math.isnan(expected) else value == pytest.approx(expected)


def test_a_detector_gains_nothing_by_giving_hallucinations_no_score() -> None:
    """Six of ten have a score, and they are accurate: what the detector says of the others is not known."""
    labels = ["accurate"] * 6 + ["hallucination"] * 4
    result = sweep(ScoredLabels(labels, [0.9] * 6 + [None] * 4))
    assert result.samples_without_score == 4
    for figures, bounds in (
        (result.fitted, result.fitted_bounds_if_failed),
        (result.cross_validated, result.cross_validated_bounds_if_failed),
    ):
        assert figures is not None
        assert bounds is not None
        assert (figures["accuracy"], figures["hall_recall"]) == (1.0, None)
        assert (bounds["accuracy"], bounds["hall_recall"]) == ([0.6, 1.0], [0.0, 1.0])
        assert bounds["macro_f1"] == pytest.approx([12 / 16 / 3, 2 / 3])
    assert not result.parts[0].meets_constraint


@given(rows=st.lists(ROW, min_size=1, max_size=12), data=st.data())
@settings(max_examples=60, deadline=None)
def test_bounds_hold_whatever_the_missing_labels_are(
    rows: list[tuple[str, float | None, bool]], data: st.DataObject
) -> None:
    """The figures at the chosen threshold, with any labels for the failures, are within the bounds."""
    labels, contradictions = [row[0] for row in rows], [row[2] for row in rows]
    scored = ScoredLabels(labels, [row[1] for row in rows], contradictions=contradictions)
    result = sweep(scored, folds=0)
    bounds, threshold = result.fitted_bounds_if_failed, result.parts[0].chosen_threshold
    predicted = [_plainly(row, threshold or 0) for row in rows]
    assert (bounds is None) == (None not in predicted)
    if bounds is None:
        return
    filled = [label or data.draw(st.sampled_from(LABELS)) for label in predicted]
    accuracy = sklearn.accuracy_score(labels, filled)
    macro = sklearn.f1_score(labels, filled, labels=LABELS, average="macro", zero_division=0)
    for name, value in (("accuracy", accuracy), ("macro_f1", macro)):
        low, high = bounds[name] or (0.0, 1.0)
        assert low - 1e-9 <= value <= high + 1e-9


def _data(accurate: list[float], hallucinated: list[float]) -> ScoredLabels:
    labels = ["accurate"] * len(accurate) + ["hallucination"] * len(hallucinated)
    return ScoredLabels(labels, [*accurate, *hallucinated])


@pytest.mark.parametrize(
    ("accurate", "hallucinated", "chosen", "meets"),
    [
        pytest.param([0.8, 0.9], [0.1, 0.2], 0.2, True, id="apart: the lowest that separates"),
        pytest.param([0.32, 0.9], [0.31, 0.6], 0.6, True, id="four of five must be found, whatever it costs"),
        pytest.param(
            [0.45, *[0.9] * 4], [*[0.1] * 4, 0.5], 0.5, True, id="of equals the one that finds more"
        ),
        pytest.param([0.5], [1.0], 0.05, False, id="no threshold finds one that scores 1"),
        pytest.param([0.5, 0.6], [], 0.05, True, id="no hallucination, no constraint"),
    ],
)
def test_the_rule(accurate: list[float], hallucinated: list[float], chosen: float, meets: bool) -> None:
    part = sweep(_data(accurate, hallucinated), folds=0).parts[0]
    assert (part.chosen_threshold, part.meets_constraint) == (chosen, meets)


@pytest.mark.parametrize(
    ("accurate", "hallucinated", "robustness"),
    [
        pytest.param([0.8] * 9, [0.1] * 9, "sensitive", id="at the edge of the gap"),
        pytest.param([0.5], [], "unknown", id="nothing to separate"),
        pytest.param([0.02] * 50 + [0.9] * 50, [0.01] * 20, "robust", id="nothing lies between"),
        # One accurate answer (or three) is lost next door: macro-F1 is lower by a third of the two F1s' loss.
        pytest.param([0.07] + [0.9] * 12, [0.01] * 25, "robust", id="by (1/25 + 1/51) / 3 = .0199"),
        pytest.param([0.07] + [0.9] * 14, [0.01] * 19, "moderate", id="by (1/29 + 1/39) / 3 = .0200"),
        pytest.param([0.07] + [0.9] * 5, [0.01] * 8, "moderate", id="by (1/11 + 1/17) / 3 = .0499"),
        pytest.param([0.07] * 3 + [0.9] * 17, [0.01] * 20, "sensitive", id="by (3/37 + 3/43) / 3 = .0503"),
    ],
)
def test_robustness(accurate: list[float], hallucinated: list[float], robustness: str) -> None:
    assert sweep(_data(accurate, hallucinated), folds=0).parts[0].robustness == robustness


def test_a_fitted_figure_of_noise_is_not_confirmed() -> None:
    rng = np.random.default_rng(3)
    labels = [LABELS[n] for n in rng.integers(2, size=60)]
    scenarios = [f"s{n}" for n in rng.integers(6, size=60)]
    result = sweep(ScoredLabels(labels, rng.random(60).tolist(), scenarios=scenarios), per_scenario=True)
    assert result.cross_validated is not None
    fitted, checked = result.fitted["macro_f1"], result.cross_validated["macro_f1"]
    assert fitted is not None
    assert checked is not None
    assert checked < fitted
    assert result.cross_validated_macro_f1_interval is not None
    low, high = result.cross_validated_macro_f1_interval
    assert low <= checked <= high


def test_the_threshold_of_a_sample_is_chosen_without_it() -> None:
    # Leave-one-out by hand: five rows, five folds.
    labels = ["accurate", "accurate", "hallucination", "hallucination", "hallucination"]
    scores = [0.52, 0.93, 0.22, 0.47, 0.88]
    result = sweep(ScoredLabels(labels, scores), folds=5)
    right = 0
    for place in range(5):
        rest = [n for n in range(5) if n != place]
        chosen = (
            sweep(ScoredLabels([labels[n] for n in rest], [scores[n] for n in rest]), folds=0)
            .parts[0]
            .chosen_threshold
        )
        assert chosen is not None
        right += labels[place] == ("accurate" if scores[place] > chosen else "hallucination")
    assert result.cross_validated is not None
    assert result.cross_validated["accuracy"] == right / 5


@given(
    clusters=st.lists(st.integers(0, 5), min_size=2, max_size=30),
    folds=st.integers(2, 5),
    seed=st.integers(0, 9),
)
@settings(max_examples=40, deadline=None)
def test_a_cluster_is_never_split(clusters: list[int], folds: int, seed: int) -> None:
    from auepora_eval.labels.sweep import _folds

    data = ScoredLabels(["accurate"] * len(clusters), [0.5] * len(clusters), clusters=clusters)
    fold_of = _folds(data, folds, seed)
    assert len({(cluster, fold) for cluster, fold in zip(clusters, fold_of, strict=True)}) == len(
        set(clusters)
    )
