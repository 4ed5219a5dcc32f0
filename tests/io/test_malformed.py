"""The malformed corpus: every file has one line that says where, what and what to do. And what is not stored.

The files are made by `python -m tests.make_malformed`; what is said of them is `expected.json`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.io.schema import checker
from tests.make_malformed import EXPECTED, FOLDER, examples, outcome, replaced, required, stored_files

ROOT = Path(__file__).parents[2]
FILES = stored_files()
TOLD: dict[str, dict[str, Any]] = json.loads(EXPECTED.read_text(encoding="utf-8"))
# What no message may hold: the names of libraries and of Python's types, and its ways to show things.
INTERNALS = re.compile(
    r"msgspec|Arrow|thrift|yaml\.|zlib|codec|Traceback|Error\b|<class|NoneType|\bdict\b|`|\n"
)


def test_the_stored_files_are_those_that_the_script_makes() -> None:
    stored = {
        path.relative_to(FOLDER).as_posix(): path.read_bytes()
        for path in FOLDER.rglob("*")
        if path.is_file() and path != EXPECTED
    }
    assert stored == FILES
    assert stored.keys() == TOLD.keys()
    assert len(stored) > 60
    assert sum(map(len, stored.values())) + EXPECTED.stat().st_size < 300_000


@pytest.mark.parametrize("name", FILES)
def test_a_message_is_one_line_with_the_place(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        told, message = outcome(FOLDER / name)
    assert told == TOLD[name], message
    if told["exit"]:
        assert message.startswith(Path(name).name)
        assert not INTERNALS.search(message), message
        assert re.search(r"[.?)]$", message)
        assert len(message) < 400


@pytest.mark.parametrize("name", ["evaluation_dataset", "ground_truth", "evaluation_results", "benchmark"])
def test_the_examples_are_valid_and_every_required_field_is_missed(name: str) -> None:
    from auepora_eval.io.schema import schema

    rules = schema(name)
    for document in examples(rules, rules):
        assert checker(name).errors(document) == []
        for path, _ in required(rules, rules, document):
            holder = replaced(document, path, None)
            part = holder
            for step in path[:-1]:
                part = part[step]
            del part[path[-1]]
            assert checker(name).errors(holder) or name == "benchmark"  # which may be of another form then


PLACES = {
    "bomb_of_zeros.eval.json": (1, "unpack to more than"),
    "bomb_of_zeros.jsonl": (1, "the line is longer than 8 MB"),
    "bomb_of_zeros.config.yaml": (1, "unpack to more than"),
    "bomb_of_zeros.csv": (1, "unpack to more than"),
    "bomb_of_zeros.benchmark.h5": (1, "unpack to more than"),
    "bomb_of_blank_lines.jsonl": (1, "more than 1 MB of blank lines"),
    "bomb_in_a_bomb.jsonl": (2, "it is packed twice"),
    "nine_megabytes_in_a_line.jsonl": (1, ":1: the line is longer than 8 MB"),
    "brackets.jsonl": (1, ":1: the JSON is nested too deeply"),
    "brackets.eval.json": (1, "the JSON is nested too deeply"),
    "braces.eval.json": (1, "the JSON is nested too deeply"),
    "dashes.eval.yaml": (1, "the YAML is nested too deeply"),
    "brackets.config.yaml": (1, "the YAML is nested too deeply"),
    "many_keys.jsonl": (0, ""),
    "many_keys.config.json": (1, "k0"),
    "many_keys.eval.json": (1, "name"),
    "many_columns.csv": (1, "row 1: the column 'c1' occurs twice"),
    "many_errors.eval.json": (1, "$.queries[0]: "),
    "a_long_key.eval.json": (1, "$.documents: "),
    "a_long_id.jsonl": (1, "was used already, at a_long_id.jsonl:1"),
    "digits.eval.json": (1, "number is too large"),
    "digits.config.yaml": (1, ":1: NaN, Infinity and numbers beyond 1e308"),
    "link: loop.jsonl": (2, "cannot be opened: "),
    "link: dangling.eval.json": (2, "there is no such file"),
    "link: folder.eval.json": (2, "is a folder"),
    "link: zeros.eval.json": (2, "is a device, not a file"),
    "link: zeros.jsonl": (2, "is a device, not a file"),
    "link: zeros.csv": (2, "is a device, not a file"),
    "link: nothing.eval.json": (1, "there is nothing in it"),
    "a folder": (2, "is a folder"),
    "a pipe": (2, "is a pipe"),
    "a socket": (2, "is a device, not a file"),
    "missing": (2, "there is no such file"),
    "numbers_as_ids.parquet": (1, "row 1: $.sample_id: "),
    "no_query.parquet": (1, "query"),
    "a_null_id.parquet": (1, "sample_id"),
    "an_id_twice.parquet": (1, "the sample_id '1' occurs twice"),
    "lists_as_queries.parquet": (1, "row 1: $.query: "),
    "bytes_as_queries.parquet": (1, "row 1: $.query: "),
    "no_json_in_labels.parquet": (1, "row 1: $.labels: the JSON ends"),
    "times_in_words.benchmark.parquet": (1, "$.records[0].duration: "),
    "bomb_of_one_word.parquet": (1, "unpack to more than"),
    "bomb_of_nothing.parquet": (1, "unpack to more than"),
    "cut_at_1.parquet": (1, "damaged or cut off"),
    "cut_at_2.parquet": (1, "damaged or cut off"),
    "cut_at_3.parquet": (1, "damaged or cut off"),
    "cut_at_the_end.parquet": (1, "damaged or cut off"),
    "zeros_inside.parquet": (1, "damaged or cut off"),
    "a_link_elsewhere.benchmark.h5": (1, "/document: is missing, or is a link"),
    "objects.benchmark.h5": (1, "/document: is not a list of bytes"),
    "a_huge_claim.benchmark.h5": (1, "/document: it claims 1000000000000 bytes"),
    "a_claim_of_zeros.benchmark.h5": (1, "/document: "),
    "cut_at_1.benchmark.h5": (1, "damaged or cut off"),
    "cut_at_2.benchmark.h5": (1, "damaged or cut off"),
    "cut_at_3.benchmark.h5": (1, "damaged or cut off"),
}


def test_places_that_are_no_data(tmp_path: Path) -> None:
    """All in one process, whose memory is watched: about eight seconds, most of them to make the files."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.malformed_places", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    report = json.loads(done.stdout)
    told = report["told"]
    assert told.keys() == PLACES.keys()
    for name, (code, part) in PLACES.items():
        assert (told[name]["exit"], part in told[name]["message"]) == (code, True), (name, told[name])
        assert not INTERNALS.search(told[name]["message"])
        assert told[name]["seconds"] < 5, name
    assert report["grown_kb"] < 500_000
    assert report["left"] == []
