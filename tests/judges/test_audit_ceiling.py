"""The human ceiling: each person against the others, by hand, and the judge on the same pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping

import krippendorff
import numpy as np
import pytest
from scipy.stats import spearmanr

from auepora_eval.judges.trust.audit import Audit, ceiling
from auepora_eval.judges.trust.labels import Labelled

HALF = Audit(threshold=0.5)


def rated(*ratings: Mapping[str, float]) -> list[Labelled]:
    return [Labelled((), "", False, ratings=one) for one in ratings]


def test_by_hand() -> None:
    """Three people on two claims: of six times one was left out, four said what the others said."""
    people = rated({"a": 1, "b": 1, "c": 0}, {"a": 0, "b": 0, "c": 0}, {"a": 1})
    report = ceiling(people, [0.9, 0.9, 0.1], HALF)
    assert report is not None
    assert (report.annotators, report.items) == (3, 2)
    # Others' means on the first claim: 0.5, 0.5 (yes: half or more) and 1; on the second 0, 0, 0.
    assert report.one_person.agreement.value == pytest.approx(5 / 6)
    assert report.judge.agreement.value == pytest.approx(3 / 6)
    assert report.judge_less_person.value == pytest.approx(-2 / 6)
    assert report.alpha.statistic == "krippendorff_alpha_nominal"


def test_ceiling_equals_krippendorff_and_scipy() -> None:
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 4, 60)
    given = np.clip(truth + rng.integers(-1, 2, (3, 60)), 0, 3).astype(float)
    given[rng.random(given.shape) < 0.2] = math.nan
    names = "abc"
    people = rated(
        *(
            {name: row[i] / 3 for name, row in zip(names, given, strict=True) if not math.isnan(row[i])}
            for i in range(60)
        )
    )
    report = ceiling(people, (truth / 3).tolist(), HALF)
    assert report is not None
    alpha = krippendorff.alpha(given, level_of_measurement="ordinal")
    assert report.alpha.value == pytest.approx(alpha)
    assert report.alpha.confidence_interval is not None
    low, high = report.alpha.confidence_interval
    assert low < alpha < high
    one, others, judge = [], [], []
    for item in range(60):
        there = given[:, item][~np.isnan(given[:, item])]
        for place in range(len(there) if len(there) > 1 else 0):
            one.append(there[place])
            others.append(np.delete(there, place).mean())
            judge.append(truth[item])
    assert report.one_person.spearman.value == pytest.approx(spearmanr(one, others).statistic)
    assert report.judge.spearman.value == pytest.approx(spearmanr(judge, others).statistic)
