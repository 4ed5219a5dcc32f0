"""The client of chat endpoints, against a real server that misbehaves in every way we could think of."""

from __future__ import annotations

import copy
import pickle
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auepora_eval.calls import transport
from auepora_eval.calls.chat import ChatModel, Reply, parse_strictly
from auepora_eval.calls.http import BadReplyError, tidy
from auepora_eval.calls.keys import Secret, key_from_environment
from auepora_eval.calls.policy import CallClock, CallPolicy, retry_after
from auepora_eval.core.dataset import canonical_json
from auepora_eval.errors import AueporaError, CallError, DataError
from tests.servers import ChatServer, chat_server

HELLO = [{"role": "user", "content": "hello?"}]
CANARY = "sk-canary-0123456789/abc+xyz="


@dataclass
class NoWaiting:
    """A clock whose sleeps are only noted; chance is always in the middle."""

    slept: list[float] = field(default_factory=list)

    def policy(self, retries: int) -> CallPolicy:
        clock = CallClock(sleep=self.slept.append, chance=lambda: 0.5)
        return CallPolicy(retries=retries, clock=clock)


def ask(
    server: ChatServer, waits: NoWaiting | None = None, *, retries: int = 4, **fields: Any
) -> tuple[Reply, int]:
    """The model's reply, and the number of attempts."""
    with ChatModel(server.url, "m", **fields) as model:
        policy, attempt = (waits or NoWaiting()).policy(retries), 0
        while True:
            attempt += 1
            try:
                return model.complete(HELLO), attempt
            except CallError as error:
                if not policy.tries_again(error, attempt):
                    error.attempts = attempt
                    raise
                assert policy.clock.sleep is not None
                policy.clock.sleep(policy.wait(error, attempt))


def test_a_reply_and_what_it_took() -> None:
    with chat_server() as server:
        reply, attempts = ask(server, seed=3, max_tokens=9)
    assert (reply.text, reply.prompt_tokens, reply.completion_tokens) == ("hello", 11, 5)
    assert (reply.model, attempts, reply.finish_reason) == ("fake-1", 1, "stop")
    assert 0 < reply.seconds < 10
    assert server.requests == [
        {"model": "m", "temperature": 0.0, "max_tokens": 9, "seed": 3, "messages": HELLO}
    ]
    assert server.paths == ["/v1/chat/completions"]
    assert "Authorization" not in server.headers[0]


@pytest.mark.parametrize(
    ("mode", "kind", "status", "attempts", "says"),
    [
        pytest.param("500", "http_5xx", 500, 3, "the server had a bad day.", id="500"),
        pytest.param("429", "rate_limited", 429, 3, "slow down", id="429"),
        pytest.param(
            "429 quota", "rate_limited", 429, 1, "quota is used up", id="429 that waiting won't cure"
        ),
        pytest.param("garbage", "bad_output", None, 3, "not a chat completion", id="garbage"),
        pytest.param("reset", "connection", None, 3, "the connection broke", id="reset"),
        pytest.param("slow", "timeout", None, 3, "no whole reply within 0.2 s", id="a byte now and then"),
        pytest.param("401", "http_4xx", 401, 1, "No API key was sent", id="401"),
        pytest.param("redirect", "redirect", 307, 1, "redirects are not followed", id="redirect"),
        pytest.param("too large", "too_large", 200, 1, "longer than 0.2 MB", id="endless"),
        pytest.param("no text", "refused", None, 1, "I would rather not", id="refused"),
    ],
)
def test_every_fault_ends_in_an_error_that_tells(
    mode: str, kind: str, status: int | None, attempts: int, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "MAX_BYTES", 200_000)
    started = time.monotonic()
    with chat_server([mode]) as server:
        with pytest.raises(CallError) as raised:
            ask(server, timeout=0.2, retries=2)
        # On a busy machine the server may read the last request only after its caller has given up.
        while len(server.requests) < attempts and time.monotonic() - started < 5:
            time.sleep(0.02)
    assert (raised.value.kind, raised.value.status, raised.value.attempts) == (kind, status, attempts)
    assert says in str(raised.value)
    assert str(raised.value).startswith(f"{server.url}/chat/completions: ")
    assert str(raised.value).isprintable()
    assert len(server.requests) == attempts
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    "mode", ["429", "500", "502", "garbage", "wrong shape", "half closed", "reset", "slow", "hung"]
)
def test_what_passes_is_waited_for(mode: str) -> None:
    waits = NoWaiting()
    with chat_server([mode, mode, "ok"]) as server:
        reply, attempts = ask(server, waits, timeout=0.2)
    assert (reply.text, attempts, len(waits.slept)) == ("hello", 3, 2)


@pytest.mark.parametrize(
    ("asked_for", "seconds"),
    [
        pytest.param("7", 7, id="seconds"),
        pytest.param("0", 0, id="at once"),
        pytest.param("1.5", 1.5, id="a fraction"),
        pytest.param("999999999", 120, id="too long: capped"),
        pytest.param(formatdate(10, usegmt=True), 0, id="a date gone by"),
    ],
)
def test_retry_after_is_honoured(asked_for: str, seconds: float) -> None:
    waits = NoWaiting()
    with chat_server(["429", "ok"], retry_after=asked_for) as server:
        assert ask(server, waits)[1] == 2
    assert waits.slept == [seconds + 0.25]


