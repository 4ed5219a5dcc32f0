"""Ask the same eight questions with LangChain, LlamaIndex and Haystack, and print the recall of each.

    pip install langchain-core==1.7.2 llama-index-core==0.14.25 haystack-ai==3.4.0
    python examples/frameworks/same_questions.py

Each object is passed to `evaluate` as it is. All three rank by the same function, so a difference could only
come from the way in which their outputs are read. No language model is called, and nothing is sent.
"""

import os
import re
import sys
from importlib.util import find_spec
from typing import Any

import auepora_eval as ae

# Haystack sends usage statistics unless this is set before it is imported.
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "false"

DOCUMENTS = {
    "ferry.md": "The ferry Annet carries 22 cars and sails at seven.",
    "water.md": "Drinking water is tested every Tuesday at the reservoir.",
    "light.md": "The lighthouse shows a white light with two flashes.",
    "power.md": "The tidal plant makes electricity for all three islands.",
    "bridge.md": "The causeway is closed when the wind is above gale force.",
    "rescue.md": "The rescue boat is moored in the inner harbour.",
}
QUESTIONS = {
    "How many cars does the ferry carry?": "ferry.md",
    "When does the Annet sail?": "ferry.md",
    "On which day is drinking water tested?": "water.md",
    "What light does the lighthouse show?": "light.md",
    "What makes electricity for the islands?": "power.md",
    "When is the causeway closed?": "bridge.md",
    "Where is the rescue boat moored?": "rescue.md",
    "Who pays for the new school?": "rescue.md",
}
TOP = 2


def ranked(query: str) -> list[str]:
    """Return the names of the documents that share most words with the query."""
    words = set(re.findall(r"\w+", query.lower()))
    shared = {name: len(words & set(re.findall(r"\w+", text.lower()))) for name, text in DOCUMENTS.items()}
    return sorted(shared, key=lambda name: (-shared[name], name))[:TOP]


def langchain_chain() -> Any:
    from langchain_core.documents import Document
    from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough

    def retrieve(query: str) -> list[Document]:
        return [Document(page_content=DOCUMENTS[name], metadata={"source": name}) for name in ranked(query)]

    first = RunnableLambda(lambda state: state["context"][0].page_content)
    documents = RunnableParallel(context=RunnableLambda(retrieve), question=RunnablePassthrough())
    return documents.assign(answer=first)


def llama_index_engine() -> Any:
    from llama_index.core.base.response.schema import Response
    from llama_index.core.query_engine import CustomQueryEngine
    from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode

    class Engine(CustomQueryEngine):
        def custom_query(self, query_str: str) -> Response:
            nodes = []
            for place, name in enumerate(ranked(query_str)):
                source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=name)}
                node = TextNode(text=DOCUMENTS[name], relationships=source)
                nodes.append(NodeWithScore(node=node, score=1.0 - place / 10))
            return Response(nodes[0].node.get_content(), source_nodes=nodes)

    return Engine()


def haystack_pipeline() -> Any:
    from haystack import Document, Pipeline, component

    @component
    class Retriever:
        @component.output_types(documents=list[Document])
        def run(self, query: str) -> dict[str, list[Document]]:
            return {"documents": [Document(content=DOCUMENTS[n], meta={"source": n}) for n in ranked(query)]}

    @component
    class Reader:
        @component.output_types(replies=list[str])
        def run(self, documents: list[Document]) -> dict[str, list[str | None]]:
            return {"replies": [documents[0].content]}

    pipeline = Pipeline()
    pipeline.add_component("retriever", Retriever())
    pipeline.add_component("reader", Reader())
    pipeline.connect("retriever.documents", "reader.documents")
    return pipeline


SYSTEMS = {
    "langchain_core": langchain_chain,
    "llama_index.core": llama_index_engine,
    "haystack": haystack_pipeline,
}


def recall_of(system: Any) -> float:
    """Return the recall of a system on the eight questions."""
    samples = [
        {"sample_id": str(number), "query": question, "relevant_docs": [source]}
        for number, (question, source) in enumerate(QUESTIONS.items())
    ]
    return ae.evaluate(system, samples, metrics=f"recall@{TOP}", match="source", top_k=TOP)[
        f"recall@{TOP}"
    ].value


def is_installed(package: str) -> bool:
    """Return whether a package can be imported."""
    return find_spec(package.partition(".")[0]) is not None


if __name__ == "__main__":
    for package, make in SYSTEMS.items():
        if is_installed(package):
            print(f"{package}: recall@{TOP} {recall_of(make()):.4f}")
        else:
            print(f"{package} is not installed", file=sys.stderr)
