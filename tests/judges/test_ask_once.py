"""One call per answer: what a reply must have, what is asked for again, and the number of passages."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from auepora_eval.calls.chat import ChatModel
from auepora_eval.core.types import Document, Response, RetrievedDocument, SystemOutputs
from auepora_eval.judges.ask import Asking
from auepora_eval.judges.llm import LlmJudge
from auepora_eval.judges.metrics.faithfulness import CheckedClaims
from auepora_eval.judges.question import Question, claim_material, kind_named, numbered
from auepora_eval.metrics.parse import parse_metric
from tests.builders import a_sample
from tests.judges.scripted import judge_server, material_of, supported
from tests.servers import chat_server, completion

PIER, CARS = "The Annet moors at the north pier.", "She carries 22 cars."
QUESTION = Question(
    kind_named("grounding"),
    {**numbered("passage", [PIER, CARS]), **numbered("claim", ["It moors there.", "It is red."])},
)
FIRST = {"number": 1, "passages": [1], "quote": "moors at the north pier", "verdict": "supported"}
SECOND = {"number": 2, "passages": [], "quote": "", "verdict": "unmentioned"}


def judged(*replies: object, mode: str = "label") -> tuple[Any, list[Any]]:
    """The verdict of a model that gives these replies, and the requests that it got."""
    texts = iter([each if isinstance(each, str) else json.dumps({"verdicts": each}) for each in replies])
    with (
        chat_server(["ok"], says=lambda body: completion(next(texts)), bare=True) as server,
        ChatModel(server.url, "m", timeout=10, plain_http=True) as chat,
    ):
        return LlmJudge(chat, mode).judge(QUESTION), server.requests


@pytest.mark.parametrize("mode", ["label", "logprob"])
def test_one_reply_has_a_verdict_for_each_claim(mode: str) -> None:
    verdict, requests = judged([FIRST, SECOND], mode=mode)
    assert len(requests) == 1
    assert [(part.label, part.score, part.passages) for part in verdict.parts] == [
        ("supported", 1.0, [1]),
        ("unmentioned", 0.0, []),
    ]
    assert verdict.parts[0].quote == "moors at the north pier"
    assert (verdict.score, verdict.failed) == (0.5, "")


def test_a_claim_may_need_two_passages() -> None:
    verdict, _ = judged([{**FIRST, "passages": [2, 1]}, SECOND])
    assert verdict.parts[0].passages == [1, 2], "the passage with the quote comes first"


BAD = [
    pytest.param([FIRST], "missing: there are no verdicts on it", id="a claim is missing"),
    pytest.param(
        [FIRST, SECOND, {**SECOND, "verdict": "supported"}], "there are 2 verdicts", id="two verdicts"
    ),
    pytest.param(
        [FIRST, {**FIRST, "number": 2, "passages": [7]}], "unknown_passage: [7]", id="unknown passage"
    ),
    pytest.param([FIRST, {**FIRST, "number": 2, "passages": []}], "unknown_passage: none", id="no passage"),
    pytest.param([FIRST, {**FIRST, "number": 2, "quote": "sails"}], "quote_not_found", id="invented quote"),
    pytest.param([FIRST, {**FIRST, "number": 2, "passages": [2]}], "quote_not_found", id="other passage"),
    pytest.param([FIRST, {**SECOND, "verdict": "maybe"}], "no_option: 'maybe'", id="no option"),
]


@pytest.mark.parametrize(("reply", "reason"), BAD)
def test_what_cannot_be_used_is_asked_for_again_once_and_never_guessed(reply: Any, reason: str) -> None:
    verdict, requests = judged(reply, [SECOND])
    assert (len(requests), verdict.failed, verdict.flags) == (2, "", ["repaired"])
    assert "number 2" in requests[1]["messages"][-1]["content"]
    assert "number 1" not in requests[1]["messages"][-1]["content"]
    verdict, requests = judged(reply, reply)
    assert len(requests) == 2
    assert verdict.parts[0].score == 1.0, "the other claim keeps its verdict"
    assert (verdict.parts[1].score, verdict.score) == (None, None)
    assert reason in verdict.parts[1].failed
    assert verdict.failed.startswith("1 of 2 claim verdicts failed: ")


def test_a_reply_that_is_not_json_fails_every_claim() -> None:
    verdict, requests = judged("supported, I think", '{"verdicts": [{"number": 1')
    assert len(requests) == 2
    assert [part.failed.startswith("unparsable") for part in verdict.parts] == [True, True]


def answered(answer: str, passages: list[str]) -> SystemOutputs:
    hits = [RetrievedDocument(Document(f"d{n}", text), 1 / n, n) for n, text in enumerate(passages, 1)]
    return SystemOutputs(hits, Response(answer))


def value_by(
    reply: Callable[[dict[str, Any]], Any], outputs: list[SystemOutputs], name: str = "judged_faithfulness"
) -> tuple[float, int]:
    """The value of a metric by a model that replies so, and its number of calls."""
    with (
        chat_server(["ok"], says=reply, bare=True) as server,
        ChatModel(server.url, "m", timeout=10, plain_http=True) as chat,
    ):
        metric = parse_metric(name)
        assert isinstance(metric, CheckedClaims)
        metric = metric.judged_by(Asking(LlmJudge(chat, "label")))
        samples = [a_sample(str(number)) for number in range(len(outputs))]
        return metric.compute(samples, outputs).value, len(server.requests)


def test_25_answers_make_25_calls() -> None:
    outputs = [answered(f"Boat {n} is red.", [f"Boat {n} is red.", PIER, CARS]) for n in range(25)]

    def reply(body: dict[str, Any]) -> Any:
        material = material_of(body)
        said = supported({"passage": material["passage 1"], "claim": material["claim 1"]})
        quote = {"passages": [1], "quote": material["passage 1"]}
        verdict = "supported" if said == "yes" else "unmentioned"
        return completion(json.dumps({"verdicts": [{"number": 1, **quote, "verdict": verdict}]}))

    assert value_by(reply, outputs) == (1.0, 25)


@pytest.mark.parametrize("top_k", [1, 5, 20])
def test_the_false_alarms_of_a_judge_do_not_grow_with_the_passages(top_k: int) -> None:
    """It says yes to 15% of nonsense, once for each answer: at any number of passages."""
    rng = random.Random(0)
    outputs = [answered(f"Nonsense {n} holds.", [f"Text {n}.{k}." for k in range(top_k)]) for n in range(120)]

    def reply(body: dict[str, Any]) -> Any:
        label = "supported" if rng.random() < 0.15 else "unmentioned"
        part = {"number": 1, "passages": [1], "quote": material_of(body)["passage 1"], "verdict": label}
        return completion(json.dumps({"verdicts": [part]}))

    value, calls = value_by(reply, outputs)
    assert calls == 120
    assert value < 0.25


def test_long_contexts_are_cut_with_a_note() -> None:
    long = " ".join(f"Sentence {n} has seven words in it." for n in range(700))
    with judge_server(lambda material: "no") as server, ChatModel(server.url, "m", plain_http=True) as chat:
        metric = parse_metric("judged_faithfulness")
        assert isinstance(metric, CheckedClaims)
        metric = metric.judged_by(Asking(LlmJudge(chat, "label")))
        result = metric.compute([a_sample()], [answered("It is red.", [long, long, long])])
        shown = material_of(server.requests[0])
    assert [name for name in shown if name.startswith("passage")] == ["passage 1", "passage 2"]
    assert any("were shortened to 6,000 words for the judge" in note for note in result.notes)


def test_a_reply_in_one_fenced_block_is_read() -> None:
    block = f"```json\n{json.dumps({'verdicts': [FIRST, SECOND]})}\n```"
    verdict, requests = judged(block)
    assert (verdict.score, verdict.failed, len(requests)) == (0.5, "", 1)
    # Two blocks, or a block among other words, would let a reply choose.
    verdict, requests = judged(f"{block}\n{block}", f"Here it is: {block}")
    assert len(requests) == 2
    assert "unparsable" in verdict.failed


@pytest.mark.parametrize("quote", ["e", "the", "[2]", "at the", "..."])
def test_a_quote_must_say_something(quote: str) -> None:
    verdict, requests = judged([{**FIRST, "quote": quote}, SECOND], [FIRST])
    assert (verdict.score, len(requests)) == (0.5, 2), "it is asked for again"
    verdict, _ = judged(*[[{**FIRST, "quote": quote}, SECOND]] * 2)
    assert verdict.parts[0].failed.startswith(f"quote_not_found: {quote!r}")


def test_a_mark_of_the_prompt_is_not_a_quote() -> None:
    """With [ask=claim] the passages are one text, numbered by us."""
    kind = kind_named("support")
    question = Question(kind, claim_material(kind, "It moors there.", [PIER, CARS]))
    reply = json.dumps({"quote": "[2]", "verdict": "yes"})
    with (
        chat_server(["ok"], says=lambda body: completion(reply), bare=True) as server,
        ChatModel(server.url, "m", timeout=10, plain_http=True) as chat,
    ):
        assert LlmJudge(chat).judge(question).failed.startswith("quote_not_found")


def limited(body: dict[str, Any]) -> dict[str, Any]:
    """A model whose verdicts take 150 tokens each, and that stops at the limit of the request."""
    count = sum(name.startswith("claim ") for name in material_of(body))
    entries = [{**FIRST, "number": number} for number in range(1, count + 1)]
    text, fits = json.dumps({"verdicts": entries}), 150 * count <= body["max_tokens"]
    document = completion(text if fits else text[:-100])
    document["choices"][0]["finish_reason"] = "stop" if fits else "length"
    document["usage"] = {"prompt_tokens": 100, "completion_tokens": min(150 * count, body["max_tokens"])}
    return document


def test_many_claims_have_room_for_their_verdicts() -> None:
    claims = [f"It moors there, {number}." for number in range(60)]
    question = Question(kind_named("grounding"), {"passage 1": PIER, **numbered("claim", claims)})
    with (
        chat_server(["ok"], says=limited, bare=True) as server,
        ChatModel(server.url, "m", timeout=10, plain_http=True) as chat,
    ):
        verdict = LlmJudge(chat).judge(question)
        assert (verdict.failed, verdict.score, len(verdict.parts)) == ("", 1.0, 60)
    assert [body["max_tokens"] for body in server.requests] == [60 * 160]


def test_a_reply_that_was_cut_off_says_so() -> None:
    with (
        chat_server(["ok"], says=lambda body: cut_off(), bare=True) as server,
        ChatModel(server.url, "m", timeout=10, plain_http=True) as chat,
    ):
        verdict = LlmJudge(chat).judge(QUESTION)
    assert "cut_off: the reply was cut off after 2,048 tokens" in verdict.failed
    assert [body["max_tokens"] for body in server.requests] == [2048, 4096], "asked again with more room"


def cut_off() -> dict[str, Any]:
    document = completion('{"verdicts": [{"number": 1, ')
    document["choices"][0]["finish_reason"] = "length"
    document["usage"] = {"prompt_tokens": 100, "completion_tokens": 2048}
    return document
