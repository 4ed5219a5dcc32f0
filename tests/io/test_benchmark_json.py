"""Benchmark data: three shapes, three formats, nothing lost, and no trick in a file gets through."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.errors import DataError
from auepora_eval.io.benchmark import load_benchmark, save_benchmark
from auepora_eval.io.documents import write_document
from tests.io.documents import BASELINE as BASELINES
from tests.io.documents import RECORD, SUITE

NAMES = ["b.benchmark.json", "b.benchmark.parquet", "b.benchmark.h5"]
TEXTS = (
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.just("long " * 250) | st.just("a\0")
)
NUMBERS = st.floats(0, 1e9) | st.integers(0, 2**53 + 1)
OBJECTS = st.dictionaries(TEXTS, st.none() | st.booleans() | NUMBERS | TEXTS, max_size=2)
RECORDS = st.lists(
    st.fixed_dictionaries(
        {"operation": TEXTS, "timestamp": TEXTS | NUMBERS, "duration": NUMBERS},
        optional={
            "memory_usage": st.none() | NUMBERS,
            "memory_delta": st.none() | st.floats(-1e9, 1e9),
            "cpu_percent": st.none() | NUMBERS,
            "success": st.booleans(),
            "error_message": st.none() | TEXTS,
            "metadata": OBJECTS,
            "further": OBJECTS,
            "a field of ours": st.none() | OBJECTS,
        },
    ),
    max_size=4,
)
DATA = (
    st.fixed_dictionaries(
        {"records": RECORDS}, optional={"baselines": st.just(BASELINES), "metadata": OBJECTS}
    )
    | st.just({"baselines": BASELINES})
    | st.just(SUITE)
    | st.just({**SUITE, "records": [RECORD]})
)


def exactly(value: Any) -> str:
    """Types are compared too: 1 and 1.0 are not the same text in JSON."""
    if isinstance(value, dict):
        return repr(sorted((key, exactly(part)) for key, part in value.items()))
    return repr([exactly(part) for part in value]) if isinstance(value, list) else repr(value)


@pytest.mark.parametrize("name", [*NAMES, "b.json.gz", "b.yaml", "b.hdf5"])
@settings(max_examples=20, deadline=None)
@given(data=DATA)
def test_round_trip(name: str, data: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, again = Path(folder) / name, Path(folder) / f"again.{name}"
        save_benchmark(data, path)
        assert exactly(load_benchmark(path)) == exactly(data)
        save_benchmark(data, again)
        assert path.read_bytes() == again.read_bytes()


@pytest.mark.parametrize(
    ("document", "data"),
    [
        pytest.param(RECORD, {"records": [RECORD]}, id="a record"),
        pytest.param([RECORD, RECORD], {"records": [RECORD, RECORD]}, id="a list of records"),
        pytest.param([], {"records": []}, id="an empty list"),
        pytest.param({"records": [RECORD], "run": 7}, {"records": [RECORD], "run": 7}, id="a set of records"),
        pytest.param(BASELINES, BASELINES, id="a file of baselines"),
        pytest.param({"baselines": BASELINES}, {"baselines": BASELINES}, id="baselines by name"),
        pytest.param(SUITE, SUITE, id="a suite"),
    ],
)
def test_shapes_of_json(tmp_path: Path, document: Any, data: dict[str, Any]) -> None:
    path = tmp_path / "b.benchmark.json"
    write_document(document, path)
    assert load_benchmark(path) == data


def test_other_tools_find_columns(tmp_path: Path) -> None:
    failed = {"success": False, "error_message": "late", "timestamp": 5, "memory_delta": None}
    data: dict[str, Any] = {"records": [RECORD, {**RECORD, **failed}]}
    for name in NAMES[1:]:
        save_benchmark(data, tmp_path / name)
    table = pyarrow.parquet.read_table(tmp_path / NAMES[1])
    assert table.column("duration").to_pylist() == [0.25, 0.25]
    assert table.column("memory_usage").to_pylist() == [812.5, 812.5]
    assert table.column("timestamp").to_pylist() == ["2025-08-30T12:00:00Z", "5"]
    with h5py.File(tmp_path / NAMES[2]) as file:
        records = file["records"]
        assert records["duration"][:].tolist() == [0.25, 0.25]
        assert records["success"][:].tolist() == [1, 0]
        assert records["error_message"].asstr()[:].tolist() == ["", "late"]
        assert np.isnan(records["memory_delta"][1])


def test_tables_of_other_tools(tmp_path: Path) -> None:
    path = tmp_path / "b.benchmark.parquet"
    stamp = np.datetime64("2025-08-30T12:00:00", "ms")
    table = {
        "operation": ["a"],
        "timestamp": [stamp],
        "duration": [1.5],
        "host": ["x"],
        "load": [float("nan")],
    }
    pyarrow.parquet.write_table(pyarrow.table(table), path)
    record = {"operation": "a", "timestamp": "2025-08-30T12:00:00", "duration": 1.5, "host": "x"}
    assert load_benchmark(path) == {"records": [record]}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "data",
    [
        {"records": [{**RECORD, "duration": "fast"}]},
        {"records": [{**RECORD, "duration": float("nan")}]},
        {"records": [{"operation": "a"}]},
        {"records": "none"},
        {},
        7,
    ],
    ids=["a text as duration", "NaN", "a field is missing", "no list", "nothing", "a number"],
)
def test_wrong_data_are_not_written(tmp_path: Path, name: str, data: Any) -> None:
    with pytest.raises(DataError, match=name):
        save_benchmark(data, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def external_link(file: Any) -> None:
    file["document"] = h5py.ExternalLink("secret.h5", "/secret")


def virtual(file: Any) -> None:
    layout = h5py.VirtualLayout((1,), "u1")
    layout[:] = h5py.VirtualSource("secret.h5", "secret", (1,))
    file.create_virtual_dataset("document", layout)


def huge_claim(file: Any) -> None:
    file.create_dataset("document", (10**12,), "u1", chunks=(1000,), compression="gzip")


def not_json(file: Any) -> None:
    file.create_dataset("document", data=np.frombuffer(b"{,", dtype="u1"))


@pytest.mark.parametrize(
    ("tamper", "message"),
    [
        (external_link, "not an HDF5 file of ours"),
        (virtual, "not an HDF5 file of ours"),
        (huge_claim, "not an HDF5 file of ours"),
        (not_json, "/document: not JSON"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_hostile_hdf5(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tamper: Callable[[Any], None], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret.txt").write_text("secret")
    with h5py.File(tmp_path / "secret.h5", "w") as secret:
        secret["secret"] = [1.0]
    path = tmp_path / "b.benchmark.h5"
    save_benchmark({"records": [RECORD]}, path)
    with h5py.File(path, "r+") as file:
        del file["document"]
        tamper(file)
    with pytest.raises(DataError, match=message):
        load_benchmark(path)
