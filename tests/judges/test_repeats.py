"""A judge that is asked several times: how much of the variance of the scores is its own."""

from __future__ import annotations

import numpy as np
import pytest

from auepora_eval.judges.trust.repeats import judge_share


def test_known_parts_come_back() -> None:
    rng = np.random.default_rng(3)
    samples, repeats = 4_000, 3
    scores = rng.normal(0, 2, (samples, 1)) + rng.normal(0, 1, (samples, repeats))
    assert judge_share(scores) == pytest.approx(1 / 5, abs=0.02)


def test_what_cannot_be_split() -> None:
    assert judge_share(np.ones((5, 3))) is None, "all scores are equal"
    assert judge_share(np.ones((1, 3))) is None
    assert judge_share(np.array([[0.0, 0.0], [1.0, 1.0]])) == 0.0
