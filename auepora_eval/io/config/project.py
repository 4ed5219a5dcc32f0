"""`configs/default.yaml`: where a project keeps its documents and its evaluation datasets.

Paths are relative to the project's root: `project_root` in the file, or the folder that holds `configs/`, or
the config's own folder if that has another name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from ...read.records import converted
from ..documents import read_document

# A config is written by hand; a larger file is another one.
_MAX_BYTES = 1_000_000
_Path = Annotated[str, msgspec.Meta(min_length=1)]


class EvaluationConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The paths of a project's documents and datasets, and its metrics."""

    project_root: _Path = "."
    documents_path: _Path = "data/processed"
    offline_dataset_path: _Path = "evaluation/datasets/offline_dataset.jsonl"
    offline_tasks_path: _Path = "evaluation/datasets/offline_tasks.jsonl"
    qa_dataset_path: _Path = "evaluation/datasets/qa_pairs.jsonl"
    summary_dataset_path: _Path = "evaluation/datasets/summaries.jsonl"
    citations_dataset_path: _Path = "evaluation/datasets/citations.jsonl"
    manifest_path: _Path = "evaluation/datasets/manifest.json"
    metrics: tuple[str, ...] = ()

    def path(self, name: str) -> Path:
        """Return one of the paths, from the project's root; an absolute one as it is."""
        return Path(self.project_root, getattr(self, name))

    def split_path(self, split: str) -> Path:
        """Return the path of a split, by its name in the manifest."""
        return self.path("summary_dataset_path" if split == "summaries" else f"{split}_dataset_path")


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    project_root: _Path | None = None
    evaluation: EvaluationConfig | None = None
    generation: object = None  # read by the generator


def load_evaluation_config(path: str | Path) -> EvaluationConfig:
    """Read the section `evaluation` of a config; DataError names unknown keys and wrong types."""
    path = Path(path)
    content = read_document(path, max_bytes=_MAX_BYTES)
    document = converted(content, _Document, path.name, fields=EvaluationConfig.__struct_fields__)
    folder = path.parent
    if document.project_root is not None:
        folder = folder / document.project_root
    elif folder.absolute().name == "configs":
        folder = folder.parent if folder.name else folder / ".."  # the parent of Path(".") is itself
    return msgspec.structs.replace(document.evaluation or EvaluationConfig(), project_root=str(folder))
