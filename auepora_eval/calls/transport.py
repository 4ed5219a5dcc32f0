"""One POST over HTTP within a deadline: the only module that connects to endpoints.

urllib3 does the work: pooled connections, TLS, proxies, gzip. Three rules are added: one deadline covers the
whole reply, a reply has a largest size, and no connection leads to an address of a cloud's metadata.

`calls/http.py` imports this module when the first call is made, not before: importing urllib3 opens a socket
to find out whether the machine has IPv6, and commands that use no endpoint open none.
"""

from __future__ import annotations

import io
import ipaddress
import socket
import ssl
import time
from collections.abc import Mapping
from functools import partial
from http.client import HTTPException, HTTPResponse
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError, ProxyError, ProxySchemeUnknown, ReadTimeoutError

from ..errors import CallError, DataError

_CHUNK_BYTES = 65_536  # read at once
MAX_BYTES = 4_000_000  # of a reply
_CONNECT_SECONDS = 10.0
# Idle connections that are kept. Above it urllib3 discards connections and logs a warning for each.
_MAX_IDLE = 1000
# Where clouds give their machines' credentials to any caller, besides the link-local addresses.
_METADATA = {ipaddress.ip_address("100.100.100.200"), ipaddress.ip_address("fd00:ec2::254")}


class HttpReply(NamedTuple):
    """A whole reply, whatever its status."""

    status: int
    reason: str
    headers: Mapping[str, str]
    content: bytes


class Transport:
    """Sends POST requests to one URL, directly or through a proxy. Safe to use from several threads."""

    def __init__(self, url: str, *, proxy: str | None = None) -> None:
        self._url = url
        parts = urlsplit(url)
        self._host = parts.hostname or ""
        self._through = f" through the proxy {urlsplit(proxy).hostname}" if proxy else ""
        options: dict[str, Any] = {"num_pools": 1, "maxsize": _MAX_IDLE, "retries": False}
        if parts.scheme == "https":
            options["ssl_context"] = ssl.create_default_context()
        self._pools = _proxy_manager(proxy, options) if proxy else urllib3.PoolManager(**options)
        self._pools.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}

    def close(self) -> None:
        """Close the idle connections."""
        self._pools.clear()

    def post(self, body: bytes, headers: Mapping[str, str], *, timeout: float) -> HttpReply:
        """Send one request and return the whole reply; CallError if there is none. Nothing is sent twice."""
        _check_address(self._host, self._host)
        limits = urllib3.Timeout(total=timeout, connect=min(timeout, _CONNECT_SECONDS))
        try:
            response = self._pools.urlopen(
                "POST",
                self._url,
                body=body,
                headers=headers,
                timeout=limits,
                redirect=False,
                retries=False,
                preload_content=False,
            )
            try:
                content = _content(response)
            finally:
                response.close()  # a connection whose reply was read to its end is back in the pool by now
        except (HTTPError, OSError) as error:
            raise self._failure(error, timeout) from None
        except (HTTPException, ValueError) as error:
            raise CallError(f"the reply cannot be read: {error}.", kind="bad_output") from None
        return HttpReply(response.status, response.reason or "", response.headers, content)

    def _failure(self, error: Exception, timeout: float) -> CallError:
        """Return a failed attempt as a CallError: what happened, and whether another attempt may help."""
        origin = _origin(error)
        if isinstance(error, ReadTimeoutError) or isinstance(origin, TimeoutError):
            return CallError(f"no whole reply{self._through} within {timeout:g} s.", kind="timeout")
        if isinstance(origin, ssl.SSLCertVerificationError):
            what = f"its certificate is not trusted: {origin.verify_message}. Check the address."
            return CallError(what, kind="tls", lasting=True)
        # An encrypted connection that was cut off may work next time; one that was never made will not.
        is_cut_off = isinstance(origin, ssl.SSLEOFError | ssl.SSLZeroReturnError)
        if isinstance(origin, ssl.SSLError) and not is_cut_off:
            what = f"no encrypted connection: {origin.reason or origin}. Does it speak https on this port?"
            return CallError(what, kind="tls", lasting=True)
        if isinstance(error, ProxyError):
            what = f"no connection{self._through}: {origin}. Check HTTP_PROXY, HTTPS_PROXY and NO_PROXY."
            return CallError(what, kind="connection")
        if isinstance(origin, socket.gaierror):
            what = f"there is no host {self._host}: {origin.strerror}."
            return CallError(what, kind="connection", lasting=origin.errno == socket.EAI_NONAME)
        if isinstance(origin, ConnectionRefusedError):
            return CallError(
                "nothing listens there. Start the server, or correct the address.", kind="connection"
            )
        return CallError(f"the connection broke: {str(origin) or type(origin).__name__}.", kind="connection")


