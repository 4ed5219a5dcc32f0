"""Retrieval metrics with trec_eval as the judge: its printed files, and random runs by pytrec_eval."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.core.types import Document, EvaluationSample
from auepora_eval.metrics.parse import parse_metric
from tests.builders import an_output, quick_scores

DATA = Path(__file__).parents[3] / "shared" / "data"
TREC_TEST = DATA / "trec_eval_test"

# Grades of the judged documents, and the score that the system gave to each document that it retrieved.
World = list[tuple[dict[str, int], dict[str, float]]]

ORACLE_NAMES = {
    "recall@5": "recall_5",
    "precision@5": "P_5",
    "f1@5": "f1_5",  # made of the two above it
    "hit@5": "success_5",
    "mrr": "recip_rank",
    "map": "map",
    "map@5": "map_cut_5",
    "ndcg": "ndcg",
    "ndcg@5": "ndcg_cut_5",
    "r_precision": "Rprec",
    "bpref": "bpref",
}
MEASURES = ["recall.5", "P.5", "success.5", "recip_rank", "map", "map_cut.5", "ndcg", "ndcg_cut.5"]
MEASURES += ["Rprec", "bpref"]
WITHOUT_LEVEL = ("ndcg", "ndcg@5")

# The oracle runs in a child process: some inputs crash its interpreter.
ORACLE = """
import json, sys, pytrec_eval
qrels, run, measures, level = json.load(sys.stdin)
evaluator = pytrec_eval.RelevanceEvaluator(qrels, set(measures), relevance_level=level)
json.dump(evaluator.evaluate(run), sys.stdout)
"""

DOCS = [f"d{n}" for n in range(14)]
one_query = st.tuples(
    st.dictionaries(st.sampled_from(DOCS), st.integers(-1, 4), min_size=1, max_size=9),
    # Five scores for up to twelve documents: ties are the rule. Nothing retrieved is a case as well.
    st.dictionaries(st.sampled_from(DOCS), st.sampled_from([0.5, 1.0, 1.5, 2.0, 9.0]), max_size=12),
)


def trec_order(scores: dict[str, float]) -> list[str]:
    """trec_eval goes by score, and equal scores by descending name; we go by the rank that is given."""
    return [doc for _, doc in sorted(((score, doc) for doc, score in scores.items()), reverse=True)]


def trec_eval(world: World, level: int) -> dict[str, dict[str, float]]:
    # Judgements that are all below 0 crash it; those queries have nothing relevant, so nothing is compared.
    qrels = {f"q{n}": grades for n, (grades, _) in enumerate(world) if max(grades.values()) >= 0}
    run = {f"q{n}": scores for n, (_, scores) in enumerate(world) if scores}
    answer = subprocess.run(
        [sys.executable, "-c", ORACLE],
        input=json.dumps([qrels, run, MEASURES, level]),
        capture_output=True,
        text=True,
        check=True,
    )
    values: dict[str, dict[str, float]] = json.loads(answer.stdout)
    for query in values.values():
        p, r = query["P_5"], query["recall_5"]
        query["f1_5"] = 2 * p * r / (p + r) if p + r else 0.0
    return values


def our_scores(world: World, name: str) -> list[float | None]:
    samples = [
        EvaluationSample(
            f"q{n}", "q", relevant_docs=[Document(d, "", {"relevance": g}) for d, g in grades.items()]
        )
        for n, (grades, _) in enumerate(world)
    ]
    outputs = [an_output(trec_order(scores)) for _, scores in world]
    return [score.value for score in quick_scores(parse_metric(name), samples, outputs)[1]]


@settings(max_examples=12, deadline=None)
@given(st.lists(one_query, min_size=60, max_size=60), st.sampled_from([1, 2, 3]))
def test_equal_to_trec_eval_on_random_runs(world: World, level: int) -> None:
    theirs = trec_eval(world, level)
    for base, oracle_name in ORACLE_NAMES.items():
        if level > 1 and base in WITHOUT_LEVEL:
            continue
        name = base if level == 1 else f"{base}[level={level}]"
        for number, ours in enumerate(our_scores(world, name)):
            grades, scores = world[number]
            if ours is None:  # no relevant document: trec_eval gives 0, we say that nothing was measured
                assert not any(grade >= level for grade in grades.values())
            else:  # a query without a run is dropped there unless -c asks for its zero
                expected = theirs[f"q{number}"][oracle_name] if scores else 0.0
                assert ours == pytest.approx(expected, abs=1e-9), (name, world[number])


needs_trec_files = pytest.mark.skipif(
    not TREC_TEST.is_dir(), reason="needs NIST's test files, which are not part of the project"
)
# 3 topics and their mean. map, mrr, ndcg, r_precision, bpref, rbp; nine cutoffs of precision, recall, map
# and ndcg; three of success.
PRINTED = 4 * (6 + 4 * 9 + 3)


@needs_trec_files
@pytest.mark.parametrize(
    ("printed", "qrels", "run", "level"),
    [
        pytest.param("out.test.aq", "qrels.test", "results.test", None, id="binary"),
        pytest.param("out.test.aql", "qrels.rel_level", "results.test", 2, id="-l 2"),
        pytest.param("out.test.aqc", "qrels.test", "results.trunc", None, id="-c, one topic without a run"),
    ],
)
def test_equal_to_the_values_that_trec_eval_prints(
    printed: str, qrels: str, run: str, level: int | None
) -> None:
    world = _trec_files(qrels, run)
    topics = sorted(world)

    @cache  # each measure is printed for each topic
    def scores_of(name: str) -> list[float]:
        return [score for score in our_scores([world[t] for t in topics], name) if score is not None]

    checked = 0
    for line in (TREC_TEST / printed).read_text().splitlines():
        measure, topic, value = line.split()
        name = _our_name(measure, level)
        if name is None:
            continue
        scores = scores_of(name)
        assert len(scores) == 3
        ours = sum(scores) / 3 if topic == "all" else scores[topics.index(topic)]
        assert ours == pytest.approx(float(value), abs=5.1e-5), (measure, topic)
        checked += 1
    assert checked == PRINTED


@needs_trec_files
def test_judged_is_what_trec_eval_does_not_call_unjudged() -> None:
    world = _trec_files("qrels.test", "results.test")
    checked = 0
    for line in (TREC_TEST / "out.test.aq").read_text().splitlines():
        measure, topic, value = line.split()
        if measure.startswith("unj_") and topic != "all":
            ours = our_scores([world[topic]], f"judged@{measure[4:]}")[0]
            assert ours == pytest.approx(1 - float(value), abs=5.1e-5), (measure, topic)
            checked += 1
    assert checked == 9


def _our_name(measure: str, level: int | None) -> str | None:
    whole = {"map": "map", "recip_rank": "mrr", "Rprec": "r_precision", "bpref": "bpref"}
    graded = {"ndcg": "ndcg", "rbp": "rbp"}
    option = "" if level is None else f"[level={level}]"
    if measure in graded:
        return graded[measure]
    if measure in whole:
        return whole[measure] + option
    base, _, cutoff = measure.rpartition("_")
    if base == "ndcg_cut":
        return f"ndcg@{cutoff}"
    cut = {"P": "precision", "recall": "recall", "map_cut": "map", "success": "hit"}
    return f"{cut[base]}@{cutoff}{option}" if base in cut and cutoff.isdigit() else None


def _trec_files(qrels: str, run: str) -> dict[str, tuple[dict[str, int], dict[str, float]]]:
    world: dict[str, tuple[dict[str, int], dict[str, float]]] = {}
    for line in (TREC_TEST / qrels).read_text().splitlines():
        topic, _, doc, grade = line.split()
        world.setdefault(topic, ({}, {}))[0][doc] = int(grade)
    for line in (TREC_TEST / run).read_text().splitlines():
        topic, _, doc, _, score = line.split()[:5]
        world[topic][1][doc] = float(score)
    return world
