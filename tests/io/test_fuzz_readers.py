"""Every reader on spoilt files of its own kind: it returns, or raises an error of ours, and leaves nothing.

`AUEPORA_FUZZ=10000` runs that many examples a test, for a soak; without it there are a few for every push.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import tempfile
import warnings
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from auepora_eval.core.dataset import InMemoryDataset
from auepora_eval.errors import AueporaError
from auepora_eval.io.benchmark import load_benchmark, save_benchmark
from auepora_eval.io.builds import load_split, read_manifest
from auepora_eval.io.config.plan import load_config
from auepora_eval.io.config.project import load_evaluation_config
from auepora_eval.io.csv import load_eval_csv
from auepora_eval.io.documents import DataCompressor
from auepora_eval.io.eval_json import load_eval_json
from auepora_eval.io.ground_truth import load_ground_truth
from auepora_eval.io.jsonl import load_jsonl_dataset
from auepora_eval.io.label_set import load_label_set
from auepora_eval.io.loader import load_dataset
from auepora_eval.io.outputs import PredictionFile, load_predictions
from auepora_eval.io.parquet import load_parquet_dataset, save_parquet_dataset
from auepora_eval.io.results.tables import load_results
from auepora_eval.io.validate import file_errors
from auepora_eval.read.plain_yaml import yaml_text
from auepora_eval.read.tasks import read_task, split_record
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import a_sample
from tests.io.documents import RECORD, VALID, spoilt
from tests.malformed_places import SAMPLE
from tests.raw_tasks import a_raw_task

pytestmark = pytest.mark.full

EXAMPLES = int(os.environ.get("AUEPORA_FUZZ", "40"))
fuzzed = settings(
    max_examples=EXAMPLES,
    deadline=timedelta(seconds=5),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
INTERNALS = re.compile(r"msgspec|Arrow|thrift|Traceback|Error\b|<class|NoneType|`|\n")
Reader = Callable[[Path], Any]


def found_by_lookup(path: Path) -> Any:
    """Predictions as scoring reads them."""
    return list(PredictionFile(path).outputs(["1", "2"]))


def named_splits(path: Path) -> Any:
    """A manifest, and where it says that its splits are."""
    return read_manifest(path).splits


def stored_run(path: Path) -> Any:
    """A results file as the commands read it."""
    storage = EvaluationResultsStorage(path.parent)
    storage.list_results()
    storage.load_results(str(path))
    storage.load_tally(str(path))
    return storage.load_run(str(path), texts=False)


# The name of a file, and who reads such files.
DOCUMENTS: list[tuple[str, str, list[Reader]]] = [
    ("evaluation_dataset", "d.eval.json", [load_eval_json, load_dataset, file_errors]),
    ("evaluation_dataset", "d.eval.yaml", [load_eval_json]),
    ("ground_truth", "d.gt.json", [load_ground_truth, file_errors]),
    ("ground_truth", "d.gt.yaml", [load_ground_truth]),
    ("evaluation_results", "d.results.json", [load_results, file_errors, stored_run]),
    ("evaluation_results", "d.results.yaml", [load_results]),
    ("benchmark", "d.benchmark.json", [load_benchmark, file_errors]),
    ("benchmark", "d.benchmark.yaml", [load_benchmark]),
    ("config", "d.config.json", [load_config, file_errors]),
    ("config", "d.config.yaml", [load_config, load_evaluation_config]),
    ("manifest", "manifest.json", [named_splits, file_errors]),
    ("sample", "d.jsonl", [load_jsonl_dataset, load_dataset, file_errors]),
    ("prediction", "d.jsonl", [load_predictions, found_by_lookup, file_errors]),
    ("split", "d.jsonl", [load_split, file_errors]),
    ("raw", "d.jsonl", [load_split]),
    ("label_set", "d.labels.json", [load_label_set, file_errors]),
    ("label_set", "d.labels.yaml", [load_label_set]),
]
LABEL = {"id": "1", "question": "Which boat?", "ground_truth_label": "accurate", "llm_answer": "the Annet"}
TASK = json.dumps(a_raw_task()).encode()
SPLIT = json.loads(msgspec.json.encode(split_record(read_task(TASK, "raw.jsonl:1"))))
OTHERS = [
    ("label_set", {"samples": [LABEL, [{**LABEL, "id": "2", "fhri_spec": {"risk_tier": "high"}}]]}),
    ("manifest", {"version": "v1", "splits": {"qa": {"path": "qa.jsonl", "count": 1, "sha256": "0" * 64}}}),
    ("sample", SAMPLE),
    ("split", SPLIT),
    ("raw", a_raw_task()),
]


def ours_or_nothing(readers: list[Reader], name: str, content: bytes) -> None:
    """Read a file with each; only errors of ours, in one line, and no file more than before."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / name
        path.write_bytes(content)
        for read in readers:
            try:
                read(path)
            except AueporaError as error:
                message = str(error).replace(folder, "")
                assert "\n" not in message
                assert len(message) < 3000
        assert [each.name for each in Path(folder).rglob("*")] == [name]
        assert path.read_bytes() == content


def as_written(document: Any, name: str) -> bytes:
    if name.endswith(".yaml"):
        return yaml_text(document).encode("utf-8", "surrogatepass")
    return json.dumps(document, indent=None if name.endswith(".jsonl") else 1).encode()


