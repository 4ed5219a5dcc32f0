"""Seed 002 as its users meet it: new targets, metrics, stores and tables, without a change to the library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from enum import Enum, auto
from pathlib import Path
from typing import Any

import pytest

import auepora_eval as ae
from auepora_eval.cli.main import main
from auepora_eval.core.targets import NamedTarget, TargetCategory
from auepora_eval.metrics.parse import default_metrics
from auepora_eval.reporting.plots import plot_metrics
from tests.builders import a_sample

pytestmark = pytest.mark.full

SAMPLES: list[dict[str, Any]] = [
    {"sample_id": str(n), "query": f"How many boats at pier {n}?", "reference_answer": f"{n} boats"}
    for n in range(12)
]


class Style(Enum):
    """A taxonomy of the user's own."""

    TONE = auto()


class ByEnum(ae.SampleMetric):
    name = "by_enum"
    target = Style.TONE  # type: ignore[assignment]

    def score(self, sample: ae.EvaluationSample, output: ae.SystemOutputs) -> float:
        return float(len(output.response.text) % 3 == 0)


class ByText(ae.Metric):
    """As seed 002 writes a metric: a name, a target, and compute."""

    name = "by_text"
    target = "tone"  # type: ignore[assignment]

    def required_fields(self) -> list[str]:
        return []

    def compute(self, samples: list[ae.EvaluationSample], outputs: list[ae.SystemOutputs]) -> ae.MetricResult:
        return ae.MetricResult(self.name, self.target, 0.25)  # type: ignore[arg-type]


def echo(query: str) -> str:
    return query


