"""`configs/default.yaml`: where a project keeps its documents and datasets, and how tasks are generated.

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


class GenerationConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How `auepora dataset generate` cuts documents, makes variants of questions, and calls a model."""

    chunk_tokens: Annotated[int, msgspec.Meta(ge=16)] = 256  # most tokens per passage
    overlap: Annotated[int, msgspec.Meta(ge=0)] = 32  # tokens that neighbouring passages share
    variant_share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.25  # of the questions that get variants
    timeout: Annotated[float, msgspec.Meta(gt=0)] = 60.0  # seconds per attempt of a model
    plain_http: bool = False  # allow plain HTTP to remote hosts: the key is sent unencrypted


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    project_root: _Path | None = None
    evaluation: EvaluationConfig | None = None
    generation: GenerationConfig | None = None


def load_generation_config(path: str | Path) -> GenerationConfig:
    """Read the section `generation` of a config; DataError names unknown keys and wrong types."""
    return _read(Path(path), GenerationConfig.__struct_fields__).generation or GenerationConfig()


def load_evaluation_config(path: str | Path) -> EvaluationConfig:
    """Read the section `evaluation` of a config; DataError names unknown keys and wrong types."""
    path = Path(path)
    document = _read(path, EvaluationConfig.__struct_fields__)
    folder = path.parent
    if document.project_root is not None:
        folder = folder / document.project_root
    elif folder.absolute().name == "configs":
        folder = folder.parent if folder.name else folder / ".."  # the parent of Path(".") is itself
    return msgspec.structs.replace(document.evaluation or EvaluationConfig(), project_root=str(folder))


def _read(path: Path, fields: tuple[str, ...]) -> _Document:
    return converted(read_document(path, max_bytes=_MAX_BYTES), _Document, path.name, fields=fields)
