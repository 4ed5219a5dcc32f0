"""Proxies that the environment names, against a small real proxy on loopback."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from auepora_eval.calls.http import Endpoint
from auepora_eval.errors import CallError

CANARY = "pass-canary-0123456789"
VARIABLES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")


class Proxy(ThreadingHTTPServer):
    """Answers plain requests itself, and refuses to open tunnels."""

    requests: list[tuple[str, str | None]]


class Handler(BaseHTTPRequestHandler):
    server: Proxy

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, self.headers["Proxy-Authorization"]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def do_CONNECT(self) -> None:
        self.server.requests.append((self.path, self.headers["Proxy-Authorization"]))
        self.send_error(403)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Print nothing."""


@contextmanager
def a_proxy() -> Iterator[tuple[str, Proxy]]:
    server = Proxy(("127.0.0.1", 0), Handler)
    server.requests = []
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.02))
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}", server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def test_a_request_goes_through_the_proxy_with_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    with a_proxy() as (address, server):
        monkeypatch.setenv("HTTP_PROXY", f"http://user:{CANARY}@{address}")
        with Endpoint("http://models.example/v1", plain_http=True) as endpoint:
            assert endpoint.post({}, len) == 2
        token = base64.b64encode(f"user:{CANARY}".encode()).decode()
        assert server.requests == [("http://models.example/v1", f"Basic {token}")]


def test_https_asks_for_a_tunnel_and_reports_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    with a_proxy() as (address, server):
        monkeypatch.setenv("HTTPS_PROXY", f"http://user:{CANARY}@{address}")
        with Endpoint("https://models.example/v1") as endpoint, pytest.raises(CallError) as raised:
            endpoint.post({}, len)
        assert [path for path, _ in server.requests] == ["models.example:443"]
    assert raised.value.kind == "connection"
    assert "through the proxy 127.0.0.1" in str(raised.value)
    assert "canary" not in str(raised.value)


def test_hosts_of_no_proxy_and_this_machine_are_called_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    with a_proxy() as (address, server), a_proxy() as (target, own):
        monkeypatch.setenv("HTTP_PROXY", address)
        with Endpoint(f"http://{target}/v1") as endpoint:
            endpoint.post({}, len)
        assert (server.requests, own.requests) == ([], [("/v1", None)])
        monkeypatch.setenv("NO_PROXY", "unknown.invalid")
        with Endpoint("http://unknown.invalid/v1", plain_http=True) as endpoint, pytest.raises(CallError):
            endpoint.post({}, len)
        assert server.requests == []
