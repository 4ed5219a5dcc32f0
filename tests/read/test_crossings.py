"""Records of one seed reach the metrics of another: nothing that they say is lost on the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import auepora_eval as ae
from auepora_eval.cli.main import main as auepora
from auepora_eval.core.types import SystemOutputs
from auepora_eval.io.loader import load_dataset
from auepora_eval.io.outputs import predictions_of

pytestmark = pytest.mark.filterwarnings("ignore::auepora_eval.read.fields.ReadingNote")
SPAN = {"file_name": "d", "start_char": 0, "end_char": 3}


def written(path: Path, *records: Any) -> Path:
    lines = path.suffix == ".jsonl"
    text = "\n".join(map(json.dumps, records)) if lines else json.dumps(records[0])
    path.write_text(text, encoding="utf-8")
    return path


def outputs_of(path: Path, *ids: str) -> list[SystemOutputs]:
    return list(predictions_of(path).outputs(ids))


ROW = {
    "query_id": "1",
    "query_text": "Which?",
    "latency_ms": 250,
    "retrieval_results": {"retrieved_docs": ["a", "b"], "relevance_scores": [0.9, 0.4]},
    "generated_answer": "abc",
    "citations": [SPAN],
}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("rows.json", [ROW]),
        ("rows.jsonl", ROW),
        ("run.results.json", {"evaluation_id": "e", "query_results": [ROW]}),
    ],
)
def test_answers_of_seed_003_keep_documents_times_and_citations(
    tmp_path: Path, name: str, content: Any
) -> None:
    [output] = outputs_of(written(tmp_path / name, content), "1")
    assert output.response.text == "abc"
    assert output.response.metadata["citations"] == [SPAN]
    assert [(hit.doc.doc_id, hit.score) for hit in output.retrieved] == [("a", 0.9), ("b", 0.4)]
    assert output.timings == {"end_to_end": 0.25}


def test_citations_of_seed_003_are_scored(tmp_path: Path) -> None:
    data = written(tmp_path / "q.jsonl", {"sample_id": "1", "query": "q", "metadata": {"citations": [SPAN]}})
    answer = {"query_id": "1", "generated_answer": "abc", "citations": [SPAN]}
    for file in (
        written(tmp_path / "r.json", [answer]),
        written(tmp_path / "p.jsonl", {"sample_id": "1", "answer": "abc", "citations": [SPAN]}),
    ):
        run = ae.score(data, file, metrics="citation_span_exact")
        assert run.results[0].value == 1.0


@pytest.mark.parametrize("name", ["sample_id", "task_id", "query_id", "id", "qid", "question_id"])
def test_answers_are_found_by_any_name_of_the_id(tmp_path: Path, name: str) -> None:
    [output] = outputs_of(written(tmp_path / "t.jsonl", {name: "1", "answer": "x"}), "1")
    assert output.response.text == "x"


@pytest.mark.parametrize("name", ["answer", "response", "llm_answer", "generated_answer", "actual_output"])
def test_answers_are_found_by_any_of_their_names(tmp_path: Path, name: str) -> None:
    [output] = outputs_of(written(tmp_path / "t.jsonl", {"id": "1", name: "x"}), "1")
    assert output.response.text == "x"


LABELLED = {
    "id": "1",
    "question": "How many cars?",
    "llm_answer": "It carries 22 cars.",
    "retrieved_passages": ["The Annet carries 22 cars."],
    "ground_truth_label": "accurate",
    "fhri_spec": {"scenario_override": "multi_ticker"},
}


def test_the_stored_answers_of_a_label_set_can_be_scored(tmp_path: Path) -> None:
    dataset = load_dataset(
        written(tmp_path / "l.json", {"samples": [LABELLED, {**LABELLED, "id": "2", "llm_answer": ""}]})
    )
    assert list(dataset.outputs) == ["1"]  # an answer that was never filled in is not an empty answer
    assert dataset.outputs["1"].retrieved[0].doc.text == "The Annet carries 22 cars."
    assert auepora(
        [
            "score",
            "--dataset",
            str(tmp_path / "l.json"),
            "--metrics",
            "grounding_overlap",
            "--out",
            str(tmp_path),
        ]
    ) in (0, 3)


def test_a_correct_label_set_has_no_findings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path / "l.json", {"samples": [LABELLED]})
    assert auepora(["dataset", "check", str(file)]) == 0
    assert "warning" not in capsys.readouterr().out
    [sample] = load_dataset(file)
    assert (sample.labels["fhri_scenario"], "scenario" in sample.labels) == ("multi_ticker", False)


CHUNK = {"id": "d#0", "text": "It is 3.", "document": "d", "source_path": "d", "start": 10, "end": 18}
TASK = {
    "task_id": "t",
    "task_type": "citations",
    "question": "How many?",
    "reference_answer": "It is 3. [1]",
    "rag_prompt": "p",
    "contexts": ["[1] It is 3."],
    "sources": ["d"],
    "retrieved": [CHUNK],
    "citations": [],
    "answer_citations": [{"id": "d#0", "source_path": "d"}],
    "metadata": {"selected_chunk_ids": ["d#0"], "answer_span": {"document": "d", "start": 16, "end": 17}},
}


def test_gold_citations_and_spans_of_seed_000_reach_the_metrics(tmp_path: Path) -> None:
    data = written(tmp_path / "citations.jsonl", TASK)
    [sample] = load_dataset(data)
    assert sample.metadata["citations"] == [{"file_name": "d#0"}]
    assert sample.relevant_docs is not None
    assert sample.relevant_docs[0].metadata["spans"] == [{"source": "d", "start": 16, "end": 17, "text": "3"}]
    answer = {"id": "t", "answer": "It is 3. [1]", "retrieved": [{"doc_id": "d#0", "text": "It is 3."}]}
    run = ae.score(data, [answer], metrics="citation_recall,citation_precision")
    assert [result.value for result in run.results] == [1.0, 1.0]
    other = {**answer, "retrieved": [{"doc_id": "e#0", "text": "It is 4."}]}
    assert ae.score(data, [other], metrics="citation_recall").results[0].value == 0.0
    chunk = {"doc_id": "new", "text": "It is 3.", "metadata": {"source": "d", "start": 10, "end": 18}}
    run = ae.score(data, [{**answer, "retrieved": [chunk]}], metrics="span_recall@5")
    assert run.results[0].value == 1.0


ODD: list[dict[str, Any]] = [
    {"frage": {"text": "How many?"}, "soll": "22", "ist": "22 cars", "nr": 7},
    {"frage": None},
]


def from_odd(record: dict[str, Any]) -> Any:
    if record["frage"] is None:
        return None
    sample = {
        "sample_id": str(record["nr"]),
        "query": record["frage"]["text"],
        "reference_answer": record["soll"],
    }
    return sample, record["ist"]


@pytest.mark.parametrize("name", ["odd.jsonl", "odd.json", "a list"])
def test_a_function_of_the_user_reads_any_shape(tmp_path: Path, name: str) -> None:
    records = ODD if name.endswith(".jsonl") else [ODD]
    source: Any = ODD if name == "a list" else written(tmp_path / name, *records)
    with pytest.warns(UserWarning, match="1 of 2 records"):
        run = ae.score(source, metrics="contains_answer", convert=from_odd)
    assert run.results[0].value == 1.0
    with pytest.warns(UserWarning, match="1 of 2 records"):
        assert [sample.sample_id for sample in load_dataset(source, convert=from_odd)] == ["7"]


def test_a_function_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path / "odd.jsonl", ODD[0])
    code = tmp_path / "mine.py"
    code.write_text(
        'def read(r):\n    return {"sample_id": str(r["nr"]), "query": r["frage"]["text"]}, r["ist"]\n'
    )
    command = [
        "score",
        str(file),
        "--convert",
        f"{code}:read",
        "--metrics",
        "answer_rate",
        "--out",
        str(tmp_path),
    ]
    assert auepora(command) == 0
    assert "answer_rate" in capsys.readouterr().out
    target = tmp_path / "odd_as_ours.jsonl"
    assert auepora(["dataset", "convert", str(file), str(target), "--convert", f"{code}:read"]) == 0
    assert json.loads(target.read_text())["query"] == "How many?"


@pytest.mark.parametrize(
    ("function", "cause"),
    [
        pytest.param(lambda record: record["missing"], "KeyError", id="it raises"),
        pytest.param(lambda record: 5, "a sample", id="it returns something else"),
        pytest.param(lambda record: {"query": "q"}, "sample_id", id="no id"),
    ],
)
def test_a_function_that_fails_is_named_with_the_record(tmp_path: Path, function: Any, cause: str) -> None:
    file = written(tmp_path / "odd.jsonl", *ODD)
    with pytest.raises(ae.AueporaError, match=rf"odd.jsonl:1.*{cause}"):
        load_dataset(file, convert=function)
