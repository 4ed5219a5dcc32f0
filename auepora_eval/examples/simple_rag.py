"""A toy system in forty lines: a word-overlap retriever and a generator that quotes its best document.

python -m auepora_eval.examples.simple_rag
"""

from __future__ import annotations

from auepora_eval.core.dataset import InMemoryDataset
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.rag_interface import Generator, Retriever, SimpleRAGSystem
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.core.types import Document, EvaluationSample, Response, RetrievedDocument
from auepora_eval.metrics.generation_text import RougeLAnswer
from auepora_eval.metrics.retrieval_basic import RecallAtK
from auepora_eval.reporting.tables import results_to_markdown

CORPUS = [
    Document("ferry", "The ferry Annet leaves Port Ennick at 7:40 and carries 22 cars."),
    Document("light", "The light on the Gull Stack flashes white every nine seconds."),
    Document("water", "Water is tested every Tuesday at the Linnet reservoir."),
]


class OverlapRetriever(Retriever):
    """Ranks documents by the number of words that they share with the query."""

    def __init__(self, corpus: list[Document]) -> None:
        self._corpus = corpus

    def retrieve(self, query: str, *, top_k: int = 5) -> list[RetrievedDocument]:
        wanted = set(query.lower().split())
        scored = [(len(wanted & set(doc.text.lower().split())), doc) for doc in self._corpus]
        scored.sort(key=lambda pair: (-pair[0], pair[1].doc_id))
        return [
            RetrievedDocument(doc, float(score), rank)
            for rank, (score, doc) in enumerate(scored[:top_k], start=1)
        ]


class QuoteGenerator(Generator):
    """Answers with the text of the first document."""

    def generate(self, query: str, context_docs: list[Document]) -> Response:
        return Response(context_docs[0].text if context_docs else "")


def build_dataset() -> InMemoryDataset:
    """Two questions about the corpus."""
    samples = [
        EvaluationSample(
            sample_id="1",
            query="How many cars does the ferry take?",
            relevant_docs=[CORPUS[0]],
            reference_answer=Response("22 cars"),
        ),
        EvaluationSample(
            sample_id="2",
            query="When is the water tested?",
            relevant_docs=[CORPUS[2]],
            reference_answer=Response("every Tuesday"),
        ),
    ]
    return InMemoryDataset("toy", samples)


def main() -> None:
    system = SimpleRAGSystem(OverlapRetriever(CORPUS), QuoteGenerator())
    plan = EvaluationPlan(metrics=[RecallAtK(k=1), RougeLAnswer()])
    results = AueporaEvaluator(system, plan, top_k=2).evaluate(build_dataset())
    print(results_to_markdown(results))


if __name__ == "__main__":
    main()
