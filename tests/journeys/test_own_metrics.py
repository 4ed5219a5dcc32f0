"""Metrics of one's own by file: faults are named in one line, and nothing passes that was not checked."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import auepora_eval as ae
from auepora_eval.cli.main import main

SEED_METRIC = """
from auepora_eval.core.metrics_base import Metric
from auepora_eval.core.types import MetricResult

class Length(Metric):
    name = "length"
    target = "generation_relevance"

    def required_fields(self):
        return ["query"]

    def compute(self, samples, outputs):
        value = sum(len(one.response.text) for one in outputs) / len(outputs)
        return MetricResult(self.name, self.target, value, {})

class Listed(Length):
    name = "listed"
"""
FUNCTIONS = """
import auepora_eval as ae

@ae.metric
def boom_of_mine(sample, output):
    return {}["nothing"]

@ae.metric
def words_of_mine(sample, output):
    return "many"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(ae.METRICS, "_things", {name: ae.METRICS.get(name) for name in ae.METRICS})
    rows = [
        {"id": f"q{n}", "query": f"What is {n}?", "answer": "x" * n, "reference_answer": "x"}
        for n in range(9)
    ]
    Path("rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


def written(name: str, text: str, tmp_path: Path) -> str:
    """A module of its own for each test: Python imports a name once."""
    path = Path(f"{name}_{abs(hash(str(tmp_path)))}.py")
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_metric_without_scores_is_named_and_does_not_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written("seed", SEED_METRIC, tmp_path)
    for name in ("o1", "o2"):
        assert main(["score", "rows.jsonl", "--metrics", f"{file}:Length", "--id", name]) == 0
    capsys.readouterr()
    assert main(["gate", "o2", "--baseline", "o1"]) == 3
    assert "length is not checked: it has one value for all samples" in " ".join(
        capsys.readouterr().out.split()
    )
    old, new = (ae.load_run(f"data/evaluation/results/{name}") for name in ("o1", "o2"))
    report = ae.gate(new, baseline=old)
    assert report.exit_code == 3
    assert "no score for each of them" in ae.compare(old, new).not_compared["length"]
    assert "not registered" not in ae.compare(old, new).not_compared["length"]


def test_beside_a_metric_that_is_checked_it_is_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written("beside", SEED_METRIC, tmp_path)
    for name in ("o1", "o2"):
        assert main(["score", "rows.jsonl", "--metrics", f"token_f1,{file}:Length", "--id", name]) == 0
    capsys.readouterr()
    assert main(["gate", "o2", "--baseline", "o1"]) == 0
    printed = capsys.readouterr()
    assert "length is not compared: it has one value" in " ".join((printed.out + printed.err).split())


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("boom_of_mine", "failed on the sample 'q0': KeyError: 'nothing' ({file}, line 6)"),
        ("words_of_mine", "failed on the sample 'q0': it returned 'many', which is not a number"),
    ],
)
def test_a_function_that_fails_is_one_line(
    name: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(name, FUNCTIONS, tmp_path)
    assert main(["score", "rows.jsonl", "--metrics", f"{file}:{name}"]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert f"auepora: the metric '{name}' {problem.format(file=file)}." in error
    assert "Traceback" not in error
    with pytest.raises(ae.AueporaError, match=f"the metric '{name}' failed on the sample") as raised:
        ae.evaluate(lambda query: query, [{"query": "Who?"}], metrics=[f"{file}:{name}"])
    assert isinstance(raised.value.__cause__, KeyError | ValueError)


def test_a_wrong_name_lists_the_metrics_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written("wrong", SEED_METRIC + FUNCTIONS, tmp_path)
    assert main(["score", "rows.jsonl", "--metrics", f"{file}:Nope"]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert f"{file} has no metric 'Nope'. It has Length, Listed, boom_of_mine, words_of_mine." in error


def test_python_is_told_of_force(tmp_path: Path) -> None:
    run = ae.evaluate(
        lambda query: query,
        [{"sample_id": "q", "query": "Who?", "reference_answer": "Ada"}],
        metrics=["token_f1"],
    )
    for write in (run.to_html, run.save):
        target = "page.html" if write == run.to_html else "runs"
        write(target)
        with pytest.raises(ae.StorageError, match=r"force=True"):
            write(target)
