"""Judges that are functions of a question: for tests of what is measured about judges."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path

from auepora_eval.judges.ask import stored_verdicts
from auepora_eval.judges.judge import FunctionJudge, Judge
from auepora_eval.judges.question import Judgement, Question, kind_named

YES_WORDS = re.compile(r"\b(?:yes|supported)\b", re.IGNORECASE)


def a_question(claim: str = "c", passage: str = "p", repeat: int = 0) -> Question:
    return Question(kind_named("support"), {"passage": passage, "claim": claim}, repeat=repeat)


def _oracle(question: Question) -> float:
    """Yes if the last sentence of the claim is in the passage."""
    claim = question.material["claim"].removeprefix(
        "On this subject, the following point is worth mentioning here. "
    )
    return float(claim in question.material["passage"])


def _obedient(question: Question) -> float:
    texts = " ".join(question.material.values())
    return 1.0 if YES_WORDS.search(texts) else _oracle(question)


ORACLE = FunctionJudge(_oracle, "oracle")
INVERSE = FunctionJudge(lambda question: 1 - _oracle(question), "inverse")
ALWAYS_YES = FunctionJudge(lambda question: "yes", "always yes")
OBEDIENT = FunctionJudge(_obedient, "obedient")


def a_coin(seed: int = 0) -> Judge:
    rng = random.Random(seed)
    return FunctionJudge(lambda question: float(rng.random() < 0.5), "coin")


def says(scores: dict[str, float | Judgement], name: str = "table") -> Judge:
    """A judge with a table of scores by claim."""
    return FunctionJudge(lambda question: scores[question.material["claim"]], name)


def noisy(truth: Sequence[bool], rng: random.Random, *, se: float = 0.9, sp: float = 0.8) -> list[float]:
    """Scores of a judge with these error rates: 1 for yes, 0 for no."""
    return [float(rng.random() < se) if yes else float(rng.random() >= sp) for yes in truth]


def book_of(path: Path) -> dict[str, Judgement]:
    """The last verdict on each question in the database of a run."""
    return {verdict.key: verdict for verdict in stored_verdicts(path)}
