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
        if seconds:
            time.sleep(seconds)
        if any(name.endswith(" 1") for name in material):
            return completion(json.dumps({"verdicts": list(verdicts_by(rule, material))}))
        option = rule(material)
        if body.get("logprobs"):
            rest = [("other", math.log((1 - confidence) or 1e-9))]
            return with_logprobs(option, [(option, math.log(confidence)), *rest])
        quote = material.get("passage") or material.get("answer") or ""
        return completion(json.dumps({"quote": quote[:200], "verdict": option}))

    return reply


def verdicts_by(rule: Rule, material: Material) -> Iterator[dict[str, Any]]:
    """What a model replies that judges each numbered text by a rule about one of them."""
    shared = {name: text for name, text in material.items() if not name[-1].isdigit()}

    def numbered(name: str) -> list[tuple[int, str]]:
        found = ((key.rpartition(" "), text) for key, text in material.items() if key[-1].isdigit())
        return [(int(number), text) for (start, _, number), text in found if start == name]

    for name in ("information",) if "information 1" in material else ():
        for number, text in numbered(name):
            option = rule({**shared, name: text})
            yield {"number": number, "quote": shared["answer"][:200], "verdict": option}
    if "claim 1" not in material:
        for number, text in numbered("passage"):
            yield {"number": number, "verdict": rule({**shared, "passage": text})}
    for number, claim in numbered("claim"):
        options = {place: rule({"passage": text, "claim": claim}) for place, text in numbered("passage")}
        words = {"yes": "supported", "no": "unmentioned"}
        named = {place: words.get(option, option) for place, option in options.items()}
        best = next((each for each in named.items() if each[1] != "unmentioned"), (1, "unmentioned"))
        quote = material[f"passage {best[0]}"][:200]
        yield {"number": number, "passages": [best[0]], "quote": quote, "verdict": best[1]}


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
