"""A chat endpoint on loopback that behaves as it is told: well, or badly in one of many ways.

    with chat_server(["429", "ok"]) as server:      # the first request gets a 429, all later ones a reply
        ChatModel(server.url, "m").complete(...)

Everything ends with the block: connections are shut, threads joined; no mode lasts over 20 seconds.
"""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

LONGEST = 20.0
MOST_REQUESTS = 5_000

# What a model would say: text, or a dictionary to be written as JSON.
Says = Callable[[dict[str, Any]], "str | dict[str, Any]"]


@dataclass
class ChatServer:
    """The server's address, and what it was asked."""

    modes: Sequence[str]
    says: Says
    retry_after: str = "7"
    mode_of: Callable[[dict[str, Any]], str] | None = None  # by what is asked, rather than by when
    bare: bool = False  # what is said is the whole reply, not a chat completion
    certificate: Path | None = None  # its key is in the same file
    address: tuple[str, int] = ("", 0)
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    connections: int = 0
    stopping: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    open_sockets: list[socket.socket] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http{'s' if self.certificate else ''}://127.0.0.1:{self.address[1]}/v1"

    def next_mode(self) -> str:
        """The mode of the request that was just noted; the last mode goes on for ever."""
        with self.lock:
            number = len(self.requests)
        if number > MOST_REQUESTS:
            return "500"
        return self.modes[min(number, len(self.modes)) - 1]


