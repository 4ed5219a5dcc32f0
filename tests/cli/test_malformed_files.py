"""Every command on the malformed corpus: one line, the exit code, nothing written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auepora_eval.cli.main import main
from tests.malformed import EXPECTED, FOLDER

TOLD = json.loads(EXPECTED.read_text(encoding="utf-8"))
EMPTY = ("empty/", "only_space/", "lines/only_a_description")  # no samples: for some commands no error
DATASETS = [
    name
    for name, told in TOLD.items()
    if told["exit"] and told["format"] in ("jsonl", "eval_json", "csv", "parquet", "unreadable")
    if not name.startswith(EMPTY) and Path(name).name not in ("qa_pairs.jsonl", "offline_dataset.jsonl")
]
COMMANDS = [
    ("dataset", "diff", "FILE", "good.jsonl"),
    ("dataset", "diff", "good.jsonl", "FILE"),
    ("dataset", "convert", "FILE", "out/converted.jsonl"),
    ("run", "--dataset", "FILE", "--system", "some_system.py:answer", "--out", "out"),
    ("score", "--dataset", "FILE", "--outputs", "good_predictions.jsonl", "--out", "out"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "good.jsonl").write_text(
        '{"sample_id":"1","query":"q","relevant_docs":["a"],"reference_answer":"x"}\n', encoding="utf-8"
    )
    (tmp_path / "good_predictions.jsonl").write_text(
        '{"sample_id":"1","retrieved":["a"],"answer":"x"}\n', encoding="utf-8"
    )
    (tmp_path / "some_system.py").write_text("def answer(query):\n    return 'x'\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files_in(folder: Path) -> set[Path]:
    """Return what is in a folder, without the bytecode of systems."""
    return {path for path in folder.rglob("*") if "__pycache__" not in path.parts}


def refused(words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files_in(folder)
    assert main(words) == 2, words
    shown = capsys.readouterr()
    lines = [line for line in shown.err.splitlines() if not line.startswith("note: ")]
    assert (shown.out, len(lines)) == ("", 1), (words, shown)
    assert lines[0].startswith("auepora: ")
    assert files_in(folder) == before, words


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_datasets(command: tuple[str, ...], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(DATASETS) > 60
    for name in DATASETS:
        refused([str(FOLDER / name) if word == "FILE" else word for word in command], folder, capsys)


def test_predictions(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [name for name, told in TOLD.items() if told["exit"] and "predictions" in (told["format"], name)]
    names += [name for name in TOLD if name.endswith("/predictions.jsonl") and not name.startswith(EMPTY)]
    for name in names:
        words = ["score", "--dataset", "good.jsonl", "--outputs", str(FOLDER / name), "--out", "out"]
        refused(words, folder, capsys)


def test_plans(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, told in TOLD.items():
        if told["exit"] and told["format"] == "config":
            refused(["run", "--config", str(FOLDER / name), "--out", "out"], folder, capsys)


@pytest.mark.parametrize("command", ["show", "show --markdown -", "compare", "score --run"])
def test_runs(command: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    further = {"compare": ["FILE"], "score --run": ["--metrics", "mrr"]}.get(command, [])
    for name in TOLD:
        if name.endswith("/run.results.json"):
            words = [*command.split(), "FILE", *further, "--out", "out"]
            refused([str(FOLDER / name) if word == "FILE" else word for word in words], folder, capsys)