def _proxy_manager(proxy: str, options: dict[str, Any]) -> urllib3.ProxyManager:
    parts = urlsplit(proxy)
    headers = None
    if parts.username:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers = urllib3.make_headers(proxy_basic_auth=user)
    try:
        return urllib3.ProxyManager(proxy, proxy_headers=headers, **options)
    except ProxySchemeUnknown:
        raise DataError(
            "the proxy of the environment",
            f"{parts.scheme} proxies are not supported.",
            fix="Name an http or https proxy in HTTP_PROXY and HTTPS_PROXY, or list the host in NO_PROXY.",
        ) from None


def _content(response: urllib3.BaseHTTPResponse) -> bytes:
    content, is_too_large = b"", (response.length_remaining or 0) > MAX_BYTES
    parts = response.stream(_CHUNK_BYTES, decode_content=True)
    while not is_too_large and (part := next(parts, None)) is not None:
        content += part
        is_too_large = len(content) > MAX_BYTES
    if is_too_large:
        what = f"the reply is longer than {MAX_BYTES / 1e6:g} MB."
        raise CallError(what, kind="too_large", status=response.status, lasting=True)
    return content


def _origin(error: BaseException) -> BaseException:
    """Return the error of the operating system, of ssl or of http.client that one of urllib3 is about."""
    inner = [error.__cause__, getattr(error, "original_error", None), *error.args]
    origin = next((each for each in inner if isinstance(each, BaseException)), None)
    return error if origin is None else _origin(origin)


class _TimedReader(io.RawIOBase):
    """The bytes of a connection; each read has no more time than is left until the deadline.

    urllib3's own timeout starts again with each read: a server that sends one byte per second would
    occupy its caller for ever.
    """

    def __init__(self, connection: socket.socket, raw: io.RawIOBase, deadline: float) -> None:
        self._connection, self._raw, self._deadline = connection, raw, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        seconds = self._deadline - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        self._connection.settimeout(seconds)
        size: int | None = self._raw.readinto(buffer)
        return size

    def close(self) -> None:
        self._raw.close()
        super().close()


class _TimedResponse(HTTPResponse):
    """A reply that is read before a deadline, a time of `time.monotonic`."""

    def __init__(self, sock: socket.socket, deadline: float, **options: Any) -> None:
        super().__init__(sock, **options)
        self.fp = io.BufferedReader(_TimedReader(sock, self.fp.detach(), deadline))


class _Timed:
    """What is added to both connection classes of urllib3; `HTTPConnection` is the other base class."""

    timeout: Any
    response_class: Any
    sock: Any

    def connect(self) -> None:
        super().connect()  # type: ignore[misc]
        # Checked on the open connection: the same name could lead elsewhere when it is looked up again.
        _check_address(str(self.sock.getpeername()[0]), self.host)  # type: ignore[attr-defined]

    def getresponse(self) -> Any:
        # By now urllib3 has set `timeout` to what the connection and the request left of the call's time.
        self.response_class = partial(_TimedResponse, deadline=time.monotonic() + self.timeout)
        return super().getresponse()  # type: ignore[misc]


class _HttpConnection(_Timed, HTTPConnection):
    pass


class _HttpsConnection(_Timed, HTTPSConnection):
    pass


class _HttpPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _HttpConnection


class _HttpsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _HttpsConnection


def _check_address(address: str, host: str) -> None:
    """CallError if an address is one at which clouds give their machines' credentials to any caller."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:  # a name
        return
    parsed = getattr(parsed, "ipv4_mapped", None) or parsed
    if parsed.is_link_local or parsed in _METADATA:
        what = f"{host} is {address}, an address of a cloud's metadata (link-local). It is never called."
        raise CallError(what, kind="connection", lasting=True)