@pytest.mark.parametrize(("metric", "target"), [(ByEnum(), "TONE"), (ByText(), "tone")])
def test_a_target_of_ones_own_is_stored_loaded_shown_compared_and_plotted(
    metric: ae.Metric, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ae.evaluate(echo, SAMPLES, metrics=[metric, "exact_match"], evaluation_id="mine")
    assert run.results[0].target == NamedTarget(target)
    run.save(tmp_path)
    stored = json.loads((tmp_path / "mine.results.json").read_text())
    assert stored["additional_metrics"][metric.name]["target"] == target
    loaded = ae.load_run(tmp_path / "mine")
    assert str(loaded) == str(run)
    assert target in ae.results_to_dict(loaded)
    assert "exact_match" in str(ae.compare(loaded, run))
    pytest.importorskip("matplotlib")
    assert plot_metrics(loaded.results) is not None
    assert main(["show", "mine", "--out", str(tmp_path)]) == 0
    assert metric.name in capsys.readouterr().out


def test_the_table_of_the_seed() -> None:
    results = [
        ae.MetricResult("recall@5", TargetCategory.RETRIEVAL_RELEVANCE, 0.83),
        ae.MetricResult("rougeL_answer", TargetCategory.GENERATION_CORRECTNESS, 0.61),
    ]
    assert ae.results_to_markdown(results, columns=3) == (
        "| Target | Metric | Value |\n"
        "|--------|--------|-------|\n"
        "| RETRIEVAL_RELEVANCE | recall@5 | 0.8300 |\n"
        "| GENERATION_CORRECTNESS | rougeL_answer | 0.6100 |"
    )
    with pytest.raises(ValueError, match="columns must be from 1 to 8, not 9"):
        ae.results_to_markdown(results, columns=9)


def test_default_metrics_are_few_and_follow_the_samples() -> None:
    everything = [
        a_sample("1", relevant="a", reference="x", labels={"noise_ratio": 0.0}),
        a_sample("2", labels={"scenario": "unanswerable"}),
        a_sample("3", reference="x", labels={"true_answer": "x", "fake_answer": "y", "variant_of": "1"}),
    ]
    names = {metric.name for metric in default_metrics(everything)}
    assert {"recall@5", "ndcg@5", "contains_answer", "grounding_overlap", "rejection_rate"} <= names
    assert len(names) <= 8
    assert "rejection_rate" not in {metric.name for metric in default_metrics([a_sample("1")])}


# A file without `from __future__ import annotations`, as most people write it.
MINE = """
from typing import Optional

from auepora_eval import METRICS, SampleMetric, metric


@metric("brevity@{words}", target="generation_relevance")
def brevity(sample, output, *, words: int = 10) -> float:
    return float(len(output.response.text.split()) <= words)


@metric("capped@{words?}", target="tone")
class Capped(SampleMetric):
    words: Optional[int] = None

    def score(self, sample, output):
        return 1.0


class Plain(SampleMetric):
    name = "plain"
    target = "tone"

    def score(self, sample, output):
        return float(len(output.response.text) % 2)


METRICS.add("plain")(Plain)


def rag(query):
    return query


def other(query):
    return query + "!"
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    lines = "".join(json.dumps(sample) + "\n" for sample in SAMPLES)
    (tmp_path / "d.jsonl").write_text(lines, encoding="utf-8")
    return tmp_path


def auepora(folder: Path, *words: str, **environment: str) -> str:
    """Run a command in a process of its own, which does not have the metrics of other tests."""
    done = subprocess.run(
        [sys.executable, "-m", "auepora_eval", *words],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_metrics_of_a_file_and_of_the_file_of_the_system(here: Path) -> None:
    run = ("run", "--dataset", "d.jsonl", "--out", "runs")
    by_file = "mine.py:brevity@3,mine.py:capped@7,mine.py:plain"
    (here / "rag.py").write_text("def rag(query):\n    return query\n", encoding="utf-8")
    assert "brevity@3" in auepora(here, *run, "--system", "rag.py:rag", "--metrics", by_file, "--id", "a")
    auepora(here, *run, "--system", "mine.py:other", "--metrics", "brevity@3,capped@7,plain", "--id", "b")
    stored = json.loads((here / "runs" / "a.results.json").read_text())
    assert stored["configuration"]["metrics"] == ["brevity@3", "capped@7", "plain"]
    assert "nothing to resume" in auepora(here, "run", "--resume", "a", "--out", "runs")
    assert "capped@7" in auepora(here, "show", "a", "--out", "runs")
    # Neither command imports the file: the stored scores are enough.
    assert "plain" in auepora(here, "compare", "a", "b", "--full", "--out", "runs").split("Metric")[1]
    assert "plain" in auepora(here, "power", "a", "b", "--out", "runs")


def test_a_run_with_metrics_of_a_file_can_be_resumed(here: Path) -> None:
    """The file is stored with the run: its metrics are found again."""
    run = ("run", "--dataset", "d.jsonl", "--system", "mine.py:rag", "--metrics", "mine.py:brevity@3")
    stopped = subprocess.run(
        [sys.executable, "-m", "auepora_eval", *run, "--budget-calls", "3", "--id", "a", "--out", "runs"],
        cwd=here,
        capture_output=True,
        check=False,
    )
    assert stopped.returncode == 1
    resumed = auepora(here, "run", "--resume", "a", "--out", "runs", "--budget-calls", "100")
    assert "brevity@3" in resumed
    assert "12/12" in resumed


def test_a_cell_that_is_run_again_replaces_its_metric() -> None:
    cell = """
@ae.metric("cell_again", target="tone")
def cell_again(sample, output) -> float:
    return VALUE
"""
    try:
        for value in ("0.0", "1.0"):
            exec(cell.replace("VALUE", value), {"ae": ae, "__name__": "__main__"})  # noqa: S102
            assert ae.evaluate(echo, SAMPLES, metrics="cell_again")["cell_again"].value == float(value)
        with pytest.raises(ValueError, match="there is a metric 'cell_again' already"):
            exec(cell, {"ae": ae, "__name__": "another_module"})  # noqa: S102
    finally:
        ae.METRICS._things.pop("cell_again", None)


def test_a_sample_that_cannot_be_stored_is_named() -> None:
    odd = [ae.EvaluationSample("odd", "q", metadata={1: "one"})]  # type: ignore[dict-item]
    with pytest.raises(ae.DataError, match="sample 'odd': cannot be written as JSON"):
        ae.evaluate(echo, odd, metrics="mean_latency")
