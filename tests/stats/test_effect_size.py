"""Cohen's d_z: by hand, and where there is none."""

from __future__ import annotations

import math

import pytest

from auepora_eval.stats.significance import cohens_dz


def test_by_hand() -> None:
    assert cohens_dz([0.1, 0.3]) == pytest.approx(0.2 / math.sqrt(0.02))


@pytest.mark.parametrize("differences", [[1.0, 1.0], [0.1] * 7, [0.0, 0.0], [1.0]])
def test_differences_without_spread_have_no_standardised_size(differences: list[float]) -> None:
    assert math.isnan(cohens_dz(differences))
