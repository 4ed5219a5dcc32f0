"""Malformed places that are not stored: large, not a plain file, or made by a library. And what they cost.

    python -m tests.malformed_places FOLDER

makes them in a folder, validates each, and prints what was said, how long it took, and the peak of memory.
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.malformed import outcome

SAMPLE = {"sample_id": "1", "query": "Which boat?", "relevant_docs": ["a"], "reference_answer": "the Annet"}
QUERY = {"query_id": "1", "query_text": "Which boat?", "relevant_documents": ["a"], "metadata": {"n": 1}}
DATASET = {"dataset_id": "boats", "name": "Boats", "version": "1.0.0", "queries": [QUERY]}
MEASUREMENT = {"operation": "search", "timestamp": "2025-08-30T12:00:00Z", "duration": 0.25, "metadata": {}}


def text(document: Any) -> bytes:
    """A document on a line of its own."""
    return json.dumps(document).encode() + b"\n"


def make_places(folder: Path) -> dict[str, Path]:
    """Every place by its name."""
    places: dict[str, Path] = {}
    for name, content in _large().items():
        places[name] = folder / name
        places[name].write_bytes(content)
    for make in (_links, _not_files, _parquets, _hdf5):
        places |= make(folder)
    return places


def _large() -> dict[str, bytes]:
    zeros = gzip.compress(bytes(10_000_000), 9) * 300  # three gigabytes in three megabytes
    keys = {f"k{number}": number for number in range(100_000)}
    columns = ",".join(f"c{number}" for number in range(10_000))
    deep = json.dumps(DATASET).encode()[:-1] + b', "x": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}"
    return {
        "bomb_of_zeros.eval.json": zeros,
        "bomb_of_zeros.jsonl": zeros,
        "bomb_of_zeros.csv": zeros,
        "nine_megabytes_in_a_line.jsonl": text({**SAMPLE, "query": "q" * 9_000_000}),
        "brackets.jsonl": b"[" * 1_000_000,
        "brackets.eval.json": b"[" * 1_000_000,
        "braces.eval.json": deep,
        "dashes.eval.yaml": b"- " * 200_000,
        "many_keys.jsonl": text({**SAMPLE, **keys}),
        "many_keys.eval.json": text({"dataset_id": "d", "querys": keys}),
        "many_columns.csv": f"query_id,query_text,{columns},c1\n".encode(),
        "many_errors.eval.json": text({**DATASET, "queries": [5] * 20_000}),
        "a_long_key.eval.json": text({**DATASET, "queries": [], "k" * 1_000_000: 1, "documents": 5}),
        "a_long_id.jsonl": text({**SAMPLE, "sample_id": "x" * 1_000_000}) * 2,
        "digits.eval.json": text(DATASET).replace(b'"n": 1', b'"n": ' + b"9" * 1_000_000),
        "digits.config.yaml": b"top_k: " + b"9" * 1_000_000,
    }


def _links(folder: Path) -> dict[str, Path]:
    targets = {
        "loop.jsonl": "loop.jsonl",
        "dangling.eval.json": "nowhere.eval.json",
        "folder.eval.json": ".",
        "zeros.eval.json": "/dev/zero",
        "zeros.jsonl": "/dev/zero",
        "nothing.eval.json": "/dev/null",
    }
    places = {}
    for name, target in targets.items():
        places[f"link: {name}"] = folder / f"link_{name}"
        places[f"link: {name}"].symlink_to(target if target.startswith(("/", ".")) else f"link_{target}")
    return places


def _not_files(folder: Path) -> dict[str, Path]:
    directory, pipe, server = folder / "d.eval.json", folder / "pipe.jsonl", folder / "s.jsonl"
    directory.mkdir()
    os.mkfifo(pipe)
    here = Path.cwd()
    os.chdir(folder)  # the name of a socket may have only a hundred characters
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(server.name)
    finally:
        os.chdir(here)
    missing = folder / "missing.jsonl"
    return {"a folder": directory, "a pipe": pipe, "a socket": server, "missing": missing}


def _parquets(folder: Path) -> dict[str, Path]:
    import pyarrow
    import pyarrow.parquet

    ids, queries = ["1", "2"], ["a", "b"]
    tables: dict[str, Any] = {
        "numbers_as_ids.parquet": {"sample_id": [1, 2], "query": queries},
        "no_query.parquet": {"sample_id": ids},
        "a_null_id.parquet": {"sample_id": ["1", None], "query": queries},
        "an_id_twice.parquet": {"sample_id": ["1", "1"], "query": queries},
        "bytes_as_queries.parquet": {"sample_id": ids, "query": [b"\xff", b"\xfe"]},
        "no_json_in_labels.parquet": {"sample_id": ids, "query": queries, "labels": ["{", "}"]},
        "times_in_words.benchmark.parquet": {"operation": ids, "timestamp": ids, "duration": queries},
    }
    for name, columns in tables.items():
        pyarrow.parquet.write_table(pyarrow.table(columns), folder / name)
    good = pyarrow.table({"sample_id": ids, "query": queries})
    pyarrow.parquet.write_table(good, folder / "whole.parquet")
    content = (folder / "whole.parquet").read_bytes()
    cuts = {
        "cut_in_the_middle.parquet": content[: len(content) // 2],
        "cut_at_the_end.parquet": content[:-1],
        "zeros_inside.parquet": content[:4] + bytes(60) + content[64:],
    }
    for name, cut in cuts.items():
        (folder / name).write_bytes(cut)
    (folder / "whole.parquet").unlink()
    made = [*tables, *cuts]
    return {name: folder / name for name in made}


def _hdf5(folder: Path) -> dict[str, Path]:
    import h5py

    from auepora_eval.io.benchmark import save_benchmark

    def spoilt(name: str, spoil: Callable[[Any], None]) -> Path:
        path = folder / f"{name}.benchmark.h5"
        save_benchmark({"records": [MEASUREMENT]}, path)
        with h5py.File(path, "r+") as file:
            spoil(file)
        return path

    def empty_claim(file: Any) -> None:
        del file["document"]
        file.create_dataset("document", shape=(400_000_000,), chunks=(1000,), dtype="u1")

    paths = [spoilt("a_claim_of_zeros", empty_claim)]
    content = spoilt("whole", lambda file: None).read_bytes()
    paths.append(folder / "cut_in_the_middle.benchmark.h5")
    paths[-1].write_bytes(content[: len(content) // 2])
    return {path.name: path for path in paths}


def main() -> None:
    """Make the places, validate each, and print one JSON document."""
    folder = Path(sys.argv[1])
    places = make_places(folder)
    before = set(folder.rglob("*"))
    at_first = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    told = {}
    for name, path in places.items():
        start = time.process_time()
        said, message = outcome(path)
        message = message.replace(f"{folder}/", "")
        told[name] = {**said, "message": message, "seconds": time.process_time() - start}
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - at_first
    left = sorted(str(path) for path in set(folder.rglob("*")) - before)
    json.dump({"told": told, "grown_kb": grown, "left": left}, sys.stdout)


if __name__ == "__main__":
    main()
