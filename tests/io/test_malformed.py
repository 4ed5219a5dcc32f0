"""The malformed corpus: every file has one line that says where, what and what to do. And what is not stored.

What is said of the stored files is in their `expected.json`, see `tests/malformed.py`.
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

from tests.malformed import EXPECTED, FOLDER, outcome, stored_files

ROOT = Path(__file__).parents[2]
FILES = stored_files()
TOLD: dict[str, dict[str, Any]] = json.loads(EXPECTED.read_text(encoding="utf-8"))
# What no message may hold: the names of libraries and of Python's types, and its ways to show things.
INTERNALS = re.compile(
    r"msgspec|Arrow|thrift|yaml\.|zlib|codec|Traceback|Error\b|<class|NoneType|\bdict\b|`|\n"
)


def test_every_stored_file_has_an_outcome() -> None:
    assert sorted(TOLD) == FILES
    assert len(FILES) > 60


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


PLACES = {
    "bomb_of_zeros.eval.json": (1, "holds more than 300 MB"),
    "bomb_of_zeros.jsonl": (1, "the line is longer than 8 MB"),
    "bomb_of_zeros.csv": (1, "holds more than 300 MB"),
    "nine_megabytes_in_a_line.jsonl": (1, ":1: the line is longer than 8 MB"),
    "brackets.jsonl": (1, ":1: the JSON is nested too deeply"),
    "brackets.eval.json": (1, "the JSON is nested too deeply"),
    "braces.eval.json": (1, "the JSON is nested too deeply"),
    "dashes.eval.yaml": (1, "the YAML is nested too deeply"),
    "many_keys.jsonl": (0, ""),
    "many_keys.eval.json": (1, "name"),
    "many_columns.csv": (1, "row 1: the column 'c1' occurs twice"),
    "many_errors.eval.json": (1, "$.queries[0]: "),
    "a_long_key.eval.json": (1, "$.documents: "),
    "a_long_id.jsonl": (1, "was used already, at a_long_id.jsonl:1"),
    "digits.eval.json": (1, "out of range"),
    "digits.config.yaml": (1, ":1: NaN, Infinity and numbers beyond 1e308"),
    "link: loop.jsonl": (2, "cannot be opened: "),
    "link: dangling.eval.json": (2, "there is no such file"),
    "link: folder.eval.json": (2, "is a folder"),
    "link: zeros.eval.json": (2, "is a device, not a file"),
    "link: zeros.jsonl": (2, "is a device, not a file"),
    "link: nothing.eval.json": (1, "there is nothing in it"),
    "a folder": (2, "is a folder"),
    "a pipe": (2, "is a pipe"),
    "a socket": (2, "is a device, not a file"),
    "missing": (2, "there is no such file"),
    "numbers_as_ids.parquet": (0, ""),
    "no_query.parquet": (1, "query"),
    "a_null_id.parquet": (1, "sample_id"),
    "an_id_twice.parquet": (1, "the sample_id '1' occurs twice"),
    "bytes_as_queries.parquet": (1, "row 1: there is no text under 'query'"),
    "no_json_in_labels.parquet": (1, "row 1: $.labels: not JSON"),
    "times_in_words.benchmark.parquet": (1, "$.records[0].duration: "),
    "cut_in_the_middle.parquet": (1, "damaged or cut off"),
    "cut_at_the_end.parquet": (1, "damaged or cut off"),
    "zeros_inside.parquet": (1, "damaged or cut off"),
    "a_claim_of_zeros.benchmark.h5": (1, "damaged or cut off"),
    "cut_in_the_middle.benchmark.h5": (1, "damaged or cut off"),
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
    assert report["grown_kb"] < 1_000_000
    assert report["left"] == []
