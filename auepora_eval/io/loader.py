"""Any dataset file to a dataset: the format is found by content, then by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..core.dataset import EvaluationDataset, InMemoryDataset
from ..core.registry import Registry
from .jsonl import JsonlDataset, load_jsonl_dataset, opened
from .parquet import load_parquet_dataset

FORMATS: Registry[Callable[[Path], InMemoryDataset]] = Registry("format")
FORMATS.add("jsonl")(load_jsonl_dataset)
FORMATS.add("parquet")(load_parquet_dataset)


def load_dataset(path: str | Path, format: str | None = None) -> InMemoryDataset:  # noqa: A002 - the user's word
    """Load a dataset from a file of any known format."""
    path = Path(path)
    return FORMATS.get(format or detected_format(path))(path)


def open_dataset(path: str | Path, format: str | None = None) -> EvaluationDataset:  # noqa: A002
    """A dataset to walk through: from its file, line by line, where the format allows it."""
    path = Path(path)
    if (format or detected_format(path)) == "jsonl":
        return JsonlDataset(path)
    return load_dataset(path, format)


def detected_format(path: Path) -> str:
    """The name of a file's format."""
    with opened(path) as file:
        start = file.read(4)
    return "parquet" if start == b"PAR1" else "jsonl"
