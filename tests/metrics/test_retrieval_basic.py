"""Retrieval metrics: tables that can be checked by hand, then trec_eval as the judge."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.core.types import Document, EvaluationSample
from auepora_eval.errors import UnknownNameError
from auepora_eval.metrics.parse import parse_metric
from auepora_eval.metrics.retrieval_basic import MRR, NDCGAtK, RecallAtK
from tests.builders import a_sample, an_output


@pytest.mark.parametrize(
    ("retrieved", "relevant", "k", "expected"),
    [
        pytest.param("abc", "b", 3, 1.0, id="found"),
        pytest.param("abc", "bz", 3, 0.5, id="one of two"),
        pytest.param("abc", "b", 1, 0.0, id="below the cutoff"),
        pytest.param("aab", "ab", 2, 0.5, id="a repeat counts once"),
        pytest.param("", "a", 5, 0.0, id="nothing retrieved"),
        pytest.param("ab", "ab", 10, 1.0, id="a short list"),
    ],
)
def test_recall_at_k(retrieved: str, relevant: str, k: int, expected: float) -> None:
    result = RecallAtK(k).compute([a_sample(relevant=relevant)], [an_output(retrieved)])
    assert result.value == pytest.approx(expected)


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
    ],
)
def test_the_small_anchor(name: str, expected: float) -> None:
    sample = a_sample(relevant={"1": 3, "2": 2, "3": 0, "4": 1, "5": 2, "9": 0})
    result = parse_metric(name).compute([sample], [an_output("316429")])
    assert result.value == pytest.approx(expected, abs=1e-6)


def test_the_rank_decides_not_the_order_of_the_list() -> None:
    output = an_output("xa")
    output.retrieved.reverse()
    assert [hit.doc.doc_id for hit in output.retrieved] == ["a", "x"]
    assert MRR().compute([a_sample(relevant="a")], [output]).value == 0.5


@pytest.mark.parametrize("name", ["recall@5", "precision@1", "hit@1", "mrr", "map", "ndcg@5"])
def test_a_sample_without_relevant_documents_is_skipped_not_zero(name: str) -> None:
    samples = [a_sample("1", relevant="a"), a_sample("2"), a_sample("3", relevant={"b": 0})]
    result = parse_metric(name).compute(samples, [an_output("a"), an_output("a"), an_output("b")])
    assert result.value == 1.0
    assert (result.details["num_samples"], result.details["num_skipped"]) == (1, 2)
    assert [bool(score.reason) for score in result.scores] == [False, True, True]


def test_a_grade_that_is_no_number_fails_that_sample_only() -> None:
    bad = a_sample("1", relevant="a")
    bad.relevant_docs = [Document("a", "", {"relevance": "high"})]
    result = NDCGAtK(3).compute([bad, a_sample("2", relevant="a")], [an_output("a"), an_output("a")])
    assert result.value == 1.0
    assert result.details["num_failed"] == 1
    assert "'high'" in result.scores[0].reason


@pytest.mark.parametrize("name", ["recall@0", "recall@-1", "recall@2.5", "recall@five", "recall", "hit@"])
def test_a_wrong_cutoff_is_refused(name: str) -> None:
    with pytest.raises(UnknownNameError, match=r"recall|hit"):
        parse_metric(name)


ORACLE_NAMES = {
    "recall@5": "recall_5",
    "precision@5": "P_5",
    "hit@5": "success_5",
    "mrr": "recip_rank",
    "map": "map",
    "map@5": "map_cut_5",
    "ndcg": "ndcg",
    "ndcg@5": "ndcg_cut_5",
}
DOCS = [f"d{n}" for n in range(12)]

# The oracle runs in a child process: some inputs crash its interpreter.
ORACLE = """
import json, sys, pytrec_eval
qrels, run, measures = json.load(sys.stdin)
json.dump(pytrec_eval.RelevanceEvaluator(qrels, set(measures)).evaluate(run), sys.stdout)
"""
MEASURES = ["recall.5", "P.5", "success.5", "recip_rank", "map", "map_cut.5", "ndcg", "ndcg_cut.5"]

World = list[tuple[dict[str, int], list[str]]]


def trec_eval(world: World) -> dict[str, dict[str, float]]:
    qrels = {f"q{n}": grades for n, (grades, _) in enumerate(world)}
    run = {f"q{n}": {doc: 100.0 - rank for rank, doc in enumerate(ids)} for n, (_, ids) in enumerate(world)}
    answer = subprocess.run(
        [sys.executable, "-c", ORACLE],
        input=json.dumps([qrels, run, MEASURES]),
        capture_output=True,
        text=True,
        check=True,
    )
    values: dict[str, dict[str, float]] = json.loads(answer.stdout)
    return values


def our_scores(world: World, name: str) -> list[float | None]:
    samples = [
        EvaluationSample(
            f"q{n}", "q", relevant_docs=[Document(d, "", {"relevance": g}) for d, g in grades.items()]
        )
        for n, (grades, _) in enumerate(world)
    ]
    outputs = [an_output(ids) for _, ids in world]
    return [score.value for score in parse_metric(name).compute(samples, outputs).scores]


one_query = st.tuples(
    st.dictionaries(st.sampled_from(DOCS), st.integers(-1, 4), min_size=1, max_size=8),
    st.lists(st.sampled_from(DOCS), unique=True, min_size=1, max_size=12),
)


@settings(max_examples=12, deadline=None)
@given(st.lists(one_query, min_size=60, max_size=60))
def test_equal_to_trec_eval_on_random_runs(world: World) -> None:
    theirs = trec_eval(world)
    for name, oracle_name in ORACLE_NAMES.items():
        for number, ours in enumerate(our_scores(world, name)):
            if ours is None:  # no relevant document: trec_eval gives 0, we say that nothing was measured
                assert not any(grade > 0 for grade in world[number][0].values())
            else:
                assert ours == pytest.approx(theirs[f"q{number}"][oracle_name], abs=1e-9), (
                    name,
                    world[number],
                )


TREC_TEST = Path(__file__).parents[3] / "shared" / "data" / "trec_eval_test"


@pytest.mark.skipif(
    not TREC_TEST.is_dir(), reason="needs NIST's test files, which are not part of the project"
)
def test_equal_to_the_values_that_trec_eval_prints() -> None:
    grades, found = _trec_files()
    topics = sorted(found)
    world = [(grades[topic], found[topic]) for topic in topics]
    checked = 0
    for line in (TREC_TEST / "out.test.aq").read_text().splitlines():
        measure, topic, printed = line.split()
        name = _our_name(measure)
        if name is None:
            continue
        scores = [score for score in our_scores(world, name) if score is not None]
        value = sum(scores) / len(scores) if topic == "all" else scores[topics.index(topic)]
        assert value == pytest.approx(float(printed), abs=5.1e-5), (measure, topic)
        checked += 1
    assert checked == 4 * (3 + 4 * 9 + 3)  # three topics and their mean; nine cutoffs of four measures


def _our_name(measure: str) -> str | None:
    whole = {"map": "map", "recip_rank": "mrr", "ndcg": "ndcg"}
    if measure in whole:
        return whole[measure]
    base, _, cutoff = measure.rpartition("_")
    cut = {"P": "precision", "recall": "recall", "map_cut": "map", "ndcg_cut": "ndcg", "success": "hit"}
    return f"{cut[base]}@{cutoff}" if base in cut and cutoff.isdigit() else None


def _trec_files() -> tuple[dict[str, dict[str, int]], dict[str, list[str]]]:
    grades: dict[str, dict[str, int]] = {}
    for line in (TREC_TEST / "qrels.test").read_text().splitlines():
        topic, _, doc, grade = line.split()
        grades.setdefault(topic, {})[doc] = int(grade)
    scored: dict[str, list[tuple[float, str]]] = {}
    for line in (TREC_TEST / "results.test").read_text().splitlines():
        topic, _, doc, _, score, _ = line.split()
        scored.setdefault(topic, []).append((float(score), doc))
    # trec_eval orders by score, and equal scores by descending name.
    return grades, {topic: [doc for _, doc in sorted(hits, reverse=True)] for topic, hits in scored.items()}
