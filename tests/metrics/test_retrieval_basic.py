"""Retrieval metrics: tables that can be checked by hand, then trec_eval as the judge."""

from __future__ import annotations

import math
from typing import Any

import pytest

from auepora_eval.core.types import Document
from auepora_eval.metrics.parse import parse_metric
from auepora_eval.metrics.retrieval_basic import MRR
from tests.builders import a_sample, an_output


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("precision@3", 1 / 3, id="d1 among three"),
        pytest.param("precision@10", 0.3, id="empty places are misses"),
        pytest.param("recall@3", 0.25, id="one of four"),
        pytest.param("recall@5", 0.75, id="three of four"),
        pytest.param("hit@1", 0.0, id="d3 is judged not relevant"),
        pytest.param("hit@2", 1.0, id="d1 at rank 2"),
        pytest.param("mrr", 0.5, id="first hit at rank 2"),
        pytest.param("mrr@1", 0.0, id="no hit at rank 1"),
        pytest.param("map", 0.4, id="(1/2 + 2/4 + 3/5) / 4"),
        pytest.param("map@3", 0.125, id="1/2 / 4"),
        pytest.param("ndcg@3", 0.359719, id="grades 0 3 0"),
        pytest.param("ndcg@5", 0.544076, id="grades 0 3 0 1 2"),
        pytest.param("ndcg_exp@5", 0.555066, id="gains 0 7 0 1 3"),
        pytest.param("f1@3", 0.285714, id="2 · 1 / (3 + 4)"),
        pytest.param("r_precision", 0.5, id="two of the first four"),
        pytest.param("bpref", 0.375, id="(3 · 1/2) / 4: one of two judged not relevant is above each"),
        pytest.param("judged@5", 0.8, id="nobody judged 6"),
        pytest.param("rbp", 0.1 * (0.9 + 0.9**3 / 3 + 0.9**4 * 2 / 3), id="grades / 3"),
        pytest.param("rbp@0.5", 0.5 * (0.5 + 0.125 / 3 + 0.0625 * 2 / 3), id="a less patient reader"),
        pytest.param("recall@3[level=2]", 1 / 3, id="1 of 1, 2 and 5"),
        pytest.param("precision@3[level=2]", 1 / 3, id="1 among three, at level 2"),
        pytest.param("f1@3[level=2]", 2 / 6, id="2 · 1 / (3 + 3)"),
        pytest.param("hit@4[level=3]", 1.0, id="1 is graded 3"),
        pytest.param("mrr[level=2]", 0.5, id="1 at rank 2"),
        pytest.param("map[level=2]", (1 / 2 + 2 / 5) / 3, id="ranks 2 and 5"),
        pytest.param("r_precision[level=3]", 0.0, id="the one of grade 3 is not first"),
        pytest.param("bpref[level=3]", 0.0, id="min(1, 1) / min(1, 5) are above it, but R is 1"),
    ],
)
def test_the_small_anchor(name: str, expected: float) -> None:
    sample = a_sample(relevant={"1": 3, "2": 2, "3": 0, "4": 1, "5": 2, "9": 0})
    result = parse_metric(name).compute([sample], [an_output("316429")])
    assert result.value == pytest.approx(expected, abs=1e-6)


def test_the_rank_decides_not_the_order_of_the_list() -> None:
    output = an_output("xa")
    output.retrieved = output.retrieved[::-1]
    assert [hit.doc.doc_id for hit in output.retrieved] == ["a", "x"]
    assert MRR().compute([a_sample(relevant="a")], [output]).value == 0.5


