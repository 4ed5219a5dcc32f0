"""Makes the malformed files of `tests/golden/malformed/`, the same bytes on every machine.

    python -m tests.make_malformed            write the files
    python -m tests.make_malformed --accept   and expected.json, from what is said of them now: read the diff

What is large, needs a library to be made, or is not a plain file is made by `tests/malformed_places.py`.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import re
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from auepora_eval.cli.main import main as auepora
from auepora_eval.errors import DataError
from auepora_eval.io.builds import load_split
from auepora_eval.io.schema import schema
from tests.malformed_texts import TEXTS

FOLDER = Path(__file__).parent / "golden" / "malformed"
EXPECTED = FOLDER / "expected.json"

SAMPLE = {"sample_id": "1", "query": "Which boat?", "relevant_docs": ["a"], "reference_answer": "the Annet"}
PREDICTION = {"sample_id": "1", "retrieved": ["a"], "answer": "the Annet", "timings": {"end_to_end": 0.5}}
QUERY = {"query_id": "1", "query_text": "Which boat?", "relevant_documents": ["a"], "metadata": {"n": 1}}
DATASET = {"dataset_id": "boats", "name": "Boats", "version": "1.0.0", "queries": [QUERY]}
SPAN = {"file_name": "a.txt", "start_char": 0, "end_char": 5, "relevance_score": 0.5}
ANNOTATION = {"annotation_id": "1", "query_id": "1", "citations": [SPAN]}
RESULTS = {
    "evaluation_id": "first",
    "timestamp": "2025-08-30T12:00:00Z",
    "dataset_id": "boats",
    "summary": {"total_queries": 1, "successful_queries": 1, "failed_queries": 0},
    "retrieval_metrics": {"recall@5": {"value": 0.5}},
    "query_results": [{"query_id": "1", "individual_metrics": {"recall@5": 0.5}}],
}
MEASUREMENT = {"operation": "search", "timestamp": "2025-08-30T12:00:00Z", "duration": 0.25, "metadata": {}}
PLAN = {"dataset": "boats.jsonl", "metrics": ["mrr"], "top_k": 5, "timeout": 2.5}
MANIFEST = {
    "version": "v1",
    "generated_at_utc": "2025-08-30T12:00:00Z",
    "source_offline_dataset": "offline_dataset.jsonl",
    "splits": {"qa": {"path": "qa_pairs.jsonl", "count": 1, "sha256": "0" * 64}},
}
SPLIT = {
    "task_id": "1",
    "task_type": "qa",
    "question": "Which boat?",
    "reference_answer": "the Annet [1]",
    "rag_prompt": "Answer from the contexts: which boat?",
    "contexts": ["[1] The Annet."],
    "sources": ["a.txt"],
    "retrieved": [],
    "citations": [],
}
RAW = {"task_id": "1", "task_type": "qa", "instruction": "Which boat?", "expected_response": "the Annet"}

# The name of a file, a valid document for it, and the key of a number in it (for numbers that are none).
DOCUMENTS: dict[str, tuple[Any, str]] = {
    "dataset.eval.json": (DATASET, "n"),
    "truth.gt.json": (ANNOTATION, "relevance_score"),
    "run.results.json": (RESULTS, "value"),
    "times.benchmark.json": (MEASUREMENT, "duration"),
    "plan.config.json": (PLAN, "timeout"),
    "manifest.json": (MANIFEST, "count"),
}
LINES: dict[str, tuple[Any, str]] = {
    "samples.jsonl": ({**SAMPLE, "labels": {"n": 1}}, "n"),
    "predictions.jsonl": (PREDICTION, "end_to_end"),
    "qa_pairs.jsonl": ({**SPLIT, "metadata": {"n": 1}}, "n"),
    "offline_dataset.jsonl": ({**RAW, "metadata": {"n": 1}}, "n"),
}
Spoil = Callable[[bytes, bytes], bytes]


def stored_files() -> dict[str, bytes]:
    """Every file of the corpus by its place in the folder."""
    files = dict(_whole_documents())
    files |= {f"wrong_type/{name}": content for name, content in wrong_types()}
    files |= {f"{folder}/{name}": content for folder, cases in TEXTS.items() for name, content in cases}
    return dict(sorted(files.items()))


def write_files(folder: Path) -> None:
    """Write every file of the corpus below a folder."""
    for name, content in stored_files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def outcome(path: Path) -> tuple[dict[str, Any], str]:
    """What `auepora dataset check FILE` says of a file, or of a split its own reader, and the first error."""
    if path.parent.name == "splits" or path.name in ("qa_pairs.jsonl", "offline_dataset.jsonl"):
        try:
            load_split(path)
        except DataError as error:
            return {"exit": 2, "format": "splits", "place": _place(str(error))}, str(error)
        return {"exit": 0, "format": "splits", "place": ""}, ""
    shown, noted = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(noted):
        code = auepora(["dataset", "check", str(path), "--json"])
    if not shown.getvalue():
        message = noted.getvalue().strip()
        return {"exit": code, "format": "", "place": _place(message)}, message
    report = json.loads(shown.getvalue())["files"][0]["form"]
    message = (report["errors"] or [""])[0]
    return {"exit": code, "format": report["format"], "place": _place(message)}, message


def _place(message: str) -> str:
    """Return the file, the line and the JSON path that a message starts with."""
    found = re.match(r"\S+?(?::\d+)?(?=: )(?:: (?:row \d+|\$|samples\[)[^:]*(?=: ))?", message)
    return found[0] if found else ""


def _whole_documents() -> Iterator[tuple[str, bytes]]:
    """Every fault that a text can have, in each kind of document and of lines."""
    for name, (document, number) in (DOCUMENTS | LINES).items():
        content = text(document) if name in LINES else json.dumps(document, indent=1).encode() + b"\n"
        for fault, spoil in FAULTS.items():
            if name in LINES and fault in ("an_array", "a_number", "cut_early"):
                continue  # as a line they are what other cases are
            yield f"{fault}/{name}", spoil(content, number.encode())


def text(document: Any) -> bytes:
    """A document on a line of its own."""
    return json.dumps(document).encode() + b"\n"


def _number_as(literal: bytes) -> Spoil:
    """The number under the key in other words."""

    def spoil(content: bytes, key: bytes) -> bytes:
        before, found, rest = content.partition(b'"%s": ' % key)
        end = next(place for place, byte in enumerate(rest) if byte not in b"0123456789.")
        assert found
        assert end
        return before + found + literal + rest[end:]

    return spoil


def _first_text_as(inside: bytes) -> Spoil:
    """The text that comes first, a name or an id, with something else in it."""

    def spoil(content: bytes, key: bytes) -> bytes:
        before, colon, rest = content.partition(b'": "')
        assert colon
        return before + colon + inside + rest

    return spoil


def gzipped(content: bytes) -> bytes:
    """Content in gzip, stored and not packed: these bytes depend on no version of zlib."""
    block = b"\x01" + struct.pack("<HH", len(content), len(content) ^ 0xFFFF) + content
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + block + struct.pack("<II", zlib.crc32(content), len(content))


FAULTS: dict[str, Spoil] = {
    "empty": lambda content, key: b"",
    "only_space": lambda content, key: b" \r\n\t\n",
    "cut_early": lambda content, key: content[: len(content) // 4],
    "cut_half": lambda content, key: content[: len(content) // 2],
    "cut_late": lambda content, key: content.rstrip()[:-1],
    "an_array": lambda content, key: b"[1, 2]",
    "a_number": lambda content, key: b"17\n",
    "an_error_page": lambda content, key: (
        b"<!DOCTYPE html>\n<html><head><title>404 Not Found</title></head></html>\n"
    ),
    "two_documents": lambda content, key: content.rstrip() + b" " + content,
    "nan": _number_as(b"NaN"),
    "infinity": _number_as(b"-Infinity"),
    "beyond_a_float": _number_as(b"1e999"),
    "too_deep": _number_as(b"[" * 120 + b"]" * 120),
    "latin_1": _first_text_as("é".encode("latin-1")),
    "overlong_utf8": _first_text_as(b"\xc0\xaf"),
    "half_a_pair": _first_text_as(rb"\ud800"),
    "half_a_pair_in_utf8": _first_text_as(b"\xed\xa0\x80"),
    "a_bare_control_character": _first_text_as(b"\x07"),
    "utf16": lambda content, key: "\ufeff".encode("utf-16-le") + content.decode().encode("utf-16-le"),
    "utf16_without_mark": lambda content, key: content.decode().encode("utf-16-le"),
    "cut_gzip": lambda content, key: gzipped(content)[:-9],
    "wrong_checksum": lambda content, key: gzipped(content)[:-8] + b"\0" * 4 + gzipped(content)[-4:],
    "gzip_in_gzip": lambda content, key: gzipped(gzipped(content)),
    "only_the_start_of_gzip": lambda content, key: b"\x1f\x8b",
}


# --- a wrong type at every required path of every schema -------------------------------------------------

_ENDINGS = {
    "evaluation_dataset": ".eval.json",
    "ground_truth": ".gt.json",
    "evaluation_results": ".results.json",
    "benchmark": ".benchmark.json",
    "config": ".config.json",
    "prediction": ".jsonl",
}
_EXAMPLES: dict[str, Any] = {
    "string": "text",
    "integer": 1,
    "number": 0.5,
    "boolean": True,
    "object": {},
    "array": [],
    "null": None,
}
_OTHERS: tuple[Any, ...] = (7, "text", [], {})


def wrong_types() -> Iterator[tuple[str, bytes]]:
    """(name, content) with one field of a wrong type, for every field that a schema requires."""
    for name, ending in _ENDINGS.items():
        rules = schema(name)
        for number, document in enumerate(examples(rules, rules)):
            for path, part in required(rules, rules, document):
                spoilt = replaced(document, path, wrong_value(part))
                place = "-".join(map(str, path))
                yield f"{name}_{number}-{place}{ending}", text(spoilt)


def examples(node: Any, rules: Any) -> list[Any]:
    """A document for each form that a schema allows, with every field on the way to a required one."""
    node = _resolved(node, rules)
    forms = [*node.get("anyOf", ()), *node.get("oneOf", ())]
    if forms:
        return [each for form in forms for each in examples(form, rules)]
    if "enum" in node:
        return [node["enum"][0]]
    if node.get("format") == "date-time":
        return ["2025-08-30T12:00:00Z"]
    kinds = _kinds(node)
    if kinds[0] == "object":
        return _objects(node, rules)
    if kinds[0] == "array":
        inner = examples(node["items"], rules) if "items" in node else []
        return [[each] * node.get("minItems", 1) for each in inner] or [[]]
    return [_EXAMPLES[kinds[0]]]


def _objects(node: Any, rules: Any) -> list[Any]:
    documents: list[Any] = [{}]
    for name, part in node.get("properties", {}).items():
        if name in node.get("required", ()) or _requires_something(part, rules):
            forms = examples(part, rules)
            documents = [{**document, name: form} for document in documents for form in forms[:2]][:2]
    more = node.get("additionalProperties")
    if isinstance(more, dict) and _requires_something(more, rules):
        documents = [{**document, "name": form} for document in documents for form in examples(more, rules)]
    return [_consistent(document) for document in documents]


def _consistent(document: Any) -> Any:
    """What a schema cannot say: counts add up, spans end after they start, shares sum to one."""
    if "total_queries" in document:
        document |= {"total_queries": 1, "successful_queries": 1, "failed_queries": 0}
    if "end_char" in document:
        document |= {"start_char": 0, "end_char": 5}
    if "traffic_allocation" in document:
        document |= {"traffic_allocation": {"text": 1}}
    return document


def _requires_something(node: Any, rules: Any) -> bool:
    node = _resolved(node, rules)
    parts = [*node.get("properties", {}).values(), *node.get("anyOf", ()), *node.get("oneOf", ())]
    parts += [node[name] for name in ("items", "additionalProperties") if isinstance(node.get(name), dict)]
    return bool(node.get("required")) or any(_requires_something(part, rules) for part in parts)


def required(node: Any, rules: Any, value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, Any]]:
    """(path, its schema) of every required field that a value has."""
    node = _resolved(node, rules)
    for form in (*node.get("anyOf", ()), *node.get("oneOf", ())):
        if value in examples(form, rules):
            yield from required(form, rules, value, path)
            return
    if isinstance(value, dict):
        more = node.get("additionalProperties")
        for name, inner in value.items():
            part = node.get("properties", {}).get(name) or (more if isinstance(more, dict) else {})
            if name in node.get("required", ()):
                yield (*path, name), _resolved(part, rules)
            yield from required(part, rules, inner, (*path, name))
    elif isinstance(value, list) and "items" in node:
        for place, inner in enumerate(value[:1]):
            yield from required(node["items"], rules, inner, (*path, place))


def replaced(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy of the document with another value at the path."""
    document = copy.deepcopy(document)
    holder = document
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    return document


def wrong_value(node: Any) -> Any:
    """A value of none of the types that a schema allows."""
    kinds = [*_kinds(node), *(["integer"] if "number" in _kinds(node) else [])]
    return next(value for value in _OTHERS if not any(type(value) is type(_EXAMPLES[kind]) for kind in kinds))


def _kinds(node: Any) -> list[str]:
    named = node.get("type", "object")
    return [named] if isinstance(named, str) else list(named)


def _resolved(node: Any, rules: Any) -> Any:
    return rules["$defs"][node["$ref"].removeprefix("#/$defs/")] if "$ref" in node else node


def main() -> None:
    """Write the corpus, and with --accept what is said of it."""
    write_files(FOLDER)
    if "--accept" in sys.argv[1:]:
        expected = {name: outcome(FOLDER / name)[0] for name in stored_files()}
        EXPECTED.write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
