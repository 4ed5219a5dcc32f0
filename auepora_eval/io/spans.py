"""Spans, and the files in which tracing tools hand them out.

- OTLP JSON: a document, or one per line, as OpenTelemetry's collector writes it. One document is
  `{"resourceSpans": [{"resource", "scopeSpans": [{"scope", "spans": [...]}]}]}`. Attributes are lists of
  `{"key", "value": {"stringValue": ...}}`, whole numbers are texts, times count nanoseconds since 1970.
- One span per line (or a JSON list, or a Parquet file), as Phoenix and OpenTelemetry's SDK write them:
  `context.trace_id` or `{"context": {"trace_id": ...}}`, attributes nested or as columns
  (`attributes.input.value`).
- Traces of MLflow.

Attributes come out flat, whatever form they had: `retrieval.documents.0.document.id`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ..core.types import EvaluationRun, EvaluationSample, SampleScore, SystemOutputs, known_score
from ..errors import DataError
from ..read.text import parse_document, parse_line, parsed
from .documents import read_content, read_document
from .files import written
from .jsonl import BYTE_ORDER_MARK, encode, opened, placed_lines
from .outputs import MISSING_PREDICTION
from .parquet import parquet_rows

Attributes = dict[str, Any]  # by their flat names; values are texts, numbers, booleans and lists of them
Record = Mapping[str, Any]  # an object of a file, as its tool wrote it


@dataclass
class SpanEvent:
    """Something that happened at one moment of a span."""

    name: str
    attributes: Attributes = field(default_factory=dict)


@dataclass
class Span:
    """A piece of work: when it began and ended, within which other one, and what is known of it."""

    trace_id: str  # 32 hexadecimal digits
    span_id: str  # 16
    name: str
    start_ns: int | None = None
    end_ns: int | None = None
    parent_id: str | None = None
    attributes: Attributes = field(default_factory=dict)
    events: list[SpanEvent] = field(default_factory=list)
    error: str | None = None  # what went wrong; None if nothing is said to have

    @property
    def seconds(self) -> float | None:
        """How long it took; None where that is not known."""
        if self.start_ns is None or self.end_ns is None or self.end_ns < self.start_ns:
            return None
        return (self.end_ns - self.start_ns) / 1e9


Call = tuple[EvaluationSample, SystemOutputs, float | None]  # and when it was stored, if it was called


def write_spans(path: Path, run: EvaluationRun, calls: Iterable[Call], *, force: bool = False) -> int:
    """Write the traces of a stored run as OTLP JSON, one line per sample; return the number of spans.

    A trace is `invoke_workflow SYSTEM` and, if the output has their times, its `retrieval` and its `chat`.
    Each score is an event `gen_ai.evaluation.result` of the first.
    """
    total = 0
    resource = {"attributes": _pairs({"service.name": "auepora"})}
    with written(path, force=force, private=True) as file:
        for place, (sample, output, at) in enumerate(calls):
            if output.error is not None and output.error.type == MISSING_PREDICTION:
                continue  # it was never called
            spans = _trace(run, place, sample, output, at)
            scoped = {"scope": {"name": "auepora_eval"}, "spans": spans}
            file.write(encode({"resourceSpans": [{"resource": resource, "scopeSpans": [scoped]}]}) + b"\n")
            total += len(spans)
    return total


def _trace(
    run: EvaluationRun, place: int, sample: EvaluationSample, output: SystemOutputs, at: float | None
) -> list[dict[str, Any]]:
    stages = {name: output.timings[name] for name in ("retrieval", "generation") if name in output.timings}
    failed = output.error.seconds if output.error is not None else None
    seconds = output.timings.get("end_to_end", failed or sum(stages.values()))
    start = datetime.fromisoformat(run.started_at).timestamp() if at is None else at - seconds
    end = start + seconds
    documents = _document_attributes(output)
    attributes = {
        "openinference.span.kind": "CHAIN",
        "gen_ai.operation.name": "invoke_workflow",
        "auepora.evaluation.id": run.evaluation_id,
        "auepora.sample.id": sample.sample_id,
        "input.value": sample.query,
        "output.value": output.response.text if output.error is None else None,
        "error.type": output.error.type if output.error is not None else None,
        **({} if "retrieval" in stages else documents),
    }
    ids = (run.evaluation_id, run.started_at, sample.sample_id)
    root = _span_record(ids, f"invoke_workflow {run.system_name}", start, end, attributes)
    root["events"] = [
        {"timeUnixNano": _ns(end), "name": "gen_ai.evaluation.result", "attributes": _pairs(facts)}
        for result in run.results
        if len(result.scores)
        for facts in [_score_attributes(result.name, result.scores[place])]
    ]
    if output.error is not None:
        root["status"] = {"code": 2, "message": output.error.message}
    spans = [root]
    for stage, length in stages.items():
        stop = min(end, start + length)
        if stage == "retrieval":
            facts = {
                "openinference.span.kind": "RETRIEVER",
                "gen_ai.operation.name": "retrieval",
                **documents,
            }
        else:
            facts = _generated(output)
        spans.append(_span_record(ids, str(facts["gen_ai.operation.name"]), start, stop, facts, root))
        start = stop
    return spans


def _span_record(
    ids: Sequence[str],
    name: str,
    start: float,
    end: float,
    attributes: Attributes,
    parent: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    # The ids are the same whenever the same run is written.
    return {
        "traceId": _digest(16, *ids),
        "spanId": _digest(8, *ids, name),
        **({} if parent is None else {"parentSpanId": parent["spanId"]}),
        "name": name,
        "kind": 1,  # internal
        "startTimeUnixNano": _ns(start),
        "endTimeUnixNano": _ns(end),
        "attributes": _pairs(attributes),
    }


def _document_attributes(output: SystemOutputs) -> Attributes:
    attributes: Attributes = {}
    for place, hit in enumerate(output.retrieved):
        score = known_score(hit)
        facts = {
            "id": hit.doc.doc_id,
            "content": hit.doc.text,
            "score": None if score is None else float(score),
        }
        attributes |= {f"retrieval.documents.{place}.document.{name}": value for name, value in facts.items()}
    return attributes


def _generated(output: SystemOutputs) -> Attributes:
    known = output.response.metadata | output.extra
    model = known.get("model")
    counts = {"prompt": known.get("input_tokens"), "completion": known.get("output_tokens")}
    return {
        "openinference.span.kind": "LLM",
        "gen_ai.operation.name": "chat",
        "llm.model_name": model if isinstance(model, str) else None,
        **{f"llm.token_count.{name}": count for name, count in counts.items() if type(count) is int},
    }


def _score_attributes(metric: str, score: SampleScore) -> Attributes:
    attributes = {"gen_ai.evaluation.name": metric, "gen_ai.evaluation.explanation": score.reason or None}
    if score.value is not None:
        return attributes | {"gen_ai.evaluation.score.value": float(score.value)}
    return attributes | {"gen_ai.evaluation.score.label": "failed" if score.failed else "skipped"}


def _digest(size: int, *parts: str) -> str:
    return blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=size).hexdigest()


def _ns(seconds: float) -> str:
    return str(int(seconds * 1e9))


def _pairs(attributes: Attributes) -> list[dict[str, Any]]:
    kinds = {int: "intValue", float: "doubleValue"}
    return [
        {"key": key, "value": {kinds.get(type(value), "stringValue"): value}}
        for key, value in attributes.items()
        if value is not None
    ]


# Spans from files.


def otlp_spans(document: Record) -> Iterator[tuple[str, Record]]:
    """Yield (place, span) of a document, with plain `attributes`; what is not an object is skipped."""
    for n, resource in _objects(document.get("resourceSpans")):
        for m, scoped in _objects(resource.get("scopeSpans")):
            for k, span in _objects(scoped.get("spans")):
                place = f"$.resourceSpans[{n}].scopeSpans[{m}].spans[{k}]"
                events = [_unwrapped_span(event) for _, event in _objects(span.get("events"))]
                yield place, {**_unwrapped_span(span), "events": events}


def _unwrapped_span(record: Record) -> Record:
    """Return a span or an event with plain attributes."""
    return {**record, "attributes": _unwrapped_pairs(record.get("attributes"))}


def _objects(value: object) -> Iterator[tuple[int, Record]]:
    if isinstance(value, list):
        yield from ((place, each) for place, each in enumerate(value) if isinstance(each, dict))


def _unwrapped_pairs(pairs: object) -> Record:
    if isinstance(pairs, dict):  # some tools write attributes as plain objects
        return pairs
    return {
        pair["key"]: _unwrapped(pair.get("value"))
        for _, pair in _objects(pairs)
        if isinstance(pair.get("key"), str)
    }


def _unwrapped(value: Any) -> Any:
    if not isinstance(value, dict):
        return None
    kind, inner = next(iter(value.items()), ("", None))
    if kind == "intValue":
        try:
            return int(str(inner)[:40])
        except ValueError:
            return None
    if kind == "arrayValue":
        values = inner.get("values") if isinstance(inner, dict) else None
        return [_unwrapped(each) for each in values] if isinstance(values, list) else []
    if kind == "kvlistValue":
        return _unwrapped_pairs(inner.get("values") if isinstance(inner, dict) else None)
    return inner if kind in ("stringValue", "boolValue", "doubleValue") else None


_MAX_LINE = 64_000_000  # a collector writes a batch of spans a line
_FIX = "Export spans as OTLP JSON, or one a line as Phoenix does."
# Documents of their own, in whichever form: kept as one text.
_VALUES = (
    *("input.value", "output.value", "gen_ai.input.messages", "gen_ai.output.messages"),
    "gen_ai.retrieval.documents",
)
# Large attributes that no metric reads.
_NOT_READ = ("embedding.", "llm.tools", "llm.invocation_parameters", "exception.stacktrace")


@dataclass
class SpanDump:
    """The spans of a file, and what in it was none: how much, for which reason, and where the first was.

    A file in which nothing can be read is a DataError that says why its first line cannot.
    """

    path: Path
    left_out: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Span]:
        refusals: list[DataError] = []
        could_be_read = False
        for where, record in _records(self.path):
            if isinstance(record, DataError):
                self._leave_out(where, "no JSON object")
                refusals = refusals or [record]
                continue
            for place, each in _spans_in(record):
                could_be_read = True
                span = _span(each)
                if span is None:
                    self._leave_out(f"{where}: {place}" if place else where, "no trace id or span id")
                else:
                    yield span
        if refusals and not could_be_read:
            raise refusals[0]

    def _leave_out(self, where: str, reason: str) -> None:
        self.left_out[reason] += 1
        self.first.setdefault(reason, where)


def _spans_in(record: Record) -> Iterable[tuple[str, Record]]:
    """Return (place, span) of a document: OTLP and MLflow have several spans in one."""
    if isinstance(record.get("resourceSpans"), list):
        return otlp_spans(record)
    return mlflow_spans(record) if is_mlflow(record) else [("", record)]


def _records(path: Path) -> Iterator[tuple[str, Record | DataError]]:
    """(place, record) of a file; where there is none, what is wrong."""
    with opened(path) as file:
        start = file.read(4096).removeprefix(BYTE_ORDER_MARK).lstrip()
    if start[:4] == b"PAR1":
        for number, row in enumerate(parquet_rows(path)[0], start=1):
            yield f"{path.name}: row {number}", row
    elif start[:1] == b"[" or start.rstrip() == b"{" or start[:2] in (b"{\n", b"{\r"):
        yield from _whole(path)
    else:
        yield from _lines(path)


def _lines(path: Path) -> Iterator[tuple[str, Record | DataError]]:
    for where, line in placed_lines(path, _MAX_LINE):
        try:
            yield where, parse_line(line, where)
        except DataError as error:
            yield where, error


def _whole(path: Path) -> Iterator[tuple[str, Record | DataError]]:
    """Yield the records of a file that is one document, OTLP or a list of spans, or several in a row."""
    try:
        document = read_document(path)
    except DataError:
        # The console exporter of OpenTelemetry writes indented objects one after the other.
        if len(parts := _in_a_row(read_content(path))) < 2:
            raise
        document = [parse_document(part, f"{path.name}: span {n}") for n, part in enumerate(parts, start=1)]
    records = document if isinstance(document, list) else [document]
    for number, record in enumerate(records):
        where = f"{path.name}: $[{number}]" if isinstance(document, list) else path.name
        yield where, record if isinstance(record, dict) else DataError(where, "this is not a span.", fix=_FIX)


def _in_a_row(content: bytes) -> list[bytes]:
    """Return the objects of a text in which each starts and ends with a brace on a line of its own."""
    return re.findall(rb"^\{\r?$.*?^\}\r?$", content, re.MULTILINE | re.DOTALL)


def _ids(record: Record) -> tuple[str, str] | None:
    context = record.get("context")
    # Phoenix has the ids under "context", OTLP at the top, tables in columns.
    places = (context if isinstance(context, dict) else {}, record)
    ids = []
    for names in (("trace_id", "traceId", "context.trace_id"), ("span_id", "spanId", "context.span_id")):
        values = (place.get(name) for place in places for name in names)
        ids.append(next((_text_id(value) for value in values if value), None))
    return (ids[0], ids[1]) if ids[0] and ids[1] else None


def _text_id(value: Any) -> str | None:
    return value.removeprefix("0x")[:128] if isinstance(value, str) else None


def _span(record: Record) -> Span | None:
    ids = _ids(record)
    if ids is None:
        return None
    parent = record.get("parent_id") or record.get("parentSpanId") or record.get("parent_span_id")
    attributes: Attributes = {}
    _flatten(record.get("attributes"), "", attributes)
    for name, value in record.items():  # columns of a table
        if name.startswith("attributes."):
            _flatten(value, name.removeprefix("attributes."), attributes)
    kind = record.get("span_kind")  # Phoenix has it as a field of its own
    if isinstance(kind, str) and "openinference.span.kind" not in attributes:
        attributes["openinference.span.kind"] = kind
    called = record.get("name")
    return Span(
        *ids,
        name=called if isinstance(called, str) else "",
        start_ns=_time(record, "start_time", "startTimeUnixNano"),
        end_ns=_time(record, "end_time", "endTimeUnixNano"),
        parent_id=_text_id(parent),
        attributes=attributes,
        events=list(_events(record.get("events"))),
        error=_error(record),
    )


def _events(events: Any) -> Iterator[SpanEvent]:
    for _, record in _objects(events):
        if isinstance(record.get("name"), str):
            attributes: Attributes = {}
            _flatten(record.get("attributes"), "", attributes)
            yield SpanEvent(record["name"], attributes)


def _flatten(value: Any, name: str, into: Attributes) -> None:
    """Names joined by dots: {"a": [{"b": 1}]} and {"a.0.b": 1} are the same."""
    if value is None or name.startswith(_NOT_READ):
        return
    if name in _VALUES and isinstance(value, dict | list):
        into[name] = encode(value).decode()  # as most tools write it: the text of a document
    elif isinstance(value, dict):
        for key, inner in value.items():
            _flatten(inner, f"{name}.{key}" if name else str(key), into)
    elif not name:
        return  # attributes that are not an object
    elif isinstance(value, list) and any(isinstance(inner, dict | list) for inner in value):
        for place, inner in enumerate(value):
            _flatten(inner, f"{name}.{place}", into)
    else:
        into[name] = value


def _time(record: Record, *names: str) -> int | None:
    """Return a time in nanoseconds since 1970; None if the record has none that can be read."""
    value = next((record[name] for name in names if record.get(name)), None)
    if isinstance(value, datetime):  # of a Parquet file
        value = value.replace(tzinfo=value.tzinfo or UTC)
        return int(value.timestamp() * 1e6) * 1000
    if isinstance(value, str) and not value.isdigit():
        try:
            parsed = datetime.fromisoformat(value)
        except ValueError:
            return None
        return int(parsed.replace(tzinfo=parsed.tzinfo or UTC).timestamp() * 1e6) * 1000
    try:
        number = int(value)  # type: ignore[arg-type]  # whatever it is, the errors are caught
    except (TypeError, ValueError, OverflowError):
        return None
    # Nanoseconds, microseconds, milliseconds or seconds since 1970: a time of our days is in one of them.
    scaled = (number * factor for factor in (1, 1_000, 1_000_000, 1_000_000_000))
    return next((time for time in scaled if 10**17 <= time < 10**19), None)


def _error(record: Record) -> str | None:
    status = record.get("status")
    status = status if isinstance(status, dict) else {}
    code = record.get("status_code") or status.get("status_code") or status.get("code")
    if code not in ("ERROR", "STATUS_CODE_ERROR", 2):
        return None
    message = record.get("status_message") or status.get("message") or status.get("description")
    return message[:2000] if isinstance(message, str) else ""


# Traces of MLflow as spans with the attributes of OpenInference.

_KINDS = {"CHAT_MODEL": "LLM"}  # the others have the same names
_SESSION = "mlflow.trace.session"


def is_mlflow(record: Mapping[str, Any]) -> bool:
    """Return whether a document is a trace of MLflow."""
    data = record.get("data")
    spans = data.get("spans") if isinstance(data, dict) else None
    return isinstance(record.get("info"), dict) and isinstance(spans, list)


def mlflow_spans(document: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (place, record) for each span of a trace."""
    info = document["info"]
    about = info.get("trace_metadata")
    session = about.get(_SESSION) if isinstance(about, dict) else None
    feedback = list(_feedback(info.get("assessments")))
    for number, span in enumerate(document["data"]["spans"]):
        if not isinstance(span, dict):
            continue
        attributes = span.get("attributes")
        known = _attributes(attributes if isinstance(attributes, dict) else {}, str(span.get("name") or ""))
        yield (
            f"$.data.spans[{number}]",
            {
                "trace_id": info.get("trace_id") or span.get("trace_id"),
                "span_id": span.get("span_id"),
                "parent_id": span.get("parent_span_id"),
                "name": span.get("name"),
                "startTimeUnixNano": span.get("start_time_unix_nano"),
                "endTimeUnixNano": span.get("end_time_unix_nano"),
                "status": span.get("status"),
                "events": feedback if number == 0 else [],
                "attributes": known if session is None else {**known, "session.id": session},
            },
        )


