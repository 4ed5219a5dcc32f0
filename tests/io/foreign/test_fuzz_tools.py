"""Every reader of another tool's files on spoilt files: it returns, or raises an error of ours.

`AUEPORA_FUZZ=10000` runs that many examples per test, as in `tests/io/test_fuzz_readers.py`.
"""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auepora_eval.core.types import Response, SystemOutputs
from auepora_eval.errors import AueporaError
from auepora_eval.io.detect import kind_of_file
from auepora_eval.io.documents import read_document
from auepora_eval.io.ground_truth import annotators_in
from auepora_eval.io.jsonl import encode
from auepora_eval.io.loader import load_dataset
from auepora_eval.io.outputs import load_predictions, predictions_of
from auepora_eval.io.trec import by_query, load_qrels, read_run, save_qrels, save_run
from auepora_eval.quality.imported_traces import import_traces
from auepora_eval.read.records import prediction_record
from tests.io.documents import spoilt
from tests.io.test_fuzz_readers import Reader, as_written, fuzzed, ours_or_nothing, with_faults

pytestmark = pytest.mark.full

HIT = {"id": "d", "page_content": "text", "metadata": {"source": "a.md"}}
ASSERTS = [
    {"type": "contains", "value": "x"},
    {"type": "llm-rubric", "value": "kind"},
    {"type": "is-refusal"},
]
RESULT = {"ranker": {"relevant": ["d"], "non_relevant": []}}
TASK = {
    "id": 1,
    "data": {"question": "Why?", "answer": "So.", "similar_docs": [{"id": "d", "body": "text"}]},
    "annotations": [
        {
            "id": 2,
            "completed_by": {"id": 3},
            "result": [{"from_name": "rank", "type": "ranker", "value": RESULT}],
        },
        {
            "id": 3,
            "completed_by": 4,
            "result": [{"from_name": "a", "type": "rating", "value": {"rating": 4}}],
        },
    ],
}
SPAN = {
    "trace_id": "1" * 32,
    "span_id": "a",
    "name": "ask",
    "start_time": "2026-11-17T10:00:00Z",
    "attributes": {
        "input.value": "Why does ada@example.org ask?",
        "output.value": "So.",
        "session.id": "s",
        "openinference.span.kind": "RETRIEVER",
        "retrieval.documents.0.document.content": "text",
        "retrieval.documents.0.document.metadata": '{"source": "a.md"}',
        "llm.token_count.prompt": 3,
    },
    "events": [{"name": "gen_ai.evaluation.result", "attributes": {"gen_ai.evaluation.score.value": 0}}],
}
MLFLOW_SPAN = {
    "span_id": "a",
    "name": "ask",
    "attributes": {
        "mlflow.spanType": '"RETRIEVER"',
        "mlflow.spanInputs": '"Why?"',
        "mlflow.spanOutputs": json.dumps([HIT]),
        "mlflow.chat.tokenUsage": '{"input_tokens": 1}',
    },
}
INSPECT = {
    "id": 1,
    "epoch": 2,
    "input": [{"role": "user", "content": "attachment://a"}],
    "target": ["x", "y"],
    "output": {"choices": [{"message": {"content": [{"type": "text", "text": "x"}]}}]},
    "attachments": {"a": "Why?"},
}


def annotators(path: Path) -> Any:
    return annotators_in(read_document(path), path.name)


def traces(path: Path) -> Any:
    return import_traces(path, doc_id="metadata.source")


