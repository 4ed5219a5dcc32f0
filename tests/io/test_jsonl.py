"""JSON Lines datasets: what is accepted, and the one line that everything else gets."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from auepora_eval.core.types import Document, EvaluationSample, Response
from auepora_eval.errors import DataError
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
        pytest.param(gzip.compress(b"", mtime=0) + gzip.compress(GOOD), id="gzip in two parts"),
        pytest.param(with_field('"relevant_docs":null,"labels":null,"metadata":null'), id="null"),
        pytest.param(with_field('"relevant_docs":[],"candidate_docs":[],"labels":{}'), id="empty lists"),
        pytest.param(with_field('"reference_answer":null'), id="reference null"),
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
    ("content", "where", "what"),
    [
        pytest.param(GOOD + b'{"sample_id":"2","que', ":2:", "ends in the middle", id="truncated last line"),
        pytest.param(GOOD + b"\n" + GOOD, ":3: $.sample_id:", "used already, at data.jsonl:1", id="same id"),
        pytest.param(with_field('"metadata":{"x":[1,NaN]}'), ":1:", "NaN", id="NaN"),
        pytest.param(with_field('"labels":{"x":-Infinity}'), ":1:", "Infinity", id="-Infinity"),
        pytest.param(with_field('"labels":{"x":1e999}'), ":1:", "too large", id="1e999"),
        pytest.param(b'{"sample_id":1,"query":"q"}', ":1: $.sample_id:", "got 'int'", id="number as id"),
        pytest.param(b'{"sample_id":null,"query":"q"}', ":1: $.sample_id:", "got 'null'", id="null as id"),
        pytest.param(b'{"sample_id":" ","query":"q"}', ":1: $.sample_id:", "id is empty", id="blank id"),
        pytest.param(
            b'{"sample_id":"1","query":3}',
            ":1: $.query:",
            "Expected",
            id="number as query",
        ),
        pytest.param(b'{"sample_id":"1"}', ":1:", "query", id="no query"),
        pytest.param(
            with_field('"labels":{}') + b'{"query":"q"}',
            ":2:",
            "sample_id",
            id="no id",
        ),
        pytest.param(with_field('"relevant_docs":"ab"'), ":1: $.relevant_docs:", "array", id="docs a text"),
        pytest.param(
            with_field('"relevant_docs":["a",5]'),
            ":1: $.relevant_docs[1]:",
            "got 'int'",
            id="doc a number",
        ),
        pytest.param(
            with_field('"relevant_docs":[{"doc_id":5}]'),
            ":1: $.relevant_docs[0].doc_id:",
            "got 'int'",
            id="number as doc_id",
        ),
        pytest.param(
            with_field('"metadata":[]'),
            ":1: $.metadata:",
            "Expected",
            id="list metadata",
        ),
        pytest.param(with_field('"reference_answer":{}'), ":1: $.reference_answer:", "'text'", id="no text"),
        pytest.param(
            with_field('"reference_answer":{"text":"t","metadata":{"alternatives":"u"}}'),
            ":1: $.reference_answer.metadata.alternatives:",
            "list of texts",
            id="alternatives a text",
        ),
        pytest.param(b"[1]", ":1:", "not an array", id="array line"),
        pytest.param(b"5", ":1:", "an object was expected", id="number line"),
        pytest.param(b"null", ":1:", "an object was expected", id="null line"),
        pytest.param(b'"x"', ":1:", "not a string", id="string line"),
        pytest.param(GOOD.rstrip() + GOOD, ":1:", "one JSON object per line", id="two on a line"),
        pytest.param(GOOD + b"\xef\xbb\xbf" + GOOD, ":2:", "not JSON", id="a mark in the middle"),
        pytest.param(b'{"sample_id":"1","query":"\xff"}', ":1:", "byte 27 is not UTF-8", id="not UTF-8"),
        pytest.param(GOOD.decode().encode("utf-16"), ":1:", "not UTF-8", id="UTF-16"),
        pytest.param(b'{"sample_id":"1","query":"\\ud800"}', ":1:", "surrogate", id="lone high surrogate"),
        pytest.param(b'{"sample_id":"1","query":"a\\udc00"}', ":1:", "surrogate", id="lone low surrogate"),
        pytest.param(b'{"sample_id":"1","query":"a\x00"}', ":1:", "not JSON", id="raw NUL"),
        pytest.param(b"\x00" * 100, ":1:", "NUL characters", id="a file of NULs"),
        pytest.param(with_field('"labels":{"x":1' + "0" * 5000 + "}"), ":1:", "too large", id="10**5000"),
        pytest.param(b"[" * 100_000, ":1:", "nested too deeply", id="100,000 brackets"),
        pytest.param(
            with_field('"labels":' + '{"a":' * 150 + "1" + "}" * 150),
            ":1: $.labels.a",
            "deeply",
            id="150 deep",
        ),
        pytest.param(GOOD + b"x" * 10_000_000, ":2:", "longer than 8 MB", id="10 MB line"),
        pytest.param(gzip.compress(b"x" * 10_000_000), ":1:", "longer than 8 MB", id="10 MB line in gzip"),
        pytest.param(gzip.compress(GOOD)[:5], ":", "cut off", id="gzip cut in its head"),
        pytest.param(gzip.compress(GOOD)[:-4], ":2:", "cut off", id="gzip cut at its end"),
        pytest.param(gzip.compress(GOOD)[:-8] + bytes(8), ":2:", "damaged", id="gzip with a wrong sum"),
        pytest.param(gzip.compress(GOOD) + b"x", ":2:", "damaged", id="gzip and more"),
        pytest.param(b"\x1f\x8b" + b"garbage" * 9, ":", "damaged", id="garbage that begins like gzip"),
        pytest.param(gzip.compress(b"\xfa\xfb\xfc"), ":1:", "not UTF-8", id="gzip of garbage"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, content: bytes, where: str, what: str) -> None:
    with pytest.raises(DataError) as caught:
        loaded(tmp_path, content)
    message = str(caught.value)
    assert message.startswith(f"data.jsonl{where}")
    assert what in message
    assert "\n" not in message
    assert len(message) < 400


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
        pytest.param(
            '"relevant_doc":[]',
            r"data\.jsonl:1: .*'relevant_doc'.* Did you mean relevant_docs\?",
            id="near",
        ),
        pytest.param('"zzz":1', "'zzz' is not read. Put what you want kept under 'metadata'", id="far"),
        pytest.param(
            '"relevant_docs":[{"doc_id":"a","txt":"t"}]',
            r"\$\.relevant_docs: .*Did you mean text",
            id="in a part",
        ),
        pytest.param('"' + "z" * 9000 + '":1', "is not read", id="a long name"),
    ],
)
def test_unknown_fields_warn(tmp_path: Path, field: str, message: str) -> None:
    with pytest.warns(UnknownFieldWarning, match=message) as caught:
        loaded(tmp_path, with_field(field))
    assert len(caught) == 1
    assert len(str(caught[0].message)) < 250


@pytest.mark.parametrize(
    ("name", "what"),
    [
        pytest.param("", "is a folder", id="a folder"),
        pytest.param("missing.jsonl", "there is no such file", id="a missing file"),
        pytest.param("file/below", "cannot be opened", id="a file as a folder"),
        pytest.param("a\0b", "there is no such file", id="NUL in the name"),
        pytest.param("x" * 5000, "cannot be opened", id="a name that is too long"),
        pytest.param("dangling", "there is no such file", id="a link to nowhere"),
        pytest.param("loop", "cannot be opened", id="a link to itself"),
        pytest.param("pipe", "is a pipe", id="a pipe, without waiting for it"),
    ],
)
def test_what_cannot_be_opened(tmp_path: Path, name: str, what: str) -> None:
    (tmp_path / "file").write_bytes(GOOD)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match=what):
        load_dataset(tmp_path / name)
