"""The variance of repeated verdicts, split: known parts come back."""

from __future__ import annotations

import math

import numpy as np
import pytest

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


def test_self_consistency() -> None:
    assert self_consistency([["yes", "yes", "yes"], ["yes", "no", "yes"], ["no", "no", "no"]]) == 2 / 3
    assert math.isnan(self_consistency([]))
