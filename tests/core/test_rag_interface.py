"""Objects that can be evaluated as systems."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

from auepora_eval.core.rag_interface import Generator, Retriever, SimpleRAGSystem, as_system
from auepora_eval.core.shapes import as_outputs
from auepora_eval.core.types import Document, EvaluationSample, Response, RetrievedDocument, SystemOutputs
from tests.builders import a_sample, an_output

SAMPLE = a_sample("1", "What is it?")
DOC = Document("d1", "a text")


class OneDocument(Retriever):
    def retrieve(self, query: str, *, top_k: int = 5) -> list[RetrievedDocument]:
        return [RetrievedDocument(DOC, 0.9, 1)]


class Shout(Generator):
    def generate(self, query: str, context_docs: list[Document]) -> Response:
        return Response(f"{query.upper()} {context_docs[0].doc_id}")


def outcome(system: Any) -> SystemOutputs:
    raw: Any = as_system(system).run(SAMPLE, top_k=3)
    if inspect.isawaitable(raw):

        async def wait() -> Any:
            return await raw

        raw = asyncio.run(wait())
    return as_outputs(raw)


def test_simple_rag_system_fills_its_timings() -> None:
    output = SimpleRAGSystem(OneDocument(), Shout()).run(SAMPLE)
    assert output.response.text == "WHAT IS IT? d1"
    assert set(output.timings) == {"retrieval", "generation", "end_to_end"}
    parts = output.timings["retrieval"] + output.timings["generation"]
    assert parts == pytest.approx(output.timings["end_to_end"])


async def ask_async(query: str) -> str:
    return f"async {query}"


async def retrieve_async(query: str, top_k: int) -> list[str]:
    return ["d1", "d2", "d3", "d4"][:top_k]


class WithRun:
    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
        return an_output("abc"[:top_k], sample.query)


class WithAsyncRun:
    async def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
        return an_output("abc"[:top_k], sample.query)


@pytest.mark.parametrize(
    ("system", "answer", "ids"),
    [
        pytest.param(WithRun(), "What is it?", ["a", "b", "c"], id="an object with run"),
        pytest.param(WithAsyncRun(), "What is it?", ["a", "b", "c"], id="an object with an async run"),
        pytest.param(lambda query: query, "What is it?", [], id="a function of the query"),
        pytest.param(lambda q: q, "What is it?", [], id="whatever its parameter is called"),
        pytest.param(lambda query: (["d1", "d2"][:1], "x"), "x", ["d1"], id="a list of ids"),
        pytest.param(lambda query: ([("d1", 0.5)], "x"), "x", ["d1"], id="pairs of id and score"),
        pytest.param((lambda q: ["d1"], lambda q, docs: "x"), "x", ["d1"], id="a pair that knows no top_k"),
        pytest.param(lambda sample: sample.sample_id, "1", [], id="a function of the sample"),
        pytest.param(lambda query, top_k: str(top_k), "3", [], id="a function that wants top_k"),
        pytest.param(lambda query: (["d1"], "x"), "x", ["d1"], id="ids and an answer"),
        pytest.param(lambda query: ([("d1", "t")], "x"), "x", ["d1"], id="pairs of id and text"),
        pytest.param(lambda query: ([DOC], Response("x")), "x", ["d1"], id="documents and a response"),
        pytest.param(
            lambda query: {"answer": "x", "retrieved": [{"doc_id": "d1", "score": 0.5}]},
            "x",
            ["d1"],
            id="a dict",
        ),
        pytest.param(ask_async, "async What is it?", [], id="an async function"),
        pytest.param(
            (lambda q, top_k: [DOC], lambda q, docs: docs[0].text), "a text", ["d1"], id="two functions"
        ),
        pytest.param((OneDocument(), Shout()), "WHAT IS IT? d1", ["d1"], id="a retriever and a generator"),
        pytest.param(
            (retrieve_async, lambda q, docs: "x"), "x", ["d1", "d2", "d3"], id="a pair, one of it async"
        ),
    ],
)
def test_as_system_accepts(system: Any, answer: str, ids: list[str]) -> None:
    output = outcome(system)
    assert output.response.text == answer
    assert [hit.doc.doc_id for hit in output.retrieved] == ids
    assert [hit.rank for hit in output.retrieved] == list(range(1, len(ids) + 1))


@pytest.mark.parametrize("thing", [42, "a string", None, (1, 2), object()])
def test_other_objects_are_not_systems(thing: Any) -> None:
    with pytest.raises(TypeError, match="system must be "):
        as_system(thing)


@pytest.mark.parametrize(
    "raw",
    [
        3.5,
        None,
        {},
        {"anwser": "x"},
        {"anwser": "x", "retrieved": []},
        ("one string, not a list", "x"),
        ([3.5], "x"),
        ([], 42),
    ],
)
def test_other_return_values_are_errors(raw: Any) -> None:
    with pytest.raises(TypeError, match="must"):
        as_outputs(raw)


def test_sample_is_passed_only_if_requested() -> None:
    def typed(row: EvaluationSample) -> str:
        return row.sample_id

    assert outcome(typed).response.text == "1"
    assert outcome(lambda sample: sample.sample_id).response.text == "1"
    assert outcome(lambda prompt: f"{prompt}").response.text == SAMPLE.query  # never the gold
