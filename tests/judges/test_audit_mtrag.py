"""Published figures of MTRAG: agreement of its raters, correlation and label budget of two judges."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from auepora_eval.cli.main import main
from auepora_eval.judges.trust.audit import Audit, AuditReport, audit
from auepora_eval.judges.trust.labels import Columns, labelled_claims
from auepora_eval.stats.agreement import agreement

FILE = Path(__file__).parents[3] / "shared/data/mtrag/reference_subset_with_human_evaluations.json"
pytestmark = pytest.mark.skipif(not FILE.is_file(), reason="needs ../shared/data/mtrag")
SCORES = ("faithfulness", "naturalness", "completeness", "appropriateness")


@pytest.fixture(scope="module")
def records() -> list[dict[str, Any]]:
    """The answers of both models, with their passages, the raters' 1 to 4 and the judge's score."""
    expected = json.loads(FILE.read_text("utf-8"))
    texts = {document["document_id"]: document["text"] for document in expected["documents"]}
    tasks = {task["task_id"]: task for task in expected["tasks"]}
    return [
        {
            "evidence": [texts[context["document_id"]] for context in tasks[one["task_id"]]["contexts"]],
            "claim": one["model_response"],
            "rl_f": one["annotations"]["rl_f"]["composite"]["value"],
            **{
                name: {who: said["value"] for who, said in one["annotations"][name].items()}
                for name in SCORES
            },
        }
        for one in expected["evaluations"]
        if one["model_id"] != "reference"
    ]


def audited(records: list[dict[str, Any]], score: str, judge: str | None, how: Audit) -> AuditReport:
    columns = Columns(label=score, scale=(1.0, 4.0), score="" if judge else "rl_f")
    return audit(labelled_claims([("", record) for record in records], columns), judge, how)


@pytest.mark.parametrize(("score", "alpha"), list(zip(SCORES, (0.53, 0.35, 0.32, 0.07), strict=True)))
def test_the_raters_agreement(records: list[dict[str, Any]], score: str, alpha: float) -> None:
    columns = Columns(label=score, scale=(1.0, 4.0), score="rl_f")
    claims = labelled_claims([("", record) for record in records], columns)
    names = sorted({name for claim in claims for name in claim.ratings})
    assert (len(names), len(claims)) == (7, 318)
    ratings = np.array([[claim.ratings.get(name, math.nan) for name in names] for claim in claims])
    estimate = agreement(ratings, "krippendorff_alpha_ordinal")
    assert estimate.value == pytest.approx(alpha, abs=0.005)
    if score == "faithfulness":
        ceiling = audited(records, score, None, Audit()).human_ceiling
        assert ceiling is not None
        assert (ceiling.annotators, ceiling.items) == (7, 318)
        assert ceiling.alpha.statistic == "krippendorff_alpha_ordinal"
        assert ceiling.alpha.value == pytest.approx(estimate.value)


@pytest.mark.parametrize(
    ("judge", "pearson", "spearman"),
    [
        pytest.param(None, 0.76, 0.64, id="the LLM judge"),
        pytest.param("grounding_overlap", 0.716, 0.70, id="overlap of words"),
    ],
)
def test_correlations_of_published_judges(
    records: list[dict[str, Any]], judge: str | None, pearson: float, spearman: float
) -> None:
    # 18 answers have no passages, so that no word of theirs is supported.
    report: Any = audited(records, "faithfulness", judge, Audit(unscored_as=0.0))
    assert report.scored == 318
    assert report.correlation["pearson"].value == pytest.approx(pearson, abs=0.005)
    assert report.correlation["spearman"].value == pytest.approx(spearman, abs=0.006)


def test_few_labels_and_the_judge_estimate_the_mean_of_all_labels(
    records: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every fourth answer is labelled; the mean of all 318 ratings, 0.747, is in the interval."""
    for name, chosen in (("some", records[::4]), ("rest", [r for n, r in enumerate(records) if n % 4])):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, chosen)), encoding="utf-8")
    files = ["--labels", str(tmp_path / "some.jsonl"), "--unlabelled", str(tmp_path / "rest.jsonl")]
    how = ["--score", "rl_f", "--columns", "label=faithfulness", "--scale", "1,4", "--json"]
    assert main(["judge-audit", *files, *how]) == 0
    estimate = json.loads(capsys.readouterr().out)["estimate"]
    mean = estimate["mean"]
    assert (estimate["labels"], estimate["unlabelled"]) == (80, 238)
    low, high = mean["corrected"]["confidence_interval"]
    assert low < 0.747 < high
    alone = mean["people_alone"]["confidence_interval"]
    assert high - low < 0.85 * (alone[1] - alone[0])
