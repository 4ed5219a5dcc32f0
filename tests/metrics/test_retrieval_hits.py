"""Retrieval metrics score a whole batch as the plain forms score each sample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.core.scores import Batch, Scores
from auepora_eval.core.types import Document, EvaluationSample, RetrievedDocument, SystemOutputs
from auepora_eval.metrics.parse import parse_metric
from auepora_eval.metrics.retrieval_basic import judged_hits
from tests.builders import a_failure, a_sample, an_output
from tests.metrics.plain_retrieval import plain_score

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


def plain_scores(name: str, batch: Batch) -> Scores:
    pairs = zip(batch.samples, batch.outputs, strict=True)
    return Scores.of(plain_score(name, sample, output) for sample, output in pairs)


def gold_sample(gold: list[tuple[str, Any]], candidates: Sequence[tuple[str, Any]] = ()) -> EvaluationSample:
    relevant, others = _documents(gold), _documents(candidates)
    return EvaluationSample("s", "q", relevant_docs=relevant, candidate_docs=others or None)


def _documents(judged: Sequence[tuple[str, Any]]) -> list[Document]:
    return [Document(doc_id, "", {} if grade == "none" else {"relevance": grade}) for doc_id, grade in judged]


def a_list(found: list[tuple[str, int]]) -> SystemOutputs:
    output = an_output()
    output.retrieved = [RetrievedDocument(Document(doc_id, ""), 0.0, rank) for doc_id, rank in found]
    return output


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(golds, st.one_of(in_order, lists)), max_size=8))
def test_a_batch_is_scored_as_its_samples_are(
    world: list[tuple[list[tuple[str, Any]], list[tuple[str, int]]]],
) -> None:
    batch = Batch([gold_sample(gold) for gold, _ in world], [a_list(found) for _, found in world])
    for metric in map(parse_metric, NAMES):
        scores, plain = metric.score_all(batch), plain_scores(metric.name, batch)
        assert scores.notes == plain.notes, metric.name
        assert scores.values == pytest.approx(plain.values, rel=1e-12, abs=1e-300, nan_ok=True), metric.name


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(golds, golds, lists), min_size=1, max_size=5))
def test_bpref_with_graded_candidates_is_the_plain_form(world: list[tuple[Any, Any, Any]]) -> None:
    samples = [gold_sample(gold, candidates) for gold, candidates, _ in world]
    batch = Batch(samples, [a_list(found) for _, _, found in world])
    for name in ("bpref", "bpref[level=2]"):
        scores, plain = parse_metric(name).score_all(batch), plain_scores(name, batch)
        assert scores.notes == plain.notes
        assert scores.values == pytest.approx(plain.values, rel=1e-12, abs=1e-300, nan_ok=True)


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


def test_a_list_of_a_thousand_places() -> None:
    docs = [f"d{n}" for n in range(1_000)]
    batch = Batch([a_sample(relevant=docs[::7])] * 3, [an_output(docs)] * 3)
    for metric in map(parse_metric, NAMES[:16]):
        plain = plain_scores(metric.name, batch).values
        assert metric.score_all(batch).values == pytest.approx(plain, rel=1e-12)
