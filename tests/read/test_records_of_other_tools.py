"""Records with the field names of other tools: what each name is read as, and what is ambiguous."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import auepora_eval as ae
from auepora_eval.core.dataset import as_dataset
from auepora_eval.core.types import EvaluationSample, SystemOutputs
from auepora_eval.errors import DataError
from auepora_eval.read.fields import ReadingNote, query_id, read_foreign
from auepora_eval.read.outputs import text_id


def read(record: dict[str, Any], **columns: str) -> tuple[EvaluationSample, SystemOutputs | None]:
    with pytest.warns(ReadingNote):
        dataset = as_dataset([record], columns=columns or None)
    (sample,) = dataset
    return sample, dataset.outputs.get(sample.sample_id)


@pytest.mark.parametrize("query", ["question", "user_input", "input", "query_text", "prompt"])
@pytest.mark.parametrize(
    "reference", ["ground_truth", "expected_output", "reference", "expected_answer", "gt_answer", "answer"]
)
def test_names_of_questions_and_references(query: str, reference: str) -> None:
    sample, output = read({query: "How many?", reference: "22"})
    assert (sample.query, sample.sample_id) == ("How many?", query_id("How many?"))
    assert sample.reference_answer is not None
    assert sample.reference_answer.text == "22"
    assert output is None


def test_ragas_record() -> None:
    sample, output = read(
        {
            "user_input": "How many?",
            "reference": "22",
            "reference_contexts": ["It carries 22 cars."],
            "response": "22 cars",
            "retrieved_contexts": ["It carries 22 cars.", "The light flashes."],
        }
    )
    assert [doc.doc_id for doc in sample.relevant_docs or ()] == [text_id("It carries 22 cars.")]
    assert output is not None
    assert output.response.text == "22 cars"
    assert output.retrieved[0].doc.doc_id == text_id("It carries 22 cars.")  # gold and retrieved meet


def test_ids_and_texts_of_contexts_belong_together() -> None:
    sample, _ = read(
        {"user_input": "q", "reference_contexts": ["a text"], "reference_context_ids": [7], "other": "kept"}
    )
    assert [(doc.doc_id, doc.text) for doc in sample.relevant_docs or ()] == [("7", "a text")]
    assert sample.metadata["other"] == "kept"


def test_deepeval_context_is_the_gold() -> None:
    sample, output = read(
        {
            "input": "q",
            "actual_output": "22",
            "expected_output": "22",
            "context": "gold one|gold two",
            "retrieval_context": "deepeval_source=ferries.txt,deepeval_context=It carries 22 cars.",
            "tools_called": [{"name": "search"}],
        }
    )
    assert [doc.text for doc in sample.relevant_docs or ()] == ["gold one", "gold two"]
    assert output is not None
    assert [(hit.doc.doc_id, hit.doc.text) for hit in output.retrieved] == [
        ("ferries.txt", "It carries 22 cars.")
    ]
    assert output.extra["tool_calls"] == [{"name": "search"}]


def test_answer_beside_a_reference_is_the_systems() -> None:
    sample, output = read({"question": "q", "answer": "23", "ground_truth": "22", "contexts": ["a text"]})
    assert sample.reference_answer is not None
    assert sample.reference_answer.text == "22"
    assert output is not None
    assert (output.response.text, output.retrieved[0].doc.text) == ("23", "a text")


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"question": "a", "input": "b"}, "query=question or query=input"),
        ({"question": "a", "answer": "b", "contexts": []}, "reference_answer=answer or answer=answer"),
        ({"question": "a", "context": "b", "answer": "c"}, "relevant_docs=context or retrieved=context"),
    ],
)
def test_ambiguous_names_are_an_error_with_the_readings(record: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        as_dataset([record])


def test_columns_decide() -> None:
    sample, output = read(
        {"question": "a", "input": "b", "gold": "c"}, query="input", reference_answer="gold"
    )
    assert sample.query == "b"
    assert sample.metadata["question"] == "a"
    assert output is None


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"querry": "question"}, "there is no field 'querry'. Did you mean query?"),
        ({"query": "questoin"}, "there is no column 'questoin'. Did you mean question?"),
    ],
)
def test_wrong_columns_are_an_error(columns: dict[str, str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        as_dataset([{"question": "a"}], columns=columns)


def test_cells_are_never_executed() -> None:
    with pytest.raises(DataError, match="is not a list that can be read"):
        as_dataset([{"question": "q", "reference_contexts": "[__import__('os').getpid()]"}])


def test_equal_questions_have_different_ids() -> None:
    with pytest.warns(ReadingNote, match="sample ids are made from the queries"):
        dataset = as_dataset([{"question": "q"}, {"question": "q"}])
    assert [sample.sample_id for sample in dataset] == [query_id("q"), f"{query_id('q')}~2"]


def test_our_own_names_beside_those_of_others() -> None:
    sample, output = read({"sample_id": 1, "query": "q", "ground_truth": "x", "response": "y"})
    assert sample.sample_id == "1"
    assert sample.reference_answer is not None
    assert sample.reference_answer.text == "x"
    assert output is not None
    assert output.response.text == "y"


def test_an_empty_answer_is_an_answer_and_a_missing_one_is_not() -> None:
    """An empty text scores 0. Without an answer the call has failed."""
    _, empty = read({"question": "q", "response": ""})
    _, missing = read({"question": "q", "response": None})
    assert (empty is not None, missing) == (True, None)


def test_columns_of_a_dict() -> None:
    """The form of ragas 0.1 and of Dataset.from_dict; and of pandas' to_json and to_dict."""
    lists = {"question": ["q", "r"], "answer": ["a", "b"], "ground_truth": ["22", "23"]}
    by_row = {name: dict(enumerate(cells)) for name, cells in lists.items()}
    for columns in (lists, by_row):
        with pytest.warns(ReadingNote):
            dataset = as_dataset(columns)
        assert [sample.query for sample in dataset] == ["q", "r"]
        assert [output.response.text for output in dataset.outputs.values()] == ["a", "b"]
    with pytest.raises(DataError, match="'answer' has 1, others have 2"):
        as_dataset({"question": ["q", "r"], "answer": ["a"]})


