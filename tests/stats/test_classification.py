"""Confusion tables: figures a reader can check, scikit-learn as the judge, stacks as one by one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sklearn  # type: ignore[import-untyped]

from auepora_eval.stats import classification as c
from auepora_eval.stats.intervals import aggregate_units, value_interval

MODERATE = np.array([[43.0, 14, 0], [21, 5, 0], [2, 0, 15]])  # accurate, hallucination, contradiction


def test_the_published_table() -> None:
    counts = c.class_counts(MODERATE)
    assert float(c.accuracy(MODERATE)) == 0.63
    assert c.precision(counts).round(4).tolist() == [0.6515, 0.2632, 1.0]
    assert c.recall(counts).round(4).tolist() == [0.7544, 0.1923, 0.8824]
    assert c.f1(counts).round(4).tolist() == [0.6992, 0.2222, 0.9375]
    assert float(c.macro_f1(counts)) == pytest.approx(0.6196, abs=5e-5)


def test_a_class_that_does_not_occur() -> None:
    counts = c.class_counts(np.array([[3.0, 1, 0], [0, 4, 0], [0, 0, 0]]))
    assert c.f1(counts).round(4).tolist()[:2] == [0.8571, 0.8889]
    assert math.isnan(c.f1(counts)[2])
    assert math.isnan(c.precision(counts)[2])
    assert math.isnan(c.recall(counts)[2])
    assert float(c.macro_f1(counts)) == pytest.approx((0.857142857 + 0.888888889) / 3)
    assert float(c.macro_f1_supported(counts)) == pytest.approx((0.857142857 + 0.888888889) / 2)


LABELLED = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=40)


@pytest.mark.filterwarnings("ignore")  # scikit-learn warns of empty classes
@given(pairs=LABELLED)
@settings(max_examples=80, deadline=None)
def test_scikit_learn_agrees(pairs: list[tuple[int, int]]) -> None:
    true, predicted = ([pair[side] for pair in pairs] for side in (0, 1))
    table = c.confusion_table(true, predicted, 3)
    counts = c.class_counts(table)
    assert table.tolist() == sklearn.confusion_matrix(true, predicted, labels=[0, 1, 2]).tolist()
    assert float(c.accuracy(table)) == pytest.approx(sklearn.accuracy_score(true, predicted))
    three = sklearn.precision_recall_fscore_support(true, predicted, labels=[0, 1, 2], zero_division=np.nan)
    assert c.precision(counts) == pytest.approx(three[0], nan_ok=True)
    assert c.recall(counts) == pytest.approx(three[1], nan_ok=True)
    zeroed = sklearn.f1_score(true, predicted, labels=[0, 1, 2], average=None, zero_division=0)
    assert np.nan_to_num(c.f1(counts)) == pytest.approx(zeroed)
    assert float(c.macro_f1(counts)) == pytest.approx(zeroed.mean())
    assert float(c.macro_f1_supported(counts)) == pytest.approx(
        sklearn.f1_score(true, predicted, labels=sorted(set(true)), average="macro", zero_division=0)
    )
    assert float(c.matthews(table)) == pytest.approx(sklearn.matthews_corrcoef(true, predicted))
    assert float(c.cohen_kappa(table)) == pytest.approx(
        sklearn.cohen_kappa_score(true, predicted, labels=[0, 1, 2]), nan_ok=True
    )
    assert float(c.balanced_accuracy(counts)) == pytest.approx(
        sklearn.balanced_accuracy_score(true, predicted)
    )


@given(
    rows=st.lists(st.tuples(st.sampled_from([0.1, 0.2, 0.5, 0.9]), st.booleans()), min_size=2, max_size=30)
)
@settings(max_examples=50, deadline=None)
def test_the_area_is_scikit_learns(rows: list[tuple[float, bool]]) -> None:
    scores, positive = [score for score, _ in rows], [flag for _, flag in rows]
    found = c.area_under_curve(scores, positive)
    if len(set(positive)) < 2:
        assert math.isnan(found)
    else:
        assert found == pytest.approx(sklearn.roc_auc_score(positive, scores))


def _cells(table: Any) -> Any:
    return np.repeat(np.eye(9), table.astype(int).ravel(), axis=0)


def _macro(tables: Any) -> Any:
    return c.macro_f1(c.class_counts(tables))


SKEWED = np.array([[60.0, 1, 0], [1, 2, 0], [0, 0, 3]])


@pytest.mark.parametrize(("table", "statistic"), [(MODERATE, _macro), (SKEWED, c.accuracy)])
def test_the_interval_is_that_of_leaving_out_samples(table: Any, statistic: Callable[[Any], Any]) -> None:
    cells = _cells(table)
    found = c.table_interval(cells, statistic)
    units = aggregate_units(cells, lambda rows: statistic(rows.sum(axis=0).reshape(3, 3)))
    slow = value_interval(units, (0.0, 1.0))
    assert found is not None
    assert slow is not None
    assert (found.low, found.high) == pytest.approx((slow.low, slow.high))


def test_samples_of_a_cluster_are_left_out_together() -> None:
    cells = _cells(MODERATE)
    alone = c.table_interval(cells, _macro)
    tens = c.table_interval(cells, _macro, clusters=[n // 10 for n in range(100)])
    assert alone is not None
    assert tens is not None
    assert "10 clusters" in tens.method
    assert tens.high - tens.low > alone.high - alone.low
