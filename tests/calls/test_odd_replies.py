"""Replies that few servers send, byte by byte over a real connection: read for what they say."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from auepora_eval.calls.http import BadReplyError, Endpoint
from auepora_eval.core.systems.named import load_system
from auepora_eval.core.types import SystemOutputs
from auepora_eval.errors import CallError
from tests.builders import a_sample, one_output

KEY = "Zq42-canary-xyzzy"


@contextmanager
def saying(*replies: bytes) -> Iterator[str]:
    """A server that says this to each request, one after the other, over kept connections."""
    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=_serve, args=(listening, list(replies)), daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{listening.getsockname()[1]}"
    finally:
        listening.close()
        thread.join(5)


def _serve(listening: socket.socket, replies: list[bytes]) -> None:
    while replies:
        try:
            wire, _ = listening.accept()
        except OSError:
            return
        with wire, wire.makefile("rb") as asked:
            while replies:
                head = b""
                while (line := asked.readline()) not in (b"\r\n", b""):
                    head += line.lower()
                if not head:
                    break
                asked.read(int(head.partition(b"content-length: ")[2].split()[0]))
                wire.sendall(replies.pop(0))


def a_reply(content: bytes, kind: str = "application/json", status: str = "200 OK") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n\r\n"
    return head.encode() + content


def answered(replies: Sequence[bytes], *, chat: bool = False, **options: Any) -> SystemOutputs:
    with saying(*replies) as address:
        name = f"openai:http://{address}/v1#m" if chat else f"http:http://{address}/ask"
        system = load_system(name, {"timeout": 5, **options})
        for _ in replies:  # the last one is looked at
            output = one_output(system, top_k=3, sample=a_sample("s1", "Where?"))
        system.close()  # type: ignore[attr-defined]  # endpoints have it
    assert isinstance(output, SystemOutputs)
    return output


def a_completion(content: Any) -> bytes:
    return a_reply(json.dumps({"choices": [{"message": {"content": content}}]}).encode())


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "text", "text": "part a"}, {"type": "text", "text": " b"}], "part a b"),
        ([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "yes"}], "yes"),
        (["part a", " b"], "part a b"),
        ([{"type": "text", "text": ""}], ""),
    ],
)
def test_a_chat_reply_may_come_in_parts(content: Any, text: str) -> None:
    output = answered([a_completion(content)], chat=True)
    assert (output.error, output.response.text) == (None, text)


def test_a_key_in_escapes_is_found_when_the_reply_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODD_KEY", KEY)
    escaped = "".join(f"\\u{ord(sign):04x}" for sign in KEY)
    told = f'{{"answer": "it is {escaped}", "documents": [{{"id": "{escaped}", "text": "{escaped}"}}],'
    told += f'"usage": {{"{escaped}": 3}}, "timings": {{"{escaped}": 1}}}}'
    output = answered([a_reply(told.encode())], api_key_env="ODD_KEY")
    assert output.error is None
    assert KEY not in repr(output)
    assert output.response.text == "it is ***"
    chat = f'{{"choices": [{{"message": {{"content": "{escaped}"}}, "finish_reason": "{escaped}"}}]}}'
    assert KEY not in repr(answered([a_reply(chat.encode())], chat=True, api_key_env="ODD_KEY"))


def refuse(body: bytes) -> None:
    raise BadReplyError("it is not an answer")


def endless(head: bytes) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + head
    for _ in range(16_384):  # 1 GB
        yield b"x" * 65_536


@pytest.mark.parametrize("head", [b"40000000\r\n", b"+40000000\r\n", b"0x40000000\r\n"], ids=repr)
def test_size_limit_counts_the_bytes_that_arrive(head: bytes) -> None:
    sent = [0]

    def serve(listening: socket.socket) -> None:
        wire, _ = listening.accept()
        with wire, suppress(OSError):
            for part in endless(head):
                wire.sendall(part)
                sent[0] += len(part)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,), daemon=True)
        thread.start()
        system = load_system(f"http:http://127.0.0.1:{listening.getsockname()[1]}/ask", {"timeout": 20})
        output = one_output(system, top_k=3, sample=a_sample("s1", "Where?"))
        system.close()  # type: ignore[attr-defined]  # endpoints have it
        thread.join(20)
    assert output.error is not None
    assert "the reply is longer than 4 MB" in output.error.message or "broke" in output.error.message
    assert sent[0] < 20_000_000  # the rest is what the buffers of the system hold


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n{}",
        b"HTTP/1.1 99999 OK\r\n\r\n{}",
        b"\x00\xff\xfe\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: x; charset*=a'b'%ff\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 429 Slow\r\nRetry-After: Thu, \r\nContent-Length: 0\r\n\r\n",
    ],
    ids=lambda reply: repr(reply[9:60]),
)
def test_reply_that_cannot_be_parsed_is_an_error_of_its_call(reply: bytes) -> None:
    with saying(reply) as address, Endpoint(f"http://{address}/ask", timeout=0.5) as endpoint:
        with pytest.raises(CallError) as raised:
            endpoint.post({}, refuse)
        assert "Traceback" not in str(raised.value)


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "::ffff:169.254.169.254",
        "::ffff:a9fe:a9fe",
        "fe80::1",
        "100.100.100.200",
        "fd00:ec2::254",
    ],
)
def test_metadata_addresses_are_never_called(address: str) -> None:
    host = f"[{address}]" if ":" in address else address
    endpoint = Endpoint(f"http://{host}/latest", timeout=2, plain_http=True)
    with endpoint, pytest.raises(CallError, match="It is never called"):
        endpoint.post({}, bytes)


def test_a_compressed_reply_is_read_within_the_limit() -> None:
    def compressed(text: str) -> bytes:
        content = gzip.compress(json.dumps({"answer": text}).encode())
        head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(content)}\r\n\r\n"
        return head.encode() + content

    assert answered([compressed("yes")]).response.text == "yes"
    output = answered([compressed("x" * 5_000_000)])
    assert output.error is not None
    assert "the reply is longer than 4 MB" in output.error.message
