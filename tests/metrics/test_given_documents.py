"""Samples that bring their own documents: who is given them, and what is measured of the others.

Three questions: one with noise, one with a false document, and one whose fact was removed. The system's own
index has the true document of each, so a system that searches it is always right, and never sees the noise.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import auepora_eval as ae
from auepora_eval.cli.main import main
from auepora_eval.core.rag_interface import Generator, Retriever, SimpleRAGSystem
from auepora_eval.core.types import Document, EvaluationSample, Response, RetrievedDocument

pytestmark = pytest.mark.filterwarnings("ignore::auepora_eval.core.plan.PartialCoverageWarning")
TRUE = Document("own", "The pier was built in 1911.")
OTHER = Document("other", "A boat moors at the quay.")
NOISE = Document("noise", "The lamp was built in 1920.")
FALSE = Document("own", "The pier was built in 1999.")  # the id of the true one, with another text
CLOSED = {"closed_context": True}
NOT_GIVEN = "the system was not given this sample's documents"
METRICS = (
    "noise_accuracy,counterfactual_accuracy,fake_adoption_rate,rejection_rate,over_refusal_rate,"
    "answered_accuracy,contains_answer,recall@1"
)


def a_question(name: str, *documents: Document, **labels: Any) -> EvaluationSample:
    reference = None if labels["scenario"] == "unanswerable" else "1911"
    return EvaluationSample(
        name, "When was the pier built?", [TRUE], list(documents), reference, labels, dict(CLOSED)
    )


SAMPLES = [
    a_question("noise", TRUE, NOISE, scenario="noise", noise_ratio=0.5, answerable=True),
    a_question("false", FALSE, scenario="counterfactual", true_answer="1911", fake_answer="1999"),
    a_question("removed", NOISE, scenario="unanswerable", answerable=False),
]


def read(query: str, documents: list[Document]) -> str:
    """Answer from the first document about the pier."""
    about = [doc.text for doc in documents if "pier" in doc.text]
    return about[0] if about else "I don't know."


def search(query: str) -> list[Document]:
    return [TRUE, OTHER]


class Index(Retriever):
    def retrieve(self, query: str, *, top_k: int = 5) -> list[RetrievedDocument]:
        return [RetrievedDocument(TRUE, 1.0, 1), RetrievedDocument(OTHER, 0.5, 2)]


class Reader(Generator):
    def generate(self, query: str, context_docs: list[Document]) -> Response:
        return Response(read(query, context_docs))


def function(query: str, documents: list[Document] | None = None) -> str:
    return read(query, documents or search(query))


async def coroutine(query: str, documents: list[Document] | None = None) -> str:
    await asyncio.sleep(0)
    return function(query, documents)


async def read_later(query: str, documents: list[Document]) -> str:
    return read(query, documents)


class Own:
    def run(self, sample: EvaluationSample, *, top_k: int = 5, documents: Any = None) -> Any:
        return function(sample.query, documents)


class Obedient:
    """A system that looks for the documents of a sample by itself."""

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> Any:
        found = sample.candidate_docs if sample.metadata.get("closed_context") else search(sample.query)
        return found, read(sample.query, found or [])


class OfItsOwn(SimpleRAGSystem):
    """A system that inherits, and does not use the documents."""

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> Any:  # type: ignore[override]
        return search(sample.query), read(sample.query, search(sample.query))


GIVEN: dict[str, Callable[[], Any]] = {
    "a pair": lambda: (search, read),
    "a pair with a coroutine": lambda: (search, read_later),
    "SimpleRAGSystem": lambda: SimpleRAGSystem(Index(), Reader()),
    "a function with documents": lambda: function,
    "a coroutine with documents": lambda: coroutine,
    "run with documents": Own,
    "a system that looks for them": Obedient,
}
NOT_REACHED: dict[str, Callable[[], Any]] = {
    "a function of the query": lambda: lambda query: (search(query), read(query, [TRUE])),
    "an answer alone": lambda: lambda query: read(query, [TRUE]),
    "a subclass with a run of its own": lambda: OfItsOwn(Index(), Reader()),
    "a mark of its own": lambda: (
        lambda query: {
            "answer": "1911",
            "retrieved": [TRUE, OTHER],
            "extra": {"documents_given": True},
        }
    ),
}


@pytest.mark.parametrize("kind", GIVEN)
def test_a_generator_is_given_the_documents_of_a_sample(kind: str) -> None:
    run = ae.evaluate(GIVEN[kind](), SAMPLES, metrics=METRICS)
    values = {result.name: (result.value, result.coverage.scored) for result in run.results}
    assert [output.response.text for output in run.outputs] == [TRUE.text, FALSE.text, "I don't know."]
    assert [hit.doc.text for hit in run.outputs[0].retrieved] == [TRUE.text, NOISE.text]
    assert values["noise_accuracy"] == (1.0, 1)
    assert values["counterfactual_accuracy"] == (0.0, 1)
    assert values["fake_adoption_rate"] == (1.0, 1)
    assert values["rejection_rate"] == (1.0, 1)
    assert values["over_refusal_rate"] == (0.0, 1)
    # Given documents were not retrieved. The system that looked for them itself has retrieved them.
    assert values["recall@1"][1] == (3 if kind == "a system that looks for them" else 0)


@pytest.mark.parametrize("kind", NOT_REACHED)
def test_what_a_system_was_not_given_is_not_measured(kind: str) -> None:
    run = ae.evaluate(NOT_REACHED[kind](), SAMPLES, metrics=METRICS)
    for name in METRICS.split(",")[:6]:
        assert run[name].not_measured == NOT_GIVEN, name
        assert (run[name].coverage.scored, run[name].coverage.failed) == (0, 0)
    assert (run["contains_answer"].value, run["contains_answer"].coverage.scored) == (1.0, 2)


def test_open_questions_are_measured_for_everybody() -> None:
    opened = EvaluationSample("open", "Who is it?", labels={"answerable": False})
    run = ae.evaluate(lambda query: "I don't know.", [*SAMPLES, opened], metrics="rejection_rate")
    result = run["rejection_rate"]
    assert (result.value, result.coverage.scored, result.coverage.skipped) == (1.0, 1, 3)
    assert result.not_measured == ""
    assert result.notes == [
        f"rejection_rate: 1 of 4 samples are not measured: {NOT_GIVEN} "
        "(a system with a parameter `documents` is)."
    ]


def test_a_function_that_needs_documents_says_so_where_there_are_none() -> None:
    with pytest.raises(ae.EvaluationError, match=r"read asks for documents.*closed_context.*documents=None"):
        ae.evaluate(read, [{"sample_id": "1", "query": "When?"}], metrics="non_answer_rate")


@pytest.mark.parametrize(
    ("retrieved", "scored"),
    [
        pytest.param([{"doc_id": "own", "text": FALSE.text}], 1, id="its document"),
        pytest.param([{"doc_id": "x", "text": f" {FALSE.text}\n"}], 1, id="its text"),
        pytest.param(["own"], 1, id="its id, without a text"),
        pytest.param([{"doc_id": "own", "text": TRUE.text}], 0, id="its id, with the text of the original"),
        pytest.param([{"doc_id": "own", "text": FALSE.text}, "other"], 0, id="another one beside it"),
        pytest.param([], 0, id="no documents"),
        pytest.param(None, 0, id="documents not named"),
    ],
)
def test_predictions_show_by_their_documents_what_the_system_saw(retrieved: Any, scored: int) -> None:
    line = {"sample_id": "false", "answer": "1999", **({} if retrieved is None else {"retrieved": retrieved})}
    run = ae.score([SAMPLES[1]], [line], metrics="fake_adoption_rate")
    assert run["fake_adoption_rate"].coverage.scored == scored


@pytest.mark.parametrize(("retrieved", "scored"), [(["other"], 0), (["own", "other"], 1), (["own"], 1)])
def test_who_never_met_the_false_document_did_not_withstand_it(retrieved: list[str], scored: int) -> None:
    """A system of its own index may find a document that the sample has beside the false one."""
    labels = {"scenario": "counterfactual", "true_answer": "1911", "fake_answer": "1999"}
    line = {"sample_id": "false", "answer": "A boat.", "retrieved": retrieved}
    run = ae.score([a_question("false", FALSE, OTHER, **labels)], [line], metrics="fake_adoption_rate")
    assert run["fake_adoption_rate"].coverage.scored == scored


def test_stored_runs_are_scored_again_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, system in (("given", function), ("not", lambda query: read(query, [TRUE]))):
        run = ae.evaluate(system, SAMPLES, metrics="fake_adoption_rate", evaluation_id=name)
        run.save("results")
    for name in ("given", "not"):
        metrics = ["--metrics", "rejection_rate,noise_accuracy", "--only"]
        assert (
            main(["score", "--run", f"results/{name}", *metrics, "--id", f"{name}2", "--out", "results"]) == 0
        )
    given, other = (ae.load_run(f"results/{name}") for name in ("given2", "not2"))
    assert [result.coverage.scored for result in given.results] == [1, 1]
    assert [result.not_measured for result in other.results] == [NOT_GIVEN, NOT_GIVEN]


def test_noise_levels_are_those_that_reached_the_system() -> None:
    """Levels 0 and 0.5 were given, 0.8 was not: the drop is that from 0 to 0.5."""
    samples, lines = [], []
    for number, (ratio, answer, found) in enumerate(
        [(0.0, "1911", "own"), (0.5, "1920", "own"), (0.8, "1911", "x")]
    ):
        labels = {"scenario": "noise", "noise_ratio": ratio}
        sample = a_question(str(number), Document("own", ""), **labels)
        samples.append(sample)
        lines.append({"sample_id": str(number), "answer": answer, "retrieved": [found]})
    run = ae.score(samples, lines, metrics="noise_drop,noise_accuracy,noise_accuracy@0.8")
    assert (run["noise_drop"].value, run["noise_drop"].coverage.scored) == (1.0, 2)
    assert run["noise_accuracy"].value == 0.5
    assert run["noise_accuracy@0.8"].scores[2].reason == NOT_GIVEN


def test_a_function_of_the_prompt_is_given_the_documents_in_it() -> None:
    sample = a_question("false", FALSE, scenario="counterfactual", true_answer="1911", fake_answer="1999")
    sample.metadata["split"] = {"rag_prompt": f"{FALSE.text} When was the pier built?"}
    run = ae.evaluate(lambda prompt: prompt[:27], [sample], metrics="fake_adoption_rate,grounding_overlap")
    assert [result.value for result in run.results] == [1.0, 1.0]
    bare = [a_question("false", FALSE, scenario="counterfactual", true_answer="1911", fake_answer="1999")]
    run = ae.evaluate(lambda prompt: "1999", bare, metrics="fake_adoption_rate")
    assert run["fake_adoption_rate"].not_measured == NOT_GIVEN
