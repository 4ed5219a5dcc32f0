"""--spans and --otel: a run as OpenTelemetry spans, in a file or sent to an endpoint."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import echo

if TYPE_CHECKING:
    from ..runs.span_sinks import SpanSink
    from ..runs.spans import Moments
    from ..runs.storage import EvaluationResultsStorage


def add_span_flags(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("OpenTelemetry")
    group.add_argument("--spans", metavar="FILE", help="write the run's spans there, as OTLP JSON lines")
    group.add_argument(
        "--spans-content", action="store_true", help="put questions, answers and documents into the spans"
    )
    group.add_argument(
        "--otel", action="store_true", help="send the run's spans to OTEL_EXPORTER_OTLP_ENDPOINT (OTLP/HTTP)"
    )


def span_sinks(args: Namespace) -> list[SpanSink]:
    """Where the spans shall go; refused before the run if they could not."""
    from ..runs.span_sinks import SpanEndpoint, SpanFile

    sinks: list[SpanSink] = []
    if args.spans:
        file = SpanFile(args.spans, force=args.force)
        file.refuse_unwritable()
        sinks.append(file)
    if args.otel:
        sinks.append(SpanEndpoint())
    return sinks


def span_words(settings: Mapping[str, Any]) -> str:
    """The flags as they were given, for the line that resumes: where spans go is not stored with a run."""
    words = [f" --spans {shlex.quote(settings['spans'])}"] if settings.get("spans") else []
    words += [f" --{name.replace('_', '-')}" for name in ("spans_content", "otel") if settings.get(name)]
    return "".join(words)


def deliver_spans(
    args: Namespace,
    sinks: list[SpanSink],
    storage: EvaluationResultsStorage,
    evaluation_id: str,
    moments: Moments | None = None,
) -> None:
    """Hand the spans of a run, which is stored by now, to each sink; one that fails keeps none from another.

    Raises the first error, after it is said how to deliver them later.
    """
    from ..errors import CallError, StorageError
    from ..runs.span_sinks import SpanEndpoint
    from ..runs.spans import export_spans

    errors: list[CallError | StorageError] = []
    undelivered: dict[str, Any] = {"spans_content": args.spans_content}
    for sink in sinks:
        try:
            with sink:
                content = args.spans_content or None  # else as the environment says
                count = export_spans(storage, evaluation_id, sink, moments=moments, content=content)
        except (CallError, StorageError) as error:
            errors.append(error)
            undelivered |= {"otel": True} if isinstance(sink, SpanEndpoint) else {"spans": args.spans}
        else:
            echo.note(f"spans: {count:,} {sink}")
    if errors:
        _say_how_to_deliver(str(storage.results_directory), evaluation_id, undelivered)
        raise errors[0]


def _say_how_to_deliver(out: str, evaluation_id: str, undelivered: Mapping[str, Any]) -> None:
    from .common import out_flag

    words = f"auepora show {shlex.quote(evaluation_id)}{out_flag(out)}{span_words(undelivered)}"
    echo.note(f"The run is stored. Send its spans later: {words}")
