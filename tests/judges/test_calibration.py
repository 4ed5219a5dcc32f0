"""How good a judge is, by labels: against other tools, in JSON, and in the words beside a value."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from auepora_eval.judges.trust.calibration import JudgeCalibration, calibrate
from auepora_eval.judges.trust.labels import Labelled


def calibrated(
    scores: Sequence[float | None], labels: list[float], ratings: list[dict[str, float]] | None = None
) -> JudgeCalibration:
    rated = ratings or [{} for _ in labels]
    claims = [Labelled((), "", label >= 0.5, ratings=each) for label, each in zip(labels, rated, strict=True)]
    return calibrate("me", scores, claims, date="d")


def test_claims_without_a_score_are_left_out() -> None:
    found = calibrated([0.9, None, 0.2, 0.8], [1.0, 1.0, 0.0, 1.0])
    assert (found.labels, found.sensitivity.of) == (3, 2)
    assert calibrated([None, None], [1.0, 0.0]).accuracy.value is None, "not measured is not 0"


def test_labels_of_one_kind_give_no_area_and_no_correction() -> None:
    found = calibrated([0.9, 0.8, 0.2], [1.0, 1.0, 1.0])
    assert found.auroc.value is None
    assert "all yes or all no" in found.distrust
    assert "AUROC n/a" in str(found)


def test_people_among_themselves() -> None:
    ratings = [{"ada": 1.0, "ben": 1.0}, {"ada": 0.0, "ben": 0.0}, {"ada": 1.0, "ben": 0.0}] * 20
    labels = [sum(each.values()) / 2 for each in ratings]
    found = calibrated(labels, labels, ratings)
    assert found.people is not None
    assert found.people.value == pytest.approx(0.336, abs=0.01)
    assert "people among themselves 0.34 [" in str(found)


def test_the_two_parameters_turn_scores_into_chances() -> None:
    rng = random.Random(2)
    scores = [rng.random() for _ in range(4_000)]
    labels = [float(rng.random() < 0.5 + 0.3 * (score - 0.5)) for score in scores]  # far too sure
    found = calibrated(scores, labels)
    assert found.chance(0.9) == pytest.approx(0.62, abs=0.03)
    assert found.chance(0.1) == pytest.approx(0.38, abs=0.03)
    assert found.calibration_error is not None
    assert found.calibration_error > 0.1
