"""The contract of every dataset format: nothing is lost, half-written or accepted by mistake."""

from __future__ import annotations

import copy
import os
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import auepora_eval
from auepora_eval.core.dataset import EvaluationDataset, InMemoryDataset
from auepora_eval.core.types import Document, EvaluationSample, Response
from auepora_eval.errors import DataError, StorageError
from auepora_eval.io.csv import DroppedWarning
from auepora_eval.io.documents import read_document, write_document
from auepora_eval.io.loader import FORMATS, load_dataset, save_dataset
from auepora_eval.read.fields import ReadingNote

SEED = Path(__file__).parents[1] / "golden" / "seed_003"
CHAIN = ("b.jsonl", "c.parquet", "d.yaml", "e.eval.json")
# A label set takes only samples with a label, and has tests of its own for what it keeps.
WRITTEN = [name for name in FORMATS if FORMATS.get(name).endings and name != "labels"]
FILES = [f"data{ending}" for name in WRITTEN for ending in FORMATS.get(name).endings]
every_file = pytest.mark.parametrize("name", FILES)
every_format = pytest.mark.parametrize("kind", list(FORMATS))

# Every character but the halves of surrogate pairs, and texts that mean something to one of the formats.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["", "null", "yes", "1e5", "007", "2024-01-01", "=1+1", "'-", "a;b", "[", "\r\n", "\0", " x ", "\ufeff"]
)
KEYS = TEXTS | st.sampled_from(
    [
        "title",
        "file_path",
        "citations",
        "metadata",
        "labels",
        "text_missing",
        "query_type",
        "eval_json",
        "auepora",
    ]
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | FLOATS | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=2),
    max_leaves=4,
)
OBJECTS = st.dictionaries(KEYS, JSON, max_size=3)
IDS = TEXTS.filter(lambda text: bool(text.strip()))
FEW = settings(max_examples=20, deadline=None)


def without(strategy: st.SearchStrategy[dict[str, Any]], *names: str) -> st.SearchStrategy[dict[str, Any]]:
    return strategy.map(lambda found: {key: value for key, value in found.items() if key not in names})


METADATA = without(OBJECTS, "eval_json", "auepora")
# What a file has of these is written as a field of its own, and no metadata are written as none.
# "auepora" is our own block, whose fields have types.
EXTRAS = without(OBJECTS, "citations", "title", "file_path", "auepora").filter(bool)
WHOLE = st.builds(Document, IDS, TEXTS, METADATA)


@st.composite
def datasets(draw: st.DrawFn) -> InMemoryDataset:
    """Documents of the corpus, the same with a grade, others with their text, and some known by id only."""
    documents = draw(st.lists(WHOLE, max_size=3, unique_by=lambda doc: doc.doc_id))
    known = st.sampled_from(documents) if documents else st.nothing()
    graded = known.map(lambda doc: Document(doc.doc_id, doc.text, {**doc.metadata, "relevance": 2}))
    missing = IDS.map(lambda doc_id: Document(doc_id, "", {"text_missing": True}))
    docs = st.none() | st.lists(known | graded | missing | WHOLE, min_size=1, max_size=3)
    samples = draw(
        st.lists(
            st.builds(
                EvaluationSample,
                IDS,
                TEXTS,
                docs,
                docs,
                st.none() | st.builds(Response, TEXTS, st.none() | OBJECTS, without(OBJECTS, "alternatives")),
                OBJECTS | st.just({"query_type": "factual", "difficulty": "easy"}),
                METADATA,
            ),
            max_size=3,
            unique_by=lambda sample: sample.sample_id,
        )
    )
    info = draw(st.just({}) | infos())
    return InMemoryDataset(info.get("dataset_id", "data"), samples, info=info, documents=documents)


def infos() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"dataset_id": IDS, "name": TEXTS, "version": TEXTS},
        optional={
            "description": TEXTS,
            "created_at": st.just("2025-08-30T12:00:00Z"),
            "metadata": st.dictionaries(st.sampled_from(["owner", "", "é"]), JSON, max_size=2),
            "a field of ours": JSON,
        },
    )


SPANS = st.builds(
    lambda start, length, more: {"start_char": start, "end_char": start + length, **more},
    st.integers(0, 9**9),
    st.integers(1, 99),
    st.fixed_dictionaries(
        {"file_name": st.just("elsewhere.pdf")},
        optional={"page_number": st.integers(0, 9), "confidence_score": st.floats(0, 1), "ours": JSON},
    ),
)