def test_a_frame_without_a_known_question_lists_its_columns() -> None:
    with pytest.raises(DataError, match=r"no column is known to hold the question, among foo, bar.*columns="):
        as_dataset([{"foo": 1, "bar": 2}])


def test_conversation_has_its_last_question() -> None:
    turns = [{"type": "human", "content": "first"}, {"type": "ai", "content": "x"}]
    sample, _ = read({"user_input": [*turns, {"type": "human", "content": "last"}]})
    assert sample.query == "last"


@pytest.mark.parametrize("names", [("Question", "Ground Truth"), ("QUESTION ", "ground-truth")])
def test_names_in_any_spelling(names: tuple[str, str], tmp_path: Path) -> None:
    rows = [dict(zip(names, ("How many?", "22"), strict=True))]
    (tmp_path / "q.jsonl").write_text(json.dumps(rows[0]))
    (tmp_path / "q.csv").write_text(f"{','.join(names)}\nHow many?,22\n")
    for source in (rows, tmp_path / "q.jsonl", tmp_path / "q.csv"):
        with pytest.warns(ReadingNote, match="'(?i:question) ?' as query, '(?i:ground.truth)' as reference"):
            (sample,) = ae.load_dataset(source)
        assert sample.reference_answer is not None
        assert (sample.query, sample.reference_answer.text, sample.metadata) == ("How many?", "22", {})


def test_a_column_that_is_named_or_spelt_exactly_comes_first() -> None:
    sample, _ = read({"Question": "kept", "question": "read"})
    assert (sample.query, sample.metadata["Question"]) == ("read", "kept")
    sample, _ = read({"Question": "read", "Target": "22"}, query="Question")
    assert (sample.query, sample.reference_answer and sample.reference_answer.text) == ("read", "22")


