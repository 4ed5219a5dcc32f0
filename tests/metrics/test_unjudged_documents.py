"""bpref, rbp, exponential nDCG and judged@k: by hand, and beside ir_measures and scikit-learn."""

from __future__ import annotations

import random

import pytest

from auepora_eval.metrics.parse import parse_metric
from tests.builders import a_document, a_sample, an_output

DOCS = "abcdefghij"


def test_bpref_takes_what_is_not_relevant_from_the_candidates() -> None:
    sample = a_sample(relevant="ab")
    sample.candidate_docs = [a_document("x", 0), a_document("y", 0), a_document("b", 0), a_document("u")]
    scores = [parse_metric("bpref").compute([sample], [an_output(ranked)]) for ranked in ("xab", "uab", "ab")]
    assert [score.value for score in scores] == [0.5, 1.0, 1.0]
    result = parse_metric("bpref").compute(
        [sample, a_sample(relevant="a")], [an_output("xab"), an_output("xa")]
    )
    assert [score.value for score in result.scores] == [0.5, 1.0]


def test_rbp_scales_grades_above_one_only() -> None:
    half, three = (
        parse_metric("rbp@0.5").compute([a_sample(relevant={"a": grade})], [an_output("a")]).value
        for grade in (0.5, 3)
    )
    assert (half, three) == (0.25, 0.5)


def random_world(seed: int, count: int = 40) -> list[tuple[dict[str, int], list[str]]]:
    rng = random.Random(seed)
    return [
        (
            {"a": 1, **{doc: rng.randrange(4) for doc in rng.sample(DOCS, rng.randrange(1, 8))}},
            rng.sample(DOCS, rng.randrange(2, 10)),
        )
        for _ in range(count)
    ]


def ours(name: str, world: list[tuple[dict[str, int], list[str]]]) -> list[float | None]:
    samples = [a_sample(str(n), relevant=dict(grades)) for n, (grades, _) in enumerate(world)]
    result = parse_metric(name).compute(samples, [an_output(found) for _, found in world])
    return [score.value for score in result.scores]


@pytest.mark.parametrize("k", [1, 3, 20])
def test_judged_is_that_of_ir_measures(k: int) -> None:
    ir_measures = pytest.importorskip("ir_measures")
    world = random_world(k)
    qrels = {str(n): grades for n, (grades, _) in enumerate(world)}
    run = {
        str(n): {doc: float(-rank) for rank, doc in enumerate(found)} for n, (_, found) in enumerate(world)
    }
    theirs = {row.query_id: row.value for row in ir_measures.iter_calc([ir_measures.Judged @ k], qrels, run)}
    for number, value in enumerate(ours(f"judged@{k}", world)):
        assert value == pytest.approx(theirs[str(number)], abs=1e-12)


@pytest.mark.parametrize(("name", "k"), [("ndcg_exp", None), ("ndcg_exp@3", 3)])
def test_exponential_ndcg_is_that_of_scikit_learn(name: str, k: int | None) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    # scikit-learn orders all documents there are: so does this system.
    world = [(grades, [*found, *sorted(set(DOCS) - set(found))]) for grades, found in random_world(7)]
    for (grades, found), value in zip(world, ours(name, world), strict=True):
        if value is None:
            assert not any(grades.values())
            continue
        gains = [[2 ** grades.get(doc, 0) - 1 for doc in found]]
        order = [[float(-place) for place in range(len(found))]]
        assert value == pytest.approx(metrics.ndcg_score(gains, order, k=k), abs=1e-12)
