"""Where the spans of a run go: a file, an endpoint that the environment names, OpenTelemetry's SDK."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from ..core.redaction import without_secrets
from ..errors import DataError, MissingDependencyError
from ..io.atomic import written
from ..io.jsonl import encode
from ..io.otlp import CLIENT, Span, otlp_document
from ..judges.http_calls import Endpoint
from ..judges.retries import Patience
from ..judges.secrets import Secret
from ..judges.servers import Hints

SCOPE = "auepora_eval"
_TOGETHER = 256  # spans
_TIMEOUTS = ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT")
_OF_A_COLLECTOR: Hints = {
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


class _InPieces:
    """What file and endpoint have in common: spans are handed on as documents of some hundred."""

    def __init__(self, resource: Mapping[str, Any] | None = None) -> None:
        self._resource = resource_of_environment() if resource is None else dict(resource)
        self._waiting: list[Span] = []
        self.sent = 0

    def add(self, spans: Sequence[Span]) -> None:
        self._waiting += spans
        if len(self._waiting) >= _TOGETHER:
            self.flush()

    def flush(self) -> None:
        """Hand on what waits."""
        spans, self._waiting = self._waiting, []
        if spans:
            self._send(otlp_document(spans, self._resource, SCOPE, version("auepora-eval")))
            self.sent += len(spans)

    def _send(self, document: dict[str, Any]) -> None:
        raise NotImplementedError


class _TriedError(Exception):
    """A file could be written; it is not to be there yet."""


class SpanFile(_InPieces):
    """A file of OTLP documents, one a line, as collectors read them; `auepora import-traces` does too."""

    def __init__(self, path: str | Path, *, force: bool = False) -> None:
        super().__init__()
        self._path, self._force = Path(path), force
        self._stack = ExitStack()

    def __str__(self) -> str:
        return f"in {self._path}"

    def refuse_unwritable(self) -> None:
        """StorageError if it could not be written; nothing is left behind either way."""
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


class SpanEndpoint(_InPieces):
    """The endpoint that OTEL_EXPORTER_OTLP_ENDPOINT names, by OTLP over HTTP, as JSON.

    Nothing is sent unless it is named. A key goes into OTEL_EXPORTER_OTLP_HEADERS, as
    `authorization=Bearer%20...`; OTEL_EXPORTER_OTLP_TIMEOUT says how many milliseconds an attempt has.
    """

    def __init__(self, *, timeout: float | None = None, retries: int = 2) -> None:
        super().__init__()
        self._endpoint = Endpoint(
            traces_url(),
            api_key=_bearer(),
            patience=Patience(timeout=timeout or _timeout(), retries=retries),
            private=True,
            hints=_OF_A_COLLECTOR,
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
        self._endpoint.post(document, lambda body: None)


class SdkSpans:
    """A span processor of OpenTelemetry's SDK, for programs that have one (extra `otel`).

    with SdkSpans(BatchSpanProcessor(exporter)) as sink:
        export_spans(storage, "nightly", sink)
    """

    def __init__(self, processor: Any) -> None:
        try:
            from opentelemetry.sdk.resources import Resource
        except ImportError as error:
            raise MissingDependencyError(
                "spans for OpenTelemetry's SDK need opentelemetry-sdk: pip install 'auepora-eval[otel]'"
            ) from error
        self._processor = processor
        self._resource = Resource.create(resource_of_environment())

    def __enter__(self) -> SdkSpans:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._processor.force_flush()

    def add(self, spans: Sequence[Span]) -> None:
        for span in spans:
            self._processor.on_end(self._readable(span))

    def _readable(self, span: Span) -> Any:
        from opentelemetry.sdk.trace import Event, ReadableSpan
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope
        from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

        def context(span_id: str) -> Any:
            flags = TraceFlags(TraceFlags.SAMPLED)
            return SpanContext(int(span.trace_id, 16), int(span_id, 16), is_remote=False, trace_flags=flags)

        return ReadableSpan(
            name=span.name,
            context=context(span.span_id),
            parent=context(span.parent_id) if span.parent_id else None,
            resource=self._resource,
            attributes=_flat(span.attributes),
            events=[Event(event.name, _flat(event.attributes), event.time_ns) for event in span.events],
            kind=SpanKind.CLIENT if span.kind == CLIENT else SpanKind.INTERNAL,
            instrumentation_scope=InstrumentationScope(SCOPE, version("auepora-eval")),
            status=Status(StatusCode.ERROR, span.error) if span.error is not None else Status(),
            start_time=span.start_ns,
            end_time=span.end_ns,
        )


def _flat(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes as the SDK takes them: what has parts is JSON text, as the conventions allow."""
    return {
        name: encode(value).decode() if isinstance(value, list | dict) else value
        for name, value in attributes.items()
        if value is not None
    }


def traces_url() -> str:
    """The URL that the environment names for traces; DataError if it names none."""
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
    """The seconds that the environment allows for an attempt, in milliseconds as the specification has it."""
    name = next((name for name in _TIMEOUTS if os.environ.get(name, "").strip()), None)
    if name is None:
        return 10.0
    text = os.environ[name].strip()
    if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) == 0:
        raise DataError(name, "is not a number of milliseconds.", fix="Write, for example, 10000.")
    return int(text) / 1000


def _bearer() -> Secret | None:
    """The key in the headers that the environment names; another header than authorization is refused."""
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


def resource_of_environment() -> dict[str, Any]:
    """Who sends: OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME, as OpenTelemetry's own tools read them."""
    named = dict(_named_pairs(os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")))
    service = os.environ.get("OTEL_SERVICE_NAME") or named.get("service.name") or "auepora"
    told = {**named, "service.name": service}
    return {name: without_secrets(value) for name, value in told.items()}


def _named_pairs(text: str) -> list[tuple[str, str]]:
    """`a=1,b=2%2C3` as pairs."""
    pairs = (part.partition("=") for part in text.split(",") if "=" in part)
    return [(name.strip(), _decoded(value.strip())) for name, _, value in pairs if name.strip()]


def _decoded(text: str) -> str:
    raw = re.sub(
        rb"%([0-9A-Fa-f]{2})", lambda match: bytes([int(match[1], 16)]), text.encode("utf-8", "replace")
    )
    return raw.decode("utf-8", "replace")
