"""JSON documents sent by POST: each call ends in a reply, or in a CallError that says what happened.

An endpoint makes one attempt per call and connects only to the URL that the user gave, or to the proxy that
the environment names for it (HTTP_PROXY, HTTPS_PROXY, NO_PROXY). No redirect is followed. Failed attempts are
retried by the caller's CallPolicy (`calls/policy`).
"""

from __future__ import annotations

import ipaddress
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import msgspec

from ..errors import CallError, DataError
from .keys import Redactor, Secret
from .policy import retry_after

if TYPE_CHECKING:
    from .transport import HttpReply, Transport

T = TypeVar("T")

# What to do about a status.
_HINTS = {
    400: "Does the server know this model, and these parameters?",
    404: "Check the URL (it usually ends in /v1) and the model's name.",
}
_URL_FIX = "Write, for example, http://127.0.0.1:8000/v1."


class BadReplyError(ValueError):
    """Raised by the reader of a reply that does not have the expected form."""


@dataclass
class Endpoint:
    """A URL that takes JSON by POST. Safe to use from several threads; connections are kept and reused.

    `timeout`, in seconds, covers the whole attempt.
    """

    url: str = field(repr=False)  # its query may hold a key; `name` is what may be shown
    api_key: Secret | None = None
    timeout: float = 60.0
    plain_http: bool = False
    private: bool = False  # the documents must not cross the network unencrypted, with a key or without
    headers: Mapping[str, Secret] = field(default_factory=dict)  # further ones; their values are keys

    def __post_init__(self) -> None:
        if not 0 < self.timeout < float("inf"):
            raise DataError("timeout", "must be a positive number.")
        parts = _checked(self.url)
        host = parts.hostname or ""
        secrets = [each.reveal() for each in (self.api_key, *self.headers.values()) if each]
        self._check_encrypted(parts, has_key=bool(secrets))
        shown_host = f"[{host}]" if ":" in host else host
        port = f":{parts.port}" if parts.port else ""
        self.name = f"{parts.scheme}://{shown_host}{port}{parts.path}"
        # The query decides the reply too, and may hold a key.
        digest = sha256(parts.query.encode()).hexdigest()[:16]
        self.identity = f"{self.name}?{digest}" if parts.query else self.name
        proxy = _proxy_for(parts)
        proxy_password = unquote(urlsplit(proxy).password or "") if proxy else ""
        query_values = [value for _, value in parse_qsl(parts.query)]
        self.redacted = Redactor([*query_values, *secrets, *filter(None, [proxy_password])])
        self._proxy = proxy
        # Made by the first call: importing urllib3 opens a socket.
        self._lock = threading.Lock()
        self._transport: Transport | None = None

    def _check_encrypted(self, parts: SplitResult, *, has_key: bool) -> None:
        """DataError if a key or a question would be sent over plain HTTP to another machine."""
        if parts.scheme == "https" or is_loopback(parts.hostname or "") or self.plain_http:
            return
        if has_key or self.private:
            what = "an API key" if has_key else "every question"
            raise DataError(
                f"{parts.scheme}://{parts.hostname}",
                f"{what} would cross the network unencrypted.",
                fix="Use https, or allow plain HTTP if this network is yours (plain_http).",
            )

    def post(self, document: Any, read: Callable[[bytes], T]) -> T:
        """Send a document once; `read` turns the reply's body into a value, or raises BadReplyError."""
        body = msgspec.json.encode(document)
        try:
            reply = self._opened().post(body, self._request_headers(), timeout=self.timeout)
            if not 200 <= reply.status < 300:
                raise self._refusal(reply)
            return read(reply.content)
        except BadReplyError as error:
            what = f"the reply is not what it should be: {self._quoted(error)}."
            raise self._error(CallError(what, kind="bad_output")) from None
        except CallError as error:
            # From None: what the transport reported is in the text, without its keys.
            raise self._error(error) from None

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            transport, self._transport = self._transport, None
        if transport is not None:
            transport.close()

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _opened(self) -> Transport:
        from .transport import Transport

        with self._lock:
            if self._transport is None:
                self._transport = Transport(self.url, proxy=self._proxy)
            return self._transport

    def _request_headers(self) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "gzip",
            "User-Agent": "auepora-eval",
        }
        if self.api_key:
            headers["Authorization"] = f"Bearer {self.api_key.reveal()}"
        return headers | {name: value.reveal() for name, value in self.headers.items()}

    def _key_hint(self) -> str:
        """Return which key to check: its environment variable, and the header that it is sent in."""
        keys = {"the API key": self.api_key} if self.api_key else {}
        keys |= {f"the header {name}": value for name, value in self.headers.items()}
        named = [f"{what} ({key.source})" if key.source else what for what, key in keys.items()]
        if not named:
            return "No API key was sent: name the environment variable that holds it (--api-key-env NAME)."
        return f"Is it allowed to use this model, and is this right: {' and '.join(named)}?"

    def _error(self, error: CallError) -> CallError:
        """Return an error with the endpoint's name, and without its keys."""
        return CallError(
            self._quoted(f"{self.name}: {error}", limit=800),
            kind=error.kind,
            status=error.status,
            retry_after=error.retry_after,
            lasting=error.lasting,
        )

    def _quoted(self, text: object, limit: int = 300) -> str:
        """Return text of a server for an error. It is redacted before it is cut: half a key is not found."""
        return tidy(self.redacted(str(text)), limit)

    def _refusal(self, reply: HttpReply) -> CallError:
        """Return the error of a reply whose status is not 2xx."""
        status, content = reply.status, reply.content
        if 300 <= status < 400:
            place = self._quoted(reply.headers.get("Location") or "nowhere")
            what = f"{status}: it redirects to {place}, and redirects are not followed. Give the final URL."
            return CallError(what, kind="redirect", status=status, lasting=True)
        reason = f"{status} {self._quoted(reply.reason)}: {self._quoted(message_in(content))}".rstrip(":. ")
        wait = retry_after(reply.headers.get("Retry-After"), time.time())
        if status == 429:
            is_spent = b'"insufficient_quota"' in content  # waiting does not help
            fix = "The account's quota is used up." if is_spent else "Send fewer requests, or later."
            return CallError(
                f"{reason}. {fix}", kind="rate_limited", status=status, retry_after=wait, lasting=is_spent
            )
        if status == 408:
            return CallError(f"{reason}.", kind="timeout", status=status, retry_after=wait)
        if status >= 500:
            return CallError(f"{reason}.", kind="http_5xx", status=status, retry_after=wait)
        fix = self._key_hint() if status in (401, 403) else _HINTS.get(status, "")
        return CallError(f"{reason}. {fix}".rstrip(), kind="http_4xx", status=status, lasting=status != 409)


