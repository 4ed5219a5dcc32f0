"""The prompt and the contexts of a record reach a system; documents graded 0 are not gold."""

from __future__ import annotations

from typing import Any

import pytest

from auepora_eval.core.rag_interface import as_system, with_contexts
from auepora_eval.core.types import Document, EvaluationSample, gold_documents
from auepora_eval.errors import ArgumentError
from auepora_eval.read.outputs import to_output
from tests.builders import a_failure, an_output

SPLIT = {
    "rag_prompt": "Answer from [1] and [2]: how many boats?",
    "contexts": ["[1] Three boats.", "[2] A pier."],
    "sources": ["a.txt", "a.txt"],
    "retrieved": [],
}
SAMPLE = EvaluationSample("1", "How many boats?", metadata={"split": SPLIT})
WITHOUT = EvaluationSample("1", "How many boats?")


def of_a_prompt(prompt: str) -> str:
    return prompt


def of_both(query: str, rag_prompt: str, top_k: int = 5) -> str:
    return f"{query} | {rag_prompt} | {top_k}"


def of_an_optional_prompt(query: str, *, prompt: str = "no prompt") -> str:
    return f"{query} | {prompt}"


@pytest.mark.parametrize(
    ("function", "sample", "answer"),
    [
        (of_a_prompt, SAMPLE, SPLIT["rag_prompt"]),
        (of_a_prompt, WITHOUT, "How many boats?"),
        (of_both, SAMPLE, f"How many boats? | {SPLIT['rag_prompt']} | 3"),
        (of_an_optional_prompt, SAMPLE, f"How many boats? | {SPLIT['rag_prompt']}"),
        (of_an_optional_prompt, WITHOUT, "How many boats? | no prompt"),
    ],
)
def test_a_function_gets_the_prompt_that_it_asks_for(
    function: Any, sample: EvaluationSample, answer: str
) -> None:
    output: Any = as_system(function).run(sample, top_k=3)
    assert output == answer


def test_a_prompt_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ArgumentError, match="asks for rag_prompt, and the sample has no prompt"):
        as_system(of_both).run(WITHOUT)


def test_contexts_as_retrieved() -> None:
    output = with_contexts(SAMPLE, to_output(as_system(of_a_prompt).run(SAMPLE)))
    assert [(hit.doc.doc_id, hit.doc.text, hit.rank) for hit in output.retrieved] == [
        ("a.txt", "Three boats.", 1),
        ("a.txt#2", "A pier.", 2),
    ]
    assert "documents_missing" not in output.extra
    own = to_output({"answer": "x", "retrieved": ["d"]})
    assert with_contexts(WITHOUT, own) is own
    failed = a_failure()
    assert with_contexts(SAMPLE, failed) is failed
    assert [hit.doc.doc_id for hit in with_contexts(SAMPLE, an_output("ab")).retrieved] == [
        "a.txt",
        "a.txt#2",
    ]


def test_documents_graded_0_are_not_gold() -> None:
    docs = [Document("a", ""), Document("b", "", {"relevance": 0}), Document("c", "", {"relevance": 2})]
    assert [doc.doc_id for doc in gold_documents(EvaluationSample("1", "q", docs))] == ["a", "c"]
    assert gold_documents(WITHOUT) == []
