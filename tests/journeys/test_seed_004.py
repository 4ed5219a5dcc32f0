"""Seed 004's annotation guide as a new user follows it: label, validate, score a detector, set thresholds.

Each step runs on the bundled label set, and on the public one where it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.cli.main import main
from auepora_eval.demo.world import DATA
from auepora_eval.store.storage import EvaluationResultsStorage

pytestmark = pytest.mark.full

PUBLIC = Path(__file__).parents[3] / "shared" / "data" / "fhri"
NOT_HERE = pytest.mark.skipif(not PUBLIC.exists(), reason="needs ../shared/data/fhri")
SETS = [
    pytest.param(DATA / "answers.labels.json", id="bundled"),
    pytest.param(PUBLIC / "data__evaluation_dataset.json", id="public", marks=NOT_HERE),
]
# As the guide prints it, with its comments.
PRINTED = """{
  "id": "fhri_002",
  "question": "Between an S&P 500 ETF and a single tech stock like NVDA...",
  "ground_truth_label": "accurate",  // ← System should predict "accurate"
  "fhri_spec": {
    "scenario_override": "multi_ticker",  // ← Uses 0.70 threshold
    "expected_scenario": "Multi-Ticker Comparison",
    "risk_tier": "high",  // ← High-risk question
    "category": "investment_advice"
  }
}
"""
DETECTOR = """
from auepora_eval import EvaluationSample

def detector(sample: EvaluationSample) -> str:
    return "hallucination" if "22" in sample.metadata["stored_output"]["answer"] else "accurate"
"""
Run = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in an empty folder and return what it printed; with --json, the document."""
    monkeypatch.chdir(tmp_path)
    Path("watch.py").write_text(DETECTOR, encoding="utf-8")

    def call(*words: str, code: int = 0) -> Any:
        capsys.readouterr()
        assert main(list(words)) == code, capsys.readouterr().err
        printed = capsys.readouterr()
        return json.loads(printed.out) if "--json" in words else printed.out + printed.err

    return call


def records(path: Path) -> list[dict[str, Any]]:
    """The samples of a label set in one list; the public one has a list within its list."""
    flat: list[dict[str, Any]] = []
    for each in json.loads(path.read_text(encoding="utf-8"))["samples"]:
        flat += each if isinstance(each, list) else [each]
    return flat


def write_lines(name: str, lines: list[dict[str, Any]]) -> str:
    Path(name).write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return name


def predictions(name: str, samples: list[dict[str, Any]], label: str | None = None) -> str:
    """A file with the true label of each sample, or always with this one."""
    lines = [{"id": one["id"], "predicted_label": label or one["ground_truth_label"]} for one in samples]
    return write_lines(name, lines)


def test_the_printed_example(run: Run) -> None:
    Path("mine.json").write_text(PRINTED, encoding="utf-8")
    assert "mine.json:4: not JSON" in run("dataset", "check", "mine.json", code=1)  # it has a comment
    without = "\n".join(line.split("//")[0] for line in PRINTED.splitlines())
    Path("mine.json").write_text(without, encoding="utf-8")
    assert "mine.json: valid (labels)" in run("dataset", "check", "mine.json")
    for score, label in ((0.71, "accurate"), (0.70, "hallucination")):  # "multi_ticker" uses 0.70
        scores = write_lines("scores.jsonl", [{"id": "fhri_002", "score": score}])
        words = ("labels", "score", "--dataset", "mine.json", "--scores", scores, "--json")
        (result,) = run(*words)["detailed_results"]
        assert (result["threshold"], result["predicted_label"]) == (0.70, label)


# Two of the public answers have no words that could be looked for.
ENOUGH = ("--min-coverage", "0.9")


@pytest.mark.parametrize("path", SETS)
def test_only_the_label_is_compared(run: Run, path: Path) -> None:
    """The label decides what is right; notes, rubric and your_annotation are for people."""
    samples = records(path)
    assert "valid (labels)" in run("dataset", "check", str(path))
    right = predictions("right.jsonl", samples)
    report = run("labels", "score", "--dataset", str(path), "--predictions", right, "--slices", "--json")
    overall = report["metrics"]["overall"]
    assert (overall["accuracy"], overall["total_samples"]) == (1.0, len(samples))
    assert report["pair_accuracy"]["accuracy"] == 1.0
    assert {"scenario", "risk_tier", "category", "compliance_tag", "pair"} == set(report["slices"])
    decided = run(
        "labels", "score", "--dataset", str(path), "--metric", "grounding_overlap", *ENOUGH, "--json"
    )["detailed_results"]
    for sample in samples:
        sample |= {"notes": "It is a hallucination.", "your_annotation": "hallucination"}
        sample["fhri_spec"] = {
            **sample["fhri_spec"],
            "rubric": ["Says so."],
            "expected_behavior": "To refuse.",
        }
    Path("other.json").write_text(json.dumps({"samples": samples}), encoding="utf-8")
    again = run(
        "labels", "score", "--dataset", "other.json", "--metric", "grounding_overlap", *ENOUGH, "--json"
    )["detailed_results"]
    assert again == decided


