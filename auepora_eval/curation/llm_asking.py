"""One call to a language model: what is shown, what comes back, what of it passes, and the record of it."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from ..core.fingerprint import canonical_json
from ..errors import CallError
from ..judges.http_calls import BadReplyError
from ..judges.llm import ChatModel, Reply, parse_strictly
from ..judges.prompt_files import Prompt, as_material, fence_of, load_prompt
from .chunks import CutDocument
from .llm_plan import Call, Wanted
from .llm_replies import KINDS, Accepted, RejectedError

# A reply may be megabytes long; what is kept of it and sent back must not grow with it.
_MORE_TASKS, _LONGEST_ECHO, _LONGEST_KEPT = 20, 8_000, 200_000


@dataclass(frozen=True)
class Prices:
    """What a thousand tokens cost, in US dollars."""

    input: float
    output: float


@dataclass
class Asking:
    """What all calls of a generation share."""

    model: ChatModel
    wanted: Wanted
    prices: Prices | None
    budget: Budget
    folder: Path | None

    def __post_init__(self) -> None:
        self.prompts = {
            name: load_prompt(KINDS[name].prompt, self.folder) for name in self.wanted.per_document
        }
        self.schemas = {name: msgspec.json.schema(KINDS[name].reply) for name in self.wanted.per_document}
        self.run_id = ""

    def made_with(self, documents: Sequence[CutDocument]) -> dict[str, Any]:
        """What decides the answers: a journal goes on only with the same.

        The endpoint is not part of it: a local server may come back on another port.
        """
        corpus = hashlib.sha256()
        for document in documents:
            for chunk in document.chunks:
                corpus.update(canonical_json(chunk))
        made_with = {
            **{name: value for name, value in self.model.identity.items() if name != "endpoint"},
            "prompts": {name: prompt.sha256 for name, prompt in self.prompts.items()},
            "corpus": corpus.hexdigest(),
            "wanted": asdict(self.wanted),
        }
        self.run_id = hashlib.sha256(canonical_json(made_with)).hexdigest()[:16]
        return made_with

    def answer(self, call: Call) -> dict[str, Any] | None:
        """Ask until enough tasks have passed; None if the budget was used up before a result."""
        prompt = self.prompts[call.task_type]
        messages = _messages(prompt, call)
        talk = _Talk(call, list(messages))
        try:
            while len(talk.replies) <= self.wanted.parse_retries and talk.missing and self.budget.take():
                talk.hear(self.model.complete(talk.messages, response_schema=self.schemas[call.task_type]))
        except CallError as error:
            talk.error = error
        given_up = len(talk.replies) > self.wanted.parse_retries or talk.error
        if (
            not talk.accepted and not given_up
        ):  # the budget ended before the tries did: it is left for next time
            return None
        return self._record(call, prompt, messages, talk)

    def _record(
        self, call: Call, prompt: Prompt, messages: list[dict[str, str]], talk: _Talk
    ) -> dict[str, Any]:
        tokens = {
            "prompt": known_sum(reply.prompt_tokens for reply in talk.replies),
            "completion": known_sum(reply.completion_tokens for reply in talk.replies),
        }
        error = talk.error
        failure = error and {"type": error.kind, "message": str(error), "status": error.status}
        return {
            "document": call.chunks[0].document,
            "task_type": call.task_type,
            "endpoint": self.model.identity["endpoint"],
            "model": talk.replies[-1].model if talk.replies else self.model.model,
            "prompt": "\n\n".join(message["content"] for message in messages),
            "prompt_sha256": prompt.sha256,
            "response": talk.replies[-1].text[:_LONGEST_KEPT] if talk.replies else None,
            "parsed": talk.accepted,
            "rejects": talk.rejects,
            "run_id": self.run_id,
            "selected_chunks": [chunk.id for chunk in call.chunks],
            # A failure after some tasks had passed costs the others, not these.
            "status": "success" if talk.accepted else "error" if error else "skipped",
            "error": failure or None,
            "calls": len(talk.replies) + bool(error),
            "attempts": sum(reply.attempts for reply in talk.replies) + (error.attempts if error else 0),
            "validation_warnings": [text for task in talk.accepted for text in task["warnings"]],
            "tokens": tokens,
            "cost": _cost(tokens, self.prices),
            "seconds": round(sum(reply.seconds for reply in talk.replies), 3),
            "key": call.key,
        }


@dataclass
class _Talk:
    """One call and what came of it so far."""

    call: Call
    messages: list[dict[str, str]]
    replies: list[Reply] = field(default_factory=list)
    accepted: list[dict[str, Any]] = field(default_factory=list)
    rejects: list[dict[str, Any]] = field(default_factory=list)
    error: CallError | None = None

    @property
    def missing(self) -> int:
        return self.call.count - len(self.accepted)

    def hear(self, reply: Reply) -> None:
        """Take a reply: its good tasks are kept, and the next message says what is wrong with the others."""
        self.replies.append(reply)
        before = len(self.rejects)
        try:
            tasks = parse_strictly(reply.text, KINDS[self.call.task_type].reply).tasks
        except BadReplyError as error:
            cut = " (it was cut off: be shorter)" if reply.finish_reason == "length" else ""
            self._reject("not the form asked for", f"{error}{cut}", reply.text)
            tasks = []
        for task in tasks[: self.call.count + _MORE_TASKS]:
            self._check(task)
        told = [f"- {reject['what']}" for reject in self.rejects[before:]] or ["- there were too few tasks"]
        again = "Not all of that can be used:\n" + "\n".join(told)
        self.messages += [
            {"role": "assistant", "content": reply.text[:_LONGEST_ECHO]},
            {
                "role": "user",
                "content": f"{again}\nReply again, with {self.missing} further tasks, in the same form.",
            },
        ]

    def _check(self, task: Any) -> None:
        if not self.missing:
            self._reject("more than asked for", "there were more tasks than asked for", task)
            return
        try:
            passed = KINDS[self.call.task_type].check(task, self.call.chunks)
        except RejectedError as error:
            self._reject(error.reason, str(error), task)
            return
        if any(passed.instruction == other["instruction"] for other in self.accepted):
            self._reject("repeated", "a task was there already", task)
            return
        self.accepted.append(_plain(passed, self.call))

    def _reject(self, reason: str, what: str, task: Any) -> None:
        shown = task if isinstance(task, str) else msgspec.json.encode(task).decode()
        self.rejects.append({"reason": reason, "what": what[:300], "task": shown[:2000]})


class Budget:
    """How many calls may still be made, whoever makes them."""

    def __init__(self, calls: int | None) -> None:
        self._left, self._lock = calls, threading.Lock()

    def take(self) -> bool:
        """Take one; False if there is none left."""
        with self._lock:
            if self._left is None:
                return True
            self._left -= 1
            return self._left >= 0

    def end(self) -> None:
        """From now on there is none left."""
        with self._lock:
            self._left = 0


def _messages(prompt: Prompt, call: Call) -> list[dict[str, str]]:
    passages = as_material(
        [
            {"passage": number, "title": chunk.title, "section": chunk.section, "text": chunk.text}
            for number, chunk in enumerate(call.chunks, start=1)
        ]
    )
    return prompt.filled(fence=fence_of(passages), passages=passages, count=str(call.count))


def _plain(passed: Accepted, call: Call) -> dict[str, Any]:
    """A task that passed, as it is kept."""
    return {
        "instruction": passed.instruction,
        "response": passed.response,
        "support": round(passed.support, 3),
        "evidence": [
            {
                "passage": span.place + 1,
                "chunk": call.chunks[span.place].id,
                "start": span.start,
                "end": span.end,
            }
            for span in passed.evidence
        ],
        "warnings": passed.warnings,
    }


def known_sum(values: Iterable[Any]) -> Any:
    """The sum of numbers that are all known; None if one is not, or there is none."""
    known = list(values)
    return None if not known or None in known else sum(known)


def _cost(tokens: dict[str, Any], prices: Prices | None) -> float | None:
    if prices is None or None in tokens.values():
        return None
    return float(tokens["prompt"] * prices.input + tokens["completion"] * prices.output) / 1000
