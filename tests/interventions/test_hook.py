"""Documents are handed to the generator of every kind of system that has one."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

import auepora_eval as ae
from auepora_eval import Document, Response, answerer_of

DOCUMENTS = [Document("d1", "Alpha opened in 1911."), Document("d2", "Beta opened in 2022.")]
JOINED = "Alpha opened in 1911.\n\nBeta opened in 2022."


def answered(thing: Any) -> str:
    answerer = answerer_of(thing)
    assert answerer is not None
    output = answerer.answer("When?", DOCUMENTS)
    if inspect.isawaitable(output):
        output = asyncio.run(output)  # type: ignore[arg-type]
    assert [hit.doc.doc_id for hit in output.retrieved] == ["d1", "d2"]
    text: str = output.response.text
    return text


def texts(documents: list[Document]) -> str:
    return "\n\n".join(doc.text for doc in documents)


def retrieve(query: str, top_k: int = 5) -> list[Document]:
    return [Document("own", "Own text.")] * min(top_k, 1)


class OwnRetriever(ae.Retriever):
    def retrieve(self, query: str, *, top_k: int = 5) -> list[ae.RetrievedDocument]:
        return [ae.RetrievedDocument(Document("own", "Own text."), 1.0, 1)]


class OwnGenerator(ae.Generator):
    def generate(self, query: str, context_docs: list[Document]) -> Response:
        return Response(texts(context_docs))


class WithRun:
    def run(self, sample: ae.EvaluationSample, *, top_k: int = 5, passages: Any = None) -> Any:
        return texts(passages)


async def coroutine(query: str, documents: Any = None) -> str:
    return texts(documents)


def of_texts(query: str, contexts: list[str]) -> str:
    return "\n\n".join(contexts)


SYSTEMS: dict[str, Any] = {
    "pair": (retrieve, lambda query, documents: texts(documents)),
    "simple": ae.SimpleRAGSystem(OwnRetriever(), OwnGenerator()),
    "documents": lambda query, documents=None: texts(documents),
    "docs": lambda query, docs=None: texts(docs),
    "contexts": of_texts,
    "passages": lambda query, passages=(): "\n\n".join(passages),
    "context": lambda query, context="": context,
    "run": WithRun(),
    "async": coroutine,
    "async pair": (retrieve, coroutine),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_generator_gets_the_documents(name: str) -> None:
    assert answered(SYSTEMS[name]) == JOINED


def test_a_black_box_has_no_answerer() -> None:
    assert answerer_of(lambda query: "42") is None


def test_a_retriever_without_top_k_has_no_depth() -> None:
    with_depth = answerer_of((retrieve, lambda query, documents: ""))
    without = answerer_of((lambda query: [], lambda query, documents: ""))
    assert with_depth is not None
    assert without is not None
    assert with_depth.has_depth
    assert not without.has_depth
    assert [doc.doc_id for doc in with_depth.retrieve("q", 50)] == ["own"]


@pytest.mark.parametrize("name", ["docs", "context", "run", "async"])
def test_closed_context_reaches_the_generator(name: str) -> None:
    sample = ae.EvaluationSample(
        "1", "When?", candidate_docs=DOCUMENTS, reference_answer="2022", metadata={"closed_context": True}
    )
    run = ae.evaluate(SYSTEMS[name], [sample], metrics="contains_answer")
    assert run["contains_answer"].value == 1
    assert [hit.doc.doc_id for hit in run.outputs[0].retrieved] == ["d1", "d2"]


def test_an_empty_closed_context_is_no_reason_to_search() -> None:
    sample = ae.EvaluationSample("1", "When?", candidate_docs=[], metadata={"closed_context": True})
    run = ae.evaluate(SYSTEMS["pair"], [sample], metrics="p95_latency")
    assert run.outputs[0].response.text == ""


@pytest.mark.full
def test_langchain() -> None:
    pytest.importorskip("langchain_core")
    from langchain_core.documents import Document as Found
    from langchain_core.prompts import PromptTemplate
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnableLambda, RunnablePassthrough

    class Own(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any = None) -> list[Found]:
            return [Found(page_content="Own text.")]

    def joined(found: list[Found]) -> str:
        return "\n\n".join(doc.page_content for doc in found)

    prompt = PromptTemplate.from_template("{context}|{question}")
    model = RunnableLambda(lambda value: value.to_string().partition("|")[0])
    question: Any = RunnablePassthrough()
    search = RunnableLambda(lambda value: value["question"]) | Own()
    chains: list[Any] = [
        {"context": Own() | joined, "question": question} | prompt | model,
        {"context": RunnableLambda(lambda query: "own"), "question": question} | prompt | model,
        prompt | model,
        ae.as_system(
            RunnablePassthrough.assign(context=search).assign(answer=lambda value: joined(value["context"])),
            input="question",
        ),
    ]
    for chain in chains:
        assert answered(chain) == JOINED
    assert answered(chains[0].ainvoke) == JOINED
    assert answerer_of(model) is None


@pytest.mark.full
def test_llama_index() -> None:
    pytest.importorskip("llama_index.core")
    from llama_index.core.llms import MockLLM
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.response_synthesizers import get_response_synthesizer
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

    class Own(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            return [NodeWithScore(node=TextNode(id_="own", text="Own text."), score=1.0)]

    synthesizer = get_response_synthesizer(llm=MockLLM(), response_mode="compact")  # type: ignore[arg-type]
    engine = RetrieverQueryEngine(Own(), response_synthesizer=synthesizer)
    assert JOINED in answered(engine)
    answerer = answerer_of(engine)
    assert answerer is not None
    assert answerer.retrieves
    assert not answerer.has_depth


@pytest.mark.full
def test_haystack() -> None:
    haystack: Any = pytest.importorskip("haystack")

    class Own:
        def run(self, query: str) -> Any:
            return {"documents": [haystack.Document(content="Own text.")]}

    class Reader:
        def run(self, query: str, documents: list[Any]) -> Any:
            return {"replies": ["\n\n".join(doc.content for doc in documents)]}

    Own.run = haystack.component.output_types(documents=list[Any])(Own.run)  # type: ignore[method-assign]
    Reader.run = haystack.component.output_types(replies=list[str])(Reader.run)  # type: ignore[method-assign]
    pipeline = haystack.Pipeline()
    pipeline.add_component("search", haystack.component(Own)())
    pipeline.add_component("reader", haystack.component(Reader)())
    pipeline.connect("search.documents", "reader.documents")
    assert answered(pipeline) == JOINED
    # The user's own object works as before.
    asked = {"search": {"query": "?"}, "reader": {"query": "?"}}
    assert pipeline.run(asked)["reader"]["replies"] == ["Own text."]
