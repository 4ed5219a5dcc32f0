"""auepora power: output and errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from auepora_eval.cli.main import main

Power = Callable[..., tuple[str, str]]


@pytest.fixture(scope="module")
def demo_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    assert main(["demo", "--out", str(folder), "--json"]) == 0
    return folder


@pytest.fixture
def power(demo_runs: Path, capsys: pytest.CaptureFixture[str]) -> Power:
    def run(*words: str, code: int = 0) -> tuple[str, str]:
        capsys.readouterr()
        try:
            found = main(["power", *words, "--out", str(demo_runs)])
        except SystemExit as error:
            found = int(str(error.code))
        assert found == code
        shown = capsys.readouterr()
        assert "Traceback" not in shown.err
        return " ".join(shown.out.split()), " ".join(shown.err.split())

    return run


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "Nothing to estimate"),
        (("--effect", "0.1"), "give either sd"),
        (("--n", "100", "--rate", "0.5", "--correlation", "1"), "not a correlation"),
        (("demo-bm25", "--sd", "1"), "--sd and --rate cannot be combined with a run"),
        (("demo-bm25", "demo-hybrid", "demo-bm25"), "one run, or at two"),
        (("demo-bm25", "--metric", "recal@5"), "has no scores of 'recal@5'"),
    ],
)
def test_bad_arguments(power: Power, words: tuple[str, ...], told: str) -> None:
    assert told in power(*words, code=2)[1]