@st.composite
def eval_documents(draw: st.DrawFn) -> dict[str, Any]:
    """A document such as other tools write it: fields that we do not know, empty ones, names that collide."""
    sources = st.fixed_dictionaries(
        {"document_id": IDS, "content": TEXTS},
        optional={
            "title": TEXTS,
            "file_path": TEXTS.filter(_leads_nowhere),
            "metadata": EXTRAS,
            "ours": JSON,
        },
    )
    documents = draw(st.lists(sources, max_size=2, unique_by=lambda entry: str(entry["document_id"])))
    ids = IDS | (
        st.sampled_from([entry["document_id"] for entry in documents]) if documents else st.nothing()
    )
    queries = st.fixed_dictionaries(
        {"query_id": IDS, "query_text": TEXTS, "relevant_documents": st.lists(ids, max_size=3)},
        optional={
            "query_type": st.sampled_from(["factual", "analytical", "comparative", "temporal"]),
            "difficulty": st.sampled_from(["easy", "medium", "hard"]),
            "ground_truth_answer": TEXTS,
            "citations": st.lists(SPANS, max_size=2),
            "metadata": EXTRAS,
            "labels": JSON,
            "ours": JSON,
        },
    )
    document = draw(infos())
    document["queries"] = draw(st.lists(queries, max_size=3, unique_by=lambda query: str(query["query_id"])))
    if documents:
        document["documents"] = documents
    return document


def _leads_nowhere(text: str) -> bool:
    return "elsewhere" not in text


@pytest.fixture(autouse=True)
def _warnings_of_formats() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DroppedWarning)
        warnings.simplefilter("ignore", ReadingNote)
        yield


@every_file
@FEW
@given(dataset=datasets())
def test_dataset_round_trip(name: str, dataset: InMemoryDataset) -> None:
    with tempfile.TemporaryDirectory() as folder:
        before = copy.deepcopy(dataset)
        save_dataset(dataset, Path(folder) / name)
        found = load_dataset(Path(folder) / name)
    assert (list(dataset), dataset.info) == (list(before), before.info), "saving changed the dataset"
    if name.endswith(".csv"):
        assert list(map(with_bare_ids, found)) == list(map(with_bare_ids, dataset))
        return
    assert list(found) == list(dataset)
    if dataset.info:
        assert (found.info, found.name) == (dataset.info, dataset.name)
    # A format that keeps all texts in one place adds what only the samples had.
    corpus = list(found.documents)
    assert corpus[: len(dataset.documents)] == list(dataset.documents)
    assert all(doc in documents_of(dataset) for doc in corpus[len(dataset.documents) :])


def with_bare_ids(sample: EvaluationSample) -> tuple[Any, ...]:
    ids = [[doc.doc_id for doc in docs or ()] for docs in (sample.relevant_docs, sample.candidate_docs)]
    return (sample.sample_id, sample.query, ids, sample.reference_answer, sample.labels, sample.metadata)


def documents_of(dataset: EvaluationDataset) -> list[Document]:
    return [doc for each in dataset for doc in (*(each.relevant_docs or ()), *(each.candidate_docs or ()))]


def through_the_chain(document: dict[str, Any], folder: Path) -> Any:
    before = folder / "a.eval.json"
    write_document(document, before)
    for name in CHAIN:
        save_dataset(load_dataset(before), folder / name)
        before = folder / name
    return read_document(before)


