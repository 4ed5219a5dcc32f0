"""JSON Lines datasets: what is accepted, and what is warned of."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from auepora_eval.core.types import Document, EvaluationSample, Response
from auepora_eval.io.loader import load_dataset
from auepora_eval.read.fields import ReadingNote

GOOD = b'{"sample_id":"1","query":"q"}\n'


def loaded(tmp_path: Path, content: bytes) -> list[EvaluationSample]:
    path = tmp_path / "data.jsonl"
    path.write_bytes(content)
    return list(load_dataset(path))


def with_field(field: str) -> bytes:
    return b'{"sample_id":"1","query":"q",' + field.encode() + b"}\n"


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(GOOD, id="plain"),
        pytest.param(GOOD.rstrip(), id="no newline at the end"),
        pytest.param(b"\xef\xbb\xbf" + GOOD, id="byte order mark"),
        pytest.param(GOOD.replace(b"\n", b"\r\n") + b"\r\n", id="CRLF"),
        pytest.param(b"\n \n\t\n" + GOOD + b"\n\n", id="blank lines"),
        pytest.param(gzip.compress(GOOD), id="gzip, whatever the name"),
        pytest.param(with_field('"relevant_docs":null,"labels":null,"metadata":null'), id="null"),
    ],
)
def test_harmless_variants_are_the_same_sample(tmp_path: Path, content: bytes) -> None:
    assert loaded(tmp_path, content) == [EvaluationSample("1", "q")]


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        pytest.param('"a text"', Response("a text"), id="a text"),
        pytest.param('""', Response(""), id="an empty text"),
        pytest.param('{"text":"a text"}', Response("a text"), id="an object"),
        pytest.param('{"text":"t","structured":{"a":1}}', Response("t", {"a": 1}), id="structured"),
    ],
)
def test_reference_answer_forms(tmp_path: Path, field: str, expected: Response) -> None:
    [sample] = loaded(tmp_path, with_field(f'"reference_answer":{field}'))
    assert sample.reference_answer == expected


def test_a_bare_id_is_a_document_whose_text_is_missing(tmp_path: Path) -> None:
    [sample] = loaded(tmp_path, with_field('"relevant_docs":["a",{"doc_id":"b","text":"t"}]'))
    assert sample.relevant_docs == [Document("a", "", {"text_missing": True}), Document("b", "t")]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("a\\u0000b", "a\0b", id="escaped NUL"),
        pytest.param("\\ud83d\\ude00", "😀", id="surrogate pair"),
        pytest.param("NaN [[[[ {{{{", "NaN [[[[ {{{{", id="words and brackets in a text"),
        pytest.param("[" * 500 + "9" * 500, "[" * 500 + "9" * 500, id="many brackets and digits in a text"),
        pytest.param("", "", id="empty"),
    ],
)
def test_odd_texts_are_kept(tmp_path: Path, query: str, expected: str) -> None:
    [sample] = loaded(tmp_path, b'{"sample_id":"1","query":"' + query.encode() + b'"}')
    assert sample.query == expected


def test_unknown_fields_are_kept_and_reported(tmp_path: Path) -> None:
    with pytest.warns(ReadingNote, match=r"data\.jsonl: not read, but kept: 'zzz'") as caught:
        [sample] = loaded(tmp_path, with_field('"zzz":1'))
    assert sample.metadata["zzz"] == 1
    assert len(caught) == 1
    assert len(str(caught[0].message)) < 250


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        pytest.param('"relevant_docs":[3]', Document("3", "", {"text_missing": True}), id="a number as id"),
        pytest.param('"relevant_docs":"a"', Document("a", "", {"text_missing": True}), id="one id"),
        pytest.param('"relevant_docs":[{"id":"a","content":"t"}]', Document("a", "t"), id="other names"),
        pytest.param(
            '"relevant_docs":[{"doc_id":"a","relevance":2}]', Document("a", "", {"relevance": 2}), id="grade"
        ),
    ],
)
def test_a_record_in_another_form_is_read_as_those_of_other_tools(
    tmp_path: Path, field: str, expected: Document
) -> None:
    [sample] = loaded(tmp_path, with_field(field))
    assert sample.relevant_docs == [expected]


def test_documents_by_number_are_found_in_the_corpus(tmp_path: Path) -> None:
    content = b'{"document":{"doc_id":"3","text":"t"}}\n{"sample_id":7,"query":"q","relevant_docs":[3]}'
    [sample] = loaded(tmp_path, content)
    assert sample == EvaluationSample("7", "q", relevant_docs=[Document("3", "t")])


def test_a_field_that_is_not_read_is_named_once_with_its_count(tmp_path: Path) -> None:
    lines = (f'{{"sample_id": "{n}", "query": "q", "candidat_docs": []}}' for n in range(3))
    with pytest.warns(ReadingNote) as caught:
        loaded(tmp_path, "\n".join(lines).encode())
    [message] = {str(warning.message) for warning in caught}
    assert message.startswith("data.jsonl: not read, but kept: 'candidat_docs' (3).")
