"""Objects of other frameworks as systems: doubles with the same methods and attributes as the originals.

The originals (langchain-core 1.7, llama-index-core 0.14, haystack-ai 3.4, dspy 3.4, openai 2.54) are used by
`tests/journeys/test_frameworks.py` where they are installed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from auepora_eval import evaluate
from auepora_eval.core.rag_interface import as_system
from auepora_eval.core.types import EvaluationSample, known_score, names_documents
from auepora_eval.errors import ArgumentError
from auepora_eval.read.fields import ReadingNote
from auepora_eval.read.outputs import READ_AS, text_id, to_output
from tests.builders import a_sample
from tests.core.test_rag_interface import outcome

pytestmark = pytest.mark.full

TEXT = "Invoices are sent on the first day of each month."


@dataclass
class LangChainDocument:
    page_content: str
    metadata: dict[str, Any] = field(default_factory=dict)
    id: str | None = None


@dataclass
class Message:
    content: Any
    usage_metadata: dict[str, int] | None = None


class TextNode:
    def __init__(self, text: str, ref_doc_id: str | None = None) -> None:
        self.text, self.node_id, self.id_ = text, "n-1", "n-1"
        self.ref_doc_id, self.metadata = ref_doc_id, {"page": 3}
        self.start_char_idx, self.end_char_idx = 10, 10 + len(text)


@dataclass
class NodeWithScore:
    node: TextNode
    score: float | None = None


@dataclass
class HaystackDocument:
    content: str
    id: str = "h-1"
    meta: dict[str, Any] = field(default_factory=dict)
    score: float | None = None


class Chain:
    """A runnable: `invoke(input, config=None, **kwargs)`, and a schema of its input."""

    def __init__(self, answer: Any, schema: dict[str, Any] | None = None) -> None:
        self._answer, self._schema = answer, schema or {"type": "string"}
        self.inputs: list[Any] = []

    def get_input_jsonschema(self) -> dict[str, Any]:
        return self._schema

    def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:  # noqa: A002
        assert not kwargs
        self.inputs.append(input)
        return self._answer

    async def ainvoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:  # noqa: A002
        return self.invoke(input)


DOCUMENT = LangChainDocument(TEXT, {"source": "billing.md", "start_index": 7}, "8d0f")


def test_langchain_chain_returns_a_message() -> None:
    output = outcome(Chain(Message("white", {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7})))
    assert output.response.text == "white"
    assert not names_documents(output)
    assert (output.extra["input_tokens"], output.extra["output_tokens"]) == (5, 2)


def test_langchain_chain_with_its_documents() -> None:
    output = outcome(Chain({"input": "q", "context": [DOCUMENT], "answer": "white"}))
    (hit,) = output.retrieved
    assert (hit.doc.doc_id, hit.doc.text, known_score(hit)) == ("8d0f", TEXT, None)
    assert hit.doc.metadata["source"] == "billing.md"
    assert output.response.text == "white"
    assert output.extra["input"] == "q"
    assert output.extra[READ_AS] == ["'context' as retrieved"]


def test_langchain_input_has_the_name_that_the_chain_asks_for() -> None:
    schema = {"type": "object", "properties": {"chat_history": {}, "question": {}}, "required": ["question"]}
    chain = Chain("white", schema)
    assert outcome(chain).response.text == "white"
    assert outcome(chain.invoke).response.text == "white"
    assert outcome(chain.ainvoke).response.text == "white"
    assert chain.inputs == [{"question": "What is it?"}] * 3


def test_langchain_input_that_is_not_clear_is_an_error() -> None:
    chain = Chain("white", {"properties": {"a": {}, "b": {}}, "required": ["a", "b"]})
    with pytest.raises(ArgumentError, match=r"has the inputs \['a', 'b'\]. .*input='NAME'"):
        as_system(chain)
    outcome(as_system(chain, input="b"))
    assert chain.inputs == [{"b": "What is it?"}]


def test_graph_of_messages() -> None:
    graph = Chain({"messages": [Message("q"), Message("white")]}, {"properties": {"messages": {}}})
    assert outcome(graph).response.text == "white"
    assert graph.inputs == [{"messages": [{"role": "user", "content": "What is it?"}]}]


def test_langchain_retriever_alone_and_in_a_pair() -> None:
    assert [hit.doc.doc_id for hit in outcome(Chain([DOCUMENT])).retrieved] == ["8d0f"]
    output = outcome((Chain([DOCUMENT]), lambda query, documents: documents[0].text))
    assert output.response.text == TEXT


class QueryEngine:
    """A LlamaIndex engine: its `retrieve` may raise, its `query` returns an object."""

    def query(self, str_or_query_bundle: str) -> Any:
        nodes = [NodeWithScore(TextNode(TEXT, "billing.md"), 0.5)]
        return SimpleNamespace(response=f"re: {str_or_query_bundle}", source_nodes=nodes, metadata={})

    def retrieve(self, query_bundle: Any) -> Any:
        raise NotImplementedError


def test_llama_index_engine() -> None:
    output = outcome(QueryEngine())
    (hit,) = output.retrieved
    assert output.response.text == "re: What is it?"
    assert (hit.doc.doc_id, hit.doc.text, hit.score) == ("n-1", TEXT, 0.5)
    assert hit.doc.metadata == {"source": "billing.md", "start": 10, "end": 59, "page": 3}


class HaystackPipeline:
    def __init__(self, *, rankers: int = 0) -> None:
        self.data: Any = None
        self.rankers = rankers

    def inputs(self) -> dict[str, Any]:
        return {
            "retriever": {"query": {"type": str, "is_mandatory": True}, "top_k": {"is_mandatory": False}},
            "prompt": {"question": {"type": object, "is_mandatory": False}},
        }

    def outputs(self, include_components_with_connected_outputs: bool = False) -> dict[str, Any]:
        rankers: dict[str, Any] = {f"ranker{n}": {"documents": {}} for n in range(self.rankers)}
        connected = {"retriever": {"documents": {}}, **rankers}
        return {"llm": {"replies": {}, "meta": {}}} | (
            connected if include_components_with_connected_outputs else {}
        )

    def run(self, data: dict[str, Any], include_outputs_from: set[str] | None = None) -> dict[str, Any]:
        self.data = data
        documents = [
            HaystackDocument(TEXT, meta={"source_id": "billing.md", "split_idx_start": 7}, score=0.5)
        ]
        everything = {"llm": {"replies": ["white"]}, "retriever": {"documents": documents}}
        return {name: everything[name] for name in include_outputs_from or ()}


def test_haystack_pipeline() -> None:
    pipeline = HaystackPipeline()
    output = outcome(pipeline)
    assert pipeline.data == {"retriever": {"query": "What is it?"}, "prompt": {"question": "What is it?"}}
    (hit,) = output.retrieved
    assert output.response.text == "white"
    assert (hit.doc.doc_id, hit.score, hit.doc.metadata["source"]) == ("h-1", 0.5, "billing.md")


def test_haystack_pipeline_with_two_lists_of_documents_asks_which() -> None:
    pipeline = HaystackPipeline(rankers=1)
    with pytest.raises(ArgumentError, match=r"retriever.documents, ranker0.documents. .*documents='ranker0"):
        as_system(pipeline)
    named = as_system(
        pipeline, input="retriever.query", answer="llm.replies", documents="retriever.documents"
    )
    assert outcome(named).retrieved[0].doc.doc_id == "h-1"
    assert pipeline.data == {"retriever": {"query": "What is it?"}}


class Client:
    """A client of OpenAI's protocol: `client.chat.completions.create(model=..., messages=...)`."""

    def __init__(self) -> None:
        self.chat = SimpleNamespace(completions=self)

    def create(self, *, model: str, messages: list[dict[str, str]]) -> Any:
        message = SimpleNamespace(role="assistant", content=f"{model}: {messages[0]['content']}")
        usage = SimpleNamespace(prompt_tokens=4, completion_tokens=2)
        return SimpleNamespace(choices=[SimpleNamespace(index=0, message=message)], usage=usage)