def archived(path: Path) -> Any:
    """Read what was a document as a log of Inspect in an archive, beside it in a file of its own."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("samples/1_epoch_1.json", path.read_bytes())
    log = path.with_suffix(".eval")
    log.write_bytes(packed.getvalue())
    try:
        return load_dataset(log, "inspect")
    finally:
        log.unlink()


def named(tool: str) -> Reader:
    return lambda path: load_dataset(path, tool)


RAGAS = {
    "user_input": [{"content": "Why?", "type": "human"}],
    "response": "So.",
    "reference": "So.",
    "retrieved_contexts": ["text"],
    "reference_context_ids": [1],
}
DEEPEVAL = {
    "input": "Why?",
    "actual_output": "So.",
    "expected_output": "So.",
    "context": ["deepeval_source=a,deepeval_context=text"],
    "retrieval_context": ["text"],
    "tools_called": [{"name": "search"}],
}
ANY: list[Reader] = [load_dataset, predictions_of, kind_of_file]
TOOLS: list[tuple[str, str, Any, list[Reader]]] = [
    ("ragas", "d.jsonl", RAGAS, [*ANY, named("ragas")]),
    (
        "ragas annotations",
        "d.json",
        {"m": [{"metric_input": RAGAS, "metric_output": 1}]},
        [*ANY, named("ragas")],
    ),
    ("deepeval", "d.json", [DEEPEVAL], [*ANY, named("deepeval")]),
    (
        "deepeval run",
        "d.json",
        {"testCases": [{"input": "Why?", "actualOutput": "So."}]},
        [*ANY, named("deepeval")],
    ),
    (
        "deepeval talk",
        "d.json",
        [{"scenario": "s", "turns": [{"role": "user", "content": "Why?"}]}],
        [*ANY, named("deepeval")],
    ),
    (
        "promptfoo",
        "d.yaml",
        {
            "prompts": ["p"],
            "providers": ["x"],
            "tests": [{"vars": {"query": "Why?", "context": "c"}, "assert": ASSERTS}],
        },
        [*ANY, named("promptfoo")],
    ),
    (
        "promptfoo results",
        "d.json",
        {
            "results": {
                "results": [
                    {
                        "testIdx": 0,
                        "vars": {"q": "Why?"},
                        "prompt": {"label": "p"},
                        "provider": {"id": "x"},
                        "response": {"output": "So."},
                        "testCase": {"assert": ASSERTS},
                    }
                ]
            }
        },
        [*ANY, named("promptfoo")],
    ),
    (
        "inspect",
        "d.json",
        {"status": "success", "eval": {}, "plan": {}, "samples": [INSPECT]},
        [*ANY, named("inspect")],
    ),
    ("inspect archive", "d.json", INSPECT, [archived]),
    (
        "ragchecker",
        "d.json",
        {
            "results": [
                {
                    "query_id": "1",
                    "query": "Why?",
                    "gt_answer": "So.",
                    "response": "So.",
                    "retrieved_context": [{"doc_id": "d", "text": "t"}],
                }
            ]
        },
        [*ANY, named("ragchecker")],
    ),
    ("label studio", "d.json", [TASK], [*ANY, named("label-studio"), annotators]),
    (
        "mlflow",
        "d.json",
        [{"inputs": {"question": "Why?"}, "outputs": "So.", "expectations": {"expected_facts": ["a"]}}],
        [*ANY, named("mlflow")],
    ),
    (
        "squad",
        "d.json",
        {
            "data": [
                {
                    "title": "t",
                    "paragraphs": [
                        {"context": "c", "qas": [{"id": "1", "question": "Why?", "answers": [{"text": "c"}]}]}
                    ],
                }
            ]
        },
        [*ANY, named("squad")],
    ),
    (
        "llama index",
        "d.json",
        {"queries": {"1": "Why?"}, "corpus": {"d": "text"}, "relevant_docs": {"1": ["d"]}},
        [*ANY, named("llama-index")],
    ),
    ("spans", "d.json", [SPAN], [traces, kind_of_file]),
    (
        "mlflow trace",
        "d.json",
        {
            "info": {"trace_id": "t", "assessments": [{"feedback": {"value": True}}]},
            "data": {"spans": [MLFLOW_SPAN]},
        },
        [traces, kind_of_file],
    ),
    (
        "columns of a ranking",
        "d.jsonl",
        {"sample_id": "1", "retrieved": {"doc_id": ["a", "b"], "score": [2.0, 1.0]}, "answer": "x"},
        [load_predictions],
    ),
]


@pytest.mark.parametrize(
    ("name", "document", "readers"), [each[1:] for each in TOOLS], ids=[e[0] for e in TOOLS]
)
@fuzzed
@given(data=st.data())
def test_documents_with_other_parts(
    name: str, document: Any, readers: list[Reader], data: st.DataObject
) -> None:
    ours_or_nothing(readers, name, as_written(data.draw(spoilt(document)), name))


@pytest.mark.parametrize(
    ("name", "document", "readers"), [each[1:] for each in TOOLS], ids=[e[0] for e in TOOLS]
)
@fuzzed
@given(data=st.data())
def test_documents_with_other_bytes(
    name: str, document: Any, readers: list[Reader], data: st.DataObject
) -> None:
    ours_or_nothing(readers, name, data.draw(with_faults(as_written(document, name))))


def grades(path: Path) -> Any:
    return by_query(path, "relevance")


def scores(path: Path) -> Any:
    return by_query(path, "score")


TABLES: list[tuple[str, bytes, list[Reader]]] = [
    ("a.qrels", b"q1 0 d1 1\nq1 0 d2 -1\nq2 Q0 d1 2\n", [load_dataset, load_qrels, grades, kind_of_file]),
    (
        "a.run",
        b"q1 Q0 d1 1 2.5 t\nq1 Q0 d2 2 2.5 t\nq2 E2 d1 1 -1e-3 t\n",
        [predictions_of, read_run, scores],
    ),
    (
        "t.csv",
        b"question;__expected;__metadata:a[]\nWhy?;contains-all:a,b;x\nWho?;fn:1;\n",
        [*ANY, named("promptfoo")],
    ),
    ("t.tsv", b"question\tground_truth\tcontexts\nWhy?\tSo.\t\"['a', 'b']\"\n", ANY),
    (
        "g.csv",
        b"input,expected_output,retrieval_context,tools_called\nWhy?,So.,a|b,[]\n",
        [*ANY, named("deepeval")],
    ),
]


@pytest.mark.parametrize(("name", "content", "readers"), TABLES, ids=[each[0] for each in TABLES])
@fuzzed
@given(data=st.data())
def test_tables_with_other_bytes(
    name: str, content: bytes, readers: list[Reader], data: st.DataObject
) -> None:
    ours_or_nothing(readers, name, data.draw(with_faults(content)))


@fuzzed
@given(data=st.data())
def test_folders_of_beir_with_other_bytes(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("beir")
    (folder / "qrels").mkdir()
    files = {
        "corpus.jsonl": b'{"_id": "d", "title": "T", "text": "x", "metadata": {}}\n',
        "queries.jsonl": b'{"_id": "q", "text": "Why?"}\n{"_id": "r", "text": "Who?"}\n',
        "qrels/test.tsv": b"query-id\tcorpus-id\tscore\nq\td\t1\n",
    }
    chosen = data.draw(st.sampled_from(sorted(files)))
    for name, content in files.items():
        (folder / name).write_bytes(data.draw(with_faults(content)) if name == chosen else content)
    with warnings.catch_warnings(), suppress(AueporaError):
        warnings.simplefilter("ignore")
        load_dataset(folder)


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C")), min_size=1, max_size=5)
LISTS = st.dictionaries(
    WORDS, st.dictionaries(WORDS, st.floats(-1e9, 1e9), min_size=1, max_size=5), min_size=1, max_size=4
)


@fuzzed
@given(lists=LISTS)
def test_runs_are_the_same_after_writing_and_reading(
    lists: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("trec")
    path = folder / "a.run"
    path.write_text(
        "".join(f"{q} Q0 {d} 1 {s!r} t\n" for q, docs in lists.items() for d, s in docs.items()),
        encoding="utf-8",
    )
    run = read_run(path)
    assert {query: {hit.doc.doc_id for hit in output.retrieved} for query, output in run.items()} == {
        query: set(docs) for query, docs in lists.items()
    }
    save_run(run.items(), folder / "b.run")
    again = read_run(folder / "b.run")
    assert [[hit.doc.doc_id for hit in again[query].retrieved] for query in run] == [
        [hit.doc.doc_id for hit in output.retrieved] for output in run.values()
    ]
    lines = folder / "p.jsonl"
    lines.write_bytes(b"\n".join(encode(prediction_record(query, output)) for query, output in run.items()))
    assert load_predictions(lines) == run
    assert isinstance(next(iter(run.values())), SystemOutputs)
    assert next(iter(run.values())).response == Response("")


@fuzzed
@given(
    grades=st.dictionaries(
        WORDS, st.dictionaries(WORDS, st.integers(-2, 5), min_size=1, max_size=5), min_size=1, max_size=4
    )
)
def test_qrels_are_the_same_after_writing_and_reading(
    grades: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("qrels")
    path = folder / "a.qrels"
    path.write_text(
        "".join(f"{q} 0 {d} {g}\n" for q, docs in grades.items() for d, g in docs.items()), encoding="utf-8"
    )
    dataset = load_qrels(path)
    save_qrels(dataset, folder / "b.qrels")
    assert list(load_qrels(folder / "b.qrels")) == list(dataset)
