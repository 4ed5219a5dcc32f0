"""One POST over HTTP within a deadline: the only module that opens a network connection.

urllib3 does the work: pooled connections, TLS, proxies. Three rules of ours are added to it: one deadline
covers the whole attempt (looking up the host name aside, which the operating system times), a reply has a
largest size, and no connection leads to a link-local address.

`models/http.py` imports this module when the first call is made, not before: importing urllib3 opens a socket
to find out whether the machine has IPv6, and commands that use no endpoint open none.
"""

from __future__ import annotations

import io
import ipaddress
import logging
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse
from typing import Any, NamedTuple, cast
from urllib.parse import unquote, urlsplit

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    ProxyError,
    ProxySchemeUnknown,
    ReadTimeoutError,
)

from ..errors import CallError, DataError

_CHUNK_BYTES = 65_536  # read at once
_HEAD_BYTES = 65_536  # of a reply: its headers, and the sizes of its chunks
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
# Idle connections that are kept. Above it urllib3 discards connections and logs a warning for each.
_MAX_IDLE = 1000


class HttpReply(NamedTuple):
    """A whole reply, whatever its status."""

    status: int
    reason: str
    headers: Mapping[str, str]
    content: bytes


class _Call(threading.local):
    """The limits of the call that this thread makes: its deadline, as a time of `time.monotonic`, and bytes.

    The connection classes below are made by urllib3, which has no way to pass them these.
    """

    deadline: float | None = None  # None between calls
    max_bytes = bytes_left = 0
    reader: _TimedReader | None = None

    @contextmanager
    def within(self, seconds: float, max_bytes: int) -> Iterator[None]:
        self.deadline = time.monotonic() + seconds
        self.max_bytes, self.bytes_left = max_bytes, max_bytes + _HEAD_BYTES
        try:
            yield
        finally:
            self.deadline = None

    def seconds_left(self) -> float | None:
        """Return what is left of the deadline; TimeoutError if nothing is."""
        if self.deadline is None:
            return None
        seconds = self.deadline - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        return seconds

    def count(self, size: int) -> None:
        """Count bytes as they arrive, whatever they mean; CallError if they are too many."""
        if self.deadline is not None:
            self.bytes_left -= size
            if self.bytes_left < 0:
                raise self.too_large()

    def close_reader(self) -> None:
        """Close the reply that urllib3 leaves open if it does not understand its head."""
        if self.reader is not None:
            self.reader.close()
            self.reader = None

    def too_large(self) -> CallError:
        what = f"the reply is longer than {self.max_bytes / 1e6:g} MB."
        return CallError(what, kind="too_large", lasting=True)


_call = _Call()

# urllib3 logs URLs, and a query may hold a key: what our own calls log is dropped.
for _name in ("urllib3.connection", "urllib3.connectionpool"):
    logging.getLogger(_name).addFilter(lambda record: _call.deadline is None)


class Transport:
    """Sends POST requests to one URL, directly or through a proxy. Safe to use from several threads."""

    def __init__(self, url: str, *, connect_timeout: float, proxy: str | None = None) -> None:
        self._url, self._connect_timeout = url, connect_timeout
        parts = urlsplit(url)
        self._host = parts.hostname or ""
        self._through = ""
        options: dict[str, Any] = {"num_pools": 1, "maxsize": _MAX_IDLE, "retries": False}
        if parts.scheme == "https":
            options["ssl_context"] = ssl.create_default_context()
        if proxy is None:
            self._pools = urllib3.PoolManager(**options)
        else:
            self._through = f" through the proxy {urlsplit(proxy).hostname}"
            self._pools = _proxy_manager(proxy, options)
        self._pools.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}

    def close(self) -> None:
        """Close the idle connections."""
        self._pools.clear()

    def post(self, body: bytes, headers: Mapping[str, str], *, timeout: float, max_bytes: int) -> HttpReply:
        """Send one request and return the whole reply; CallError if there is none. Nothing is sent twice."""
        _check_not_link_local(self._host, self._host)
        limits = urllib3.Timeout(connect=min(timeout, self._connect_timeout), read=timeout)
        with _call.within(timeout, max_bytes):
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
            except (HTTPError, OSError) as error:
                _call.close_reader()
                raise self._failure(error, timeout) from None
            except (HTTPException, ValueError) as error:
                _call.close_reader()
                raise CallError(f"the reply cannot be read: {error}.", kind="bad_output") from None
            try:
                content = _content(response, max_bytes)
            except CallError as error:
                error.status = response.status
                raise
            except (HTTPError, HTTPException, OSError, ValueError) as error:
                if isinstance(error, ReadTimeoutError):
                    raise self._failure(error, timeout) from None
                raise CallError(f"the reply broke off: {_origin(error)}.", kind="connection") from None
            finally:
                response.close()  # a connection whose reply was read to its end is back in the pool by now
        return HttpReply(response.status, response.reason or "", response.headers, content)

    def _failure(self, error: Exception, timeout: float) -> CallError:
        """Return a failed attempt as a CallError: what happened, and whether another attempt may help."""
        origin = _origin(error)
        if isinstance(error, ConnectTimeoutError) and isinstance(origin, TimeoutError):
            return CallError(f"no connection{self._through} in time.", kind="timeout")
        if isinstance(error, ReadTimeoutError) or isinstance(origin, TimeoutError):
            return CallError(f"no whole reply within {timeout:g} s.", kind="timeout")
        if isinstance(origin, ssl.SSLCertVerificationError):
            what = f"its certificate is not trusted: {origin.verify_message}. Check the address."
            return CallError(what, kind="tls", lasting=True)
        # An encrypted connection that was cut off may work next time; one that was never made will not.
        if isinstance(origin, ssl.SSLError) and not isinstance(
            origin, ssl.SSLEOFError | ssl.SSLZeroReturnError
        ):
            what = (
                f"no encrypted connection: {origin.reason or origin}. Does it speak https, and on this port?"
            )
            return CallError(what, kind="tls", lasting=True)
        if isinstance(error, ProxyError):
            what = f"no connection{self._through}: {origin}. Check HTTP_PROXY, HTTPS_PROXY and NO_PROXY."
            return CallError(what, kind="connection")
        if isinstance(origin, socket.gaierror):
            lasting = origin.errno == socket.EAI_NONAME
            what = f"there is no host {self._host}: {origin.strerror}."
            return CallError(what, kind="connection", lasting=lasting)
        if isinstance(origin, ConnectionRefusedError):
            return CallError("nothing listens there. Is the server running?", kind="connection")
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


