"""Models on loopback that judge by a rule: for tests of everything but a model's quality.

with judge_server(lambda material: "yes") as server:
    LlmJudge(ChatModel(server.url, "m"), "label").judge(question)
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tests.servers import ChatServer, chat_server, completion

Material = Mapping[str, str]
Rule = Callable[[Material], str]


def material_of(body: Mapping[str, Any]) -> dict[str, str]:
    """The texts that a request asks about: the JSON between the two fences of its first user message."""
    user = next(message["content"] for message in body["messages"] if message["role"] == "user")
    lines = user.split("\n")
    fences = [place for place, line in enumerate(lines) if line.startswith("=== ") and line.endswith(" ===")]
    assert len(fences) == 2, "the material stands between exactly two fences"
    material: dict[str, str] = json.loads("\n".join(lines[fences[0] + 1 : fences[1]]))
    return material


def says(rule: Rule, *, confidence: float = 0.9, seconds: float = 0.0) -> Callable[[dict[str, Any]], Any]:
    """What a server replies that chooses an option by a rule, in whatever form it is asked for."""

    def reply(body: dict[str, Any]) -> dict[str, Any]:
        material = material_of(body)
        option = rule(material)
        if seconds:
            time.sleep(seconds)
        if body.get("logprobs"):
            rest = [("other", math.log((1 - confidence) or 1e-9))]
            return with_logprobs(option, [(option, math.log(confidence)), *rest])
        quote = material.get("passage") or material.get("answer") or ""
        return completion(json.dumps({"quote": quote[:200], "verdict": option}))

    return reply


def with_logprobs(text: str, options: Sequence[tuple[str, float]]) -> dict[str, Any]:
    """A chat completion of one token with its alternatives."""
    document = completion(text)
    top = [{"token": token, "logprob": logprob} for token, logprob in options]
    document["choices"][0]["logprobs"] = {"content": [{"token": text, "logprob": 0.0, "top_logprobs": top}]}
    return document


@contextmanager
def judge_server(
    rule: Rule, modes: Sequence[str] = ("ok",), *, confidence: float = 0.9, seconds: float = 0.0
) -> Iterator[ChatServer]:
    """A server whose model judges by a rule."""
    reply = says(rule, confidence=confidence, seconds=seconds)
    with chat_server(modes, says=reply, bare=True) as server:
        yield server


def supported(material: Material) -> str:
    """The oracle of these tests: a claim is supported if its words are in the passage."""
    return "yes" if material["claim"].casefold().strip(". ") in material["passage"].casefold() else "no"
