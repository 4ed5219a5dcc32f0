"""Metrics compared with human scores: which annotations count, and the human ceiling."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import kendalltau, pearsonr, spearmanr

from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.scoring import score_outputs
from auepora_eval.core.types import EvaluationRun
from auepora_eval.errors import DataError
from auepora_eval.metrics.parse import parse_metrics
from auepora_eval.people.agreement import compare_with_people, human_ceiling, human_score
from tests.builders import a_failure, a_sample, an_output

DATA = Path(__file__).parents[3] / "shared" / "data"
ANSWERS = ["k l m n", "k l m x", "k l x x", "k x x x", "x x x x", "k l m n x x"]


def a_run(cluster: str | None = None) -> EvaluationRun:
    samples = [
        a_sample(f"q{n}", reference="k l m n", cluster=cluster and f"{cluster}{n // 2}") for n in range(7)
    ]
    outputs = [*(an_output(answer=answer) for answer in ANSWERS), a_failure()]
    results = score_outputs(EvaluationPlan(parse_metrics("token_f1")), samples, outputs)
    return EvaluationRun("r", "s", "d", "", results, samples, outputs)


def scored(name: str, query_id: str, answer: str, overall: float, **scores: float) -> dict[str, Any]:
    return {
        "annotation_id": f"{name}{query_id}",
        "query_id": query_id,
        "annotator_id": name,
        "answer_text": answer,
        "overall_score": overall,
        "quality_scores": scores,
    }


def all_scored(name: str, *overall: float) -> list[dict[str, Any]]:
    pairs = enumerate(zip(ANSWERS, overall, strict=True))
    return [scored(name, f"q{n}", answer, score) for n, (answer, score) in pairs]


ADA = all_scored("ada", 1, 0.7, 0.6, 0.1, 0, 0.9)
BEN = all_scored("ben", 0.9, 0.9, 0.2, 0.3, 0.1, 0.8)


def test_a_metric_against_the_mean_of_people() -> None:
    report = compare_with_people(a_run(), ADA + BEN)
    people = [(a["overall_score"] + b["overall_score"]) / 2 for a, b in zip(ADA, BEN, strict=True)]
    f1 = [1.0, 0.75, 0.5, 0.25, 0.0, 0.8]
    correlations = report.metrics["token_f1"]
    assert correlations["pearson"].value == pytest.approx(pearsonr(f1, people).statistic)
    assert correlations["spearman"].value == pytest.approx(spearmanr(f1, people).statistic)
    assert correlations["kendall"].value == pytest.approx(kendalltau(f1, people).statistic)
    assert correlations["pearson"].interval is not None
    assert (report.answers, report.annotators) == (6, ["ada", "ben"])
    assert correlations["pearson"].samples == 6


def test_the_human_ceiling_is_one_against_the_others() -> None:
    ratings = [[1.0, 0.8, 0.9], [0.2, 0.4], [0.5], [0.3, 0.1]]
    pairs = [(1.0, 0.85), (0.8, 0.95), (0.9, 0.9), (0.2, 0.4), (0.4, 0.2), (0.3, 0.1), (0.1, 0.3)]
    report = human_ceiling(ratings)
    assert report is not None
    assert report["pearson"].value == pytest.approx(pearsonr(*zip(*pairs, strict=True)).statistic)
    assert (report["pearson"].interval or ())[:2] == (-1.0, 1.0)  # three items say nothing
    assert human_ceiling([[1.0], []]) is None
    assert compare_with_people(a_run(), ADA).ceiling is None


def test_only_judgements_of_the_runs_own_answers_count() -> None:
    strange = [
        scored("ada", "q1", "another answer", 1.0),
        scored("ada", "q6", "the call failed", 1.0),
        scored("ada", "q9", "x", 1.0),
        scored("ada", "q0", " k l\nm n ", 0.9),
        {"annotation_id": "s", "query_id": "q1", "citations": []},
    ]
    report = compare_with_people(a_run(), strange)
    assert (report.answers, report.other_answers, report.not_in_run) == (1, 1, 2)
    with pytest.raises(DataError, match="1 annotations are of other answers, 2 of other queries"):
        compare_with_people(a_run(), strange[:3])
    with pytest.raises(DataError, match="none of its answers has a 'warmth'"):
        compare_with_people(a_run(), ADA, score="warmth")


def test_samples_of_one_cluster_count_as_one() -> None:
    interval = compare_with_people(a_run("c"), ADA + BEN).metrics["token_f1"]["pearson"].interval
    assert interval == (-1.0, 1.0, "Student's t, plus two, 3 clusters")  # of six answers


@pytest.mark.parametrize(
    ("score", "value"),
    [("overall_score", 0.7), ("clarity", 0.4), ("quality_scores.clarity", 0.4), ("warmth", None)],
)
def test_which_score(score: str, value: float | None) -> None:
    assert human_score(scored("a", "q", "x", 0.7, clarity=0.4), score) == value


def test_an_overall_score_that_is_not_stated_is_the_mean() -> None:
    assert human_score({"quality_scores": {"x": 0.2, "y": 0.4}}, "overall_score") == pytest.approx(0.3)
    assert human_score({"quality_scores": {}}, "overall_score") is None


@pytest.mark.skipif(not (DATA / "mtrag").is_dir(), reason="needs ../shared/data/mtrag")
def test_the_human_ceiling_of_mtrag() -> None:
    path = DATA / "mtrag" / "reference_subset_with_human_evaluations.json"
    expected = [e for e in json.loads(path.read_text("utf-8"))["evaluations"] if e["model_id"] != "reference"]
    ratings = [[float(r["value"]) for r in e["annotations"]["faithfulness"].values()] for e in expected]
    report = human_ceiling(ratings)
    assert report is not None
    assert report["spearman"].value == pytest.approx(0.58, abs=0.006)
    assert report["spearman"].interval is not None
