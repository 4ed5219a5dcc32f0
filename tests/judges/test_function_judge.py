"""What a function may return as a verdict."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import auepora_eval as ae
from auepora_eval.cli.main import main
from auepora_eval.errors import DataError, ScoringError
from auepora_eval.judges.judge import FunctionJudge
from auepora_eval.judges.jury import judge_named
from auepora_eval.judges.question import Judgement, Question, kind_named, numbered
from auepora_eval.metrics.parse import parse_metric

QUESTION = Question(kind_named("nugget"), {"question": "q", "answer": "a", "information": "i"})


@pytest.mark.parametrize(
    ("said", "score", "label"),
    [
        ("partial", 0.5, "partial"),
        (0.9, 0.9, "full"),
        (1, 1.0, "full"),
        (True, 1.0, "full"),
        (Judgement(score=0.1), 0.1, "none"),
        (Judgement(label="full"), 1.0, "full"),
        (Judgement(score=0.6, label="full"), 0.6, "full"),
    ],
)
def test_a_score_an_option_or_a_verdict(said: object, score: float, label: str) -> None:
    verdict = FunctionJudge(lambda _: said).judge(QUESTION)
    assert (verdict.score, verdict.label) == (score, label)


@pytest.mark.parametrize(
    "said", ["maybe", 1.5, math.nan, None, Judgement(), Judgement(score=2.0), Judgement(label="?")]
)
def test_anything_else_is_an_error(said: object) -> None:
    with pytest.raises(ScoringError):
        FunctionJudge(lambda _: said).judge(QUESTION)


def test_stored_answers_are_judged_in_python() -> None:
    rows = [{"sample_id": "1", "query": "When?", "reference_answer": "noon"}]
    outputs = {"1": {"answer": "It leaves at noon.", "retrieved": [("d1", "It leaves at noon.")]}}
    run = ae.score(rows, outputs, metrics="judged_faithfulness", judge=lambda question: "yes")
    assert run["judged_faithfulness"].value == 1.0


def test_an_async_function_is_a_judge_too() -> None:
    async def judge(question: Question) -> str:
        return "yes" if question.material["claim"] == "c" else "no"

    question = Question(kind_named("support"), {"passage": "p", "claim": "c"})
    assert FunctionJudge(judge).judge(question).label == "yes"


NLI = """
def entails(passage, claim):
    return 0.9 if claim in passage else 0.1
{version}
"""


def test_a_function_of_passage_and_claim_is_a_judge_by_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It judges a run, is audited, sits in a jury, and serves the citation metrics."""
    monkeypatch.chdir(tmp_path)
    Path("my_nli.py").write_text(NLI.format(version="entails.version = 'v1'"), encoding="utf-8")
    mine = "support:my_nli.py:entails"
    kind = kind_named("grounding")
    assert judge_named(mine).identity(kind) == f"grounding/{mine}@v1"
    material = {**numbered("passage", ["Snow is white.", "It rains."]), **numbered("claim", ["It rains."])}
    parts = judge_named(mine).judge(Question(kind, material)).parts
    assert [(part.label, part.score, part.passages) for part in parts] == [("supported", 0.9, [2])]
    jury = f"jury:[{mine},support:trained]"
    for name in (mine, jury):
        assert main(["judge-audit", "--labels", "demo", "--judge", name, "--out", "runs"]) == 0
        assert "AUROC" in capsys.readouterr().out
    metric = parse_metric("citation_correctness[my_nli.py:entails]")
    assert metric.signature()["support"] == "my_nli.py:entails/v1"


def test_a_function_of_one_text_is_not_a_support_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one_text.py").write_text("def f(passage): return 1.0\n", encoding="utf-8")
    with pytest.raises(DataError, match="is not a function of two texts"):
        judge_named("support:one_text.py:f")
