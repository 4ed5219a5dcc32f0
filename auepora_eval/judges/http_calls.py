"""Calls over HTTP that end: in a reply, or in an error that says what happened.

The only module that opens a network connection, and only to the URL that the user gave: no redirect is
followed, and the proxies of the environment are not used. Every attempt has one clock for all of it (looking
up the name aside, which the operating system times), so a server that sends a byte a second holds nobody.
"""

from __future__ import annotations

import io
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPResponse
from typing import Any, Generic, TypeVar, cast
from urllib.parse import parse_qsl, urlsplit

import msgspec

from ..core.foreign_errors import retry_after
from ..errors import CallError, DataError
from .retries import Clock, Patience, message_in, tidy
from .secrets import Redactor, Secret
from .servers import OF_A_MODEL, Hints, in_utf8, is_loopback

T = TypeVar("T")
_AT_ONCE = 65_536
_MAX_IDLE = 64


@dataclass(frozen=True)
class Answer(Generic[T]):
    """What a call brought, after how many attempts and seconds (waiting between them included)."""

    value: T
    attempts: int
    seconds: float


class BadReplyError(ValueError):
    """Raised by the reader of a reply that is not what it should be: it is asked for again."""


class _UnsentError(ConnectionError):
    """The connection was closed before any of the request was sent."""


class _Trouble(Exception):  # noqa: N818 - never leaves this module
    """An attempt that failed."""

    def __init__(
        self,
        kind: str,
        what: str,
        *,
        status: int | None = None,
        again: bool = True,
        wait: float | None = None,
        fix: str = "",
    ) -> None:
        super().__init__(what)
        self.kind, self.what, self.status, self.again = kind, what, status, again
        self.wait, self.fix = wait, fix


