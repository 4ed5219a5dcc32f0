"""Objects that can be evaluated as systems."""

from __future__ import annotations

import asyncio
import inspect
import itertools
from collections.abc import AsyncIterator
from typing import Any

import pytest

import auepora_eval as ae
from auepora_eval.core.rag_interface import Generator, Retriever, SimpleRAGSystem, as_system
from auepora_eval.core.types import Document, EvaluationSample, Response, RetrievedDocument, SystemOutputs
from auepora_eval.read.outputs import to_output
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
    return to_output(raw)


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
        to_output(raw)


def test_sample_is_passed_only_if_requested() -> None:
    def typed(row: EvaluationSample) -> str:
        return row.sample_id

    assert outcome(typed).response.text == "1"
    assert outcome(lambda sample: sample.sample_id).response.text == "1"
    assert outcome(lambda prompt: f"{prompt}").response.text == SAMPLE.query  # never the gold


@pytest.mark.parametrize("documents", [{"a", "b"}, frozenset({"a", "b"})])
def test_a_set_of_documents_is_refused(documents: Any) -> None:
    """Its order changes from one process to the next, and every metric of ranks with it."""
    with pytest.raises(TypeError, match="the best first, as a set has no order"):
        to_output((documents, "answer"))


ANSWER_METRICS = (
    "exact_match,contains_answer,token_f1,rougeL_answer,query_coverage,non_answer_rate,rejection_rate,"
    "over_refusal_rate,counterfactual_accuracy,noise_accuracy"
)


def only_documents() -> dict[str, Any]:
    class Index:
        def retrieve(self, query: str) -> list[str]:
            return ["d1"]

    return {
        "a list": lambda query: ["d1"],
        "an object": Index(),
        "a dict": lambda query: {"documents": ["d1"]},
        "nothing found": lambda query: [],
    }


@pytest.mark.filterwarnings("ignore::auepora_eval.read.fields.ReadingNote")
@pytest.mark.parametrize("kind", only_documents())
def test_a_system_that_only_retrieves_has_no_answer_metrics(kind: str) -> None:
    labels = {"answerable": False, "noise_ratio": 0.2, "true_answer": "22", "fake_answer": "23"}
    samples = [a_sample("1", relevant=["d1"], reference="22", labels=labels)]
    run = ae.evaluate(
        only_documents()[kind], samples, metrics=f"{ANSWER_METRICS},recall@5,noise_accuracy[recall@5]"
    )
    for name in ANSWER_METRICS.split(","):
        assert run[name].not_measured == "the system returns documents without answers", name
        assert run[name].coverage.scored == 0
    assert run["recall@5"].value == run["noise_accuracy[recall@5]"].value == float(kind != "nothing found")


def test_an_empty_answer_of_a_generator_counts() -> None:
    samples = [a_sample(n, relevant=["d1"], reference="22", labels={"answerable": n == "1"}) for n in "12"]
    for system in (
        lambda query: (["d1"], ""),
        lambda query: "",
        (lambda query: ["d1"], lambda query, docs: ""),
    ):
        run = ae.evaluate(system, samples, metrics="contains_answer,rejection_rate,non_answer_rate")
        assert [result.value for result in run.results] == [0.0, 1.0, 1.0]


@pytest.mark.filterwarnings("ignore::auepora_eval.read.fields.ReadingNote")
def test_one_answer_is_enough_to_measure_them_all() -> None:
    """Or a system would gain by returning documents alone where it has no answer."""
    samples = [a_sample(n, n, relevant=["d1"], reference="22") for n in "12"]
    run = ae.evaluate(
        lambda query: (["d1"], "22") if query == "1" else ["d1"], samples, metrics="exact_match"
    )
    assert (run["exact_match"].value, run["exact_match"].coverage.scored) == (0.5, 2)


def test_an_output_stays_as_it_was_returned() -> None:
    """A system may return the same objects again, and change them: outputs that it has given stay."""
    hits, reply, count = [Document("a0", "zero")], Response("0"), itertools.count(1)

    def reuses(query: str) -> tuple[list[Document], Response]:
        place = next(count)
        hits[0].doc_id, reply.text = f"a{place}", str(place)
        return hits, reply

    samples = [
        EvaluationSample(
            str(n), "q", relevant_docs=[Document(f"a{n}", "")], reference_answer=Response(str(n))
        )
        for n in range(1, 4)
    ]
    run = ae.evaluate(reuses, samples, metrics="recall@5,exact_match")
    assert [run[name].value for name in ("recall@5", "exact_match")] == [1.0, 1.0]


def test_a_system_cannot_change_the_documents_that_it_was_given() -> None:
    def edits(query: str, documents: list[Document]) -> str:
        documents[0].doc_id = documents[0].text = "edited"
        documents.append(Document("further", ""))
        return "edited"

    sample = EvaluationSample(
        "1", "q", candidate_docs=[Document("a", "zero")], metadata={"closed_context": True}
    )
    run = ae.evaluate(edits, [sample], metrics="grounding_overlap")
    assert [(hit.doc.doc_id, hit.doc.text) for hit in run.outputs[0].retrieved] == [("a", "zero")]


def test_an_asynchronous_generator_is_named_in_the_same_words_at_every_call() -> None:
    async def answer(query: str) -> AsyncIterator[str]:
        yield query

    said = set()
    for query in ("a", "b"):
        with pytest.raises(ae.ArgumentError) as failed:
            to_output(answer(query))
        said.add(str(failed.value))
        with pytest.raises(
            ae.ArgumentError, match="retrieved must be a list of documents, not async_generator"
        ):
            to_output({"answer": "a", "retrieved": answer(query)})
    [message] = said
    assert "an answer, not async_generator: <async_generator" in message[:120]
    assert "0x" not in message
