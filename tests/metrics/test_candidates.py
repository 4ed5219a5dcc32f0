"""Pairwise accuracy and Kendall's tau over graded candidates: by hand, then scikit-learn and scipy."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau

from auepora_eval.core.scores import Batch
from auepora_eval.core.types import EvaluationSample
from auepora_eval.metrics.retrieval.ranking import KendallTau, PairwiseAccuracy
from tests.builders import a_document, a_sample, an_output

GRADES = {"a": 2, "b": 1, "x": 0, "y": 0}


def candidates(grades: dict[str, float | None], relevant: dict[str, float] | None = None) -> EvaluationSample:
    sample = a_sample(relevant=relevant)
    sample.candidate_docs = [a_document(doc_id, grade) for doc_id, grade in grades.items()]
    return sample


@pytest.mark.parametrize(
    ("retrieved", "accuracy", "tau"),
    [
        # Four pairs for the accuracy; five with different grades for tau.
        pytest.param("abxy", 1.0, 5 / math.sqrt(5 * 6), id="the best order; two of the grades are tied"),
        pytest.param("yxba", 0.0, -5 / math.sqrt(5 * 6), id="the worst"),
        pytest.param("xaby", 0.5, 1 / math.sqrt(5 * 6), id="x is above two: 2 of 4; 3 - 2 of 5"),
        pytest.param("ba", 1.0, 3 / math.sqrt(5 * 5), id="x and y are tied last; b above a is wrong"),
        pytest.param("ax", 0.625, 2 / math.sqrt(5 * 5), id="a wins twice, b ties with y and loses to x"),
        pytest.param("uavbwxy", 1.0, 5 / math.sqrt(5 * 6), id="what is no candidate does not matter"),
        pytest.param("aabxy", 1.0, 5 / math.sqrt(5 * 6), id="the first place counts"),
        pytest.param("", 0.5, 0.0, id="no order at all"),
    ],
)
def test_by_hand(retrieved: str, accuracy: float, tau: float) -> None:
    sample = candidates(dict(GRADES))
    output = an_output(retrieved)
    assert PairwiseAccuracy().compute([sample], [output]).value == pytest.approx(accuracy)
    assert KendallTau().compute([sample], [output]).value == pytest.approx(tau)


@pytest.mark.parametrize(
    "sample",
    [
        pytest.param(candidates({"a": 1, "b": 1}), id="all alike"),
        pytest.param(candidates({"a": None, "b": None}), id="no grades"),
        pytest.param(candidates({"a": 1, "b": -1}), id="one is not judged"),
    ],
)
def test_without_a_difference_nothing_is_measured(sample: EvaluationSample) -> None:
    for metric in (PairwiseAccuracy(), KendallTau()):
        result = metric.compute([sample], [an_output("ab")])
        assert (result.details["num_skipped"], result.details["num_samples"]) == (1, 0)


graded = st.dictionaries(st.sampled_from("abcdefghij"), st.sampled_from([0, 0, 1, 2, 2.5]), min_size=2)
found = st.lists(st.sampled_from("abcdefghijuvw"), unique=True)


@settings(deadline=None)  # the first call imports scikit-learn
@given(graded, found)
def test_equal_to_scikit_learn_and_scipy(grades: dict[str, float], retrieved: list[str]) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    places = [retrieved.index(doc) if doc in retrieved else len(retrieved) for doc in grades]
    order = [-place for place in places]
    sample, output = candidates(dict(grades)), an_output(retrieved)
    accuracy = PairwiseAccuracy().score_batch(Batch([sample], [output]))[0].value
    if accuracy is not None:
        relevant = [grade > 0 for grade in grades.values()]
        assert accuracy == pytest.approx(metrics.roc_auc_score(relevant, order), abs=1e-12)
    tau = KendallTau().compute([sample], [output]).scores[0].value
    if tau is None:
        assert len(set(grades.values())) == 1
    elif len(set(places)) == 1:
        assert tau == 0.0
    else:
        assert tau == pytest.approx(kendalltau(list(grades.values()), order).statistic, abs=1e-12)