@dataclass
class Endpoint:
    """A URL that takes JSON by POST. Safe to use from several threads; connections are kept and reused."""

    url: str = field(repr=False)  # its query may hold a key; `name` is what may be shown
    api_key: Secret | None = None
    patience: Patience = field(default_factory=Patience)
    clock: Clock = field(default_factory=Clock)
    plain_http: bool = False
    private: bool = False  # what is sent must not cross the network unencrypted, with a key or without
    headers: Mapping[str, Secret] = field(default_factory=dict)  # further ones; their values are keys
    hints: Hints = field(default_factory=lambda: OF_A_MODEL, repr=False)

    def __post_init__(self) -> None:
        parts = _checked(self.url)
        self._tls = parts.scheme == "https"
        self._host, self._port = cast(str, parts.hostname), parts.port or (443 if self._tls else 80)
        open_wire = not self._tls and not is_loopback(self._host) and not self.plain_http
        secret = [each.reveal() for each in (self.api_key, *self.headers.values()) if each]
        if open_wire and (secret or self.private):
            what = "an API key" if secret else "every question"
            raise DataError(
                f"{parts.scheme}://{self._host}",
                f"{what} would cross the network unencrypted.",
                fix=self.hints["plain_http"],
            )
        shown = f"[{self._host}]" if ":" in self._host else self._host
        self.name = f"{parts.scheme}://{shown}{f':{parts.port}' if parts.port else ''}{parts.path}"
        keys = [value for _, value in parse_qsl(parts.query)]
        self.redacted = Redactor([*keys, *secret])
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._host_line = f"{shown}:{self._port}"
        self._idle: list[socket.socket] = []
        self._keeps = True
        self._lock = threading.Lock()
        self._context: ssl.SSLContext | None = None

    def post(self, document: Any, read: Callable[[bytes], T]) -> Answer[T]:
        """Send a document; `read` turns the reply's body into what it means, or raises BadReplyError."""
        body = msgspec.json.encode(document)
        started = time.monotonic()
        attempt = 0
        while True:
            attempt += 1
            try:
                return Answer(self._read(body, read), attempt, time.monotonic() - started)
            except _Trouble as trouble:
                if not trouble.again or attempt > self.patience.retries:
                    # From None: what the transport said is in the text, without its keys.
                    raise self._error(trouble, attempt) from None
                wait = self.patience.wait(attempt, trouble.wait, self.clock.chance())
            self.clock.sleep(wait)

    def close(self) -> None:
        """Close the connections that are kept; a later call opens one and keeps it no longer."""
        with self._lock:
            idle, self._idle, self._keeps = self._idle, [], False
        for kept in idle:
            kept.close()

    def __del__(self) -> None:
        if hasattr(self, "_lock"):  # else the URL was refused
            self.close()

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _error(self, trouble: _Trouble, attempts: int) -> CallError:
        tried = f" after {attempts} attempts" if attempts > 1 else ""
        text = f"{self.name}: {trouble.what}{tried}.{f' {trouble.fix}' if trouble.fix else ''}"
        return CallError(
            self.redacted(text),
            kind=trouble.kind,
            status=trouble.status,
            attempts=attempts,
            retry_after=trouble.wait,
            lasting=not trouble.again,
        )

    def _quoted(self, text: object) -> str:
        """Somebody else's words for an error. Redacted before they are cut: half a key is no longer found."""
        return tidy(self.redacted(str(text)))

    def _read(self, body: bytes, read: Callable[[bytes], T]) -> T:
        limit = self.patience.timeout
        try:
            return read(self._exchange(body, _Deadline(limit)))
        except BadReplyError as error:
            raise _Trouble(
                "bad_output", f"the reply is not what it should be: {self._quoted(error)}"
            ) from None
        except TimeoutError:
            raise _Trouble("timeout", f"no whole reply within {limit:g} s") from None
        except ssl.SSLCertVerificationError as error:
            what = f"its certificate is not trusted: {self._quoted(error.verify_message)}"
            raise _Trouble("tls", what, again=False, fix="Check the address.") from None
        except socket.gaierror as error:
            lasting = error.errno == socket.EAI_NONAME
            what = f"there is no host {self._host}: {self._quoted(error.strerror)}"
            raise _Trouble("connection", what, again=not lasting, fix=_NO_PROXY) from None
        except ConnectionRefusedError:
            raise _Trouble("connection", "nothing listens there", fix="Is the server running?") from None
        except (OSError, HTTPException) as error:
            what = f"the connection broke: {self._quoted(error) or type(error).__name__}"
            raise _Trouble("connection", what, fix=_NO_PROXY if self._tls else "") from None

    def _exchange(self, body: bytes, deadline: _Deadline) -> bytes:
        # A server closes connections that are idle: not a failure, another one is used. But once a byte is
        # sent the request may be carried out, so it is not repeated here: that would be a call nobody counts.
        while (kept := self._kept()) is not None:
            with suppress(_UnsentError):
                return self._over(kept, body, deadline)
        return self._over(self._connected(deadline), body, deadline)

    def _kept(self) -> socket.socket | None:
        """A kept connection that is still open; those that are not are closed."""
        while True:
            with self._lock:
                kept = self._idle.pop() if self._idle else None
            if kept is None or _is_open(kept):
                return kept
            kept.close()

    def _over(self, wire: socket.socket, body: bytes, deadline: _Deadline) -> bytes:
        """One exchange over a connection, which is kept afterwards if all went well."""
        keep = False
        try:
            _send(wire, self._head(len(body)) + body, deadline)
            with HTTPResponse(cast(socket.socket, _Timed(wire, deadline)), method="POST") as response:
                response.begin()
                while 100 < response.status < 200 and response.status != 101:  # hints; the reply is to come
                    response.headers = None  # type: ignore[assignment]  # else it counts as begun
                    response.begin()
                content = self._content(response)
                keep = not response.will_close
            return content
        finally:
            with self._lock:
                keep = keep and self._keeps and len(self._idle) < _MAX_IDLE
                if keep:
                    self._idle.append(wire)
            if not keep:
                wire.close()

    def _head(self, length: int) -> bytes:
        lines = [f"POST {self._target} HTTP/1.1", f"Host: {self._host_line}"]
        lines += ["Content-Type: application/json", "Accept: application/json", "Accept-Encoding: identity"]
        lines += ["User-Agent: auepora-eval", f"Content-Length: {length}"]
        if self.api_key:
            lines.append(f"Authorization: Bearer {self.api_key.reveal()}")
        lines += [f"{name}: {value.reveal()}" for name, value in self.headers.items()]
        return "\r\n".join([*lines, "", ""]).encode("ascii")

    def _content(self, response: HTTPResponse) -> bytes:
        limit = self.patience.max_bytes
        too_large = _Trouble(
            "too_large", f"the reply is longer than {limit / 1e6:g} MB", status=response.status, again=False
        )
        if (response.length or 0) > limit:
            raise too_large
        try:
            content = response.read(limit + 1)
        except ConnectionError as error:  # the reply had begun: this is not a connection that was closed idle
            raise _Trouble("connection", f"the reply broke off: {self._quoted(error)}") from None
        if len(content) > limit:
            raise too_large
        if response.length:
            raise _Trouble("connection", f"the reply broke off: {response.length} bytes are missing")
        content = in_utf8(content, response.getheader("Content-Type"))
        if not 200 <= response.status < 300:
            raise self._refusal(response, content)
        return content

    def _refusal(self, response: HTTPResponse, content: bytes) -> _Trouble:
        status, said = response.status, self._quoted(message_in(content))
        what = " ".join(part for part in (f"{status} {self._quoted(response.reason)}:", said) if part).rstrip(
            ":. "
        )
        wait = retry_after(response.getheader("Retry-After"), self.clock.now())
        if status == 429:
            spent = b'"insufficient_quota"' in content  # waiting does not help
            fix = "The account's quota is used up." if spent else "Ask less often, or later."
            return _Trouble("rate_limited", what, status=status, again=not spent, wait=wait, fix=fix)
        if status == 408:
            return _Trouble("timeout", what, status=status, wait=wait)
        if status >= 500 or status == 409:
            kind = "http_5xx" if status >= 500 else "http_4xx"
            return _Trouble(kind, what, status=status, wait=wait)
        if 300 <= status < 400:
            place = self._quoted(response.getheader("Location") or "nowhere")
            what = f"{status}: it sends us to {place}, and redirects are not followed"
            return _Trouble("redirect", what, status=status, again=False, fix="Give the final URL.")
        return _Trouble("http_4xx", what, status=status, again=False, fix=self.hints.get(status, ""))

    def _connected(self, deadline: _Deadline) -> socket.socket:
        found = socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        trouble: OSError = ConnectionRefusedError()
        for family, kind, protocol, _, address in found:
            _refuse_link_local(str(address[0]), self._host)
            wire = socket.socket(family, kind, protocol)
            try:
                wire.settimeout(min(deadline.left(), self.patience.connect_timeout))
                wire.connect(address)
                wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return self._wrapped(wire, deadline) if self._tls else wire
            except OSError as error:
                wire.close()
                trouble = error
        raise trouble

    def _wrapped(self, wire: socket.socket, deadline: _Deadline) -> socket.socket:
        with self._lock:
            self._context = self._context or ssl.create_default_context()
        wire.settimeout(deadline.left())
        try:
            return self._context.wrap_socket(wire, server_hostname=self._host)
        except (ssl.SSLCertVerificationError, ssl.SSLEOFError, ssl.SSLZeroReturnError):
            raise  # the first has words of its own; the others broke off, which may pass
        except ssl.SSLError as error:
            what = f"no encrypted connection: {self._quoted(error.reason or error)}"
            raise _Trouble("tls", what, again=False, fix="Does it speak https, and on this port?") from None