# The names of parameters whose values are likely keys.
_KEY_LIKE = re.compile(r"key|token|secret|passw|auth|sig|code|credential", re.IGNORECASE)


def check_no_key_in_url(name: str) -> None:
    """Raise DataError if the URL of a system or a judge seems to hold a key: it is stored with the run."""
    for pair in name.partition("#")[0].partition("?")[2].split("&"):
        if _KEY_LIKE.search(pair.partition("=")[0]):
            raise DataError(
                "the URL",
                "it seems to hold a key, and it is stored with the run.",
                fix="Put the key into an environment variable, and name that with --api-key-env.",
            )


def tidy(text: object, limit: int = 300) -> str:
    """Return foreign text on one line, without control characters that steer a terminal, cut to a length."""
    printable = "".join(sign if sign.isprintable() else " " for sign in str(text)[:5000])
    flat = " ".join(printable.split())
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"


def message_in(content: bytes) -> str:
    """Return the message of a server's error reply, in the JSON forms that servers use, else all of it."""
    try:
        document = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return content.decode("utf-8", "replace")
    for key in ("error", "message", "detail"):
        if isinstance(document, dict) and key in document:
            document = document[key]
    return document if isinstance(document, str) else content.decode("utf-8", "replace")


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.rstrip(".").lower() == "localhost"


def _checked(url: str) -> SplitResult:
    """Return the parts of a URL; DataError if it cannot be called. Errors do not repeat it (keys)."""
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


def _proxy_for(parts: SplitResult) -> str | None:
    """Return the proxy that the environment names for a URL, or None; never one for this machine."""
    from urllib.request import getproxies, proxy_bypass

    host = parts.hostname or ""
    if is_loopback(host) or proxy_bypass(f"{host}:{parts.port}" if parts.port else host):
        return None
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy:
        return None
    return proxy if "://" in proxy else f"http://{proxy}"
