"""Errors of other people's clients: which may pass, and what pause their servers ask for."""

from __future__ import annotations

import errno
import http.client
import ssl
import urllib.error
from email.message import Message
from types import SimpleNamespace
from typing import Any

import pytest

from auepora_eval.calls.policy import CallClock, CallPolicy, kind_of
from auepora_eval.core.types import SystemOutputs
from auepora_eval.store.database import MAY_PASS
from auepora_eval.store.record import outcome_of
from tests.builders import one_output


def named(name: str, module: str, *bases: type[Exception], **fields: Any) -> type[Exception]:
    """A class as a client has it, without the client."""
    return type(name, bases or (Exception,), {"__module__": module, **fields})


def answered(status: int, **headers: str) -> Any:
    return SimpleNamespace(status_code=status, headers={k.replace("_", "-"): v for k, v in headers.items()})


def http_error(status: int, **headers: str) -> urllib.error.HTTPError:
    fields = Message()
    for name, value in headers.items():
        fields[name.replace("_", "-")] = value
    return urllib.error.HTTPError("http://h/", status, "words", fields, None)


HTTPX_TRANSPORT = named("TransportError", "httpx")
AIOHTTP = named("ClientError", "aiohttp.client_exceptions")

ERRORS: list[tuple[BaseException, str]] = [
    (http_error(503), "http_5xx"),
    (http_error(429), "rate_limited"),
    (http_error(408), "timeout"),
    (urllib.error.URLError(ConnectionRefusedError(111, "refused")), "connection"),
    (urllib.error.URLError(TimeoutError("timed out")), "timeout"),
    (urllib.error.URLError(ssl.SSLCertVerificationError(1, "certificate verify failed")), "tls"),
    (urllib.error.URLError(ssl.SSLEOFError(8, "EOF occurred")), "connection"),
    (urllib.error.URLError("unknown url type: gopher"), "system_exception"),
    (http.client.IncompleteRead(b"half"), "connection"),
    (OSError(errno.ENETUNREACH, "Network is unreachable"), "connection"),
    (OSError(errno.ENOSPC, "No space left on device"), "system_exception"),
    (named("ReadTimeout", "requests.exceptions", named("Timeout", "requests.exceptions"))(), "timeout"),
    (named("ConnectionError", "requests.exceptions", OSError)(), "connection"),
    (named("HTTPError", "requests.exceptions", response=answered(502))(), "http_5xx"),
    (named("HTTPError", "requests.exceptions", response=None)(), "system_exception"),
    (named("SSLError", "requests.exceptions", ConnectionError)("[SSL: CERTIFICATE_VERIFY_FAILED]"), "tls"),
    (named("ConnectTimeout", "httpx", named("TimeoutException", "httpx", HTTPX_TRANSPORT))(), "timeout"),
    (named("ConnectError", "httpx", named("NetworkError", "httpx", HTTPX_TRANSPORT))(), "connection"),
    (named("RemoteProtocolError", "httpx", HTTPX_TRANSPORT)(), "connection"),
    (named("UnsupportedProtocol", "httpx", HTTPX_TRANSPORT)(), "system_exception"),
    (named("ServerDisconnectedError", "aiohttp", named("ClientConnectionError", "aiohttp"))(), "connection"),
    (named("ClientResponseError", "aiohttp.client_exceptions", AIOHTTP, status=503)(), "http_5xx"),
    (named("APIConnectionError", "openai")(), "connection"),
    (named("APITimeoutError", "openai", named("APIConnectionError", "openai"))(), "timeout"),
    (named("RateLimitError", "openai", status_code=429, code="rate_limit_exceeded")(), "rate_limited"),
    (SystemExit(503), "system_exception"),
    (KeyError("a bug"), "system_exception"),
]


@pytest.mark.parametrize(("error", "kind"), ERRORS, ids=[f"{error!r:.50}" for error, _ in ERRORS])
def test_the_kind_of_a_foreign_error(error: BaseException, kind: str) -> None:
    assert kind_of(error) == kind


def test_real_clients_where_they_are_installed() -> None:
    requests = pytest.importorskip("requests")
    assert kind_of(requests.exceptions.ReadTimeout()) == "timeout"
    assert kind_of(requests.exceptions.ConnectionError()) == "connection"
    assert kind_of(requests.exceptions.InvalidURL()) == "system_exception"
    reply = requests.Response()
    reply.status_code, reply.headers["Retry-After"] = 503, "4"
    with pytest.raises(requests.HTTPError) as caught:
        reply.raise_for_status()
    assert kind_of(caught.value) == "http_5xx"
    assert CallPolicy(backoff=0).wait(caught.value, 1) == 4.0


DATED = "Fri, 31 Dec 1999 23:59:59 GMT"


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (http_error(429, Retry_After="3"), 3.0),
        (http_error(503, Retry_After=DATED), 0.0),
        (http_error(503, Retry_After="soon"), 9.0),
        (named("HTTPError", "requests", response=answered(429, Retry_After="2"))(), 2.0),
        (named("ClientResponseError", "aiohttp", status=429, headers={"Retry-After": "5"})(), 5.0),
        (named("Odd", "odd", status=429, headers="Retry-After: 5")(), 9.0),
    ],
)
def test_the_pause_that_a_server_asks_for(error: BaseException, seconds: float) -> None:
    policy = CallPolicy(backoff=9.0, clock=CallClock(chance=lambda: 1.0))
    expected = seconds if seconds == 9.0 else seconds + 9.0
    assert policy.wait(error, 1) == pytest.approx(expected)


def called(error: BaseException, **policy: Any) -> tuple[int, SystemOutputs]:
    calls = 0

    def system(query: str) -> str:
        nonlocal calls
        calls += 1
        raise error

    output = one_output(system, policy=CallPolicy(backoff=0, **policy))
    return calls, output


def is_asked_again(output: SystemOutputs) -> bool:
    """Whether a run that is gone on with asks this sample again."""
    assert output.error is not None
    return outcome_of(output) == MAY_PASS


@pytest.mark.parametrize("error", [error for error, kind in ERRORS if kind == "connection"], ids=repr)
def test_what_may_pass_is_tried_again_now_and_when_the_run_is_gone_on_with(error: BaseException) -> None:
    calls, output = called(error, retries=2)
    assert (calls, is_asked_again(output)) == (3, True)
