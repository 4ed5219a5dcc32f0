"""Any dataset file to a dataset and back: the format is found by content and by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..core.dataset import EvaluationDataset, InMemoryDataset
from ..core.registry import Registry
from ..errors import DataError
from .builds.splits import load_split
from .datasets.eval_csv import load_eval_csv, save_eval_csv
from .datasets.eval_json import load_eval_json, save_eval_json
from .datasets.label_sets import load_label_set
from .detect import kind_of_file, not_a_dataset
from .jsonl import JsonlDataset, load_jsonl_dataset, save_jsonl_dataset
from .library import EvaluationDatasetLoader
from .parquet import load_parquet_dataset, save_parquet_dataset

__all__ = [
    "FORMATS",
    "EvaluationDatasetLoader",
    "Format",
    "detected_format",
    "format_of_name",
    "load_dataset",
    "open_dataset",
    "save_dataset",
]


@dataclass(frozen=True)
class Format:
    """A way to keep a dataset in a file."""

    load: Callable[[Path], InMemoryDataset]
    save: Callable[..., None] | None = None  # None: the format is only read
    endings: tuple[str, ...] = ()


# A user can add a format of their own: FORMATS.add("mine")(Format(load, save)).
FORMATS: Registry[Format] = Registry("format")
FORMATS.add("jsonl")(Format(load_jsonl_dataset, save_jsonl_dataset, (".jsonl", ".ndjson")))
FORMATS.add("parquet")(Format(load_parquet_dataset, save_parquet_dataset, (".parquet",)))
FORMATS.add("eval_json")(Format(load_eval_json, save_eval_json, (".eval.json", ".json", ".yaml", ".yml")))
FORMATS.add("csv")(Format(load_eval_csv, save_eval_csv, (".csv",)))
FORMATS.add("splits")(Format(load_split))
FORMATS.add("labels")(Format(load_label_set, endings=(".labels.json", ".labels.yaml", ".labels.yml")))


def load_dataset(path: str | Path, format: str | None = None) -> InMemoryDataset:  # noqa: A002 - the user's word
    """Load a dataset from a file of any known format."""
    path = Path(path)
    return FORMATS.get(format or detected_format(path)).load(path)


def open_dataset(path: str | Path, format: str | None = None) -> EvaluationDataset:  # noqa: A002
    """A dataset to walk through: from its file, line by line, where the format allows it."""
    path = Path(path)
    if (format or detected_format(path)) == "jsonl":
        return JsonlDataset(path)
    return load_dataset(path, format)


def save_dataset(
    dataset: EvaluationDataset,
    path: str | Path,
    format: str | None = None,  # noqa: A002
    *,
    force: bool = False,
) -> None:
    """Write a dataset in a format, by default the one that the name of the file says."""
    path = Path(path)
    name = format or format_of_name(path)
    save = FORMATS.get(name).save
    if save is None:
        raise DataError(path.name, f"datasets are not written as {name}.", fix="Choose another format.")
    save(dataset, path, force=force)


def detected_format(path: Path) -> str:
    """The name of a file's format; DataError if the file is known to be something else."""
    kind = kind_of_file(path)
    if kind not in set(FORMATS):
        raise not_a_dataset(path, kind)
    return kind


def format_of_name(path: Path) -> str:
    """The format that a file of this name should have."""
    name = path.name.lower().removesuffix(".gz")
    endings = {ending: kind for kind in FORMATS for ending in FORMATS.get(kind).endings}
    fitting = [ending for ending in endings if name.endswith(ending)]
    if fitting:
        return endings[max(fitting, key=len)]  # .labels.json says more than .json
    raise DataError(
        path.name,
        "the name does not say which format to write.",
        fix=f"End it in one of {', '.join(endings)}.",
    )
