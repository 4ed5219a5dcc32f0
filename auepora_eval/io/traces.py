"""Production traces as samples and outputs: one trace is one question with what became of it.

Two vocabularies are understood, also side by side: OpenInference (`openinference.span.kind`, `input.value`,
`retrieval.documents.N.document.*`, `llm.token_count.*`) and OpenTelemetry's `gen_ai.*`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.types import (
    ANSWER_MISSING,
    Document,
    EvaluationSample,
    Failure,
    Response,
    RetrievedDocument,
    SystemOutputs,
    unscored,
)
from ..errors import DataError
from ..read.messages import ANSWERING, ASKING, content_text, text_in
from ..read.names import ANSWER_PARTS, DOCUMENT_TEXT, QUERY_PARAMETERS
from ..read.outputs import text_id
from ..read.text import parsed
from .spans import Attributes, Span

_MAX_ITEMS = 1_000  # of a list of documents or messages
_MAX_SPANS = 10_000  # of one trace
# The operations of gen_ai, by the kinds of OpenInference.
_KINDS = {
    "retrieval": "RETRIEVER",
    "chat": "LLM",
    "text_completion": "LLM",
    "generate_content": "LLM",
    "execute_tool": "TOOL",
}
# Keys under which frameworks have the text, the most specific first.
_QUESTIONS = (*QUERY_PARAMETERS, "user_query", "content")
_DETAILS = "gen_ai.client.inference.operation.details"
_EVALUATION = "gen_ai.evaluation.result"
_PEOPLE = re.compile(r"(?i)feedback|thumb|rating|user|human")
_ASKING_EVENTS = ("gen_ai.user.message", "gen_ai.content.prompt")
_ANSWERING_EVENTS = ("gen_ai.choice", "gen_ai.content.completion")
# Where an event has its text: conventions and exporters changed their minds about it.
_EVENT_TEXTS = (
    *("content", "message.content", "message", "gen_ai.event.content", "body.content"),
    *("body.message.content", "body", "gen_ai.prompt", "gen_ai.completion"),
)


@dataclass
class Trace:
    """A trace as a sample and its output. Without a `problem` it can be scored."""

    trace_id: str
    sample: EvaluationSample
    output: SystemOutputs
    problem: str = ""


@dataclass
class TraceReader:
    """Makes samples and outputs of spans; `id_attribute` names the attribute that holds a sample's id.

    `doc_id` says where the id of a document is: "metadata.source". Indexes often have new ids, or none.
    """

    id_attribute: str | None = None
    doc_id: str | None = None
    traces: dict[str, list[Span]] = field(default_factory=dict)

    def add(self, spans: Iterable[Span]) -> TraceReader:
        """Take spans, of whatever traces, in whatever order."""
        for span in spans:
            of_trace = self.traces.setdefault(span.trace_id, [])
            if len(of_trace) >= _MAX_SPANS:
                what = f"the trace has over {_MAX_SPANS:,} spans."
                raise DataError(f"trace {span.trace_id!r:.60}", what, fix="Is it the right file?")
            of_trace.append(span)
        return self

    def __iter__(self) -> Iterator[Trace]:
        for trace_id, spans in self.traces.items():
            yield self._trace(trace_id, spans)

    def _trace(self, trace_id: str, spans: list[Span]) -> Trace:
        spans = sorted(spans, key=lambda span: (span.start_ns or 0, span.span_id))
        span_ids = {span.span_id for span in spans}
        root = next((span for span in spans if span.parent_id not in span_ids), spans[0])
        ordered = [root, *(span for span in spans if span is not root)]
        query = _first(ordered, _query)
        answer = _first([root, *_of_kind(spans, "LLM")[::-1]], _answer)
        documents = _documents(spans, self.doc_id)
        failure = _failure(root, ordered) if answer is None else None
        output = SystemOutputs(
            documents,
            Response(answer or ""),
            _timings(root, spans),
            {
                **_tokens(spans),
                **_tool_calls(spans),
                **_hops(spans, self.doc_id),
                **_feedback(spans),
                **({ANSWER_MISSING: True} if answer is None and failure is None else {}),
            },
            error=failure,
        )
        sample_id, problem = self._sample_id(trace_id, ordered)
        if query is None:
            problem = "no question (input.value, or a user's message)"
        elif answer is None and not documents and failure is None:
            problem = "neither an answer nor documents nor an error"
        sample = EvaluationSample(sample_id, query or "", metadata=_conversation(ordered))
        return Trace(trace_id, sample, output, problem)

    def _sample_id(self, trace_id: str, spans: Sequence[Span]) -> tuple[str, str]:
        """Return the id of the sample, and the problem if the attribute for it is missing."""
        if self.id_attribute is None:
            return trace_id, ""
        for span in spans:
            value = span.attributes.get(self.id_attribute)
            if isinstance(value, str | int) and str(value).strip():
                return str(value), ""
        return trace_id, f"no attribute {self.id_attribute!r:.80}"


def _first(spans: Sequence[Span], look: Callable[[Span], str | None]) -> str | None:
    return next((text for span in spans if (text := look(span)) is not None), None)


def kind_of_span(span: Span) -> str:
    """RETRIEVER, RERANKER, LLM, CHAIN, ...: by either vocabulary; empty where neither says."""
    kind = span.attributes.get("openinference.span.kind")
    if isinstance(kind, str):
        return kind.upper()
    operation = span.attributes.get("gen_ai.operation.name")
    return _KINDS.get(operation, "") if isinstance(operation, str) else ""


def _of_kind(spans: Sequence[Span], *kinds: str) -> list[Span]:
    return [span for span in spans if kind_of_span(span) in kinds]


def _query(span: Span) -> str | None:
    searched = span.attributes.get("gen_ai.retrieval.query.text")
    if kind_of_span(span) != "LLM" and (text := _value(span, "input", _QUESTIONS, ASKING)) is not None:
        return text
    messages = _messages(span, "llm.input_messages", "gen_ai.input.messages")
    older = _messages(span, "gen_ai.prompt")
    # A completion of a text has a prompt that nobody is said to have spoken.
    messages += [("user", text) for _, text in older] if {role for role, _ in older} == {""} else older
    questions = [text for role, text in messages if role in ASKING]
    questions += _in_events(span, _ASKING_EVENTS, ASKING)
    if questions:
        return questions[-1]  # what was said last, of a conversation
    return searched if isinstance(searched, str) and searched.strip() else None


def _answer(span: Span) -> str | None:
    messages = _messages(span, "llm.output_messages", "gen_ai.output.messages", "gen_ai.completion")
    answers = [text for role, text in messages if role in ANSWERING]
    answers += _in_events(span, _ANSWERING_EVENTS, ANSWERING)
    # Of an LLM `output.value` is often the whole reply of its API: its message is better.
    if answers:
        return answers[-1]
    return (
        _value(span, "output", ANSWER_PARTS, ANSWERING)
        if kind_of_span(span) not in ("RETRIEVER", "EMBEDDING")
        else None
    )


def _value(span: Span, side: str, keys: Sequence[str], roles: Sequence[str]) -> str | None:
    """`input.value` or `output.value`: a text, or JSON in which one is."""
    value = span.attributes.get(f"{side}.value")
    if not isinstance(value, str) or not value.strip():
        return None
    is_json = span.attributes.get(f"{side}.mime_type") == "application/json"
    if not is_json and value.lstrip()[:1] not in ("{", "["):
        return value
    document = parsed(value)
    text = text_in(document, keys, roles)
    # A text may well begin with a bracket.
    is_text = document is None or (isinstance(document, list) and not is_json)
    return value if text is None and is_text else text


def _in_events(span: Span, names: Collection[str], roles: Sequence[str]) -> Iterator[str]:
    """Return the messages in events, one per message, or in one event with all of them."""
    for event in span.events:
        if event.name in names:
            values = (event.attributes.get(name) for name in _EVENT_TEXTS)
            text = next((value for value in values if isinstance(value, str) and value.strip()), None)
            document = parsed(text) if text is not None and text.lstrip()[:1] in ("{", "[") else None
            message = text if document is None else text_in(document, ("message", "content"), roles)
            message = message or content_text(document)
            if message:
                yield message


def _items(attributes: Attributes, name: str) -> list[dict[str, Any]]:
    """Return the objects of a list: JSON text, or attributes `name.N.rest`; numbers may be missing."""
    if isinstance(attributes.get(name), str):
        values = parsed(attributes[name])
        return [one for one in values if isinstance(one, dict)] if isinstance(values, list) else []
    found: dict[str, dict[str, Any]] = {}
    for key, value in attributes.items():
        place, _, rest = key.removeprefix(f"{name}.").partition(".")
        if key.startswith(f"{name}.") and place.isascii() and place.isdigit() and len(place) < 20:
            inner: Any = found.setdefault(place, {})
            *path, last = rest.split(".", 4)
            for part in path:
                inner = inner.setdefault(part, {}) if isinstance(inner, dict) else {}
            if isinstance(inner, dict):
                inner[last] = value
    return [found[place] for place in sorted(found, key=int)]


def _messages(span: Span, *names: str) -> list[tuple[str, str]]:
    """Return (role, text) of the messages in lists of a span, or of its event with the details."""
    of_events = (event.attributes for event in span.events if event.name == _DETAILS)
    lists = [_items(attributes, name) for attributes in (span.attributes, *of_events) for name in names]
    messages = [item.get("message", item) for items in lists for item in items[:_MAX_ITEMS]]
    return [
        (str(message.get("role") or "").lower(), text)
        for message in messages
        if isinstance(message, dict) and (text := content_text(message.get("parts", message.get("content"))))
    ]


def _conversation(spans: Sequence[Span]) -> dict[str, Any]:
    """Return the conversation of a trace: its questions are not independent, so it is their cluster."""
    ids = (span.attributes.get(name) for span in spans for name in ("session.id", "gen_ai.conversation.id"))
    session = next((str(value) for value in ids if isinstance(value, str | int) and str(value).strip()), None)
    return {} if session is None else {"conversation_id": session, "cluster": session}


def _tool_calls(spans: Sequence[Span]) -> dict[str, Any]:
    """Return the calls of tools, in order, for `extra`."""
    calls = []
    for span in _of_kind(spans, "TOOL"):
        attributes = span.attributes
        name = attributes.get("tool.name") or attributes.get("gen_ai.tool.name") or span.name
        arguments = attributes.get("tool.parameters") or attributes.get("gen_ai.tool.call.arguments")
        calls.append({"name": name, "arguments": parsed(arguments)})
    return {"tool_calls": calls} if calls else {}


def _hops(spans: Sequence[Span], id_path: str | None) -> dict[str, Any]:
    """Return each retrieval with its query and the ids of its documents, in order, if there are several."""
    hops = []
    for span in _of_kind(spans, "RETRIEVER"):
        documents = [hit.doc.doc_id for hit in _documents([span], id_path)]
        hops.append({"query": _query(span), "documents": documents})
    return {"retrievals": hops} if len(hops) > 1 else {}


def _feedback(spans: Sequence[Span]) -> dict[str, Any]:
    """Return what people said of the answer: evaluations of gen_ai that are named so, not other metrics."""
    sources = [span.attributes for span in spans]
    sources += [event.attributes for span in spans for event in span.events if event.name == _EVALUATION]
    feedback = [
        {"name": name, "value": value}
        for attributes in sources
        if _PEOPLE.search(name := str(attributes.get("gen_ai.evaluation.name")))
        and (value := _number(attributes.get("gen_ai.evaluation.score.value"))) is not None
    ]
    return {"feedback": feedback} if feedback else {}


def _documents(spans: Sequence[Span], id_path: str | None = None) -> list[RetrievedDocument]:
    """What was retrieved, in order, each document once: as a reranker left it, if there was one."""
    ranked = [items for span in spans if (items := _items(span.attributes, "reranker.output_documents"))]
    names = ("retrieval.documents", "gen_ai.retrieval.documents")
    lists = ranked[-1:] or [_items(span.attributes, name) for span in spans for name in names]
    documents: dict[str, RetrievedDocument] = {}
    for item in (item.get("document", item) for items in lists for item in items[:_MAX_ITEMS]):
        if not isinstance(item, dict) or len(documents) >= _MAX_ITEMS:
            continue
        doc, score = _document(item), _number(item.get("score"))
        doc = doc if id_path is None else _with_id_at(doc, id_path)
        rank = len(documents) + 1
        hit = unscored(doc, rank) if score is None else RetrievedDocument(doc, score, rank)
        documents.setdefault(doc.doc_id, hit)
    return list(documents.values())


def _document(item: Mapping[str, Any]) -> Document:
    """A document; one without an id gets one from its text, the same whenever it comes."""
    doc_id, metadata = item.get("id"), item.get("metadata")
    text = next((item[name] for name in DOCUMENT_TEXT if isinstance(item.get(name), str)), None)
    metadata = about if isinstance(about := parsed(metadata), dict) else {}
    if doc_id is None or not str(doc_id).strip():
        return Document(text_id(text or ""), text or "", metadata)
    return Document(str(doc_id), text or "", metadata | ({"text_missing": True} if text is None else {}))


def _with_id_at(doc: Document, path: str) -> Document:
    """Return a document whose id is a part of its metadata; itself if it has no such part."""
    value: Any = doc.metadata
    for name in path.removeprefix("metadata.").split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return Document(str(value), doc.text, doc.metadata) if isinstance(value, str | int) else doc


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else None


def _timings(root: Span, spans: Sequence[Span]) -> dict[str, float]:
    """Seconds of the whole, and the sums of its retrievals and generations; the unknown are absent."""
    stages = {
        "end_to_end": [root],
        "retrieval": _of_kind(spans, "RETRIEVER", "RERANKER"),
        "generation": _of_kind(spans, "LLM"),
    }
    timings = {}
    for stage, members in stages.items():
        seconds = [span.seconds for span in members]
        if seconds and None not in seconds:
            timings[stage] = math.fsum(each for each in seconds if each is not None)
    return timings


def _tokens(spans: Sequence[Span]) -> dict[str, int]:
    names = {
        "input_tokens": ("llm.token_count.prompt", "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
        "output_tokens": (
            *("llm.token_count.completion", "gen_ai.usage.output_tokens"),
            "gen_ai.usage.completion_tokens",
        ),
    }
    counts = {}
    for name, attributes in names.items():
        # Each tool writes one of the attributes; a span without any has no count.
        reported = [_first_number(span, attributes) for span in _of_kind(spans, "LLM")]
        tokens = [count for count in reported if count is not None and count >= 0]
        if tokens:
            counts[name] = int(sum(tokens))
    return counts


def _first_number(span: Span, names: Sequence[str]) -> float | None:
    numbers = (_number(span.attributes.get(name)) for name in names)
    return next((number for number in numbers if number is not None), None)


def _failure(root: Span, spans: Sequence[Span]) -> Failure | None:
    failed = next((span for span in spans if span.error is not None), None)
    if failed is None:
        return None
    kind = failed.attributes.get("error.type") or failed.attributes.get("exception.type")
    return Failure(kind if isinstance(kind, str) else "error", failed.error or "", root.seconds)
