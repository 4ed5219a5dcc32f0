"""Servers on loopback for tests, and requests to them as any program may send them.

`serving` runs the server in this process, with its workspace at hand. `served` starts a command as a user
does.
"""

from __future__ import annotations

import http.client
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from starlette.types import ASGIApp

from auepora_eval.pages.app import ROUTES
from auepora_eval.pages.requests import Route
from auepora_eval.pages.security import Access, Guard, listening_socket
from auepora_eval.pages.server import application, server_of
from auepora_eval.pages.workspace import Workspace

Headers = Mapping[str, str]


@dataclass
class Answer:
    """What the server sent."""

    status: int
    headers: Mapping[str, str]
    text: str


def sent(port: int, method: str, path: str, body: bytes | Iterator[bytes], headers: Headers) -> Answer:
    """Send a request with these headers, in which _ is written for -, and return the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    named = {name.replace("_", "-"): value for name, value in headers.items() if value}
    try:
        connection.request(method, path, body or None, named)
        response = connection.getresponse()
        by_name = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, by_name, response.read().decode())
    finally:
        connection.close()


@dataclass
class Client:
    """A client of a running server; `cookies` are sent with each request, as a browser does."""

    access: Access
    workspace: Workspace
    cookies: dict[str, str] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.access.port}"

    def enter(self) -> Client:
        """Exchange the token for the cookie."""
        answer = self.get(f"/?token={self.access.token}")
        assert answer.status == 303
        return self

    def get(self, path: str, **headers: str) -> Answer:
        return self.send("GET", path, headers=headers)

    def post(self, path: str, body: bytes = b"", **headers: str) -> Answer:
        """Send a form as a page of the server would."""
        own = {"origin": self.origin, "sec_fetch_site": "same-origin"}
        return self.send("POST", path, body, {**own, **headers})

    def send(
        self, method: str, path: str, body: bytes | Iterator[bytes] = b"", headers: Headers | None = None
    ) -> Answer:
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        own = {**(headers or {}), "cookie": cookies} if cookies else headers or {}
        answer = sent(self.access.port, method, path, body, own)
        name, _, value = answer.headers.get("set-cookie", "").partition(";")[0].partition("=")
        if name:
            self.cookies[name] = value
        return answer


@contextmanager
def serving(
    folder: Path,
    *,
    routes: list[Route] | None = None,
    guard: Callable[..., ASGIApp] = Guard,
    only: Mapping[str, Path] | None = None,
    rules: Path | None = None,
) -> Iterator[Client]:
    """Serve the runs of a folder until the block ends."""
    workspace = Workspace(folder, only, rules)
    with listening_socket() as listening:
        access = Access(listening.getsockname()[1])
        server = server_of(application(workspace, access, ROUTES if routes is None else routes, guard=guard))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield Client(access, workspace)
        finally:
            server.should_exit = True
            thread.join(20)
    assert not thread.is_alive()


@dataclass
class Served:
    """A running server. `get` and `post` send what a browser sends from a page of this server."""

    process: subprocess.Popen[str]
    address: str
    cookie: str = ""
    printed: str = ""

    @property
    def port(self) -> int:
        return urlsplit(self.address).port or 0

    def enter(self) -> Served:
        """Exchange the token of the printed address for the cookie."""
        reply = self.send("GET", f"/?{urlsplit(self.address).query}")
        assert reply.status == 303
        self.cookie = reply.headers["set-cookie"].partition(";")[0]
        return self

    def get(self, path: str) -> Answer:
        return self.send("GET", path, cookie=self.cookie)

    def post(self, path: str, **fields: str) -> Answer:
        origin = f"http://127.0.0.1:{self.port}"
        own = {"origin": origin, "sec-fetch-site": "same-origin"}
        return self.send("POST", path, urlencode(fields), cookie=self.cookie, **own)

    def send(self, method: str, path: str, body: str = "", **headers: str) -> Answer:
        form = {"content-type": "application/x-www-form-urlencoded"} if body else {}
        return sent(self.port, method, path, body.encode(), {**headers, **form})

    def stop(self, how: signal.Signals = signal.SIGINT) -> int:
        """End the server and return its exit code; `printed` has what it wrote to stdout."""
        self.process.send_signal(how)
        out, _ = self.process.communicate(timeout=20)
        self.printed += out
        return self.process.returncode


@contextmanager
def served(*words: str | Path, folder: Path | None = None) -> Iterator[Served]:
    """Start `auepora WORDS` without a screen and yield it when it has printed its address."""
    command = [sys.executable, "-m", "auepora_eval", *map(str, words)]
    environment = {**os.environ, "DISPLAY": "", "WAYLAND_DISPLAY": ""}
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=folder, env=environment)
    assert process.stdout is not None
    printed = ""
    try:
        while (found := re.search(r"http://\S+", printed)) is None:
            line = process.stdout.readline()
            assert line, process.communicate()[1]
            printed += line
        yield Served(process, found[0], printed=printed).enter()
        # Not killed: a page may still load its style, which a server that is asked to stop sends to the end.
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=20)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.names.append(tag)


def tags_of(html: str) -> list[str]:
    """Return the names of all elements of a page."""
    tags = _Tags()
    tags.feed(html)
    return tags.names
