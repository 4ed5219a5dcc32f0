"""Errors of other people's HTTP clients, known by what they look like: none of the clients is imported."""

from __future__ import annotations

import errno
import time
from typing import Any

# Classes by their names, or by their package and name where the name alone says too little.
_TIMEOUTS = frozenset(
    "Timeout TimeoutException TimeoutError APITimeoutError ConnectTimeoutError ReadTimeoutError".split()
)
_CONNECTIONS = frozenset(
    """ConnectionError APIConnectionError NetworkError RemoteProtocolError NewConnectionError
    ChunkedEncodingError ClientConnectionError ClientPayloadError urllib3.ProtocolError http.IncompleteRead
    ssl.SSLError socket.gaierror""".split()
)
_UNTRUSTED = frozenset({"ssl.SSLCertVerificationError"})
_NO_WAY_THERE = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN})


def foreign_kind(error: BaseException, *, depth: int = 4) -> str | None:
    """What sort of failure a client reports, in the words of an error record; None if it does not say."""
    status = _status(error)
    if status is not None:
        if status in (408, 429):
            return "rate_limited" if status == 429 else "timeout"
        return "http_5xx" if status >= 500 else "http_4xx"
    names = {name for kind in type(error).__mro__ for name in _names(kind)}
    if names & _UNTRUSTED or "CERTIFICATE_VERIFY_FAILED" in _text(error):
        return "tls"
    if isinstance(error, TimeoutError) or names & _TIMEOUTS:
        return "timeout"
    unreachable = isinstance(error, OSError) and error.errno in _NO_WAY_THERE
    if isinstance(error, ConnectionError) or unreachable or names & _CONNECTIONS:
        return "connection"
    reason = _asked(error, "reason")  # urllib's URLError is about another error
    return foreign_kind(reason, depth=depth - 1) if isinstance(reason, BaseException) and depth else None


def asked_pause(error: BaseException) -> float | None:
    """The seconds that a server asked to wait, where the exception tells it."""
    asked = _asked(error, "retry_after")
    if asked is None:
        for headers in (_asked(_asked(error, "response"), "headers"), _asked(error, "headers")):
            get = _asked(headers, "get")
            if callable(get):
                asked = get("Retry-After") or get("retry-after")  # a plain dict has it in one spelling
                break
    return None if asked is None or isinstance(asked, bool) else retry_after(str(asked), time.time())


def retry_after(value: str | None, now: float) -> float | None:
    """The seconds that a Retry-After header asks for, be it a number or a date; None if it says neither.

    >>> retry_after("7", 0), retry_after("Thu, 01 Jan 1970 00:01:00 GMT", 45.0), retry_after("soon", 0)
    (7.0, 15.0, None)
    """
    from email.utils import parsedate_to_datetime

    text = (value or "").strip()
    try:
        seconds = float(text) if text[:1].isdigit() else parsedate_to_datetime(text).timestamp() - now
    except (ValueError, TypeError, OverflowError):
        return None
    return max(0.0, seconds) if seconds < float("inf") else None


def _status(error: BaseException) -> int | None:
    """The status of a refusal, by the names that clients have for it."""
    if not isinstance(error, Exception):
        return None  # the code of SystemExit is another one
    for thing in (error, _asked(error, "response")):
        for name in ("status_code", "status", "code"):
            status = _asked(thing, name)
            if isinstance(status, int) and 400 <= status < 600:
                return int(status)
    return None


def _names(kind: type) -> tuple[str, str]:
    return kind.__name__, f"{kind.__module__.partition('.')[0]}.{kind.__name__}"


def _asked(thing: Any, name: str) -> Any:
    try:
        return getattr(thing, name, None)
    except Exception:  # noqa: BLE001 - a property of somebody's exception may raise whatever it likes
        return None


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - its own code runs here
        return ""
