"""Any dataset file to a dataset and back: the format is found by content and by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from ..core.dataset import EvaluationDataset, InMemoryDataset, as_dataset
from ..core.registry import Registry
from ..errors import DataError, NotFoundError, warn_user
from ..read.convert import Convert, converted
from ..read.tools import TOOLS
from .detect import kind_of_file, not_a_dataset
from .documents import read_document
from .files import file_name, stem
from .jsonl import JsonlDataset, load_jsonl_dataset, save_jsonl_dataset

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


_ACCEPTED = "a dataset, a list of samples or dicts, a DataFrame, or a path"


@dataclass(frozen=True)
class Format:
    """A way to keep a dataset in a file."""

    load: Callable[..., InMemoryDataset]
    save: Callable[..., None] | None = None  # None: the format is only read
    endings: tuple[str, ...] = ()
    takes_columns: bool = False  # `load` takes the names of columns, and whose `answer` is


def _of(module: str, name: str, **fixed: Any) -> Callable[..., Any]:
    """Return a function of a module imported at the first call: a command reads one format of many."""

    def call(*args: Any, **options: Any) -> Any:
        return getattr(import_module(module, __package__), name)(*args, **options, **fixed)

    return call


# A user can add a format of their own: FORMATS.add("mine")(Format(load, save)).
FORMATS: Registry[Format] = Registry("format")
FORMATS.add("jsonl")(Format(load_jsonl_dataset, save_jsonl_dataset, (".jsonl", ".ndjson")))
_TABLES, _EVAL_JSON = ".tables", ".eval_json"
for name, known in {
    "parquet": Format(
        _of(_TABLES, "load_parquet"),
        _of(".parquet", "save_parquet_dataset"),
        (".parquet",),
        takes_columns=True,
    ),
    "eval_json": Format(
        _of(_EVAL_JSON, "load_eval_json"),
        _of(_EVAL_JSON, "save_eval_json"),
        (".eval.json", ".json", ".yaml", ".yml"),
    ),
    "csv": Format(_of(_TABLES, "load_csv"), _of(".csv", "save_eval_csv"), (".csv",), takes_columns=True),
    "splits": Format(_of(".builds", "load_split")),
    "labels": Format(
        _of(".label_set", "load_label_set"),
        _of(".label_set", "save_label_set"),
        (".labels.json", ".labels.yaml", ".labels.yml"),
    ),
    "records": Format(_of(_TABLES, "load_records", tool=""), takes_columns=True),
    "trec": Format(_of(".trec", "load_qrels")),
    "beir": Format(_of(".beir", "load_beir")),
}.items():
    FORMATS.add(name)(known)
# Tools that write several kinds of files, tables among them.
_FAMILIES = ("ragas", "deepeval", "promptfoo", "mlflow")
for family in _FAMILIES:
    FORMATS.add(family)(Format(_of(_TABLES, "load_records"), takes_columns=True))
for tool in set(TOOLS) - set(_FAMILIES):
    FORMATS.add(tool)(Format(_of(_TABLES, "load_records", tool=tool), takes_columns=True))


def load_dataset(
    source: Any,
    format: str | None = None,  # noqa: A002 - the user's word
    *,
    columns: Mapping[str, str] | None = None,
    convert: Convert | None = None,
    is_answered: bool = False,
) -> EvaluationDataset:
    """Load a dataset: from a file of any known format, a list of dicts, a DataFrame or any iterable of rows.

    `columns` names the columns of a table that has other names: {"query": "question"}. For any other shape,
    `convert` is a function that makes of each record a sample, a pair of a sample and the system's output, or
    None to leave it out. A column `answer` without another answer beside it is the reference, or, with
    `is_answered`, the answer of the system.
    """
    if not isinstance(source, str | Path):
        return as_dataset(
            source, accepted=_ACCEPTED, columns=columns, convert=convert, is_answered=is_answered
        )
    path = _file_of(source)
    if convert is not None:
        from .tables import placed_rows

        readings = converted(placed_rows(path), convert, path.name)
        return InMemoryDataset.of_readings(stem(path), readings)
    name = format or detected_format(path)
    if columns is None and not FORMATS.get(name).takes_columns:
        return FORMATS.get(name).load(path)
    reader = FORMATS.get(name if FORMATS.get(name).takes_columns else "records")
    return reader.load(path, columns, is_answered)


def _file_of(source: str | Path) -> Path:
    """Return the path of a dataset: as it is, or that of its id in `data/evaluation/datasets`."""
    path = Path(source)
    with suppress(OSError, DataError):  # a name that is too long, that of no dataset, or of no file
        if str(source) == path.name and not path.exists():
            return EvaluationDatasetLoader().find(path.name)
    return path


def open_dataset(
    path: str | Path,
    format: str | None = None,  # noqa: A002
    columns: Mapping[str, str] | None = None,
    convert: Convert | None = None,
    is_answered: bool = False,
) -> EvaluationDataset:
    """A dataset to walk through: from its file, line by line, where the format allows it."""
    path = _file_of(path)
    if columns is None and convert is None and (format or detected_format(path)) == "jsonl":
        return JsonlDataset(path)
    return load_dataset(path, format, columns=columns, convert=convert, is_answered=is_answered)


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
    if kind not in FORMATS:
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


# A folder of datasets in versions, with their ground truth, found by id.

_ENCODINGS = ("json", "yaml", "yml", "json.gz", "yaml.gz", "yml.gz")
# At most nine digits per number: a longer one is a date or an id.
_VERSION = r"v?(?P<numbers>[0-9]{1,9}(?:\.[0-9]{1,9})*)(?:-(?P<before>[0-9A-Za-z.-]+))?(?:\+.*)?"


class UnreadableFileWarning(UserWarning):
    """A file in a folder of datasets cannot be read; the others are."""


class EvaluationDatasetLoader:
    """Datasets of a folder: `datasets/<id>.eval.json` and `ground_truth/<id>.gt.json`, or in versions."""

    def __init__(self, data_directory: str | Path = "data/evaluation") -> None:
        self.data_directory = Path(data_directory)

    def load_dataset(self, dataset_id: str, version: str | None = None) -> dict[str, Any]:
        """The document of a dataset, checked: that of the version, or of this very name, or the latest."""
        from .schema import DataFormatValidator, check_no_errors

        path = self.find(dataset_id, version)
        document = read_document(path)
        check_no_errors(DataFormatValidator().validate_evaluation_dataset(document), path.name)
        if wrong := version_error(document, path):
            warn_user(f"{path.name}: {wrong}")
        return dict(document)

    def find(self, dataset_id: str, version: str | None = None) -> Path:
        """Return the file of a dataset; NotFoundError if there is none."""
        return self._find("datasets", ".eval", dataset_id, version)

    def load_ground_truth(self, dataset_id: str, version: str | None = None) -> dict[str, Any]:
        """The annotations of a dataset, checked; those of several people are put together."""
        from .ground_truth import check_annotations

        try:
            path = self._find("ground_truth", ".gt", dataset_id, version)
        except NotFoundError:
            return self._of_several_people(dataset_id, version)
        document = read_document(path)
        check_annotations(document, path.name)
        return {"annotations": document} if isinstance(document, list) else dict(document)

    def get_available_datasets(self) -> list[dict[str, object]]:
        """Return what there is: id, name, version, description, size and file of each dataset."""
        datasets = []
        for path in self._files("datasets", ".eval"):
            try:
                document = read_document(path)
                if not isinstance(document, dict) or not isinstance(document.get("queries"), list):
                    raise DataError(path.name, "there are no queries in it.")
            except DataError as error:
                warn_user(f"left out: {error}", UnreadableFileWarning)
                continue
            names = ("dataset_id", "name", "version", "description")
            entry = {name: document.get(name) for name in names}
            datasets.append({**entry, "size": len(document["queries"]), "file_path": str(path)})
        return datasets

    def _find(self, folder: str, ending: str, dataset_id: str, version: str | None) -> Path:
        """The file of a dataset: of the exact name, of the version asked for, or of the latest one."""
        file_name(dataset_id, "dataset id")
        key = None if version is None else version_key(file_name(version, "version"))
        candidates: list[tuple[Any, Path]] = []
        for path in self._files(folder, ending):
            name = path.name[: path.name.rindex(ending)]
            if name == dataset_id and (version is None or _has_version(path, key)):
                return path
            text = name.removeprefix(f"{dataset_id}_") if name.startswith(f"{dataset_id}_") else ""
            if text and (key_of_file := version_key(text)) is not None:
                candidates.append((key_of_file, path))
        if version is not None:
            candidates = [(key_of_file, path) for key_of_file, path in candidates if key_of_file == key]
        if not candidates:
            listed = [path.name for path in self._files(folder, ending)]
            what = f"{dataset_id} {version}" if version else dataset_id
            raise NotFoundError(
                str(self.data_directory / folder),
                f"there is no {what!r:.100}.",
                fix=f"There are {', '.join(listed[:5])}." if listed else "The folder is empty or not there.",
            )
        latest = max(key_of_file for key_of_file, _ in candidates)
        paths = [path for key_of_file, path in candidates if key_of_file == latest]
        if len(paths) > 1:
            names = " and ".join(path.name for path in paths)
            what = f"{names} are of the same version."
            raise DataError(str(self.data_directory / folder), what, fix="Keep one of them.")
        return paths[0]

    def _files(self, folder: str, ending: str) -> Iterator[Path]:
        for path in sorted((self.data_directory / folder).glob(f"*{ending}.*")):
            if path.name.endswith(tuple(f"{ending}.{encoding}" for encoding in _ENCODINGS)):
                yield path

    def _of_several_people(self, dataset_id: str, version: str | None) -> dict[str, Any]:
        """What lies in `ground_truth/annotations/<annotator>/`, one file per person."""
        from .ground_truth import load_ground_truth

        annotations: list[Any] = []
        folder = self.data_directory / "ground_truth" / "annotations"
        for person in sorted(folder.glob("*/")):
            try:
                path = self._find(f"ground_truth/annotations/{person.name}", ".gt", dataset_id, version)
            except NotFoundError:
                continue
            annotations += load_ground_truth(path)
        if not annotations:
            self._find("ground_truth", ".gt", dataset_id, version)  # says what there is instead
        return {"dataset_id": dataset_id, "annotations": annotations}


def _has_version(path: Path, key: tuple[Any, ...] | None) -> bool:
    """Return whether a document has the version; its file's name need not have it."""
    document = read_document(path)
    version = document.get("version") if isinstance(document, dict) else None
    return key is not None and isinstance(version, str) and version_key(version) == key


def version_error(document: Mapping[str, Any], path: Path) -> str:
    """Return what is wrong if a file has another version in its name than in it; "" if nothing is."""
    inside, named = document.get("version"), stem(path).rpartition("_")[2]
    key = version_key(named) if "_" in stem(path) else None
    if key is None or not isinstance(inside, str) or version_key(inside) in (key, None):
        return ""
    return (
        f"$.version: it is {inside!r:.40}, but the name of the file says {named!r:.40}. Change one of them."
    )


def version_key(text: str) -> tuple[Any, ...] | None:
    """Return a key that puts 1.10.0 after 1.9.0 and 2.0.0-rc.1 before 2.0.0; None for other texts."""
    match = re.fullmatch(_VERSION, text)
    if match is None:
        return None
    numbers = [int(number) for number in match["numbers"].split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()  # 1.0 and 1.0.0 are the same
    if match["before"] is None:
        return (tuple(numbers), 1, ())
    parts = [(0, int(p), "") if p.isdigit() else (1, 0, p) for p in match["before"].split(".")]
    return (tuple(numbers), 0, tuple(parts))
