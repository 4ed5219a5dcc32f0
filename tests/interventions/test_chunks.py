"""Gold that is a whole file, and a retriever that returns chunks of it: the usual project."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest

import auepora_eval as ae
from auepora_eval import Document

COUNT = 40
FILES = [
    Document(
        f"m{n}.md",
        f"Manual of the M{n}.\n\nThe M{n} is made for small offices.\n\nData of the M{n}:\nweight | {n}5 kg",
    )
    for n in range(COUNT)
]
QUESTIONS = [
    {
        "sample_id": f"q{n}",
        "query": f"How heavy is the M{n}?",
        "reference_answer": f"{n}5 kg",
        "relevant_docs": [f"m{n}.md"],
    }
    for n in range(COUNT)
]


def chunked(pieces: Callable[[str], Sequence[str]]) -> list[Document]:
    return [
        Document(f"{file.doc_id}#{n}", text, {"source": file.doc_id})
        for file in FILES
        for n, text in enumerate(pieces(file.text))
    ]


CUT = chunked(lambda text: text.split("\n"))  # the last line does not name its model
WHOLE = chunked(lambda text: text.split("\n\n"))


def generate(query: str, documents: Sequence[Document]) -> str:
    name = query.rsplit(maxsplit=1)[-1].strip("?")
    found = (re.search(r"\d+ kg", doc.text) for doc in documents if re.search(rf"\b{name}\b", doc.text))
    return next((one[0] for one in found if one), "I don't know.")


def retriever(chunks: list[Document]) -> Callable[[str, int], list[Document]]:
    def retrieve(query: str, top_k: int) -> list[Document]:
        name = query.rsplit(maxsplit=1)[-1].strip("?").lower()
        mine = [doc for doc in chunks if doc.doc_id.startswith(f"{name}.md")]
        return [*mine, *(doc for doc in chunks if doc not in mine)][:top_k]

    return retrieve


@pytest.mark.parametrize("corpus", [FILES, CUT], ids=["files", "chunks"])
def test_a_table_that_is_cut_from_its_heading_is_the_fault_of_the_chunks(corpus: list[Document]) -> None:
    found = ae.diagnose(ae.probe((retriever(CUT), generate), QUESTIONS, corpus, top_k=8))
    assert [one.name for one in found.stages] == ["passage"]
    assert found.first == "chunks"
    assert "First: the chunks" in str(found)
    assert "lost among others" not in str(found)


def test_a_chunk_of_the_found_document_that_comes_later_is_below_the_cutoff() -> None:
    found = ae.diagnose(ae.probe((retriever(WHOLE), generate), QUESTIONS, FILES, top_k=2))
    assert [one.name for one in found.stages] == ["cutoff"]
    assert found.first in ("cutoff", "chunks")
    assert "top_k 8 instead of 2" in str(found)


def test_gold_that_no_id_names_is_matched_by_source_and_said_so() -> None:
    found = ae.diagnose(ae.probe((retriever(WHOLE), generate), QUESTIONS, FILES, top_k=2))
    assert any("matched by source" in note for note in found.notes)
    assert found.stage("missed") is None


def test_a_black_box_says_that_what_it_found_lacks_the_answer() -> None:
    pair = (retriever(WHOLE), generate)
    run = ae.evaluate(pair, QUESTIONS, metrics="right", top_k=2)
    found = ae.diagnose(ae.probe(None, run, FILES))
    assert [one.name for one in found.stages] == ["passage"]
    assert found.stages[0].rule == "what was retrieved of it lacks the answer"


def test_the_same_retriever_with_another_top_k_is_the_system_of_the_run() -> None:
    retrieve = retriever(WHOLE)
    run = ae.evaluate((lambda query: retrieve(query, 2), generate), QUESTIONS, metrics="right")
    found = ae.diagnose(ae.probe((retrieve, generate), run, FILES))
    assert not found.unreached
    assert "top_k 8 instead of 2" in str(found)


def test_a_fix_that_applies_to_no_question_is_not_counted_as_a_test() -> None:
    some = {f"M{n}" for n in range(9)}

    def clumsy(query: str, documents: Sequence[Document]) -> str:
        number = query.rsplit(maxsplit=1)[-1].strip("?")
        return "I don't know." if number in some else generate(query, documents)

    found = ae.diagnose(ae.probe((retriever(WHOLE), clumsy), QUESTIONS, FILES, top_k=3))
    declines = next(fix for fix in found.fixes if fix.name == "declines")
    assert declines.p == pytest.approx(2 / 2**9)
    # Seven fixes apply: all gold is found, so index, search and rerank do not.
    assert declines.p_holm == pytest.approx(7 * declines.p)
    assert found.first == "declines"