def test_openai_client() -> None:
    with pytest.raises(ArgumentError, match="needs the name of a model"):
        as_system(Client())
    output = outcome(as_system(Client(), model="small"))
    assert output.response.text == "small: What is it?"
    assert output.extra["input_tokens"] == 4


class Prediction:
    """DSPy's: it has keys and items, and is not a dict."""

    def __init__(self, **fields: Any) -> None:
        self._fields = fields

    def keys(self) -> list[str]:
        return list(self._fields)

    def __getitem__(self, name: str) -> Any:
        return self._fields[name]


class DspyModule:
    def predictors(self) -> list[Any]:
        return []

    def forward(self, question: str) -> Prediction:
        return Prediction(reasoning="why", answer=question.upper(), context=[TEXT])

    def __call__(self, *args: Any, **inputs: Any) -> Prediction:
        assert not args
        return self.forward(**inputs)


def test_dspy_module() -> None:
    output = outcome(DspyModule())
    assert output.response.text == "WHAT IS IT?"
    assert [hit.doc.doc_id for hit in output.retrieved] == [text_id(TEXT)]
    assert output.extra["reasoning"] == "why"


@pytest.mark.parametrize("name", ["answer", "response", "result", "output", "text"])
@pytest.mark.parametrize(
    "documents", ["retrieved", "context", "contexts", "documents", "source_documents", "source_nodes"]
)
def test_names_in_a_dict(name: str, documents: str) -> None:
    output = outcome(lambda query: {name: "x", documents: ["d1"], "session": 7})
    assert output.response.text == "x"
    assert [hit.doc.doc_id for hit in output.retrieved] == ["d1"]
    assert output.extra["session"] == 7


