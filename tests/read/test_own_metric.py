"""The `Metric` class of seed 002 in a user's file: named on the command line, stored and shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from auepora_eval.cli.main import main as auepora

METRICS = """
from auepora_eval import Metric, MetricResult, TargetCategory

class Mine(Metric):
    name = "mine"
    target = TargetCategory.GENERATION_RELEVANCE
    def required_fields(self):
        return []
    def compute(self, samples, outputs):
        return MetricResult(self.name, self.target, 5.0, {})

class Raises(Mine):
    name = "raises"
    def compute(self, samples, outputs):
        raise KeyError("x")

class Floats(Mine):
    name = "floats"
    def compute(self, samples, outputs):
        return 0.5

class Nameless(Mine):
    name = None

class Empty(Mine):
    name = ""

class Listed(Mine):
    required_fields = ["query"]

class Needless(Mine):
    def required_fields(self):
        pass
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.jsonl").write_text('{"sample_id": "1", "query": "q"}\n')
    (tmp_path / "p.jsonl").write_text('{"sample_id": "1", "answer": "a"}\n')
    return tmp_path


def score(folder: Path, metric: str) -> int:
    # A module of a user is imported once: each test has a file of its own.
    file = folder / f"metrics_of_{folder.name}.py"
    file.write_text(METRICS)
    files = ["--dataset", "q.jsonl", "--outputs", "p.jsonl"]
    return auepora(["score", *files, "--metrics", f"{file.name}:{metric}", "--id", "r"])


def test_a_metric_class_is_scored_stored_and_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert score(folder, "Mine") == 0
    capsys.readouterr()
    assert auepora(["show", "r"]) == 0
    assert "mine" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("metric", "cause"),
    [
        ("Raises", "KeyError"),
        ("Floats", "MetricResult"),
        ("Nameless", "has no name"),
        ("Empty", "has no name"),
        ("Listed", "required_fields must be a method"),
        ("Needless", "required_fields must be a method"),
    ],
)
def test_a_metric_class_that_fails_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str], metric: str, cause: str
) -> None:
    assert score(folder, metric) != 0
    said = capsys.readouterr().err
    assert cause in said
    assert "Traceback" not in said
    assert metric.lower() in said.lower()


def test_a_run_is_resumed_after_its_metric_failed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / f"metrics_of_{folder.name}.py"
    file.write_text(METRICS)
    (folder / "s.py").write_text('def s(query):\n    return "a"\n')
    words = ["--dataset", "q.jsonl", "--system", "s.py:s", "--metrics", f"{file.name}:Raises", "--id", "own"]
    assert auepora(["run", *words]) == 2
    assert "resume: auepora run --resume own" in capsys.readouterr().err
    assert auepora(["run", "--resume", "own"]) == 2
    assert "the metric 'raises' failed" in capsys.readouterr().err


OF_ANOTHER_KIND = """
from auepora_eval import Metric, SampleMetric, metric

@metric
class Mine({base}):
    name, target = "mine", "generation_relevance"
    def {method}(self, *given):
        return 1.0
"""


@pytest.mark.parametrize(
    ("base", "method", "advice"),
    [("Metric", "compute", "Leave the decorator out"), ("SampleMetric", "score_sample", "lacks score")],
)
def test_a_class_that_the_decorator_cannot_use_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str], base: str, method: str, advice: str
) -> None:
    file = folder / f"metrics_of_{folder.name}.py"
    file.write_text(OF_ANOTHER_KIND.format(base=base, method=method))
    files = ["--dataset", "q.jsonl", "--outputs", "p.jsonl"]
    assert auepora(["score", *files, "--metrics", f"{file.name}:Mine"]) == 2
    said = capsys.readouterr().err
    assert "Mine" in said
    assert advice in said