def untrusted_certificate(folder: Path) -> Path | None:
    """A certificate for 127.0.0.1 that nobody signed, with its key; None where there is no openssl."""
    if shutil.which("openssl") is None:
        return None
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    about = ("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "1", "-nodes")
    made = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-keyout", key, "-out", certificate)
    subprocess.run(["openssl", "req", "-x509", *about, *made], check=True, capture_output=True)
    both = folder / "both.pem"
    both.write_text(key.read_text() + certificate.read_text())
    return both


def completion(text: str, **fields: Any) -> dict[str, Any]:
    """A chat completion as servers write it."""
    said = {"role": "assistant", "content": text}
    return {
        "id": "c1",
        "object": "chat.completion",
        "model": "fake-1",
        "choices": [{"index": 0, "message": said, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16},
        **fields,
    }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two writes: the second would wait 40 ms for the first
    server: _Server

    def setup(self) -> None:
        super().setup()
        with self.server.told.lock:
            self.server.told.connections += 1
            self.server.told.open_sockets.append(self.connection)

    def do_POST(self) -> None:
        told = self.server.told
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with told.lock:
            told.requests.append(body)
            told.headers.append(dict(self.headers.items()))
            told.paths.append(self.path)
        mode = told.mode_of(body) if told.mode_of else told.next_mode()
        with suppress(OSError):  # the client may have left
            getattr(self, f"_mode_{mode.replace(' ', '_')}")(body)

    def _send(self, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _reply(self, body: dict[str, Any]) -> bytes:
        said = self.server.told.says(body)
        if self.server.told.bare:
            return json.dumps(said).encode()
        return json.dumps(completion(said if isinstance(said, str) else json.dumps(said))).encode()

    def _error(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        self._send(status, json.dumps({"error": {"message": message, "code": None}}).encode(), headers)

    def _mode_ok(self, body: dict[str, Any]) -> None:
        self._send(200, self._reply(body))

    def _mode_chunked(self, body: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        content = self._reply(body)
        for part in (content[:10], content[10:]):
            self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")

    def _mode_429(self, body: dict[str, Any]) -> None:
        self._error(429, "slow down", {"Retry-After": self.server.told.retry_after})

    def _mode_429_bare(self, body: dict[str, Any]) -> None:
        self._error(429, "slow down")

    def _mode_429_date(self, body: dict[str, Any]) -> None:
        """Asks for a pause of one to two seconds: the dates of HTTP have no fractions."""
        self._error(429, "slow down", {"Retry-After": formatdate(time.time() + 2, usegmt=True)})

    def _mode_429_huge(self, body: dict[str, Any]) -> None:
        self._error(429, "come back in thirty years", {"Retry-After": "999999999"})

    def _mode_429_quota(self, body: dict[str, Any]) -> None:
        self._send(429, b'{"error": {"message": "no money", "code": "insufficient_quota"}}')

    def _mode_500(self, body: dict[str, Any]) -> None:
        self._error(500, "the server had a bad day")

    def _mode_502(self, body: dict[str, Any]) -> None:
        self._send(502, b"<html>\x1b[31mBad Gateway</html>", {"Content-Type": "text/html"})

    def _mode_401(self, body: dict[str, Any]) -> None:
        """As unkind servers do: the whole request is in the message."""
        self._error(401, f"wrong key in {dict(self.headers.items())} at {self.path}\x1b[2J")

    def _mode_403(self, body: dict[str, Any]) -> None:
        self._error(403, "not for you")

    def _mode_404(self, body: dict[str, Any]) -> None:
        self._error(404, "no such model")

    def _mode_400_schema(self, body: dict[str, Any]) -> None:
        self._error(400, "response_format is not supported")

    def _mode_echo(self, body: dict[str, Any]) -> None:
        self._send(200, json.dumps(completion(f"you sent {self.headers['Authorization']}")).encode())

    def _mode_garbage(self, body: dict[str, Any]) -> None:
        self._send(200, b"\x00\xff not JSON at all {")

    def _mode_wrong_shape(self, body: dict[str, Any]) -> None:
        self._send(200, b'{"choices": []}')

    def _mode_cut_JSON(self, body: dict[str, Any]) -> None:  # noqa: N802 - named by its mode
        """A whole reply, by its length, whose JSON ends in the middle."""
        content = self._reply(body)
        self._send(200, content[: len(content) // 2])

    def _mode_no_text(self, body: dict[str, Any]) -> None:
        choice = {"message": {"content": None, "refusal": "I would rather not"}}
        self._send(200, json.dumps(completion("", choices=[choice])).encode())

    def _mode_redirect(self, body: dict[str, Any]) -> None:
        self._send(307, b"", {"Location": "http://169.254.169.254/latest/meta-data"})

    def _mode_half_closed(self, body: dict[str, Any]) -> None:
        """Promises more than it sends."""
        content = self._reply(body)
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2])
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True

    def _mode_reset(self, body: dict[str, Any]) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    def _mode_closed(self, body: dict[str, Any]) -> None:
        """Has read the whole request, and says nothing."""
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True

    def _mode_too_large(self, body: dict[str, Any]) -> None:
        """No length is given, and it does not end: 100 MB."""
        self.send_response(200)
        self.end_headers()
        self._pour()

    def _mode_100_MB(self, body: dict[str, Any]) -> None:  # noqa: N802 - named by its mode
        """The length is given, and all of it is sent."""
        self.send_response(200)
        self.send_header("Content-Length", str(10**8))
        self.end_headers()
        self._pour()

    def _pour(self) -> None:
        self.close_connection = True
        for _ in range(1000):
            self.wfile.write(b" " * 100_000)

    def _mode_long_promise(self, body: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(10**12))
        self.end_headers()
        self.close_connection = True

    def _mode_slow(self, body: dict[str, Any]) -> None:
        """A byte now and then: each read succeeds, the whole never does."""
        self._drip(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b" ")

    def _mode_slow_head(self, body: dict[str, Any]) -> None:
        self._drip(b"HTTP/1.1 200 OK\r\nX-Long: ", b"x")

    def _mode_drip(self, body: dict[str, Any]) -> None:
        self._drip(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b" ", every=1.0)

    def _drip(self, start: bytes, drop: bytes, *, every: float = 0.02) -> None:
        self.wfile.write(start)
        for _ in range(int(LONGEST / every)):
            if self.server.told.stopping.wait(every):
                break
            self.wfile.write(drop)
            self.wfile.flush()
        self.close_connection = True

    def _mode_hung(self, body: dict[str, Any]) -> None:
        self.server.told.stopping.wait(LONGEST)
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Nothing is printed."""


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # server_close joins them
    request_queue_size = 128

    def __init__(self, told: ChatServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.told = told
        if told.certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(told.certificate)
            # The handshake is made by the thread of the connection: one that fails must not stop the others.
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that left is no error of the server's."""


@contextmanager
def chat_server(
    modes: Sequence[str] = ("ok",), says: Says = lambda body: "hello", **fields: Any
) -> Iterator[ChatServer]:
    """A server that treats its first request by the first mode, and so on; the last mode stays."""
    told = ChatServer(modes, says, **fields)
    server = _Server(told)
    told.address = ("127.0.0.1", server.server_address[1])
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.02), name="chat-server")
    thread.start()
    try:
        yield told
    finally:
        told.stopping.set()
        server.shutdown()
        for (
            connection
        ) in told.open_sockets:  # a kept connection's thread waits for a request that never comes
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        server.server_close()
        thread.join(LONGEST)