# Frames and iterators.

ROWS = [
    {"id": 1, "question": "How many?", "ground_truth": "22"},
    {"id": 2, "question": "When?", "ground_truth": None},
]


@pytest.mark.parametrize("form", ["list", "iterator", "pandas", "polars", "lazy", "arrow"])
def test_rows_come_in_any_form(form: str) -> None:
    rows: Any = ROWS
    if form == "iterator":
        rows = iter(ROWS)
    elif form == "pandas":
        rows = pytest.importorskip("pandas").DataFrame(ROWS)
    elif form in ("polars", "lazy"):
        frame = pytest.importorskip("polars").DataFrame(ROWS)
        rows = frame.lazy() if form == "lazy" else frame
    elif form == "arrow":
        rows = pytest.importorskip("pyarrow").Table.from_pylist(ROWS)
    with pytest.warns(ReadingNote, match="'question' as query"):
        samples = list(ae.load_dataset(rows))
    assert [(sample.sample_id, sample.query) for sample in samples] == [("1", "How many?"), ("2", "When?")]
    assert [sample.reference_answer is None for sample in samples] == [False, True]


@pytest.mark.filterwarnings("ignore::auepora_eval.read.fields.ReadingNote")
def test_evaluate_and_score_take_rows() -> None:
    run = ae.evaluate(lambda query: "22", ROWS[:1], metrics="exact_match")
    assert run["exact_match"].value == 1
    rows = [{"id": "1", "question": "q", "answer": "22", "ground_truth": "22"}]
    assert ae.score(rows, metrics="exact_match")["exact_match"].value == 1
    answers = [{"id": "1", "answer": "23"}]
    scored = ae.score(rows, answers, metrics="exact_match", name="mine")
    assert (scored["exact_match"].value, scored.system_name) == (0, "mine")
    assert scored.to_records()[0]["exact_match"] == 0


def test_score_needs_answers() -> None:
    with pytest.raises(DataError, match="there are no answers in it"):
        ae.score([{"sample_id": "1", "query": "q", "reference_answer": "x"}])


@pytest.mark.parametrize("name", ["contexts", "retrieved_contexts", "retrieval_context"])
@pytest.mark.parametrize("as_file", [True, False])
def test_outputs_with_our_ids_and_their_names_of_documents(tmp_path: Path, name: str, as_file: bool) -> None:
    rows = [{"sample_id": "1", "answer": "At noon.", name: ["It leaves at noon."]}]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    samples = [{"sample_id": "1", "query": "When?", "reference_answer": "noon"}]
    with pytest.warns(ReadingNote):
        run = ae.score(samples, path if as_file else rows, metrics="token_f1")
    assert [hit.doc.text for hit in run.outputs[0].retrieved] == ["It leaves at noon."]


@pytest.mark.parametrize(
    ("row", "columns", "note"),
    [
        pytest.param(
            {"question": "q", "gold": "a", "kind": "x"}, {}, "'gold' (1), 'kind' (1)", id="no gold is known"
        ),
        pytest.param({"question": "q", "gold": "a"}, {"reference_answer": "gold"}, "", id="named"),
        pytest.param({"question": "q", "ideal": "a", "kind": "x"}, {}, "", id="known"),
        pytest.param({"question": "q"}, {}, "", id="only questions"),
        pytest.param(
            {"question": "q", "reference_context_ids": "['1']", "kind": "x"}, {}, "", id="documents"
        ),
    ],
)
def test_columns_that_may_be_the_reference_answer_are_named(
    row: dict[str, str], columns: dict[str, str], note: str
) -> None:
    with pytest.warns(ReadingNote) as notes:
        read_foreign([row], "faq.csv", columns)
    fix = "if one is reference_answer, name it: --columns reference_answer=NAME"
    said = f"not read, but kept in metadata: {note}; {fix}"
    assert (said in str(notes[0].message)) is bool(note)
    assert (fix in str(notes[0].message)) is bool(note)


