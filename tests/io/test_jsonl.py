"""JSON Lines datasets: what is accepted, and what is warned of."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from auepora_eval.core.types import Document, EvaluationSample, Response
from auepora_eval.io.loader import load_dataset
from auepora_eval.read.records import UnknownFieldWarning

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


@pytest.mark.parametrize(
    ("field", "message"),
    [
        pytest.param('"zzz":1', r"data\.jsonl: not read: 'zzz'", id="of a sample"),
        pytest.param('"relevant_docs":[{"doc_id":"a","txt":"t"}]', "'relevant_docs.txt'", id="in a part"),
    ],
)
def test_unknown_fields_warn(tmp_path: Path, field: str, message: str) -> None:
    with pytest.warns(UnknownFieldWarning, match=message) as caught:
        loaded(tmp_path, with_field(field))
    assert len(caught) == 1
    assert len(str(caught[0].message)) < 250


def test_a_field_that_is_not_read_is_named_once_with_its_count(tmp_path: Path) -> None:
    lines = (f'{{"sample_id": "{n}", "query": "q", "candidat_docs": []}}' for n in range(3))
    with pytest.warns(UnknownFieldWarning) as caught:
        loaded(tmp_path, "\n".join(lines).encode())
    [message] = {str(warning.message) for warning in caught}
    assert message.startswith("data.jsonl: not read: 'candidat_docs' (3).")