def _feedback(assessments: Any) -> Iterator[dict[str, Any]]:
    """Yield the feedback of people on a trace as events of evaluations; that of judges is left out."""
    for one in assessments if isinstance(assessments, list) else ():
        said, source = (one.get(name) if isinstance(one, dict) else None for name in ("feedback", "source"))
        value = said.get("value") if isinstance(said, dict) else None
        is_human = not isinstance(source, dict) or source.get("source_type") == "HUMAN"
        if is_human and isinstance(value, bool | int | float):
            attributes = {
                "gen_ai.evaluation.name": f"feedback {one.get('assessment_name')}",
                "gen_ai.evaluation.score.value": float(value),
            }
            yield {"name": "gen_ai.evaluation.result", "attributes": attributes}


def _attributes(own: Mapping[str, Any], name: str) -> dict[str, Any]:
    kind = _parsed(own.get("mlflow.spanType"))
    kind = _KINDS.get(kind, kind) if isinstance(kind, str) else ""
    attributes: dict[str, Any] = {"openinference.span.kind": kind}
    for side, attribute in (("input", "mlflow.spanInputs"), ("output", "mlflow.spanOutputs")):
        value = _parsed(own.get(attribute))
        # JSON text stays JSON: the text in it is found as in any other tool's attributes.
        is_text = isinstance(value, str)
        attributes[f"{side}.value"] = value if is_text else own.get(attribute)
        attributes[f"{side}.mime_type"] = "text/plain" if is_text else "application/json"
        if side == "output" and kind == "RETRIEVER":
            attributes["retrieval.documents"] = own.get(attribute)
        if side == "input" and kind == "TOOL":
            attributes |= {"tool.name": name, "tool.parameters": own.get(attribute)}
    usage = _parsed(own.get("mlflow.chat.tokenUsage"))
    if isinstance(usage, dict):
        attributes["llm.token_count.prompt"] = usage.get("input_tokens")
        attributes["llm.token_count.completion"] = usage.get("output_tokens")
    return {key: value for key, value in attributes.items() if value not in (None, "")}


def _parsed(value: Any) -> Any:
    """Return the JSON that a text holds; the value itself if it holds none."""
    return value if (found := parsed(value)) is None else found