ANSWERED = {"question": "When?", "answer": "At noon.", "ground_truth": "noon", "faithfulness": 0.5}


@pytest.mark.parametrize(
    ("change", "is_same_data"),
    [
        pytest.param({"faithfulness": 0.9, "tag": "x"}, True, id="the scores of another tool"),
        pytest.param({"answer": "At one."}, True, id="another answer"),
        pytest.param({"question": "Where?"}, False, id="another question"),
        pytest.param({"ground_truth": "one"}, False, id="another reference"),
        pytest.param({"cluster": "trip"}, False, id="a column that intervals read"),
    ],
)
def test_answers_of_two_systems_to_the_same_questions_are_the_same_data(
    change: dict[str, Any], is_same_data: bool
) -> None:
    with pytest.warns(ReadingNote):
        first, second = (
            ae.score([row], metrics="contains_answer") for row in (ANSWERED, {**ANSWERED, **change})
        )
    assert (first.dataset_fingerprint == second.dataset_fingerprint) is is_same_data
    assert first.samples[0].metadata["faithfulness"] == 0.5  # kept, to slice by


@pytest.mark.parametrize(
    ("cell", "texts"),
    [
        pytest.param(
            "['It carries 22 cars.', \"It's white.\"]", ["It carries 22 cars.", "It's white."], id="list"
        ),
        pytest.param(
            "['It carries 22 cars.' \"It's white.\"]", ["It carries 22 cars.", "It's white."], id="array"
        ),
        pytest.param(
            "['It carries 22 cars.'\n 'a \\'b\\' c']", ["It carries 22 cars.", "a 'b' c"], id="array in lines"
        ),
        pytest.param('["It carries 22 cars."]', ["It carries 22 cars."], id="JSON"),
        pytest.param("[1] See the manual.", ["[1] See the manual."], id="text"),
        pytest.param("[[Ferry]] is a ship.", ["[[Ferry]] is a ship."], id="markup"),
        pytest.param("[]", [], id="nothing"),
    ],
)
def test_lists_of_retrieved_texts_in_cells(cell: str, texts: list[str]) -> None:
    """Lists as Python, numpy (Hugging Face's to_csv) and JSON write them."""
    _, output = read({"question": "q", "response": "a", "contexts": cell})
    assert output is not None
    assert [hit.doc.text for hit in output.retrieved] == texts


@pytest.mark.parametrize(
    "cell",
    [
        pytest.param("['It carries 22 cars.', 'The light", id="cut off, as Excel cuts long cells"),
        pytest.param("['a b' ... 'y z']", id="shortened by numpy"),
        pytest.param("[Document(page_content='It carries 22 cars.')]", id="objects"),
    ],
)
def test_a_list_that_cannot_be_read_is_not_one_text(cell: str) -> None:
    with pytest.raises(DataError, match=r"dataset\[0\]: contexts: .* is not a list that can be read"):
        as_dataset([{"question": "q", "response": "a", "contexts": cell}])


