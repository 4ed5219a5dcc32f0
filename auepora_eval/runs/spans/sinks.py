"""Destinations for the spans of a run: a file, or an endpoint that the environment names."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from ...core.calls.policy import CallPolicy
from ...core.redaction import percent_decoded, without_secrets
from ...errors import DataError
from ...io.files.atomic import written
from ...io.jsonl import encode
from ...io.traces.spans import Span, otlp_document
from ...models.http import Endpoint, Hints
from ...models.keys import Secret

SCOPE = "auepora_eval"
_BATCH = 256  # spans
_TIMEOUTS = ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT")
_HINTS: Hints = {
    400: "Does the collector take OTLP as JSON (http/json)?",
    401: "Is the key in OTEL_EXPORTER_OTLP_HEADERS right?",
    403: "Is the key in OTEL_EXPORTER_OTLP_HEADERS right, and may it send traces?",
    404: "Check OTEL_EXPORTER_OTLP_ENDPOINT: /v1/traces is added to it (not to ..._TRACES_ENDPOINT).",
    415: "Does the collector take OTLP as JSON (http/json)?",
    "plain_http": "Use https, or send to a collector on this machine, and let it pass the spans on.",
}
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


class SpanSink(Protocol):
    """Takes spans; a block around it ends with all of them delivered."""

    def add(self, spans: Sequence[Span]) -> None: ...

    def __enter__(self) -> SpanSink: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class _Batched:
    """Sends spans as documents of some hundred, to a file or to an endpoint."""

    def __init__(self, resource: Mapping[str, Any] | None = None) -> None:
        self._resource = resource_of_environment() if resource is None else dict(resource)
        self._waiting: list[Span] = []
        self.sent = 0

    def add(self, spans: Sequence[Span]) -> None:
        self._waiting += spans
        if len(self._waiting) >= _BATCH:
            self.flush()

    def flush(self) -> None:
        """Send the waiting spans."""
        spans, self._waiting = self._waiting, []
        if spans:
            self._send(otlp_document(spans, self._resource, SCOPE, version("auepora-eval")))
            self.sent += len(spans)

    def _send(self, document: dict[str, Any]) -> None:
        raise NotImplementedError


class _TriedError(Exception):
    """A file can be written. It must not exist yet."""


class SpanFile(_Batched):
    """A file of OTLP documents, one per line, for collectors and `auepora import-traces`."""

    def __init__(self, path: str | Path, *, force: bool = False) -> None:
        super().__init__()
        self._path, self._force = Path(path), force
        self._stack = ExitStack()

    def __str__(self) -> str:
        return f"in {self._path}"

    def check_writable(self) -> None:
        """Raise StorageError if the file could not be written; nothing is left behind."""
        with suppress(_TriedError), written(self._path, force=self._force):
            raise _TriedError

    def __enter__(self) -> SpanFile:
        self._file = self._stack.enter_context(written(self._path, force=self._force))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.flush()
        self._stack.__exit__(kind, error, trace)

    def _send(self, document: dict[str, Any]) -> None:
        self._file.write(encode(document) + b"\n")


class SpanEndpoint(_Batched):
    """The endpoint in OTEL_EXPORTER_OTLP_ENDPOINT, by OTLP over HTTP, as JSON.

    Nothing is sent without it. A key goes into OTEL_EXPORTER_OTLP_HEADERS, as `authorization=Bearer%20...`.
    OTEL_EXPORTER_OTLP_TIMEOUT is the timeout of an attempt in milliseconds.
    """

    def __init__(self, *, timeout: float | None = None, retries: int = 2) -> None:
        super().__init__()
        self._policy = CallPolicy(retries=retries)
        self._endpoint = Endpoint(
            traces_url(),
            api_key=_bearer(),
            timeout=timeout or _timeout(),
            private=True,
            hints=_HINTS,
        )

    def __str__(self) -> str:
        return f"sent to {self._endpoint.name}"

    def __enter__(self) -> SpanEndpoint:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self.flush()
        finally:
            self._endpoint.close()

    def _send(self, document: dict[str, Any]) -> None:
        self._policy.retried(lambda: self._endpoint.post(document, lambda body: None))


def traces_url() -> str:
    """Return the URL for traces from the environment; raise DataError if there is none."""
    name = next((name for name in _ENDPOINTS if os.environ.get(name, "").strip()), None)
    if name is None:
        raise DataError(
            "--otel",
            "the environment names no endpoint, and nothing is sent without one.",
            fix=f"Set {_ENDPOINTS[1]}, such as http://127.0.0.1:4318, or write a file with --spans.",
        )
    protocol = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or os.environ.get(
        "OTEL_EXPORTER_OTLP_PROTOCOL"
    )
    if protocol == "grpc":
        raise DataError(
            "OTEL_EXPORTER_OTLP_PROTOCOL",
            "spans are sent as JSON over HTTP, not by gRPC.",
            fix="Name the collector's HTTP port, usually 4318, and set http/json.",
        )
    url = os.environ[name].strip()
    return url if name == _ENDPOINTS[0] else url.rstrip("/") + "/v1/traces"


def _timeout() -> float:
    """Return the timeout of an attempt in seconds; the environment has it in milliseconds."""
    name = next((name for name in _TIMEOUTS if os.environ.get(name, "").strip()), None)
    if name is None:
        return 10.0
    text = os.environ[name].strip()
    if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) == 0:
        raise DataError(name, "is not a number of milliseconds.", fix="Write, for example, 10000.")
    return int(text) / 1000


def _bearer() -> Secret | None:
    """Return the key in the headers of the environment; a header other than authorization is an error."""
    name = "OTEL_EXPORTER_OTLP_HEADERS"
    text = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_HEADERS") or os.environ.get(name, "")
    headers = dict(_named_pairs(text))
    value = next((headers.pop(key) for key in list(headers) if key.lower() == "authorization"), None)
    kind, _, key = (value or "").partition(" ")
    if headers or (value is not None and kind.lower() != "bearer"):
        raise DataError(
            name,
            "only a header authorization=Bearer%20KEY is sent.",
            fix="Send to a collector on this machine, and let it add what else is needed.",
        )
    return Secret(key.strip()) if value is not None else None


def resource_of_environment() -> dict[str, str]:
    """Return the sender: OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME, as OpenTelemetry reads them."""
    attributes = dict(_named_pairs(os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")))
    service = os.environ.get("OTEL_SERVICE_NAME") or attributes.get("service.name") or "auepora"
    attributes["service.name"] = service
    return {name: without_secrets(value) for name, value in attributes.items()}


def _named_pairs(text: str) -> list[tuple[str, str]]:
    """Return `a=1,b=2%2C3` as pairs."""
    pairs = (part.partition("=") for part in text.split(",") if "=" in part)
    return [
        (name.strip(), percent_decoded(value.strip(), "replace")) for name, _, value in pairs if name.strip()
    ]
