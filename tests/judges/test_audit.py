"""judge-audit: labels, measures compared with scikit-learn, and the bundled judges on AttributionBench."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.cli.main import main
from auepora_eval.judges.ask import Asking
from auepora_eval.judges.judge import SupportJudge
from auepora_eval.judges.trust.audit import judge_scores
from auepora_eval.judges.trust.calibration import calibrate
from auepora_eval.judges.trust.labels import Labelled, labelled_claims
from auepora_eval.metrics.entailment import SUPPORTS, Support, support_function

sklearn_metrics = pytest.importorskip("sklearn.metrics")
BENCH = Path(__file__).parents[3] / "shared/data/attributionbench/dev_all_subset_balanced.jsonl"
PIER = "The Annet moors at the north pier."


@pytest.fixture(scope="module", autouse=True)
def echoing() -> Iterator[None]:
    """A judge that says what the claim says."""

    @SUPPORTS.add("echoing")
    def _make() -> Support:
        return lambda premise, claim: float(claim)

    yield
    del SUPPORTS._things["echoing"]
    support_function.cache_clear()


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5, 0.7, 0.9]), st.booleans()), min_size=2, max_size=40)
)
@settings(deadline=None, max_examples=10)
def test_measures_equal_scikit_learn(rows: list[tuple[float, bool]]) -> None:
    labelled = [Labelled(("x",), str(score), label) for score, label in rows]
    report = calibrate("echo", judge_scores(Asking(SupportJudge("echoing")), labelled), labelled)
    true, scores = [label for _, label in rows], np.array([score for score, _ in rows])
    assert report.accuracy.value == pytest.approx(sklearn_metrics.accuracy_score(true, scores >= 0.5))
    if len(set(true)) == 2:
        assert report.auroc.value == pytest.approx(sklearn_metrics.roc_auc_score(true, scores))
        assert report.kappa.value == pytest.approx(sklearn_metrics.cohen_kappa_score(true, scores >= 0.5))
    else:
        assert report.auroc.value is None
    for name in ("accuracy", "auroc", "kappa"):
        measure = getattr(report, name)
        limits, value = measure.confidence_interval, measure.value
        assert limits is None or limits[0] - 1e-9 <= value <= limits[1] + 1e-9
    json.dumps(msgspec.to_builtins(report), allow_nan=False)


def test_claims_of_one_cluster_are_resampled_together() -> None:
    """Each claim three times over is no more than it was: the interval is as wide, not narrower."""
    rng = np.random.default_rng(6)
    rows = [(float(score), bool(rng.random() < score)) for score in rng.random(80)]
    once = [Labelled((), "", label, score=score) for score, label in rows]
    copies = [Labelled((), "", one.is_supported, score=one.score) for one in once for _ in range(3)]
    named = [
        Labelled((), "", one.is_supported, score=one.score, cluster=str(n))
        for n, one in enumerate(once)
        for _ in range(3)
    ]
    widths = {}
    for name, claims in (("once", once), ("copies", copies), ("named", named)):
        report: Any = calibrate("", [one.score for one in claims], claims)
        for figure in ("accuracy", "auroc", "kappa"):
            low, high = getattr(report, figure).confidence_interval
            widths[name, figure] = high - low
    for figure in ("accuracy", "auroc", "kappa"):
        assert widths["named", figure] == pytest.approx(widths["once", figure], rel=0.12)
        assert widths["copies", figure] < 0.75 * widths["once", figure]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "claims.jsonl"
    lines = [
        {"evidence": PIER, "claim": f"The Annet moors {n} times.", "label": n % 2, "set": "s"}
        for n in range(4)
    ]
    lines += [{"evidence": PIER, "claim": "The Annet moors at the pier.", "label": 1, "set": "t\x1b[31m"}]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert main(["judge-audit", "--labels", str(path)]) == 0
    captured = capsys.readouterr().out
    assert "accuracy at 0.5" in captured
    assert "\x1b[31m" not in captured
    assert main(["judge-audit", "--labels", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["claims"] == 5
    assert main(["judge-audit", "--labels", str(path), "--judge", "nonsense"]) == 2
    assert main(["judge-audit", "--labels", str(path), "--score", "absent"]) == 2
    assert main(["judge-audit", "--labels", str(tmp_path / "none.jsonl")]) == 2
    (tmp_path / "empty.jsonl").write_text("")
    assert main(["judge-audit", "--labels", str(tmp_path / "empty.jsonl")]) == 2


@pytest.mark.full
@pytest.mark.skipif(not BENCH.is_file(), reason="needs ../shared/data/attributionbench")
@pytest.mark.parametrize(
    ("judge", "accuracy", "auroc", "kappa"),
    [("lexical", 0.663, 0.741, 0.326), ("trained", 0.649, 0.749, 0.297)],
)
def test_bundled_judges_on_attributionbench(judge: str, accuracy: float, auroc: float, kappa: float) -> None:
    records = [("", json.loads(line)) for line in BENCH.read_text(encoding="utf-8").splitlines()]
    claims = labelled_claims(records)
    report = calibrate(judge, judge_scores(Asking(SupportJudge(judge)), claims), claims, threshold=0.7)
    assert (report.claims, report.labels, report.sensitivity.of) == (1198, 1198, 599)
    assert report.accuracy.value == pytest.approx(accuracy, abs=0.002)
    assert report.auroc.value == pytest.approx(auroc, abs=0.002)
    assert report.kappa.value == pytest.approx(kappa, abs=0.003)
