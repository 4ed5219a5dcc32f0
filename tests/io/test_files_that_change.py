"""Files that change while they are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from auepora_eval.errors import DataError
from auepora_eval.io.jsonl import JsonlDataset
from auepora_eval.io.outputs import PredictionFile


def data(path: Path, ids: str, field: str = '"query":"q"') -> Path:
    path.write_text("".join(f'{{"sample_id":"{name}",{field}}}\n' for name in ids), encoding="utf-8")
    return path


def test_predictions_that_change_while_they_are_read(tmp_path: Path) -> None:
    path = data(tmp_path / "p.jsonl", "abc", '"answer":"x"')
    file = PredictionFile(path)
    data(path, "bca", '"answer":"x"')
    with pytest.raises(DataError, match=r"p\.jsonl:1: the file changed while it was read"):
        list(file.outputs(["a"]))


def test_a_small_dataset_stays_as_it_was_when_it_was_read(tmp_path: Path) -> None:
    path = data(tmp_path / "d.jsonl", "abc")
    dataset = JsonlDataset(path)
    assert len(list(dataset)) == 3
    data(path, "ab")
    assert [sample.sample_id for sample in dataset] == ["a", "b", "c"]


def test_a_large_dataset_that_changed_is_looked_through_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("auepora_eval.io.jsonl._SMALL_BYTES", 0)
    path = data(tmp_path / "d.jsonl", "abc")
    dataset = JsonlDataset(path)
    assert len(list(dataset)) == len(list(dataset)) == 3
    data(path, "aba")  # as long as before
    with pytest.raises(DataError, match="'a' was used already"):
        list(dataset)
    with pytest.raises(DataError, match="'a' was used already"):
        list(dataset)  # a walk that failed proves nothing
