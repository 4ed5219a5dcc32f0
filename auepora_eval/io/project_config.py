"""`configs/default.yaml`: where a project keeps its documents and its evaluation datasets.

Paths are from the project's root: the folder that holds `configs/`, or the config's own folder where that
is not called so. `project_root` in the file says otherwise.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ..errors import DataError
from .document_file import read_document

_SECTIONS = ("project_root", "evaluation", "generation")
_MAX_BYTES = 1_000_000


@dataclass(frozen=True)
class EvaluationConfig:
    """The paths of a project's documents and datasets, and its metrics."""

    project_root: Path = Path()
    documents_path: Path = Path("data/processed")
    offline_dataset_path: Path = Path("evaluation/datasets/offline_dataset.jsonl")
    offline_tasks_path: Path = Path("evaluation/datasets/offline_tasks.jsonl")
    qa_dataset_path: Path = Path("evaluation/datasets/qa_pairs.jsonl")
    summary_dataset_path: Path = Path("evaluation/datasets/summaries.jsonl")
    citations_dataset_path: Path = Path("evaluation/datasets/citations.jsonl")
    manifest_path: Path = Path("evaluation/datasets/manifest.json")
    metrics: tuple[str, ...] = ()

    def path(self, name: str) -> Path:
        """One of the paths, from the project's root; an absolute one is as it is."""
        value: Path = getattr(self, name)
        return self.project_root / value

    def split_path(self, split: str) -> Path:
        """Where a split lies, by its name in the manifest."""
        return self.path("summary_dataset_path" if split == "summaries" else f"{split}_dataset_path")


def load_evaluation_config(path: str | Path) -> EvaluationConfig:
    """Read the section `evaluation` of a config; unknown keys and wrong types are errors that name them."""
    path = Path(path)
    document = read_document(path, max_bytes=_MAX_BYTES)
    if not isinstance(document, dict):
        raise DataError(path.name, "a config is a list of sections.", fix="Begin with 'evaluation:'.")
    for section in document:
        if section not in _SECTIONS:
            raise DataError(
                f"{path.name}: {section!s:.60}", "there is no such section.", fix=_hint(section, _SECTIONS)
            )
    settings = document.get("evaluation") or {}
    if not isinstance(settings, dict):
        raise DataError(f"{path.name}: evaluation", "expected 'key: value' lines.", fix="Change it.")
    known = [field.name for field in fields(EvaluationConfig) if field.name != "project_root"]
    values = {str(key): _value(path.name, str(key), value, known) for key, value in settings.items()}
    return EvaluationConfig(project_root=_root(path, document.get("project_root")), **values)


def _root(path: Path, given: Any) -> Path:
    if given is not None and not isinstance(given, str):
        raise DataError(f"{path.name}: project_root", "expected a path.", fix="Write, for example, '..'.")
    if given is not None:
        return path.parent / given
    folder = path.parent
    if folder.absolute().name != "configs":
        return folder
    return folder.parent if folder.name else folder / ".."  # the parent of the current folder is not "."


def _value(file: str, key: str, value: Any, known: list[str]) -> Any:
    where = f"{file}: evaluation.{key:.60}"
    if key not in known:
        raise DataError(where, "there is no such setting.", fix=_hint(key, known))
    if key == "metrics":
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            raise DataError(where, "expected a list of names.", fix="Write, for example, [token_f1, rouge1].")
        return tuple(value)
    if not isinstance(value, str) or not value or "\0" in value:
        raise DataError(where, f"expected a path but got {value!r:.60}.", fix="Change or remove it.")
    return Path(value)


def _hint(name: Any, known: Any) -> str:
    near = difflib.get_close_matches(str(name)[:80], known, n=1)
    return f"Did you mean {near[0]}?" if near else f"There are {', '.join(known)}."