_NO_PROXY = "Proxies named in the environment are not used."


class _Deadline:
    """The time that one attempt has, for all of it."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """What is left of it; TimeoutError if nothing is."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


def _is_open(wire: socket.socket) -> bool:
    """Whether an idle connection can be used: nothing has come, neither its end nor words out of turn."""
    try:
        wire.settimeout(0)
        socket.socket.recv(wire, 1, socket.MSG_PEEK)  # below the encryption, if there is one
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _send(wire: socket.socket, request: bytes, deadline: _Deadline) -> None:
    """Send all of a request; _UnsentError if the connection took nothing of it."""
    sent, content = 0, memoryview(request)
    while sent < len(content):
        wire.settimeout(deadline.left())
        try:
            sent += wire.send(content[sent : sent + _AT_ONCE])
        except (ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError) as error:
            if sent:
                raise
            raise _UnsentError(*error.args) from error


class _Timed(io.RawIOBase):
    """A connection's bytes, each read given no more than the time that is left."""

    def __init__(self, wire: socket.socket, deadline: _Deadline) -> None:
        self._wire, self._deadline = wire, deadline
        self._raw = wire.makefile("rb", buffering=0)

    def makefile(self, mode: str) -> io.BufferedReader:
        """What HTTPResponse asks a socket for."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._wire.settimeout(self._deadline.left())
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def _checked(url: str) -> Any:
    """The parts of a URL that can be asked; errors do not repeat one that may hold a password."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise DataError("the URL", "cannot be read.", fix=_URL_FIX) from None
    if "@" in parts.netloc + parts.path:  # a password with a slash in it looks like a path
        raise DataError(
            "the URL", "holds a user name or a password.", fix="Leave it out; the key has its own place."
        )
    clean = url.isascii() and url.isprintable() and " " not in url
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or not clean:
        raise DataError("the URL", "is not http://host or https://host.", fix=_URL_FIX)
    return parts


_URL_FIX = "Write, for example, http://127.0.0.1:8000/v1."


def _refuse_link_local(address: str, host: str) -> None:
    """A name must not lead to the address at which clouds hand out their machines' credentials."""
    if ipaddress.ip_address(address.partition("%")[0]).is_link_local:
        raise _Trouble(
            "connection", f"{host} is {address}, a link-local address, which is not asked", again=False
        )
