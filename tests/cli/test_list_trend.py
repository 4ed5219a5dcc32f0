"""auepora list --trend: a metric over time."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from auepora_eval.cli.main import main
from tests.decide.nightly import store

Listed = Callable[..., tuple[str, str]]


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nights") / "runs"
    for day, hits in enumerate([30, 30, 31, 50, 51], start=1):
        store(folder, day, hits)
    store(folder, 6, 10, size=20)
    return folder


@pytest.fixture
def listed(nights: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Listed:
    shutil.copytree(nights, tmp_path / "runs")

    def run(*words: str, code: int = 0) -> tuple[str, str]:
        capsys.readouterr()
        assert main(["list", *words, "--out", str(tmp_path / "runs")]) == code
        shown = capsys.readouterr()
        return shown.out, shown.err

    return run


def test_failures_are_shown_and_not_counted_as_gains(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for day, (failing, seconds) in enumerate([(0, 0.1)] * 4 + [(30, 0.01)] * 4, start=1):
        store(tmp_path, day, 60, wrong=30, failing=failing, seconds=seconds * (1 + day / 100))
    assert main(["list", "--trend", "recall@1", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr()
    assert "0.5000 [0.3719, 0.6281] 30 30" in " ".join(shown.out.split())
    assert "Failed calls count as the worst of the metric" in shown.err
    assert main(["list", "--trend", "mean_latency", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr()
    assert "Times leave them out (*)" in shown.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--trend", "nonsense"), "has 'nonsense'. They have recall@1, bleu, mean_latency"),
        (("--trend", "recal@1"), "Did you mean recall@1?"),
    ],
)
def test_rejected_arguments(listed: Listed, words: tuple[str, ...], says: str) -> None:
    assert says in listed(*words, code=2)[1]
