"""Raw tasks in both shapes, tidy and untidy, to the records of splits."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auepora_eval.read.tasks import TaskError, read_split_record, read_task, split_record
from tests.raw_tasks import a_flat_task, a_raw_task

QA_FIELDS = (
    "task_id task_type question reference_answer rag_prompt contexts sources retrieved citations"
    " answer_citations metadata"
).split()
SUMMARY_FIELDS = (
    "task_id task_type instruction reference_summary rag_prompt contexts sources retrieved citations metadata"
).split()


def built(task: dict[str, Any] | str, **how: Any) -> dict[str, Any]:
    line = task if isinstance(task, str) else json.dumps(task)
    record: dict[str, Any] = json.loads(
        msgspec.json.encode(split_record(read_task(line.encode(), "raw.jsonl:1", **how)))
    )
    return record


def refused(task: dict[str, Any] | str | bytes, **how: Any) -> TaskError:
    line = task if isinstance(task, bytes) else (task if isinstance(task, str) else json.dumps(task)).encode()
    with pytest.raises(TaskError) as caught:
        split_record(read_task(line, "raw.jsonl:1", **how))
    return caught.value


@pytest.mark.parametrize("task", [a_raw_task(), a_flat_task()], ids=["nested", "flat"])
def test_the_fields_of_both_splits_stand_in_the_order_of_seed_000(task: dict[str, Any]) -> None:
    assert list(built(task)) == QA_FIELDS
    assert list(built({**task, "task_type": "summaries"})) == SUMMARY_FIELDS
    assert list(built({**task, "task_type": " citations "})) == QA_FIELDS


def test_a_nested_task() -> None:
    record = built(a_raw_task())
    assert record["question"] == "How many boats?"
    assert record["reference_answer"] == "Three boats [2]."
    assert record["rag_prompt"] == "You are an assistant."
    assert record["contexts"] == ["[1] Page 1\ntext 1", "[2] Page 2\ntext 2"]
    assert record["sources"] == ["a.txt#page=1", "a.txt#page=2"]
    assert [chunk["id"] for chunk in record["retrieved"]] == [1, 2]
    assert len(record["citations"]) == 2
    assert record["answer_citations"] == [record["citations"][1]]  # the answer cites [2]
    assert record["metadata"] == {"source_path": "a.txt", "selected_chunk_ids": [2], "rag_scores": [0.5, 0.5]}


def test_a_flat_task_gets_numbers_and_citations_from_its_sources() -> None:
    record = built(a_flat_task())
    assert record["contexts"] == ["[1] first", "[2] second"]
    assert record["answer_citations"] == [{"ordinal": 1, "source_path": "a.txt"}]
    assert record["retrieved"] == record["citations"] == []
    assert record["metadata"] == {}


@pytest.mark.parametrize(
    ("fields", "question", "reference"),
    [
        pytest.param({"instruction": "I", "question": "Q"}, "I", "A", id="instruction first"),
        pytest.param({"instruction": None, "question": "Q"}, "Q", "A", id="then question"),
        pytest.param({"question": "Q", "expected_response": "E"}, "Q", "E", id="expected_response first"),
    ],
)
def test_where_question_and_reference_come_from(
    fields: dict[str, Any], question: str, reference: str
) -> None:
    record = built({**a_flat_task(question=None, answer="A"), **fields})
    assert (record["question"], record["reference_answer"]) == (question, reference)


@pytest.mark.parametrize(
    ("fields", "instruction", "reference"),
    [
        pytest.param({"instruction": "I", "prompt": "P", "expected_response": "E"}, "I", "E", id="first"),
        pytest.param({"prompt": "P", "question": "Q", "response": "R", "answer": "A"}, "P", "R", id="second"),
        pytest.param({"question": "Q", "answer": "A"}, "Q", "A", id="third"),
    ],
)
def test_where_instruction_and_summary_come_from(
    fields: dict[str, Any], instruction: str, reference: str
) -> None:
    record = built({"task_id": "s", "task_type": "summaries", **fields})
    assert (record["instruction"], record["reference_summary"]) == (instruction, reference)


@pytest.mark.parametrize(
    ("rag", "contexts", "sources"),
    [
        pytest.param(
            {"contexts": ["[1] a", "b"], "sources": ["x", "y"]}, ["[1] a", "[2] b"], ["x", "y"], id="mixed"
        ),
        pytest.param(
            {"retrieved": [{"text": "a", "source_path": "x", "page": 3}]},
            ["[1] a"],
            ["x#page=3"],
            id="retrieved",
        ),
    ],
)
def test_contexts_and_sources(rag: dict[str, Any], contexts: list[str], sources: list[str]) -> None:
    record = built({**a_raw_task(), "rag": rag})
    assert (record["contexts"], record["sources"]) == (contexts, sources)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"answer_citations": [{"id": 9}]}, [{"id": 9}], id="as curated"),
        pytest.param({"citations": [{"id": 8}]}, [{"id": 8}], id="those at the top of a nested task"),
        pytest.param({"expected_response": "Far [7] out."}, [], id="a marker of nothing"),
        pytest.param({"expected_response": "Both [2, 1][2]."}, [2, 1], id="each once, as they come"),
    ],
)
def test_answer_citations(fields: dict[str, Any], expected: list[Any]) -> None:
    found = built({**a_raw_task(), **fields})["answer_citations"]
    assert [
        entry if isinstance(want, dict) else entry["page"]
        for entry, want in zip(found, expected, strict=True)
    ] == (expected)


@pytest.mark.parametrize(
    ("task", "reason", "words"),
    [
        pytest.param("{", "invalid_json", "not JSON", id="cut off"),
        pytest.param(a_raw_task(task_id=None), "missing_task_id", "there is none", id="no id"),
        pytest.param(a_raw_task(instruction=None), "missing_question", "'instruction'", id="no question"),
        pytest.param(a_raw_task(expected_response=""), "missing_reference", "'answer'", id="no reference"),
        pytest.param(a_raw_task(rag="text"), "invalid_field", "$.rag", id="rag is a text"),
        pytest.param(
            a_raw_task(rag={"contexts": ["a", "b"], "sources": ["x"]}),
            "contexts_sources_mismatch",
            "2 contexts but 1 sources",
            id="not one to one",
        ),
    ],
)
def test_what_cannot_be_used_is_named(task: dict[str, Any] | str | bytes, reason: str, words: str) -> None:
    error = refused(task)
    assert error.reason == reason
    assert words in error.what


def test_ordinals_count_and_not_places_where_there_are_any() -> None:
    cited = [{"excerpt": "no number"}, {"ordinal": 3, "id": "c"}, {"ordinal": 5, "id": "e"}, {"ordinal": 3}]
    task = a_raw_task(expected_response="So it is [1], and so [3] [3].")
    task["rag"]["citations"] = cited
    assert built(task)["answer_citations"] == [cited[1]]
    notes: Counter[str] = Counter()
    split_record(read_task(json.dumps(task).encode(), "raw.jsonl:1"), notes)
    assert notes == {"markers_of_nothing": 1}


@pytest.mark.parametrize(
    ("contexts", "answer", "expected"),
    [
        pytest.param(["[3] c", "[5] e"], "It is e [5].", None, id="cited by their own numbers"),
        pytest.param(["[0] a", "[1] b"], "It is b [1].", None, id="numbered from 0"),
        pytest.param(["[3] c", "[5] e"], "It is e.", ["[1] [3] c", "[2] [5] e"], id="not cited"),
        pytest.param(["[3] c", "e"], "It is c [1].", ["[1] [3] c", "[2] e"], id="one begins with a number"),
    ],
)
def test_contexts_with_other_numbers(contexts: list[str], answer: str, expected: list[str] | None) -> None:
    task = a_raw_task(expected_response=answer, rag={"contexts": contexts, "sources": ["x", "y"]})
    if expected is None:
        assert refused(task).reason == "contexts_misnumbered"
    else:
        assert built(task)["contexts"] == expected


def test_fields_that_no_split_has_are_kept_in_the_metadata() -> None:
    task = a_raw_task(labels={"scenario": "noise"}, difficulty="hard", metadata={"difficulty": 3, "x": 1})
    task["rag"]["retriever"] = "bm25"
    assert built(task)["metadata"] == {
        "difficulty": 3,
        "x": 1,
        "labels": {"scenario": "noise"},
        "difficulty_": "hard",
        "rag": {"retriever": "bm25"},
        "rag_scores": [0.5, 0.5],
    }
    for place, chunk in enumerate(task["rag"]["retrieved"]):
        chunk["score"] = task["rag"]["scores"][place]
    assert "rag_scores" not in built(task)["metadata"]  # they are with the chunks already


texts = st.text(st.characters(codec="utf-8"), max_size=20)
anything = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(0, 1) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
FIELDS = "task_id task_type instruction question answer response rag_prompt contexts sources".split()
PARTS = ("prompt", "contexts", "sources", "retrieved", "citations")
odd_tasks = st.fixed_dictionaries(
    {}, optional=dict.fromkeys((*FIELDS, "citations", "answer_citations", "metadata", "rag"), anything)
)
odd_rags = st.fixed_dictionaries({}, optional=dict.fromkeys(PARTS, anything))


@given(odd_tasks, st.none() | odd_rags, st.sampled_from(["qa", "summaries", None]))
def test_any_task_becomes_a_valid_record_or_is_refused(
    task: dict[str, Any], rag: dict[str, Any] | None, kind: str | None
) -> None:
    task = {**a_flat_task(), **task, **({} if rag is None else {"rag": rag})}
    if kind is not None:
        task["task_type"] = kind
    line = json.dumps(task).encode()
    try:
        record = split_record(read_task(line, "raw.jsonl:1"))
    except TaskError:
        return
    read_split_record(json.loads(msgspec.json.encode(record)), "split.jsonl:1")


def test_a_record_of_a_split_is_built_again_to_itself() -> None:
    for task in (a_raw_task(), a_flat_task(), a_raw_task(kind="summaries")):
        record = built(task)
        assert built(record) == record
