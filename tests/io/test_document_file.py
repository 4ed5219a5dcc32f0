"""One document a file: what is written is read back, and what could do harm is refused."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.errors import DataError
from auepora_eval.io.documents import read_document, write_document
from auepora_eval.read.plain_yaml import parse_yaml, yaml_text

ODD = "~ null yes No 1e5 0x1F 007 1:30 2024-01-01 1_000 .inf = <<".split()
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["", "- a", "a: b", *ODD]
)
DOCUMENTS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("name", ["d.json", "d.yaml", "d.yml", "d.json.gz", "d.yaml.gz"])
@settings(max_examples=40, deadline=None)
@given(document=DOCUMENTS)
def test_round_trip(name: str, document: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write_document(document, path)
        assert read_document(path) == document


@settings(max_examples=100, deadline=None)
@given(document=DOCUMENTS)
def test_another_yaml_reader_reads_the_same(document: Any) -> None:
    # PyYAML's own safe loader knows dates and other words of YAML 1.1: what we write says none by chance.
    assert yaml.safe_load(yaml_text(document)) == document


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 2024-01-01", "2024-01-01"),
        ("a: yes", "yes"),
        ("a: 12:30:45", "12:30:45"),
        ("a: 007", "007"),
        ("a: 1e3", 1000.0),
        ("a: -3", -3),
        ("a: true", True),
        ("a:", None),
        ("a: '1'", "1"),
    ],
)
def test_yaml_has_the_types_of_json_only(text: str, value: Any) -> None:
    found = parse_yaml(text.encode(), "d.yaml")["a"]
    assert (found, type(found)) == (value, type(value))


BOMB = "\n".join(["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40))])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, "d.yaml:2: aliases .* are not read"),
        (
            "a: !!python/object/apply:os.system [ls]",
            "d.yaml:1: not YAML: .* constructor for the tag '.*python/object/apply:os.system'",
        ),
        ("a: 1\nb: 2\na: 3", "d.yaml:3: the key 'a' occurs twice"),
        ("a: -.inf", "d.yaml:1: NaN, Infinity"),
        ("\x00", "NUL characters"),
    ],
)
def test_harmful_yaml(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        parse_yaml(text.encode(), "d.yaml")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a":\n 1,\n}', "d.json:3: not JSON: "),
        (b'{"a": [1, 2', "not JSON"),
        (b'{"a": NaN}', r"d.json: .*(?:NaN|too large)"),
        (b"\xff\xfe{}", "not UTF-8"),
        (gzip.compress(b"[" + b"0," * 3_000_000 + b"0]", mtime=0), "more than 1 MB"),
        (gzip.compress(b"{}" * 100, mtime=0)[:-9], "cannot be read on"),
    ],
)
def test_harmful_json(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "d.json"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_document(path, max_bytes=1_000_000)


@settings(max_examples=150, deadline=None)
@given(document=st.dictionaries(TEXTS, DOCUMENTS, max_size=3))
def test_no_key_is_taken_for_a_repeated_one(document: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for indent in (None, 1):
            path = Path(folder) / f"{indent}.json"
            path.write_text(json.dumps(document, indent=indent), encoding="utf-8")
            assert read_document(path) == document