@pytest.mark.parametrize(
    ("name", "cell", "ids"),
    [
        ("relevant_doc_ids", "d1;d2", ["d1", "d2"]),
        ("relevant_doc_ids", "d1, d2", ["d1", "d2"]),
        ("relevant_doc_ids", "[1 2]", ["1", "2"]),
        ("relevant_doc_ids", "7", ["7"]),
        ("relevant_docs", "d1;d2", ["d1", "d2"]),
        ("relevant_docs", "d1", ["d1"]),
        ("relevant_docs", "Smith, John", ["Smith, John"]),
    ],
)
def test_ids_in_a_cell(name: str, cell: str, ids: list[str]) -> None:
    sample, _ = read({"question": "q", name: cell})
    assert [doc.doc_id for doc in sample.relevant_docs or ()] == ids


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        pytest.param(("a", "b"), ["a", "b"], id="tuple"),
        pytest.param({"b", "a"}, ["a", "b"], id="set"),
        pytest.param([None, float("nan"), "", "a"], ["a"], id="empty cells"),
        pytest.param([{"text": "a", "answer_start": 3}, {"text": "b"}], ["a", "b"], id="SQuAD"),
        pytest.param([22, 23.5], ["22", "23.5"], id="numbers"),
    ],
)
def test_several_references(value: Any, texts: list[str]) -> None:
    sample, _ = read({"question": "q", "ground_truth": value})
    assert sample.reference_answer is not None
    reference = sample.reference_answer
    assert [reference.text, *reference.metadata.get("alternatives", [])] == texts


@pytest.mark.parametrize("first", [0, 1, 5, 0.0])
@pytest.mark.parametrize("form", ["list", "cell"])
def test_documents_are_in_the_order_of_their_ranks(first: float, form: str) -> None:
    ranked: Any = [
        {"doc_id": name, "text": name, "rank": first + place}
        for name, place in (("third", 2), ("first", 0), ("second", 1))
    ]
    retrieved = ranked if form == "list" else json.dumps(ranked)
    row = {"question": "q", "ground_truth": "g", "response": "r", "retrieved_contexts": retrieved}
    _, output = read(row)
    assert output is not None
    assert [hit.doc.doc_id for hit in output.retrieved] == ["first", "second", "third"]
    assert [hit.rank for hit in output.retrieved] == [first, first + 1, first + 2]
    assert [hit.score for hit in output.retrieved] == [1, 1 / 2, 1 / 3]


def test_documents_with_the_same_rank_are_refused() -> None:
    hits = [{"doc_id": "a", "text": "a", "rank": 0}, {"doc_id": "b", "text": "b", "rank": 0}]
    row = {"question": "q", "ground_truth": "g", "response": "r", "retrieved_contexts": hits}
    with pytest.raises(DataError, match=r"retrieved_contexts: two documents have the same rank: \[0, 0\]"):
        read_foreign([row], "rows")


@pytest.mark.parametrize(
    "documents", [{}, {"contexts": ["It takes 22 cars."]}, {"context": "It takes 22 cars."}]
)
@pytest.mark.parametrize("ending", ["csv", "jsonl", "list"])
def test_answer_is_what_the_system_said_where_answers_are_scored(
    documents: dict[str, Any], ending: str, tmp_path: Path
) -> None:
    record = {"question": "How many?", "answer": "22", **documents}
    source: Any = [record]
    if ending == "jsonl":
        source = tmp_path / "answered.jsonl"
        source.write_text(json.dumps(record) + "\n", "utf-8")
    if ending == "csv":
        source = tmp_path / "answered.csv"
        cells = {name: "".join(value) for name, value in record.items()}
        source.write_text(f"{','.join(cells)}\n{','.join(cells.values())}\n", "utf-8")
    with pytest.warns(ReadingNote, match=r"'answer' is the system's answer; without a reference"):
        run = ae.score(source, metrics="answer_rate")
    (sample,), (output,) = run.samples, run.outputs
    assert output is not None
    assert output.response.text == "22"
    assert sample.reference_answer is None
    assert [hit.doc.text for hit in output.retrieved] == ["It takes 22 cars."] * len(documents)


def test_answer_is_the_reference_where_the_answers_are_in_another_file_or_yet_to_be_given() -> None:
    questions = [{"id": "a", "question": "How many?", "answer": "22"}]
    with pytest.warns(ReadingNote):
        assert ae.score(questions, {"a": "22"}, metrics="exact_match")["exact_match"].value == 1
    with pytest.warns(ReadingNote):
        assert ae.evaluate(lambda query: "22", questions, metrics="exact_match")["exact_match"].value == 1
