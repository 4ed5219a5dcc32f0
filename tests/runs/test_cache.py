"""The cache of answers, where its disk is full."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from auepora_eval.cli.main import main
from auepora_eval.errors import StorageError
from auepora_eval.runs.evaluation import OutputCache
from tests.builders import a_sample, an_output


def test_a_full_disk_is_told_with_its_place(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    folder, before = tmp_path / "answers", resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))  # no file may be longer, as on a full disk
    try:
        with (
            pytest.raises(StorageError, match="answers cannot be written: "),
            OutputCache(folder, ["x"], 5) as cache,
        ):
            cache.add(a_sample("s1", "q"), an_output("ab", "yes"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_an_error_within_is_not_hidden_by_the_cache(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fail(cache: OutputCache) -> None:
        with suppress(StorageError):
            cache.add(a_sample("s1", "q"), an_output("ab", "yes"))
        raise KeyError("mine")

    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(KeyError, match="mine"), OutputCache(tmp_path / "answers", ["x"], 5) as cache:
            fail(cache)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_folder_that_is_not_there_has_no_finished_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--resume", "x", "--out", str(tmp_path / "nowhere")]) == 2
    said = capsys.readouterr().err
    assert "No run 'x' to resume" in said
    assert "finished" not in said