@settings(max_examples=50, deadline=None)
@given(document=eval_documents())
def test_document_round_trip_through_every_format(document: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert through_the_chain(document, Path(folder)) == document


@pytest.mark.parametrize("name", ["personal_rag.eval.json", "sample_eval_v1.0.0.eval.json"])
def test_examples_of_seed_003_round_trip(tmp_path: Path, name: str) -> None:
    document = read_document(SEED / name)
    assert through_the_chain(document, tmp_path) == document


@every_file
@settings(max_examples=10, deadline=None)
@given(dataset=datasets())
def test_equal_content_gives_equal_bytes(name: str, dataset: InMemoryDataset) -> None:
    with tempfile.TemporaryDirectory() as folder:
        save_dataset(dataset, Path(folder) / name)
        save_dataset(copy.deepcopy(dataset), Path(folder) / f"2-{name}")
        assert (Path(folder) / name).read_bytes() == (Path(folder) / f"2-{name}").read_bytes()


class Failing(InMemoryDataset):
    """A dataset that breaks off: the disk of its file is gone."""

    def __iter__(self) -> Any:
        yield from self._samples
        raise OSError("the disk is gone")


SMALL = [EvaluationSample("1", "What?", [Document("a", "text")])]


@every_file
def test_failed_write_leaves_no_partial_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(OSError, match="the disk is gone"):
        save_dataset(Failing("d", SMALL), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@every_file
def test_nothing_is_overwritten_without_force(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"mine")
    with pytest.raises(StorageError, match="exists already"):
        save_dataset(InMemoryDataset("d", SMALL), path)
    assert path.read_bytes() == b"mine"
    save_dataset(InMemoryDataset("d", SMALL), path, force=True)
    assert [sample.sample_id for sample in load_dataset(path)] == ["1"]
    assert list(tmp_path.iterdir()) == [path]


@every_file
def test_unwritable_sample_leaves_no_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="surrogate"):
        save_dataset(InMemoryDataset("d", [EvaluationSample("1", "\ud800")]), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@every_format
@settings(max_examples=80, deadline=None)
@given(content=st.binary(max_size=80) | st.tuples(OBJECTS).map(lambda found: repr(found[0]).encode("utf-8")))
def test_random_bytes_are_a_dataset_or_a_data_error(kind: str, content: bytes) -> None:
    _loads_or_refuses(kind, content)


@every_format
@settings(max_examples=80, deadline=None)
@given(place=st.floats(0, 1), length=st.integers(0, 8), replacement=st.binary(max_size=8))
def test_damaged_file_is_a_dataset_or_a_data_error(
    kind: str, place: float, length: int, replacement: bytes
) -> None:
    whole = _good(kind)
    start = int(place * len(whole))
    _loads_or_refuses(kind, whole[:start] + replacement + whole[start + length :])


_GOOD: dict[str, bytes] = {}


# Of the formats that are read but not written.
READ_ONLY = {
    "labels": Path(auepora_eval.__file__).parent / "demo" / "data" / "answers.labels.json",
    "splits": SEED.parent / "malformed" / "splits" / "an_id_twice.jsonl",
}
_ROWS = b'{"input": "q?", "expected_output": "a", "context": ["t"], "retrieval_context": ["t"]}'
FOREIGN = {
    "records": _ROWS,
    "ragas": _ROWS,
    "deepeval": _ROWS,
    "trec": b"1 0 d1 1\n1 0 d2 0\n",
    "beir": b"",
    "ragchecker": b'{"results": [{"query_id": "1", "query": "q?", "gt_answer": "a", "response": "b"}]}',
    "deepeval-run": b'{"testCases": [{"input": "q?", "actualOutput": "a", "retrievalContext": ["t"]}]}',
    "deepeval-conversations": b'[{"scenario": "s", "turns": [{"role": "user", "content": "q?"}]}]',
    "promptfoo": b'{"prompts": [], "providers": [], "tests": [{"vars": {"question": "q?"}, "assert": '
    b'[{"type": "contains-any", "value": ["a", "b"]}]}]}',
    "promptfoo-results": b'{"results": [{"prompt": {"raw": "q"}, "vars": {"q": "q?"}, '
    b'"response": {"output": "a"}}]}',
    "inspect": b'{"status": "ok", "eval": {}, "plan": {}, "samples": [{"id": 1, "epoch": 2, "input": "q?", '
    b'"target": "a", "output": {"choices": [{"message": {"content": "b"}}]}, "attachments": {}}]}',
    "label-studio": b'[{"id": 1, "data": {"question": "q?", "similar_docs": [{"id": "d", "body": "t"}]}, '
    b'"annotations": [{"result": [{"value": {"ranker": {"relevant": ["d"]}}}]}]}]',
    "ragas-annotations": b'{"m": [{"metric_input": {"user_input": "q?"}, "metric_output": 1}]}',
    "squad": b'{"data": [{"title": "t", "paragraphs": [{"context": "c", "qas": [{"id": "1", '
    b'"question": "q?", "answers": [{"text": "c"}]}]}]}]}',
    "llama-index": b'{"queries": {"1": "q?"}, "corpus": {"d": "t"}, "relevant_docs": {"1": ["d"]}}',
    "mtrag": b'{"models": [], "filters": [], "documents": [{"document_id": "d", "text": "t"}], "tasks": '
    b'[{"task_id": "1", "input": [{"speaker": "user", "text": "q?"}], "contexts": [{"document_id": "d"}]}]}',
    "mlflow": b'[{"inputs": {"question": "q?"}, "outputs": "a", "expectations": {"expected_facts": ["a"]}}]',
}


def _good(kind: str) -> bytes:
    if kind in FOREIGN:
        return FOREIGN[kind]
    if kind in READ_ONLY:
        first_lines = READ_ONLY[kind].read_bytes().splitlines(keepends=True)
        return first_lines[0] if kind == "splits" else b"".join(first_lines)
    if kind not in _GOOD:
        with tempfile.TemporaryDirectory() as folder:
            dataset = load_dataset(SEED / "personal_rag.eval.json")
            path = Path(folder) / f"good{_ending(kind)}"
            save_dataset(dataset, path, kind)
            _GOOD[kind] = path.read_bytes()
    return _GOOD[kind]


def _ending(kind: str) -> str:
    return (*FORMATS.get(kind).endings, ".jsonl")[0]


def _loads_or_refuses(kind: str, content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"data{_ending(kind)}"
        path.write_bytes(content)
        with suppress(DataError), warnings.catch_warnings():
            warnings.simplefilter("ignore", ReadingNote)
            assert all(sample.sample_id for sample in FORMATS.get(kind).load(path))
        assert os.listdir(folder) == [path.name]  # noqa: PTH208 - names, not paths


@every_format
def test_folders_and_missing_files_are_errors(tmp_path: Path, kind: str) -> None:
    for path, message in (
        (tmp_path, "is a folder"),
        (tmp_path / "none", "no such file"),
        (Path("a\0b"), "no such"),
    ):
        with pytest.raises(DataError, match=message):
            FORMATS.get(kind).load(path)


@pytest.mark.parametrize("metadata", [{"eval_json": 5}, {"eval_json": {"query_id": "x"}}, {"auepora": 1}])
def test_reserved_names_are_errors(tmp_path: Path, metadata: dict[str, Any]) -> None:
    for sample in (
        EvaluationSample("1", "q", metadata=metadata),
        EvaluationSample("1", "q", [Document("1", "text", {**metadata, "eval_json": 5})]),
    ):
        with pytest.raises(DataError, match=r"(sample|document) '1': .* keeps for itself"):
            save_dataset(InMemoryDataset("d", [sample]), tmp_path / "d.eval.json")
    assert list(tmp_path.iterdir()) == []


def test_changed_fields_are_written(tmp_path: Path) -> None:
    query = {"query_id": "1", "query_text": "q", "relevant_documents": [], "metadata": {}, "ours": 7}
    write_document(
        {"dataset_id": "d", "name": "d", "version": "1", "queries": [query]}, tmp_path / "a.eval.json"
    )
    dataset = load_dataset(tmp_path / "a.eval.json")
    for sample in dataset:
        sample.metadata["note"] = "new"
        sample.candidate_docs = [Document("x", "y")]
    save_dataset(dataset, tmp_path / "b.eval.json")
    (written,) = read_document(tmp_path / "b.eval.json")["queries"]
    assert (written["ours"], written["metadata"]["note"]) == (7, "new")
    assert next(iter(load_dataset(tmp_path / "b.eval.json"))).candidate_docs == [Document("x", "y")]


def test_edited_ids_are_read(tmp_path: Path) -> None:
    docs = [Document("a", "text", {"relevance": 2}), Document("b", "more")]
    sample = EvaluationSample("1", "q", docs)
    save_dataset(InMemoryDataset("d", [sample], documents=[Document("a", "text")]), tmp_path / "a.eval.json")
    document = read_document(tmp_path / "a.eval.json")
    document["queries"][0]["relevant_documents"] = ["b", "a", "c"]
    write_document(document, tmp_path / "b.eval.json")
    (found,) = load_dataset(tmp_path / "b.eval.json")
    assert found.relevant_docs == [docs[1], docs[0], Document("c", "", {"text_missing": True})]
