"""configs/default.yaml: the paths of a project, from its root."""

from __future__ import annotations

from pathlib import Path

import pytest

from auepora_eval.errors import DataError
from auepora_eval.io.config.project import EvaluationConfig, load_evaluation_config

ROOT = Path(__file__).parents[2]


def config(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_one_that_ships_has_the_defaults() -> None:
    shipped = load_evaluation_config(ROOT / "configs" / "default.yaml")
    assert Path(shipped.project_root) == ROOT
    for name in ("offline_dataset_path", "qa_dataset_path", "summary_dataset_path", "manifest_path"):
        assert shipped.path(name) == ROOT / getattr(EvaluationConfig(), name)
    assert shipped.split_path("summaries") == ROOT / "evaluation/datasets/summaries.jsonl"


@pytest.mark.parametrize(
    ("name", "text", "root"),
    [
        ("configs/a.yaml", "evaluation: {}", "."),
        ("settings/a.yaml", "evaluation: {}", "settings"),
        ("settings/deep/a.yaml", "project_root: ../..", "settings/deep/../.."),
        ("a.json", '{"evaluation": {}}', "."),
    ],
)
def test_the_root(tmp_path: Path, name: str, text: str, root: str) -> None:
    assert load_evaluation_config(config(tmp_path / name, text)).project_root == str(tmp_path / root)


def test_paths_and_metrics(tmp_path: Path) -> None:
    text = "evaluation:\n  qa_dataset_path: q.jsonl\n  manifest_path: /abs/m.json\n  metrics: [bleu]\n"
    read = load_evaluation_config(config(tmp_path / "a.yaml", text))
    assert read.path("qa_dataset_path") == tmp_path / "q.jsonl"
    assert read.path("manifest_path") == Path("/abs/m.json")
    assert read.metrics == ("bleu",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("evalution: {}", "'evalution'. Did you mean evaluation?"),
        ("evaluation:\n  qa_path: x", "'qa_path'"),
        ("evaluation:\n  qa_dataset_path: 3", "evaluation.qa_dataset_path: Expected"),
        ("evaluation: [1]", "evaluation: Expected"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(DataError) as caught:
        load_evaluation_config(config(tmp_path / "a.yaml", text))
    assert words in str(caught.value)