def test_lists_that_may_be_the_documents_are_named() -> None:
    output = to_output({"answer": "x", "hits": [{"content": TEXT}], "steps": [], "session": 7})
    assert output.extra[READ_AS] == ["no documents, and kept 'hits' in `extra`"]
    output = to_output({"answer": "x", "retrieved": ["d1"], "hits": [1]})
    assert READ_AS not in output.extra


def test_list_of_texts_is_not_a_list_of_ids() -> None:
    output = to_output(("x", [TEXT]))
    assert (output.retrieved[0].doc.doc_id, output.retrieved[0].doc.text) == (text_id(TEXT), TEXT)
    assert output.extra[READ_AS] == [
        "a pair as (answer, documents)",
        "a list of strings as texts, with ids made from them",
    ]


@pytest.mark.parametrize(
    "name", ["context", "contexts", "retrieved_contexts", "retrieval_context", "passages"]
)
@pytest.mark.parametrize("text", ["It leaves at noon from pier 2", "渡轮中午离开"])
def test_short_passages_in_a_field_of_texts_are_texts(name: str, text: str) -> None:
    output = to_output({"answer": "x", name: [text, "Noon"]})
    assert [hit.doc.text for hit in output.retrieved] == [text, "Noon"]


@pytest.mark.parametrize(
    "ids", [["billing.md#0"], ["The Lord of the Rings: The Fellowship of the Ring (film)"], [TEXT, "d1"]]
)
def test_ids_with_spaces_stay_ids(ids: list[str]) -> None:
    assert [hit.doc.doc_id for hit in to_output((ids, "x")).retrieved] == ids


class Agent:
    def run(self, task: str, stream: bool = False) -> str:
        return task


class OldChain(Chain):
    def run(self, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("invoke is the method to call")


class AnyOptions:
    def run(self, one: EvaluationSample, **options: Any) -> str:
        return f"{one.query} {options['top_k']}"


def test_run_counts_only_if_it_can_take_a_sample() -> None:
    with pytest.raises(
        ArgumentError, match=r"Agent.run\(task, stream\) is not run\(sample, .*lambda query: agent.run"
    ):
        as_system(Agent())
    assert outcome(OldChain("white")).response.text == "white"
    assert outcome(AnyOptions()).response.text == "What is it? 3"


def test_what_was_read_is_reported_once() -> None:
    samples = [a_sample(str(n), reference="x") for n in range(3)]
    with pytest.warns(ReadingNote, match="^Read 'result' as the answer, 'context' as retrieved.$") as notes:
        run = evaluate(lambda query: {"result": "x", "context": ["d"]}, samples, metrics="exact_match")
    assert len(notes) == 1
    assert run["exact_match"].value == 1