@pytest.mark.parametrize("path", SETS)
def test_what_is_missing_is_no_gain(run: Run, path: Path) -> None:
    samples = records(path)
    data = ("--dataset", str(path))
    some = predictions("some.jsonl", samples[: 2 * len(samples) // 3])
    said = run("labels", "score", *data, "--predictions", some, code=3)
    assert "without a prediction" in said
    assert "less than the 99.0% asked for (--min-coverage)" in said
    run("labels", "score", *data, "--predictions", some, "--min-coverage", "0.6")
    accurate = [one for one in samples if one["ground_truth_label"] == "accurate"]
    scores = write_lines("scores.jsonl", [{"id": one["id"], "score": 0.9} for one in accurate])
    swept = run("labels", "sweep", *data, "--scores", scores, "--json", code=3)
    assert swept["samples_without_score"] == len(samples) - len(accurate)
    for part in ("fitted", "cross_validated"):
        assert swept[part]["hall_recall"] is None
        assert swept[f"{part}_bounds_if_failed"]["hall_recall"] == [0.0, 1.0]
        share = len(accurate) / len(samples)
        assert swept[f"{part}_bounds_if_failed"]["accuracy"] == [pytest.approx(share), 1.0]


@pytest.mark.parametrize("path", SETS)
def test_always_saying_contradiction_is_right_about_no_pair(run: Run, path: Path) -> None:
    always = predictions("always.jsonl", records(path), "contradiction")
    pairs = run("labels", "score", "--dataset", str(path), "--predictions", always, "--json")["pair_accuracy"]
    assert pairs["contradictions_found"] == pairs["contradictions"] > 0
    assert pairs["right"] < pairs["pairs"] / 2


@pytest.mark.parametrize("path", SETS)
def test_a_detector_is_run_with_the_metrics_of_labels(run: Run, path: Path) -> None:
    run("run", "--dataset", str(path), "--system", "watch.py:detector", "--id", "first")
    names = [result.name for result in EvaluationResultsStorage().load_run("first").results]
    assert names[:2] == ["label_accuracy", "label_macro_f1"]
    assert not any(name.startswith(("recall@", "token_f1")) for name in names)


@pytest.mark.parametrize("path", SETS)
def test_a_scenario_of_ones_own(run: Run, path: Path) -> None:
    samples = records(path)
    samples[0]["fhri_spec"]["scenario_override"] = "harbour_fees"
    samples[1]["fhri_spec"]["scenario_override"] = None
    Path("mine.json").write_text(json.dumps({"samples": samples}), encoding="utf-8")
    assert "valid (labels)" in run("dataset", "check", "mine.json")
    scores = write_lines("scores.jsonl", [{"id": one["id"], "score": 0.5} for one in samples])
    data = ("--dataset", "mine.json", "--scores", scores)
    assert "the scenario 'harbour_fees' has no threshold" in run("labels", "score", *data, code=2)
    Path("mine.yaml").write_text("{harbour_fees: 0.4, default: 0.6}\n", encoding="utf-8")
    report = run("labels", "score", *data, "--thresholds", "mine.yaml", "--slices", "--json")
    first, second, *_ = report["detailed_results"]
    assert (first["threshold"], first["predicted_label"]) == (0.4, "accurate")
    assert (second["scenario"], second["threshold"]) == ("default", 0.6)
    swept = run("labels", "sweep", *data, "--per-scenario", "--json")
    assert {part["scenario"] for part in swept["parts"]} == set(report["slices"]["scenario"])


@NOT_HERE
def test_the_published_report_comes_out_again(run: Run) -> None:
    """Its labels score as published, and each score is compared with the published threshold."""
    report = PUBLIC / "results__eval_100_samples_moderate_fhri.json"
    data = ("--dataset", str(PUBLIC / "data__evaluation_dataset.json"))
    overall = run("labels", "score", *data, "--predictions", str(report), "--json")["metrics"]["overall"]
    assert (overall["accuracy"], overall["macro_f1"]) == (0.63, pytest.approx(0.6196, abs=5e-5))
    published = {one["sample_id"]: one for one in json.loads(report.read_text("utf-8"))["detailed_results"]}
    results = run("labels", "score", *data, "--scores", str(report), "--json")["detailed_results"]
    assert len(results) == 100
    for one in results:
        theirs = published[one["sample_id"]]
        assert one["threshold"] == theirs["fhri_threshold_used"]
        # The published labels have a floor for high risk as well, which is a rule of the FHRI alone.
        if not theirs["fhri_risk"]["high_risk_floor_breach"]:
            assert one["predicted_label"] == theirs["predicted_label"]