@pytest.mark.parametrize("name", ["recall@5", "precision@1", "hit@1", "mrr", "map", "ndcg@5"])
def test_a_sample_without_relevant_documents_is_skipped_not_zero(name: str) -> None:
    samples = [a_sample("1", relevant="a"), a_sample("2"), a_sample("3", relevant={"b": 0})]
    result = parse_metric(name).compute(samples, [an_output("a"), an_output("a"), an_output("b")])
    assert result.value == 1.0
    assert (result.details["num_samples"], result.details["num_skipped"]) == (1, 2)
    assert [bool(score.reason) for score in result.scores] == [False, True, True]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("map", 0.556, id="(1 + 2/3) / 3"),
        pytest.param("map[ragas]", 0.833, id="(1 + 2/3) / 2"),
        pytest.param("ndcg", 0.704, id="1.5 / (1 + 0.631 + 0.5)"),
        pytest.param("ndcg[llama_index]", 0.704, id="the same: as many relevant as places"),
        pytest.param("ndcg[phoenix]", 0.920, id="1.5 / (1 + 0.631)"),
        pytest.param("map@1[ragas]", 1.0, id="1 / 1"),
        pytest.param("ndcg@1[phoenix]", 1.0, id="1 / 1"),
    ],
)
def test_two_tools_two_numbers(name: str, expected: float) -> None:
    result = parse_metric(name).compute([a_sample(relevant="abc")], [an_output("axb")])
    assert result.value == pytest.approx(expected, abs=5e-4)
    assert result.name == name


@pytest.mark.parametrize(
    ("name", "retrieved", "expected"),
    [
        pytest.param(
            "ndcg[llama_index]", "axy", 1 / (1 + 0.630930 + 0.5), id="every place should be relevant"
        ),
        pytest.param("ndcg[llama_index]", "bxy", 1 / (1 + 0.630930 + 0.5), id="grades are ignored"),
        pytest.param("ndcg[phoenix]", "axy", 1.0, id="nothing that was retrieved could be better placed"),
        pytest.param("ndcg[phoenix]", "ba", (1 + 2 * 0.630930) / (2 + 0.630930), id="grades count"),
        pytest.param("ndcg@1[phoenix]", "xb", 0.0, id="the ideal sees below the cutoff"),
        pytest.param("ndcg[phoenix]", "aa", 1.0, id="each chunk is judged by itself"),
        pytest.param("map[ragas]", "aa", 1.0, id="a repeat is useful again"),
        pytest.param("map[ragas]", "xy", 0.0, id="nothing useful"),
        pytest.param("map[ragas]", "", 0.0, id="nothing retrieved"),
        pytest.param("ndcg[llama_index]", "", 0.0, id="no place at all"),
        pytest.param("map[ragas,level=2]", "ba", 0.5, id="b is not relevant at level 2"),
    ],
)
def test_variants(name: str, retrieved: str, expected: float) -> None:
    result = parse_metric(name).compute([a_sample(relevant={"a": 2, "b": 1})], [an_output(retrieved)])
    assert result.value == pytest.approx(expected, abs=1e-6)
    assert result.name == name


_GRADED = "recall@3 precision@3 f1@3 hit@2 mrr map ndcg@3 ndcg_exp r_precision bpref rbp recall@3[level=2]"


@pytest.mark.parametrize("name", _GRADED.split())
def test_a_repeat_is_a_miss_like_any_other(name: str) -> None:
    sample = a_sample(relevant={"a": 2, "b": 3, "c": 0})
    twice, once = (parse_metric(name).compute([sample], [an_output(ids)]) for ids in ("aabcb", "axbcy"))
    assert twice.value == once.value


@pytest.mark.parametrize("name", _GRADED.split())
@pytest.mark.parametrize("grade", ["high", True, math.inf, 10**400, [1]], ids=str)
def test_a_grade_that_is_no_number_fails_that_sample_only(name: str, grade: Any) -> None:
    bad = a_sample("1", relevant="a")
    bad.relevant_docs = [Document("a", "", {"relevance": grade})]
    good = a_sample("2", relevant={"a": 2})
    result = parse_metric(name).compute([bad, good], [an_output("a"), an_output("a")])
    assert (result.details["num_samples"], result.details["num_failed"]) == (1, 1)
    assert "relevance" in result.scores[0].reason
    assert result.value == parse_metric(name).compute([good], [an_output("a")]).value
