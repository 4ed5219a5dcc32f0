"""A model as a judge: the modes, the reader of probabilities, quotes, and replies that are no verdict."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.calls.chat import ChatModel, fence_of
from auepora_eval.judges import llm
from auepora_eval.judges.llm import LlmJudge
from auepora_eval.judges.question import Question, kind_named
from tests.judges.scripted import judge_server, material_of, supported, with_logprobs
from tests.servers import chat_server, completion

PASSAGE = "The ferry leaves at noon. It takes forty minutes."


def a_question(claim: str = "The ferry leaves at noon.", passage: str = PASSAGE) -> Question:
    return Question(kind_named("support"), {"passage": passage, "claim": claim})


def model(url: str) -> ChatModel:
    return ChatModel(url, "m", timeout=10)


def test_the_label_mode_gives_the_verdict_and_a_literal_quote() -> None:
    with judge_server(supported) as server, model(server.url) as chat:
        verdict = LlmJudge(chat, "label").judge(a_question())
        wrong = LlmJudge(chat, "label").judge(a_question("The ferry leaves at nine."))
    assert (verdict.score, verdict.label) == (1.0, "yes")
    assert verdict.quote == PASSAGE
    assert verdict.usage == {"input_tokens": 11, "output_tokens": 5}
    assert (wrong.score, wrong.label, wrong.failed) == (0.0, "no", "")


def test_the_logprob_mode_is_the_probability_of_yes_among_the_options() -> None:
    options = [("Yes", math.log(0.6)), (" no", math.log(0.2)), ("▁YES", math.log(0.1)), ("perhaps", -9.0)]
    with (
        chat_server(["ok"], says=lambda body: with_logprobs("Yes", options), bare=True) as server,
        model(server.url) as chat,
    ):
        verdict = LlmJudge(chat, "logprob").judge(a_question())
    assert verdict.score == pytest.approx(0.7 / 0.9)
    assert verdict.mass == pytest.approx(0.9)
    assert verdict.probabilities == pytest.approx({"yes": 0.7 / 0.9, "no": 0.2 / 0.9})
    request = server.requests[0]
    assert (request["max_tokens"], request["logprobs"], request["top_logprobs"]) == (1, True, 20)


def test_a_model_that_answers_something_else_has_no_verdict() -> None:
    with judge_server(supported, confidence=0.79) as server, model(server.url) as chat:
        verdict = LlmJudge(chat, "logprob").judge(a_question())
    assert verdict.score is None
    assert verdict.failed.startswith("no_mass: the options have 0.79 of the probability")


def test_the_mode_does_not_change_silently() -> None:
    with (
        chat_server(["ok"], says=lambda body: completion("yes"), bare=True) as server,
        model(server.url) as chat,
    ):
        verdict = LlmJudge(chat, "logprob").judge(a_question())
    assert verdict.failed.startswith("no_logprobs")


def test_a_quote_that_is_not_in_the_passage_is_repaired_once_or_voids_the_verdict() -> None:
    replies = iter(
        [
            {"quote": "It leaves at 12.", "verdict": "yes"},
            {"quote": "the  FERRY leaves", "verdict": "yes"},
            {"quote": "It leaves at 12.", "verdict": "yes"},
            {"quote": "nowhere", "verdict": "yes"},
        ]
    )
    with (
        chat_server(["ok"], says=lambda body: completion(json.dumps(next(replies))), bare=True) as server,
        model(server.url) as chat,
    ):
        judge = LlmJudge(chat, "label")
        repaired, void = judge.judge(a_question()), judge.judge(a_question())
    assert (repaired.score, repaired.flags, repaired.quote) == (1.0, ["repaired"], "The ferry leaves")
    assert repaired.usage == {"input_tokens": 22, "output_tokens": 10}
    assert void.score is None
    assert void.failed.startswith("quote_not_found: 'nowhere'")
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        ("yes", "unparsable"),
        ('Sure! {"quote": "", "verdict": "no"}', "unparsable"),
        ('{"quote": "", "verdict": "no"} {"quote": "", "verdict": "yes"}', "unparsable"),
        ('{"quote": "", "verdict": "maybe"}', "no_option"),
    ],
)
def test_a_reply_that_is_no_verdict_is_a_failure_and_never_a_score(text: str, failed: str) -> None:
    with (
        chat_server(["ok"], says=lambda body: completion(text), bare=True) as server,
        model(server.url) as chat,
    ):
        verdict = LlmJudge(chat, "label").judge(a_question())
    assert verdict.score is None
    assert verdict.failed.startswith(failed)
    assert len(server.requests) == 2


def test_claims_are_listed() -> None:
    def reply(body: dict[str, Any]) -> dict[str, Any]:
        return completion(json.dumps({"claims": material_of(body)["text"].split(" and ")}))

    question = Question(kind_named("claims"), {"question": "When?", "text": "it is noon and it rains"})
    with chat_server(["ok"], says=reply, bare=True) as server, model(server.url) as chat:
        assert LlmJudge(chat, "logprob").judge(question).texts == ["it is noon", "it rains"]


def test_no_text_leaves_its_place_in_the_prompt() -> None:
    """A document may write fences, quotes, chat marks and commands: the judge is shown them as a text."""
    probes = json.loads((Path(llm.__file__).parent / "trust/probes.json").read_text("utf-8"))
    texts = [each.format(yes="yes") for each in probes["attacks"].values()]
    texts += ["=== 4f1d0c9ab2e84f1d ===", "{{material}} {{fence}}", "a\u2028b\x00c", '"}\n=== x ===\n{"']
    questions = [a_question("The ferry is red.", text) for text in texts]
    questions += [a_question(f"{text} {fence_of(text)}", "The ferry is red.") for text in texts]
    with judge_server(lambda material: "no") as server, ChatModel(server.url, "m", plain_http=True) as chat:
        for question in questions:
            LlmJudge(chat, "label").judge(question)
        shown = [material_of(body) for body in server.requests]
    assert shown == [dict(question.material) for question in questions]


def test_a_judge_is_its_model_server_prompt_mode_and_parameters() -> None:
    first, second = "http://127.0.0.1:8001/v1", "http://127.0.0.1:8002/v1"
    judges = [
        LlmJudge(ChatModel(first, "m"), "label"),
        LlmJudge(ChatModel(second, "m"), "label"),
        LlmJudge(ChatModel(first, "other"), "label"),
        LlmJudge(ChatModel(first, "m"), "logprob"),
        LlmJudge(ChatModel(first, "m", temperature=0.5), "label"),
        LlmJudge(ChatModel(first, "m", seed=3), "label"),
        LlmJudge(ChatModel("http://127.0.0.1:8001/other/v1", "m"), "label"),
        LlmJudge(ChatModel(f"{first}?deployment=a", "m"), "label"),
        LlmJudge(ChatModel(f"{first}?deployment=b", "m"), "label"),
        LlmJudge(ChatModel(first, "m", extra={"reasoning_effort": "low"}), "label"),
        LlmJudge(ChatModel(first, "m", extra={"reasoning_effort": "high"}), "label"),
    ]
    kind = kind_named("support")
    other = replace(kind, prompt=replace(kind.prompt, sha256="0" * 64))
    identities = [*(judge.identity(kind) for judge in judges), judges[0].identity(other)]
    assert len({*identities}) == len(identities) == 12
    assert "/127.0.0.1:8001/" in identities[0], "reports name the server"
