"""Each check finds what it is for, and leaves alone what only looks like it."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auepora_eval.core.dataset import InMemoryDataset
from auepora_eval.core.types import Document
from auepora_eval.demo.world import demo_corpus, demo_dataset
from auepora_eval.quality.checks import DataQualityChecker
from auepora_eval.quality.view import QualityIssue
from tests.builders import a_dataset, a_sample

# Seed 003, sections 6.1 and 2.1.
SAMPLE: dict[str, Any] = {
    "dataset_id": "sample_eval_v1.0.0",
    "name": "Sample Evaluation Dataset",
    "version": "1.0.0",
    "metadata": {"domain": "general", "language": "en", "size": 2},
    "queries": [
        {
            "query_id": "sample_query_001",
            "query_text": "What is machine learning?",
            "query_type": "factual",
            "difficulty": "easy",
            "relevant_documents": ["doc_ml_intro"],
            "ground_truth_answer": "Machine learning is a subset of artificial intelligence that enables "
            "computers to learn from data without being explicitly programmed.",
            "citations": [
                {
                    "file_name": "ml_guide.pdf",
                    "page_number": 1,
                    "start_char": 100,
                    "end_char": 200,
                    "confidence_score": 0.95,
                }
            ],
        }
    ],
    "documents": [
        {
            "document_id": "doc_ml_intro",
            "title": "Introduction to Machine Learning",
            "content": "Machine learning is a subset of artificial intelligence...",
            "file_path": "docs/ml_intro.pdf",
        }
    ],
}
EXAMPLE: dict[str, Any] = {
    "dataset_id": "personal_rag_eval_v1.0.0",
    "metadata": {"size": 500, "avg_query_length": 45},
    "queries": [
        {
            "query_id": "query_001",
            "query_text": "What are the key features of the new project management tool?",
            "relevant_documents": ["doc_001", "doc_002"],
            "ground_truth_answer": "The new project management tool includes features such as task tracking, "
            "team collaboration, time management, and reporting capabilities.",
            "citations": [
                {"file_name": "project_tool_guide.pdf", "start_char": 1250, "end_char": 1350},
            ],
            "metadata": {"num_relevant_docs": 2},
        }
    ],
    "documents": [
        {
            "document_id": "doc_001",
            "content": "The new project management tool provides comprehensive features for team "
            "collaboration and task tracking...",
            "file_path": "docs/project_tool.pdf",
        }
    ],
}
TEXT = "The Annet sails to Sallow every morning. The Dunlin is a workboat of Northmoss Station."


def issues_of(dataset: Any, check: str = "") -> list[QualityIssue]:
    return [issue for issue in DataQualityChecker().issues(dataset) if check in issue.check]


def a_document_dataset(*queries: dict[str, Any], text: str | None = TEXT, **head: Any) -> dict[str, Any]:
    """A document with one text, doc-1, that was docs/boats.pdf; None leaves the corpus out."""
    whole = [
        {"query_id": f"q{n}", "query_text": f"question number {n}?", "relevant_documents": ["doc-1"], **query}
        for n, query in enumerate(queries)
    ]
    document: dict[str, Any] = {"dataset_id": "d", "queries": whole, **head}
    if text is not None:
        boats = {"document_id": "doc-1", "content": text, "file_path": "docs/boats.pdf", "title": "Boats"}
        document["documents"] = [boats]
    return document


def cited(start: Any = 4, end: Any = 9, file_name: Any = "boats.pdf", **fields: Any) -> dict[str, Any]:
    return {"citations": [{"file_name": file_name, "start_char": start, "end_char": end, **fields}]}


def test_the_seed_s_sample_dataset_has_the_faults_that_it_has() -> None:
    assert [(issue.severity, issue.check, issue.where) for issue in issues_of(SAMPLE)] == [
        ("error", "citation_validity", "$.queries[0].citations[0]"),  # ml_guide.pdf is no document
        ("warning", "declared", "$.metadata.size"),  # 2, but there is one
        ("note", "ground_truth_consistency", "$.queries[0]"),  # doc_ml_intro is relevant, not cited
    ]
    repaired = copy.deepcopy(SAMPLE)
    repaired["queries"][0]["citations"][0]["file_name"] = "ml_intro.pdf"
    texts = DataQualityChecker().run_quality_checks(repaired)
    assert "the span 100 to 200 goes beyond document 'doc_ml_intro', which has 58 characters" in texts[0]
    repaired["queries"][0]["citations"][0] |= {"start_char": 0, "end_char": 16}
    repaired["metadata"]["size"] = 1
    assert DataQualityChecker().run_quality_checks(repaired) == []


def test_the_seed_s_printed_example() -> None:
    assert [(issue.severity, issue.check) for issue in issues_of(EXAMPLE)] == [
        ("error", "document_references"),  # doc_002
        ("error", "citation_validity"),  # project_tool_guide.pdf
        ("warning", "declared"),  # size 500
        ("note", "ground_truth_consistency"),  # doc_001 and doc_002 are relevant but not cited
        ("note", "ground_truth_consistency"),
    ]


def test_the_class_is_the_seed_s() -> None:
    checker = DataQualityChecker()
    assert [check.__name__ for check in checker.checks[:4]] == [
        "_check_query_uniqueness",
        "_check_document_references",
        "_check_citation_validity",
        "_check_ground_truth_consistency",
    ]
    twice = {
        "queries": [{"query_id": "q1", "query_text": "Who?"}, {"query_id": "q1", "query_text": "Where?"}]
    }
    texts = checker._check_query_uniqueness(twice)
    assert len(texts) == 1
    assert "duplicate query id: 'q1'" in texts[0]
    assert type(checker.run_quality_checks(twice)[0]) is str
    assert checker._check_query_uniqueness({}) == []
    assert checker.run_quality_checks({}) == []


def test_checks_of_one_s_own() -> None:
    checker = DataQualityChecker()
    checker.checks = [lambda dataset: [f"{len(dataset['queries'])} queries"]]
    issues = checker.issues({"queries": []})
    assert [(issue.severity, str(issue)) for issue in issues] == [("warning", "dataset: 0 queries")]


def test_a_check_that_raises_is_a_finding_and_the_others_still_run() -> None:
    def mine(dataset: Any) -> list[str]:
        return [dataset["nonsense"]]

    checker = DataQualityChecker()
    checker.checks.insert(0, mine)
    twice = {"queries": [{"query_id": "q1"}, {"query_id": "q1"}]}
    texts = checker.run_quality_checks(twice)
    assert "dataset: Check failed: mine: 'nonsense'" in texts
    assert any("duplicate query id" in text for text in texts)
    assert all(isinstance(check.__name__, str) for check in checker.checks)


@pytest.mark.parametrize(
    ("citation", "said"),
    [
        pytest.param(cited(9, 4), "start >= end (9 >= 4)", id="reversed"),
        pytest.param(cited(4, 4), "start >= end (4 >= 4)", id="empty"),
        pytest.param(cited(-1, 4), "negative citation positions", id="negative"),
        pytest.param(cited(0, 500), "goes beyond document 'doc-1', which has 87 characters", id="too long"),
        pytest.param(cited(None, 4), "has no span", id="no start"),
        pytest.param(cited(True, 4), "has no span", id="true is no number"),
        pytest.param(cited(file_name=""), "names no file", id="no file"),
        pytest.param(cited(file_name="ships.pdf"), "is none of the dataset's documents", id="unknown file"),
        pytest.param(cited(confidence_score=1.5), "confidence_score 1.5 is not from 0 to 1", id="confidence"),
        pytest.param(cited(4, 9, context_text="Dunlin"), "it is at 45", id="text elsewhere"),
        pytest.param(
            cited(4, 9, context_text="Curlew"), "not in the document in these words", id="no such text"
        ),
    ],
)
def test_faults_of_citations(citation: dict[str, Any], said: str) -> None:
    (text,) = issues_of(a_document_dataset(citation), "citation_validity")
    assert said in text
    assert text.sample_id == "q0"


@pytest.mark.parametrize(
    "citation",
    [
        pytest.param(cited(), id="base name"),
        pytest.param(cited(file_name="docs/boats.pdf"), id="path"),
        pytest.param(cited(file_name="boats.txt"), id="stem"),
        pytest.param(cited(file_name="doc-1.md"), id="id"),
        pytest.param(cited(file_name="Boats"), id="title"),
        pytest.param(cited(0, 87), id="to the very end"),
        pytest.param(cited(context_text="Annet"), id="its own text"),
        pytest.param(cited(context_text="... The annet  sails ..."), id="around it, with dots"),
        pytest.param(cited(0, 40, context_text="sails to Sallow"), id="a part of it"),
        pytest.param({"citations": []}, id="none"),
    ],
)
def test_citations_that_are_right(citation: dict[str, Any]) -> None:
    assert issues_of(a_document_dataset(citation), "citation") == []
    assert issues_of(a_document_dataset(citation, text=None), "citation_validity") == []


def test_consistency_is_told_both_ways() -> None:
    cites_other = {"relevant_documents": ["doc-2"], **cited(file_name="doc-1.pdf")}
    issues = issues_of(a_document_dataset(cites_other), "ground_truth_consistency")
    assert [(issue.severity, issue.message) for issue in issues] == [
        ("warning", "document 'doc-1' is cited but not relevant."),
        ("note", "document 'doc-2' is relevant but not cited."),
    ]
    # Without a corpus the stem of a file name is taken for the id, which is a guess.
    guessed = issues_of(a_document_dataset(cites_other, text=None), "ground_truth_consistency")
    assert [issue.severity for issue in guessed] == ["note", "note"]
    assert issues_of(a_document_dataset({"relevant_documents": ["doc-1"]}), "consistency") == []


def test_references_to_documents() -> None:
    missing = a_document_dataset({"relevant_documents": ["doc-1", "doc-9"]})
    assert [issue.message for issue in issues_of(missing, "document_references")] == [
        "references missing document: 'doc-9' is not in the corpus."
    ]
    assert issues_of(a_document_dataset({"relevant_documents": ["doc-9"]}, text=None)) == []
    sample = a_sample(relevant="ab")
    in_memory = InMemoryDataset("d", [sample], documents=[Document("a", "text of a")])
    assert [issue.where for issue in issues_of(in_memory, "document_references")] == ["sample 1"]


def test_documents() -> None:
    corpus = [
        Document("a", "one  text"),
        Document("b", "one text"),
        Document("c", "other"),
        Document("d", " "),
    ]
    issues = issues_of(InMemoryDataset("d", [], documents=[*corpus, corpus[2]]))
    assert [(issue.severity, issue.check) for issue in issues] == [
        ("error", "document_ids"),
        ("warning", "empty_documents"),
        ("warning", "duplicate_documents"),
    ]
    assert "'a', 'b' have the same text" in issues[2]
    sample = a_sample()
    sample.relevant_docs, sample.candidate_docs = [Document("a", "first")], [Document("a", "second")]
    assert [issue.check for issue in issues_of(a_dataset(sample))] == ["document_texts"]


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"size": 2}, []),
        ({"size": 3}, ["size is declared as 3, but there are 2 queries."]),
        ({"size": "2"}, ["size is declared as '2', but there are 2 queries."]),
        ({}, []),
    ],
)
def test_declared(declared: dict[str, Any], said: list[str]) -> None:
    document = a_document_dataset({}, {}, metadata=declared)
    assert [issue.message for issue in issues_of(document, "declared")] == said
    samples = [a_sample(f"{n}", f"question number {n}?") for n in range(2)]
    in_memory = InMemoryDataset("d", samples, info={"metadata": declared})
    assert [issue.message for issue in issues_of(in_memory, "declared")] == said


def test_nothing_is_wrong_with_the_demo() -> None:
    """Its questions were read one by one: every variant is marked, every reference is in its documents."""
    dataset = InMemoryDataset("demo", list(demo_dataset()), documents=demo_corpus())
    assert DataQualityChecker().issues(dataset) == []


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 300) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
_citation = st.dictionaries(
    st.sampled_from(["file_name", "start_char", "end_char", "context_text", "confidence_score"]), _json
)
_query = st.dictionaries(
    st.sampled_from(["query_id", "query_text", "relevant_documents", "ground_truth_answer", "metadata"]),
    _json,
) | st.fixed_dictionaries(
    {"query_id": st.text(max_size=2), "citations": st.lists(_citation | _json, max_size=2)}
)
_document = st.dictionaries(
    st.sampled_from(["document_id", "content", "file_path", "title", "metadata"]), _json
)
_dataset = st.fixed_dictionaries(
    {},
    optional={
        "queries": st.lists(_query | _json, max_size=4) | _json,
        "documents": st.lists(_document | _json, max_size=3) | _json,
        "metadata": st.dictionaries(st.sampled_from(["size", "avg_query_length"]), _json) | _json,
    },
)


@given(_dataset)
def test_no_document_makes_a_check_crash(document: dict[str, Any]) -> None:
    before = copy.deepcopy(document)
    for text in DataQualityChecker().run_quality_checks(document):
        assert text.strip()
    assert document == before
