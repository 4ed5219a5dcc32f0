"""--otel: what the environment says about a collector is heeded, and what it refuses is told in its words."""

from __future__ import annotations

import time

import pytest

from auepora_eval.errors import CallError, DataError
from auepora_eval.io.traces.spans import Span
from auepora_eval.runs.spans.sinks import SpanEndpoint
from tests.servers import chat_server

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
SPAN = Span("ab" * 16, "cd" * 8, "call", 1, 2)


@pytest.mark.parametrize("name", ["OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT"])
def test_the_time_for_a_delivery(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "60000")
    monkeypatch.setenv(name, "150")
    with chat_server(["hung"]) as server:
        monkeypatch.setenv(ENDPOINT, server.url)
        began = time.monotonic()
        with (
            pytest.raises(CallError, match=r"no whole reply within 0\.15 s"),
            SpanEndpoint(retries=0) as sink,
        ):
            sink.add([SPAN])
        assert time.monotonic() - began < 5


@pytest.mark.parametrize("value", ["soon", "0", "-5", "1e3", "10s"])
def test_a_time_that_is_none_is_refused_before_the_run(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", value)
    with pytest.raises(DataError, match="OTEL_EXPORTER_OTLP_TIMEOUT: is not a number of milliseconds"):
        SpanEndpoint()


@pytest.mark.parametrize(
    ("mode", "words"), [("400 schema", "Does the collector take OTLP as JSON"), ("401", "OTLP_HEADERS right")]
)
def test_a_collector_that_refuses(mode: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with chat_server([mode]) as server:
        monkeypatch.setenv(ENDPOINT, server.url)
        with pytest.raises(CallError, match=words) as refused, SpanEndpoint() as sink:
            sink.add([SPAN])
    assert "model" not in str(refused.value)


def test_the_hint_for_a_plain_address_names_no_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENDPOINT, "http://collector.example:4318")
    with pytest.raises(DataError, match="unencrypted") as refused:
        SpanEndpoint()
    assert "plain_http" not in str(refused.value)
    assert "a collector on this machine" in str(refused.value)
