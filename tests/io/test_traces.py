"""Traces to samples and outputs, in both vocabularies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from auepora_eval.io.spans import Span
from auepora_eval.io.traces import Trace, TraceReader

SECOND = 1_000_000_000


def a_span(
    span_id: str, kind: str = "", start: int = 0, end: int = 1, parent: str | None = "root", **more: Any
) -> Span:
    """more: attributes, with __ for a dot; times in seconds since a moment of 2026."""
    base = 1793527200 * SECOND
    attributes = {name.replace("__", "."): value for name, value in more.items()}
    if kind:
        attributes["openinference.span.kind"] = kind
    parent = None if span_id == "root" else parent
    return Span("t", span_id, span_id, base + start * SECOND, base + end * SECOND, parent, attributes)


def documents(
    *docs: tuple[str | None, str, float | None], prefix: str = "retrieval.documents"
) -> dict[str, Any]:
    return {
        f"{prefix}.{place}.document.{name}": value
        for place, doc in enumerate(docs)
        for name, value in zip(("id", "content", "score"), doc, strict=True)
        if value is not None
    }


def trace_of(*spans: Span, **options: Any) -> Trace:
    (trace,) = TraceReader(**options).add(spans)
    return trace


def test_an_openinference_trace() -> None:
    search = a_span("r", "RETRIEVER", 1, 3, input__value="rewritten query")
    search.attributes |= documents(("d1", "three boats", 0.9), ("d2", "a pier", 0.4))
    model = a_span("m", "LLM", 3, 8, output__value='{"id": "whole reply of the API"}')
    model.attributes |= {
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "Three.",
        "llm.token_count.prompt": 120,
        "llm.token_count.completion": 4,
    }
    root = a_span("root", "CHAIN", 0, 9, input__value="How many boats?", output__value="Three.")
    trace = trace_of(model, search, root)
    assert (trace.trace_id, trace.sample.sample_id, trace.problem) == ("t", "t", "")
    assert (trace.sample.query, trace.output.response.text) == ("How many boats?", "Three.")
    hits = [(hit.doc.doc_id, hit.doc.text, hit.score, hit.rank) for hit in trace.output.retrieved]
    assert hits == [("d1", "three boats", 0.9, 1), ("d2", "a pier", 0.4, 2)]
    assert trace.output.timings == {"end_to_end": 9.0, "retrieval": 2.0, "generation": 5.0}
    assert trace.output.extra == {"input_tokens": 120, "output_tokens": 4}
    assert trace.output.error is None


def test_a_gen_ai_trace() -> None:
    def messages(name: str, role: str, text: str) -> dict[str, Any]:
        parts = [{"type": "text", "content": text}, {"type": "tool_call", "name": "x"}]
        return {name: json.dumps([{"role": role, "parts": parts}])}

    search = a_span("r", start=0, end=1)
    documents = [{"id": "d1", "score": 0.5}, {"id": "d2", "content": "text"}]
    search.attributes = {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.query.text": "boats"}
    search.attributes |= {"gen_ai.retrieval.documents": json.dumps(documents)}
    model = a_span("m", start=1, end=2)
    model.attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 2,
        **messages("gen_ai.input.messages", "user", "How many boats?"),
        **messages("gen_ai.output.messages", "assistant", "Three."),
    }
    root = a_span("root", start=0, end=4, **{"gen_ai__operation__name": "invoke_workflow"})
    trace = trace_of(root, search, model)
    assert (trace.sample.query, trace.output.response.text) == ("boats", "Three.")  # as the first span has it
    hits = [(hit.doc.doc_id, hit.doc.text, hit.score) for hit in trace.output.retrieved]
    assert hits == [("d1", "", 0.5), ("d2", "text", 0.5)]  # no score: 1 / rank, as in predictions
    assert trace.output.retrieved[0].doc.metadata == {"text_missing": True}
    assert trace.output.timings == {"end_to_end": 4.0, "retrieval": 1.0, "generation": 1.0}
    assert trace.output.extra == {"input_tokens": 7, "output_tokens": 2}


@pytest.mark.parametrize(
    ("value", "mime", "query"),
    [
        ("plain words", None, "plain words"),
        ('{"query": "in an object"}', "application/json", "in an object"),
        ("{not JSON", None, "{not JSON"),
        ('{"nothing": "known"}', "application/json", None),
        ('{"messages": [{"role": "user", "content": "said"}]}', "application/json", "said"),
        ('{"messages": [["system", "be kind"], ["human", "said"]]}', "application/json", "said"),
        ('[["human", "first"], ["ai", "well"], ["human", "said"]]', None, "said"),
        ('[{"type": "human", "content": [{"type": "text", "text": "said"}]}]', None, "said"),
        ('{"input": {"messages": [["human", "said"]]}}', None, "said"),
        (
            '{"messages": [[{"id": ["langchain", "HumanMessage"], "kwargs": {"content": "said"}}]]}',
            None,
            "said",
        ),
        ('{"messages": [{"role": "system", "content": "be kind"}]}', None, None),
        ("[urgent] how many?", None, "[urgent] how many?"),
        ("[1, 2]", "application/json", None),
        ('["human", "resources"]', None, "resources"),
        ("   ", None, None),
    ],
)
def test_where_a_question_stands(value: Any, mime: str | None, query: str | None) -> None:
    root = a_span("root", "CHAIN", input__value=value, output__value="fine")
    if mime:
        root.attributes["input.mime_type"] = mime
    trace = trace_of(root)
    assert (trace.sample.query or None, bool(trace.problem)) == (query, query is None)


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        ('{"messages": [["human", "q"], ["ai", "fine"]]}', "fine"),
        ('{"messages": [{"type": "human", "content": "q"}, {"type": "ai", "content": "fine"}]}', "fine"),
        (
            '{"messages": [{"role": "assistant", "content": "fine"}, {"role": "tool", "content": "x"}]}',
            "fine",
        ),
        ('{"choices": [{"message": {"role": "assistant", "content": "fine"}}]}', "fine"),
        (
            '{"generations": [[{"text": "fine", "message": {"kwargs": {"content": "fine", "type": "ai"}}}]]}',
            "fine",
        ),
        ('{"output": {"content": "fine", "type": "ai"}}', "fine"),
        ('{"rows": 3}', None),
    ],
)
def test_where_an_answer_stands(value: str, answer: str | None) -> None:
    trace = trace_of(a_span("root", "CHAIN", input__value="q", output__value=value))
    assert (trace.output.response.text or None) == answer


def test_of_a_conversation_the_last_question_counts() -> None:
    model = a_span("root", "LLM")
    for place, (role, text) in enumerate([("system", "be kind"), ("user", "first"), ("user", "second")]):
        model.attributes |= {f"llm.input_messages.{place}.message.role": role}
        model.attributes |= {f"llm.input_messages.{place}.message.content": text}
    model.attributes |= {"llm.output_messages.0.message.content": "yes"}
    trace = trace_of(model)
    assert (trace.sample.query, trace.output.response.text) == ("second", "yes")


def test_a_reranker_has_the_last_word_and_no_document_comes_twice() -> None:
    first = a_span("r1", "RETRIEVER", 0, 1)
    first.attributes |= documents(("a", "A", 0.1), ("b", "B", 0.2))
    again = a_span("r2", "RETRIEVER", 1, 2)
    again.attributes |= documents(("b", "B", 0.9), ("c", "C", None))
    root = a_span("root", "CHAIN", input__value="q")
    assert [hit.doc.doc_id for hit in trace_of(root, first, again).output.retrieved] == ["a", "b", "c"]
    rerank = a_span("k", "RERANKER", 2, 3)
    rerank.attributes |= documents(("c", "C", 0.8), ("a", "A", 0.7), prefix="reranker.output_documents")
    trace = trace_of(root, first, again, rerank)
    assert [hit.doc.doc_id for hit in trace.output.retrieved] == ["c", "a"]
    assert trace.output.timings["retrieval"] == 3.0


def test_prompts_and_completions_of_the_older_convention() -> None:
    model = a_span("root", "", gen_ai__operation__name="chat")
    model.attributes |= {"gen_ai.prompt.0.role": "system", "gen_ai.prompt.0.content": "Be brief."}
    model.attributes |= {"gen_ai.prompt.1.role": "user", "gen_ai.prompt.1.content": "How many?"}
    model.attributes |= {"gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "Three."}
    trace = trace_of(model)
    assert (trace.sample.query, trace.output.response.text, trace.problem) == ("How many?", "Three.", "")


def test_a_document_without_an_id_is_known_by_its_text() -> None:
    root = a_span("root", "RETRIEVER", input__value="q")
    root.attributes |= documents(
        (None, "same words", None), (None, "same words", None), (None, "others", None)
    )
    ids = [hit.doc.doc_id for hit in trace_of(root).output.retrieved]
    assert len(ids) == len(set(ids)) == 2
    assert all(doc_id.startswith("text-") for doc_id in ids)


def test_a_call_that_failed_is_a_failed_output_and_not_left_out() -> None:
    root = a_span("root", "CHAIN", 0, 3, input__value="q")
    broken = a_span("m", "LLM", 0, 2, **{"exception__type": "RateLimitError"})
    broken.error = "slow down"
    trace = trace_of(root, broken)
    assert trace.problem == ""
    assert trace.output.error is not None
    assert (trace.output.error.type, trace.output.error.message, trace.output.error.seconds) == (
        "RateLimitError",
        "slow down",
        3.0,
    )


@pytest.mark.parametrize(
    ("attributes", "problem"),
    [
        ({"output.value": "an answer to nothing"}, "no question"),
        ({"input.value": "q"}, "neither an answer"),
        ({"input.value": "q", "output.value": "a"}, ""),
    ],
)
def test_a_trace_without_what_is_needed_says_so(attributes: dict[str, Any], problem: str) -> None:
    root = a_span("root", "CHAIN")
    root.attributes |= attributes
    assert trace_of(root).problem.startswith(problem)
    assert bool(trace_of(root).problem) == bool(problem)


def test_the_id_of_a_sample_is_in_an_attribute() -> None:
    root = a_span("root", "CHAIN", input__value="q", output__value="a")
    child = a_span("c", session__id=17)
    assert trace_of(root, child, id_attribute="session.id").sample.sample_id == "17"
    assert "no attribute 'user.id'" in trace_of(root, child, id_attribute="user.id").problem