def test_a_schema_is_sent_and_done_without_where_it_is_refused() -> None:
    schema = {"type": "object"}
    with chat_server(["ok", "400 schema", "ok"]) as server, ChatModel(server.url, "m") as model:
        for _ in range(3):
            assert model.complete(HELLO, response_schema=schema).text == "hello"
    sent = [request.get("response_format") for request in server.requests]
    form = {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": schema}}
    assert sent == [form, form, None, None]


def test_nothing_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        with pytest.raises(CallError, match=r"nothing listens there\. Start the server") as raised:
            ChatModel(url, "m").complete(HELLO)
    assert (raised.value.kind, raised.value.lasting) == ("connection", False)


@pytest.mark.parametrize(
    "url",
    [
        "nonsense",
        "file:///etc/passwd",
        "http:///v1",
        "http://host:99999/v1",
        "http://[::1/v1",
        "http://host/\r\nX: y",
        f"http://user:{CANARY}@host/v1",
        f"http://{CANARY}@host/v1",
    ],
)
def test_bad_urls_are_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(DataError) as raised:
        ChatModel(url, "m")
    assert "canary" not in str(raised.value)


def test_a_key_does_not_cross_a_network_in_clear() -> None:
    with pytest.raises(DataError, match="unencrypted"):
        ChatModel("http://models.example/v1", "m", api_key=CANARY)
    ChatModel("http://models.example/v1", "m", api_key=CANARY, plain_http=True)
    for loopback in ("http://localhost:1/v1", "http://127.0.0.2:1/v1", "http://[::1]:1/v1"):
        ChatModel(loopback, "m", api_key=CANARY)


@pytest.mark.parametrize(
    "mode", "401,500,echo,429,garbage,half closed,reset,hung,redirect,too large,no text".split(",")
)
def test_the_key_is_sent_and_never_seen_again(mode: str, capfd: pytest.CaptureFixture[str]) -> None:
    seen: list[str] = []
    with chat_server([mode]) as server:
        url = f"{server.url}?api-key={quote(CANARY, safe='')}2"
        with ChatModel(url, "m", api_key=CANARY, timeout=0.2 if mode == "hung" else 10) as model:
            try:
                seen.append(repr(model.complete(HELLO)))
            except AueporaError as error:
                chain: BaseException | None = error
                while chain is not None:
                    seen += [str(chain), repr(chain), repr(vars(chain))]
                    chain = chain.__cause__ or (None if chain.__suppress_context__ else chain.__context__)
            seen += [repr(model), repr(model.identity), repr(model._endpoint), repr(vars(model))]
            seen += [canonical_json(model.identity).decode(), "".join(capfd.readouterr())]
    assert server.headers[0]["Authorization"] == f"Bearer {CANARY}"
    everything = "\n".join(seen)
    for form in (CANARY, "canary", quote(CANARY, safe="")):
        assert form not in everything


def test_a_secret_is_not_copied_written_or_compared_in_clear() -> None:
    secret = Secret(CANARY)
    assert f"{secret} {secret!r}" == "*** ***"
    for copier in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            copier(secret)
    assert b"canary" not in canonical_json({"key": secret})
    for bad in ("", "two words", "line\nend", "ключ-длинный"):
        with pytest.raises(DataError) as raised:
            Secret(bad)
        assert not bad or bad not in str(raised.value)


def test_keys_come_from_the_environment_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", f"{CANARY}\n")
    assert key_from_environment("MY_KEY").reveal() == CANARY
    for typed in (CANARY, "sk_canary_typed_as_a_name", "EMPTY KEY", ""):
        with pytest.raises(DataError) as raised:
            key_from_environment(typed)
        assert not typed or typed not in str(raised.value)


class Verdict(msgspec.Struct, forbid_unknown_fields=True):
    score: int


def test_many_threads_may_read_their_first_reply_at_once() -> None:
    """In a process of its own, which this ended with SIGSEGV."""
    code = """
import sys, threading, msgspec
from auepora_eval.calls.chat import parse_strictly
sys.setswitchinterval(1e-6)
for number in range(100):
    inner = msgspec.defstruct("Inner", [("claim", int), ("quote", str, "")])
    outer = msgspec.defstruct("Outer", [("verdicts", list[inner])])
    start = threading.Barrier(16)
    def read():
        start.wait()
        parse_strictly('{"verdicts": [{"claim": 1}]}', outer)
    threads = [threading.Thread(target=read) for _ in range(16)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("text", ['{"score": 1}', '```json\n{"score": 1}\n```'])
def test_what_a_model_thought_before_its_reply_is_not_read(text: str) -> None:
    assert parse_strictly(f'<think>\n{{"score": 5}}?\n</think>\n\n{text}', Verdict) == Verdict(1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        '<think>{"score": 1}',
        'So <think></think> {"score": 1}',
        '```json\n{"score": 1}\n```\n```json\n{"score": 5}\n```',
        'Sure: ```json\n{"score": 1}\n```',
        '```python\n{"score": 1}\n```',
        '{"score": 1} {"score": 5}',
        '{"score": "1"}',
        '{"score": 1, "why": ""}',
        "[" * 100_000,
    ],
)
def test_nothing_is_scraped_from_a_reply(text: str) -> None:
    with pytest.raises(BadReplyError, match=r"JSON"):
        parse_strictly(text, Verdict)


@given(st.text())
def test_any_retry_after_is_seconds_or_nothing(value: str) -> None:
    seconds = retry_after(value, 0)
    assert seconds is None or 0 <= seconds < float("inf")


@given(st.text())
def test_others_text_is_one_short_line(text: str) -> None:
    assert tidy(text, 40).isprintable()
    assert len(tidy(text, 40)) <= 40
