"""Rankings as dicts, files and tables: the values of samples and outputs, and of ir_measures."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import auepora_eval as ae
from auepora_eval.core.watches import SuspectValueWarning
from auepora_eval.errors import AueporaError

NINE = ["recall@10", "precision@10", "hit@10", "f1@10", "mrr", "map", "ndcg@10", "r_precision", "ndcg"]
Lists = dict[str, dict[str, float]]


def random_lists(rng: random.Random) -> tuple[Lists, Lists]:
    """Return grades and scores with ties, queries that one side lacks, empty lists and grades below 0."""
    qrels: Lists = {
        f"q{q}": {f"d{d}": rng.choice([-1, 0, 1, 1, 3]) for d in rng.sample(range(40), rng.randint(0, 9))}
        for q in range(30)
    }
    run: Lists = {
        f"q{q}": {
            f"d{d}": rng.choice([0.5, 1.0, rng.random()]) for d in rng.sample(range(40), rng.randint(0, 30))
        }
        for q in range(5, 35)
    }
    return qrels, run


@pytest.mark.filterwarnings("ignore::auepora_eval.core.plan.PartialCoverageWarning")
@pytest.mark.parametrize("seed", range(20))
def test_the_values_and_intervals_are_those_of_samples(seed: int) -> None:
    qrels, run = random_lists(random.Random(seed))
    quick = ae.score_rankings(qrels, run, metrics=[*NINE, "bpref", "ndcg[phoenix]"])
    samples = [
        {
            "sample_id": q,
            "query": q,
            "relevant_docs": [{"doc_id": d, "metadata": {"relevance": g}} for d, g in docs.items()],
        }
        for q, docs in qrels.items()
    ]
    outputs = {
        q: {"answer": "", "retrieved": sorted(run.get(q, {}), key=lambda d: (run[q][d], d), reverse=True)}
        for q in qrels
    }
    for result in ae.score(samples, outputs, metrics=[*NINE, "bpref", "ndcg[phoenix]"]).results:
        other = quick[result.name]
        assert (other.value, other.interval, other.coverage) == (
            result.value,
            result.interval,
            result.coverage,
        )


@pytest.mark.parametrize("seed", range(5))
def test_values_are_those_of_ir_measures(seed: int) -> None:
    measures: Any = pytest.importorskip("ir_measures")
    qrels, run = random_lists(random.Random(seed))
    qrels = {q: docs for q, docs in qrels.items() if any(grade > 0 for grade in docs.values())}
    names = {"mrr": "RR", "map": "AP", "ndcg@10": "nDCG@10", "r_precision": "Rprec", "recall@10": "R@10"}
    whole = {q: {d: int(g) for d, g in docs.items()} for q, docs in qrels.items()}
    expected = measures.calc_aggregate(list(map(measures.parse_measure, names.values())), whole, run)
    results = ae.score_rankings(qrels, run, metrics=list(names))
    for ours, theirs in names.items():
        assert results[ours].value == pytest.approx(expected[measures.parse_measure(theirs)], abs=1e-9)


def nearly_equal_lists(rng: random.Random) -> tuple[Any, Any]:
    """Scores of which many differ only beyond the 24 bits of a single-precision number."""
    docs = [f"d{n}" for n in range(30)]
    qrels = {f"q{n}": {doc: rng.randint(0, 3) for doc in docs[:20]} for n in range(40)}
    run = {
        query: {doc: rng.randint(1, 8) * (1 + rng.randint(0, 4) * 2**-27) for doc in rng.sample(docs, 25)}
        for query in qrels
    }
    return qrels, run


def test_scores_that_differ_beyond_single_precision_are_ties_as_in_trec_eval(tmp_path: Path) -> None:
    trec_eval: Any = pytest.importorskip("pytrec_eval")
    qrels, run = nearly_equal_lists(random.Random(0))
    names = {
        "mrr": "recip_rank",
        "map": "map",
        "ndcg": "ndcg",
        "ndcg@10": "ndcg_cut_10",
        "recall@5": "recall_5",
    }
    measures = {"recip_rank", "map", "ndcg", "ndcg_cut.10", "recall.5"}
    theirs = trec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
    lines = [
        f"{query} Q0 {doc} 1 {score!r} t\n" for query, docs in run.items() for doc, score in docs.items()
    ]
    (tmp_path / "a.run").write_text("".join(lines))
    (tmp_path / "a.qrels").write_text(
        "".join(f"{query} 0 {doc} {grade}\n" for query, docs in qrels.items() for doc, grade in docs.items())
    )
    of_dicts = ae.score_rankings(qrels, run, metrics=list(names))
    of_files = ae.score(tmp_path / "a.qrels", tmp_path / "a.run", metrics=list(names))
    for ours, measure in names.items():
        expected = {query: values[measure] for query, values in theirs.items()}
        for result in (of_dicts[ours], of_files[ours]):
            values = {score.sample_id: score.value for score in result.scores}
            assert values == pytest.approx(expected, abs=1e-12), ours


def test_files_and_tables(tmp_path: Path) -> None:
    (tmp_path / "a.qrels").write_text("1 0 a 1\n2 0 a 1\n")
    (tmp_path / "a.run").write_text("1 Q0 b 1 0.5 t\n1 Q0 a 2 0.4 t\n")
    table = {"query_id": [1, 1], "doc_id": ["b", "a"], "score": [0.5, 0.4]}
    for run in (tmp_path / "a.run", table):
        result = ae.score_rankings(tmp_path / "a.qrels", run, metrics="mrr")["mrr"]
        assert result.value == 0.25  # half of the first query, and nothing of the second
        assert [score.sample_id for score in result.scores] == ["1", "2"]
    pandas: Any = pytest.importorskip("pandas")
    assert (
        ae.score_rankings(tmp_path / "a.qrels", pandas.DataFrame(table), metrics="mrr")["mrr"].value == 0.25
    )


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(TypeError, match=r"run must be a dict of \{query: \{document: score\}\}"):
        ae.score_rankings({"1": {"a": 1}}, ["a"])
    with pytest.raises(AueporaError, match="token_f1 needs more than judgements"):
        ae.score_rankings({"1": {"a": 1}}, {"1": {"a": 1.0}}, metrics="token_f1")
    with pytest.warns(SuspectValueWarning, match="Retrieved, for example: 'a#0'"):
        ae.score_rankings({"1": {"a": 1}}, {"1": {"a#0": 1.0}}, metrics="mrr")
    nan = ae.score_rankings({"1": {"a": 1}}, {"1": {"b": 1.0, "a": float("nan")}}, metrics="mrr")
    assert nan["mrr"].value == 0.5
    bad: Any = {"1": {"a": "high"}}
    assert ae.score_rankings(bad, {"1": {"a": 1.0}}, metrics="mrr")["mrr"].coverage.failed == 1
