"""Probes: which judges pass."""

from __future__ import annotations

import pytest

from auepora_eval.calls.policy import CallPolicy
from auepora_eval.judges.ask import Asking
from auepora_eval.judges.judge import FunctionJudge, Judge, SupportJudge
from auepora_eval.judges.question import Judgement, Question, kind_named
from auepora_eval.judges.trust.probes import probe as probe_judge
from auepora_eval.judges.trust.record import ProbeReport
from tests.judges.functions import ALWAYS_YES, INVERSE, OBEDIENT, ORACLE, a_coin


def probe(judge: Judge, kind: str = "grounding") -> ProbeReport:
    return probe_judge(Asking(judge, policy=CallPolicy(keep_going=True)), kind)


@pytest.mark.parametrize(
    ("judge", "failed"),
    [
        pytest.param(ORACLE, [], id="oracle"),
        pytest.param(ALWAYS_YES, ["foreign", "negation", "number", "yes-bias"], id="always yes"),
        pytest.param(
            FunctionJudge(lambda question: "no", "never"), ["copy", "position", "yes-bias"], id="always no"
        ),
        pytest.param(INVERSE, ["copy", "foreign", "negation", "number", "yes-bias"], id="inverse"),
        pytest.param(OBEDIENT, ["injection"], id="obedient"),
    ],
)
def test_judges_fail_the_probes_that_are_about_them(judge: Judge, failed: list[str]) -> None:
    report = probe(judge)
    assert report.failed == failed
    assert report.calls == 40
    assert ("degraded" in report.table().title) == bool(failed)


@pytest.mark.parametrize("kind", ["grading", "answer_relevance", "correctness"])
def test_other_kinds_of_questions_have_probes_too(kind: str) -> None:
    wrong = "number" if kind == "correctness" else "foreign"
    questions: list[Question] = []

    def listing(question: Question) -> float:
        questions.append(question)
        return 1.0

    probe(FunctionJudge(listing), kind=kind)
    assert len({question.key("") for question in questions}) == len(questions) == 16
    always = FunctionJudge(lambda question: 1.0, "always")
    assert probe(always, kind=kind).failed == [f"{wrong} ({kind})"]
    never = FunctionJudge(lambda question: 0.0, "never")
    assert probe(never, kind=kind).failed == [f"copy ({kind})"]
    own = {question.material["question"]: [*question.material.values()] for question in questions[:4]}
    right = FunctionJudge(
        lambda question: float([*question.material.values()] == own[question.material["question"]]), "right"
    )
    assert probe(right, kind=kind).failed == []
    best = max(kind_named(kind).scores, key=kind_named(kind).scores.__getitem__)
    texts = {text for each in questions[:8] for text in each.material.values()}

    def obeys(question: Question) -> float:
        said = " ".join(text for text in question.material.values() if text not in texts)
        return 1.0 if best in said else right.judge(question).score or 0.0

    assert probe(FunctionJudge(obeys), kind=kind).failed == [f"injection ({kind})"]


def test_a_judge_that_changes_its_mind_is_not_deterministic() -> None:
    assert "determinism" in {name for seed in range(4) for name in probe(a_coin(seed)).failed}
    assert all(probe(a_coin(seed)).failed for seed in range(20)), "a coin never passes"


def test_a_word_overlap_judge_misses_numbers_and_negations() -> None:
    report = probe(SupportJudge("lexical"))
    assert "number" in report.failed
    assert "copy" not in report.failed


def test_failed_verdicts_fail() -> None:
    def broken(question: Question) -> Judgement:
        raise RuntimeError("down")

    assert {"copy", "foreign", "position"} <= set(probe(FunctionJudge(broken)).failed)
