"""Corrected means: coverage of the interval, the judge's bias, and one number for one question."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from auepora_eval.cli.main import main
from auepora_eval.core.types import MetricResult
from auepora_eval.judges.trust.audit import Audit, AuditReport, CorrectedRates, audit
from auepora_eval.judges.trust.correction import corrected_value
from auepora_eval.judges.trust.labels import Labelled
from auepora_eval.stats.calibration import prediction_powered_mean
from tests.decide.gated import a_run
from tests.judges.judged_runs import METRIC

Columns = tuple[np.ndarray, np.ndarray, np.ndarray]


def judged(seed: int, labels: int = 80, others: int = 400) -> Columns:
    """30% are right; the judge scores right ones 0.85 on average and wrong ones 0.35: much too kind."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(labels + others) < 0.3).astype(float)
    scores = np.clip(0.35 + 0.5 * truth + rng.normal(0, 0.15, len(truth)), 0, 1)
    return truth[:labels], scores[:labels], scores[labels:]


def audited(
    people: np.ndarray, scores: np.ndarray, rest: np.ndarray, threshold: float = 0.6
) -> CorrectedRates:
    labelled = [
        Labelled((), "", bool(yes), score=score) for yes, score in zip(people, scores.tolist(), strict=True)
    ]
    others = [Labelled((), "", False, score=score) for score in rest.tolist()]
    report: AuditReport = audit(labelled, None, Audit(threshold), unlabelled=others)
    assert report.estimate is not None
    return report.estimate


def test_interval_covers_the_truth_and_not_the_judge() -> None:
    held = by_errors = 0
    for seed in range(200):
        found = audited(*judged(seed))
        low, high = found.share_of_yes.corrected.confidence_interval or (1.0, 0.0)
        held += low <= 0.3 <= high
        assert found.mean.judge_alone > 0.45
        low, high = found.share_of_yes_by_errors.confidence_interval or (1.0, 0.0)
        by_errors += low <= 0.3 <= high
    assert held / 200 >= 0.9
    assert by_errors / 200 >= 0.9


def test_labels_that_the_judge_is_worth() -> None:
    people, scores, rest = judged(1)
    found = audited(people, scores, rest)
    both = prediction_powered_mean(people, scores, rest)
    assert found.mean.corrected.value == both.value
    assert found.mean.weight == both.weight
    assert found.mean.worth_labels is not None
    assert found.mean.worth_labels > 1.5 * found.labels
    useless = audited(people, np.full(80, 0.5), np.full(400, 0.5))
    assert useless.mean.worth_labels == pytest.approx(80)
    assert useless.mean.corrected.value == pytest.approx(float(people.mean()))


def test_the_share_of_yes_of_the_judge_alone_is_counted_not_averaged() -> None:
    """Of six scores two reach 0.7: a third, whatever their mean."""
    found = audited(np.array([1.0, 0, 0]), np.array([0.9, 0.6, 0.1]), np.array([0.7, 0.69, 0.5]), 0.7)
    assert found.share_of_yes.judge_alone == pytest.approx(2 / 6)
    assert found.mean.judge_alone == pytest.approx((1.6 + 1.89) / 6)
    assert found.mean.corrected == found.share_of_yes.corrected  # the correction is by the scores either way


def test_the_same_labels_and_scores_have_one_interval_in_both_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`judge --calibrate` corrects the value of a run, `judge-audit --unlabelled` the mean of claims."""
    people, scores, rest = judged(7)
    result: MetricResult = a_run("run", {METRIC: [*scores.tolist(), *rest.tolist()]}).results[0]
    of_run, _ = corrected_value(result, {f"s{place}": float(label) for place, label in enumerate(people)})
    assert of_run is not None
    labelled, unlabelled = tmp_path / "labelled.jsonl", tmp_path / "rest.jsonl"
    rows = [{"label": int(yes), "said": score} for yes, score in zip(people, scores.tolist(), strict=True)]
    labelled.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    unlabelled.write_text("\n".join(json.dumps({"said": score}) for score in rest.tolist()), encoding="utf-8")
    words = ["--labels", str(labelled), "--unlabelled", str(unlabelled), "--score", "said", "--json"]
    assert main(["judge-audit", *words]) == 0
    corrected = json.loads(capsys.readouterr().out)["estimate"]["mean"]["corrected"]
    assert corrected["value"] == pytest.approx(of_run.value, abs=1e-12)
    assert corrected["confidence_interval"] == pytest.approx(of_run.interval, abs=1e-12)