def _content(response: urllib3.BaseHTTPResponse, max_bytes: int) -> bytes:
    if (response.length_remaining or 0) > max_bytes:
        raise _call.too_large()
    content = b"".join(response.stream(_CHUNK_BYTES, decode_content=False))
    if len(content) > max_bytes:
        raise _call.too_large()
    return content


def _origin(error: BaseException) -> BaseException:
    """Return the error of the operating system, of ssl or of http.client that one of urllib3 is about."""
    inner = [error.__cause__, getattr(error, "original_error", None), *error.args]
    origin = next((each for each in inner if isinstance(each, BaseException)), None)
    return error if origin is None else _origin(origin)


class _TimedReader(io.RawIOBase):
    """The bytes of a connection; each read has no more time than is left of the call's deadline.

    urllib3's own timeout starts again with each read: a server that sends one byte per second would
    occupy its caller for ever.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._raw = connection.makefile("rb", buffering=0)

    def makefile(self, mode: str) -> io.BufferedReader:
        """Return the file that HTTPResponse asks its socket for."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._connection.settimeout(_call.seconds_left())
        size = self._raw.readinto(buffer)
        _call.count(size or 0)
        return size

    def close(self) -> None:
        self._raw.close()
        super().close()


class _TimedResponse(HTTPResponse):
    """A reply that is read within the deadline."""

    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        _call.reader = _TimedReader(sock)
        super().__init__(cast(socket.socket, _call.reader), *args, **options)

    def begin(self) -> None:
        super().begin()
        # 102 and 103 announce a reply that is still to come; http.client skips 100 only.
        while 101 < self.status < 200:
            self.headers = None  # type: ignore[assignment]  # else `begin` does nothing
            super().begin()

    def flush(self) -> None:
        # Python 3.13 calls it when a reply is garbage, and prints an error if the file is closed by then.
        if self.fp is None or not self.fp.closed:
            super().flush()


class _Timed:
    """What is added to both connection classes of urllib3; `HTTPConnection` is the other base class."""

    response_class: Any = _TimedResponse
    sock: Any

    def connect(self) -> None:
        super().connect()  # type: ignore[misc]
        # Checked on the open connection: the same name could lead elsewhere when it is looked up again.
        _check_not_link_local(str(self.sock.getpeername()[0]), self.host)  # type: ignore[attr-defined]

    def send(self, data: Any) -> None:
        if self.sock is not None:
            self.sock.settimeout(_call.seconds_left())
        super().send(data)  # type: ignore[misc]


class _HttpConnection(_Timed, HTTPConnection):
    pass


class _HttpsConnection(_Timed, HTTPSConnection):
    pass


class _HttpPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _HttpConnection


class _HttpsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _HttpsConnection


def _check_not_link_local(address: str, host: str) -> None:
    """CallError if an address is one at which clouds give their machines' credentials to any caller."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:  # a name
        return
    if any(form.is_link_local for form in _forms(parsed)):
        what = f"{host} is {address}, a link-local address. Such addresses are never called."
        raise CallError(what, kind="connection", lasting=True)


def _forms(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> Iterator[Any]:
    """Yield an address, and the IPv4 addresses that it stands for: mapped, translated (NAT64), tunnelled."""
    yield address
    if isinstance(address, ipaddress.IPv6Address):
        yield from filter(None, (address.ipv4_mapped, address.sixtofour, *(address.teredo or ())))
        if address in _NAT64 or int(address) >> 32 == 0:
            yield ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
