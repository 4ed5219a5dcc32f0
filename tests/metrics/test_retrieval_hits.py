"""The pass over a whole batch says what the plain way says of each sample."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.core.batch import Batch
from auepora_eval.core.metrics_base import SampleMetric
from auepora_eval.core.types import Document, EvaluationSample, RetrievedDocument, SystemOutputs
from auepora_eval.metrics.parse import parse_metric
from auepora_eval.metrics.retrieval_hits import judged_hits
from tests.builders import a_failure, a_sample, an_output

NAMES = ["recall@3", "precision@3", "f1@3", "hit@2", "mrr", "mrr@2", "map", "map@3", "ndcg", "ndcg@3"]
NAMES += ["ndcg_exp", "ndcg_exp@3", "r_precision", "bpref", "rbp", "rbp@0.5"]
NAMES += [f"{name}[level=2]" for name in ("recall@3", "f1@3", "mrr", "map", "r_precision", "bpref")]

good = st.one_of(st.integers(-1, 4), st.sampled_from([0.5, 1.5, 1e-300, 1e12]))
bad = st.sampled_from(["high", None, True, math.nan, math.inf, 10**400, [1]])
ids = st.sampled_from("abcdefgh")
# Documents may be listed twice, retrieved twice, and given any rank at all.
golds = st.lists(
    st.tuples(ids, st.one_of(st.just("none"), good, st.one_of(good, bad))), min_size=1, max_size=6
)
lists = st.lists(st.tuples(ids, st.integers(-2, 9)), max_size=8)
in_order = st.lists(ids, max_size=8).map(lambda found: [(doc, rank) for rank, doc in enumerate(found, 1)])


def gold_sample(gold: list[tuple[str, Any]]) -> EvaluationSample:
    docs = [Document(doc_id, "", {} if grade == "none" else {"relevance": grade}) for doc_id, grade in gold]
    return EvaluationSample("s", "q", relevant_docs=docs)


def a_list(found: list[tuple[str, int]]) -> SystemOutputs:
    output = an_output()
    output.retrieved = [RetrievedDocument(Document(doc_id, ""), 0.0, rank) for doc_id, rank in found]
    return output


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(golds, st.one_of(in_order, lists)), max_size=8))
def test_the_fast_way_is_the_plain_way(
    world: list[tuple[list[tuple[str, Any]], list[tuple[str, int]]]],
) -> None:
    batch = Batch([gold_sample(gold) for gold, _ in world], [a_list(found) for _, found in world])
    for metric in map(parse_metric, NAMES):
        fast = metric.score_all(batch)
        plain = SampleMetric.score_all(metric, batch)
        assert fast.notes == plain.notes, metric.name
        assert fast.values == pytest.approx(plain.values, rel=1e-12, abs=1e-300, nan_ok=True), metric.name


@pytest.mark.parametrize("name", NAMES)
def test_a_repeat_is_a_miss_like_any_other(name: str) -> None:
    sample = a_sample(relevant={"a": 2, "b": 3, "c": 0})
    twice, once = (parse_metric(name).compute([sample], [an_output(ids)]) for ids in ("aabcb", "axbcy"))
    assert twice.value == once.value


@pytest.mark.parametrize("grade", [1e300, 2000])
def test_a_grade_too_large_for_its_exponential_is_a_failure_not_a_crash(grade: float) -> None:
    result = parse_metric("ndcg_exp").compute([a_sample(relevant={"a": grade})], [an_output("a")])
    assert result.details["num_failed"] == 1
    assert "not a number to average" in result.scores[0].reason


def test_lists_are_read_once_for_all_metrics() -> None:
    batch = Batch([a_sample(relevant="ab")] * 2, [an_output("xa"), a_failure()])
    first = batch.once(judged_hits)
    for name in NAMES:
        parse_metric(name).score_batch(batch)
    assert batch.once(judged_hits) is first
    assert first.place.tolist() == [1]
    assert first.sample.tolist() == [0]


def test_a_thousand_places_are_no_different() -> None:
    docs = [f"d{n}" for n in range(1_000)]
    batch = Batch([a_sample(relevant=docs[::7])] * 3, [an_output(docs)] * 3)
    for metric in map(parse_metric, NAMES[:16]):
        plain = SampleMetric.score_all(metric, batch).values
        assert metric.score_all(batch).values == pytest.approx(plain, rel=1e-12)
