"""Every rule that protects the pages, in one place. The server is for one person, on one machine.

A page may show whatever a model wrote, and any website that the person has open can send requests to the
port. So a request must name this server exactly, carry the cookie that only the printed address gives, and
come from our own page if it changes something. What is sent may load nothing from elsewhere and run nothing
that is inside the page. Each rule is a function: the tests leave one out at a time and show that the attack
then works.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = "127.0.0.1"
# 192 random bits: too many to guess from another program on this machine.
TOKEN_BYTES = 24
# Far above any form of ours. Without a limit, one request could fill the memory.
BODY_BYTES = 1_000_000
READING = ("GET", "HEAD")  # methods that change nothing

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    # Not no-referrer: a browser then sends "Origin: null" with our own forms, too.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # Questions and answers of a private dataset must not stay in the cache of the browser.
    "cache-control": "no-store",
}


def listening_socket(port: int = 0) -> socket.socket:
    """Return a socket that only programs on this machine can reach; port 0 is a free one."""
    # The protocol is named, since asyncio sends small packets at once only for sockets that name it.
    # Otherwise the end of every page waits 40 ms for the browser to confirm its start.
    server = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        # Otherwise a restart on the same port fails while old connections are in TIME_WAIT.
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((LOOPBACK, port))
        server.listen(64)
    except BaseException:
        server.close()
        raise
    return server


@dataclass
class Access:
    """Who may enter: the token of the printed address, exchanged once for the cookie of the session."""

    port: int
    token: str | None = field(default_factory=lambda: secrets.token_urlsafe(TOKEN_BYTES))
    session: str = field(default_factory=lambda: secrets.token_urlsafe(TOKEN_BYTES))
    home: str = "/"  # where the printed address leads

    @property
    def cookie(self) -> str:
        """Return the name of the cookie. Browsers share cookies between the ports of a host."""
        return f"auepora_{self.port}"

    @property
    def hosts(self) -> tuple[str, str]:
        """Return the names under which the server may be addressed."""
        return f"{LOOPBACK}:{self.port}", f"localhost:{self.port}"

    @property
    def address(self) -> str:
        """Return the address to print, which works once."""
        return f"http://{self.hosts[0]}/?token={self.token}"

    def admits(self, cookies: str) -> bool:
        """Return whether a request has the cookie of the session."""
        # Only the own name is read: other programs on this host set cookies that SimpleCookie cannot parse.
        pairs = (part.strip().partition("=") for part in cookies.split(";"))
        given = next((value for name, _, value in pairs if name == self.cookie), "")
        # Takes the same time for every wrong value. As bytes: it raises on a str that is not ASCII.
        return secrets.compare_digest(given.encode("utf-8", "replace"), self.session.encode())

    def exchange(self, token: str) -> bool:
        """Return whether the token is right. It is worth nothing afterwards."""
        if self.token is None or not secrets.compare_digest(
            token.encode("utf-8", "replace"), self.token.encode()
        ):
            return False
        self.token = None
        return True


Rule = Callable[[Request, Access], Response | None]  # what to answer instead; None lets the request through


def check_host(request: Request, access: Access) -> Response | None:
    """Refuse other names of this machine: a website can make its own name lead here (DNS rebinding)."""
    return (
        None
        if request.headers.get("host") in access.hosts
        else refusal(421, "This is not the server you asked for.")
    )


def check_origin(request: Request, access: Access) -> Response | None:
    """Refuse changes that do not come from a page of this server."""
    headers = request.headers
    if request.method in READING:
        # A page of another site may not even load a part of ours; a link to a page is allowed.
        is_foreign = headers.get("sec-fetch-site") in ("cross-site", "same-site")
        if is_foreign and headers.get("sec-fetch-mode") != "navigate":
            return refusal(403, "Only pages of this server may load its parts.")
        return None
    if request.method != "POST":
        return refusal(405, "Only GET and POST are answered.")
    ours = f"http://{headers.get('host')}"
    if headers.get("origin") != ours or headers.get("sec-fetch-site") != "same-origin":
        return refusal(403, "Changes must come from a page of this server.")
    return None


def check_session(request: Request, access: Access) -> Response | None:
    """Exchange the token of the printed address for the cookie, and refuse everything without it."""
    token = request.query_params.get("token", "")
    if access.admits(request.headers.get("cookie", "")):
        # A reload of the printed address, whose token is used up, still leads to the pages.
        return RedirectResponse(access.home, 303) if token and request.url.path == "/" else None
    if token and request.url.path == "/" and request.method == "GET" and access.exchange(token):
        response = RedirectResponse(access.home, 303)  # to an address without the token
        response.set_cookie(access.cookie, access.session, httponly=True, samesite="strict", path="/")
        return response
    return refusal(
        401,
        "Open the address that `auepora view` printed. It works once, in one browser; "
        "start the command again for a new one.",
    )


# The order matters: a request under a foreign name must not use up the token.
RULES: tuple[Rule, ...] = (check_host, check_origin, check_session)


def refusal(status: int, text: str) -> Response:
    """Return a short answer without any data."""
    return PlainTextResponse(f"{HTTPStatus(status).phrase}. {text}\n", status)


class Guard:
    """Wraps the application: checks each request by the rules, and adds the headers to each answer."""

    def __init__(
        self,
        app: ASGIApp,
        access: Access,
        *,
        rules: Iterable[Rule] = RULES,
        headers: Mapping[str, str] = HEADERS,
        body_bytes: int = BODY_BYTES,
    ) -> None:
        self._app, self._access, self._rules = app, access, tuple(rules)
        self._headers, self._body_bytes = headers, body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # no page uses a web socket
            return
        request = Request(scope)
        refusals = (rule(request, self._access) for rule in self._rules)
        answer = next((refused for refused in refusals if refused is not None), self._app)
        await answer(scope, self._limited(receive), self._with_headers(send))

    def _limited(self, receive: Receive) -> Receive:
        """Return a way to read the body that ends at the limit."""
        taken = 0

        async def limited() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self._body_bytes:
                raise HTTPException(413, f"At most {self._body_bytes:,} bytes are read.")
            return message

        return limited

    def _with_headers(self, send: Send) -> Send:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message.setdefault("headers", [])
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    # Replaces the header: no page can weaken the policy with one of its own.
                    headers[name] = value
            await send(message)

        return sending