@pytest.mark.parametrize(("kind", "name", "readers"), DOCUMENTS, ids=[f"{k} {n}" for k, n, _ in DOCUMENTS])
@fuzzed
@given(data=st.data())
def test_documents_with_other_parts(kind: str, name: str, readers: list[Reader], data: st.DataObject) -> None:
    document = data.draw(st.sampled_from([each for named, each in (*VALID, *OTHERS) if named == kind]))
    ours_or_nothing(readers, name, as_written(data.draw(spoilt(document)), name))


@st.composite
def with_faults(draw: st.DrawFn, content: bytes) -> bytes:
    """Bytes turned, cut out, doubled or put in; sometimes only the beginning; sometimes packed."""
    spoilt_bytes = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(spoilt_bytes)))
        end = draw(st.integers(place, min(len(spoilt_bytes), place + 20)))
        change = draw(st.sampled_from(["turn", "cut", "double", "put in"]))
        if change == "turn" and place < len(spoilt_bytes):
            spoilt_bytes[place] ^= draw(st.integers(1, 255))
        elif change == "cut":
            del spoilt_bytes[place:end]
        elif change == "double":
            spoilt_bytes[place:place] = spoilt_bytes[place:end]
        else:
            spoilt_bytes[place:place] = draw(PIECES)
    if draw(st.integers(0, 4)) == 0:
        del spoilt_bytes[draw(st.integers(0, len(spoilt_bytes))) :]
    result = bytes(spoilt_bytes)
    if draw(st.integers(0, 9)) == 0:
        packed = gzip.compress(result, mtime=0)
        return packed[: draw(st.integers(0, len(packed)))] if draw(st.booleans()) else packed
    return result


HARD_JSON = [b"NaN", b"1e999", b"9" * 400, b"[" * 200, b'{"a":' * 200, b"\\ud800", b'"', b","]
HARD_YAML = [b"&a ", b"*a", b"!!int ", b"<<: ", b"- ", b"'", b"\n---\n"]
HARD_BYTES = [b"\xef\xbb\xbf", b"\x1f\x8b", b"\0", b"\r", b"PAR1", b"\x89HDF\r\n\x1a\n"]
PIECES = st.binary(max_size=8) | st.sampled_from([*HARD_JSON, *HARD_YAML, *HARD_BYTES])


@pytest.mark.parametrize(("kind", "name", "readers"), DOCUMENTS, ids=[f"{k} {n}" for k, n, _ in DOCUMENTS])
@fuzzed
@given(data=st.data())
def test_documents_with_other_bytes(kind: str, name: str, readers: list[Reader], data: st.DataObject) -> None:
    document = next(each for named, each in (*VALID, *OTHERS) if named == kind)
    ours_or_nothing(readers, name, data.draw(with_faults(as_written(document, name))))


@pytest.mark.parametrize(("kind", "name", "readers"), DOCUMENTS, ids=[f"{k} {n}" for k, n, _ in DOCUMENTS])
@fuzzed
@given(content=st.binary(max_size=200) | st.lists(PIECES, max_size=20).map(b"".join))
def test_random_bytes(kind: str, name: str, readers: list[Reader], content: bytes) -> None:
    ours_or_nothing(readers, name, content)


TABLES: dict[str, tuple[bytes, list[Reader]]] = {
    "d.csv": (
        b"query_id,query_text,query_type,relevant_documents,citations,metadata\r\n"
        b'1,"Which, boat?",factual,a;b,"[{""file_name"": ""a"", ""start_char"": 0, ""end_char"": 3}]",\r\n'
        b'2,\'=1+1,,"[""a""]",,{}\r\n',
        [load_eval_csv, file_errors],
    ),
    "d.results.csv": (
        b"query_id,latency_ms,retrieved_docs,recall@5,error,further\r\n"
        b'1,12.5,a;b,0.5,,\r\n2,,"[""a""]",,"{""type"": ""late""}","{""query_text"": null}"\r\n',
        [load_results, file_errors],
    ),
}


@pytest.mark.parametrize("name", TABLES)
@fuzzed
@given(data=st.data())
def test_tables_with_other_bytes(name: str, data: st.DataObject) -> None:
    content, readers = TABLES[name]
    ours_or_nothing(readers, name, data.draw(with_faults(content)))


@pytest.fixture(scope="module")
def binaries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A valid file of each format that a library writes."""
    folder = tmp_path_factory.mktemp("binaries")
    samples = [a_sample("1", "ab"), a_sample("2", "")]
    save_parquet_dataset(InMemoryDataset("boats", samples), folder / "d.parquet")
    for ending in ("parquet", "h5"):
        save_benchmark({"records": [RECORD]}, folder / f"d.benchmark.{ending}")
    return {path.name: path.read_bytes() for path in folder.iterdir()}


BINARY_READERS: dict[str, list[Reader]] = {
    "d.parquet": [load_parquet_dataset, file_errors],
    "d.benchmark.parquet": [load_benchmark, file_errors],
    "d.benchmark.h5": [load_benchmark, file_errors],
}


@pytest.mark.parametrize("name", BINARY_READERS)
@fuzzed
@given(data=st.data())
def test_binary_files_with_other_bytes(name: str, binaries: dict[str, bytes], data: st.DataObject) -> None:
    ours_or_nothing(BINARY_READERS[name], name, data.draw(with_faults(binaries[name])))


@fuzzed
@given(content=st.binary(max_size=200) | with_faults(gzip.compress(b'{"a": [1, {"b": "c"}]}', mtime=0)))
def test_compressed_data_with_other_bytes(content: bytes) -> None:
    message = ""
    try:
        assert isinstance(DataCompressor.decompress_evaluation_data(content), dict)
    except AueporaError as error:
        message = str(error)
    assert not INTERNALS.search(message)
