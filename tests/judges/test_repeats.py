"""The variance of repeated verdicts, split: known parts come back."""

from __future__ import annotations

import math

import numpy as np
import pytest

from auepora_eval.errors import DataError
from auepora_eval.judges.trust.repeats import self_consistency, variance_parts


def test_known_parts_come_back() -> None:
    rng = np.random.default_rng(3)
    systems, samples, repeats = 3, 4_000, 4
    scores = (
        rng.normal(0, 0.3, (1, samples, 1))
        + np.array([-0.1, 0.0, 0.1]).reshape(-1, 1, 1)  # a variance of 0.01
        + rng.normal(0, 0.2, (systems, samples, 1))  # systems differ on some questions
        + rng.normal(0, 0.1, (systems, samples, repeats))
    )
    parts = variance_parts(scores)
    assert parts.sample == pytest.approx(0.09, rel=0.08)
    assert parts.system == pytest.approx(0.01 + 0.04, rel=0.08)
    assert parts.judge == pytest.approx(0.01, rel=0.05)
    assert "samples 61%, systems 33%, judge 7%" in str(parts)


def test_one_system_has_no_part_of_systems() -> None:
    rng = np.random.default_rng(4)
    scores = rng.normal(0, 0.3, (5_000, 1)) + rng.normal(0, 0.3, (5_000, 2))
    parts = variance_parts(scores)
    assert parts.system == 0.0
    assert parts.judge / parts.total == pytest.approx(0.5, abs=0.03)


def test_samples_without_all_scores_are_left_out() -> None:
    parts = variance_parts(np.array([[0.0, 0.0], [1.0, 1.0], [0.5, math.nan]]))
    assert (parts.samples, parts.judge, parts.sample) == (2, 0.0, 0.5)
    few = variance_parts(np.array([[0.0, 1.0]]))
    assert math.isnan(few.judge)
    assert str(few) == "1 sample with all 2 scores is too few to split the variance"
    with pytest.raises(DataError, match="not a table"):
        variance_parts(np.zeros(3))
    assert str(variance_parts(np.ones((4, 2)))) == "all scores are equal"


def test_self_consistency() -> None:
    assert self_consistency([["yes", "yes", "yes"], ["yes", "no", "yes"], ["no", "no", "no"]]) == 2 / 3
    assert math.isnan(self_consistency([]))
