"""labels score and labels sweep, as a user would type them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auepora_eval.cli.main import main
from auepora_eval.core.dataset import InMemoryDataset
from auepora_eval.core.types import Response
from auepora_eval.demo.world import demo_labels
from auepora_eval.io.loader import save_dataset
from auepora_eval.store.storage import EvaluationResultsStorage
from auepora_eval.text.label_terms import LABELS

DETECTOR = """
import hashlib
from auepora_eval import EvaluationSample

def detector(sample: EvaluationSample) -> str:
    assert "ground_truth_label" not in sample.labels
    assert set(sample.metadata) == {"stored_output"}
    assert not {"category", "compliance_tag"} & set(sample.labels)
    if sample.sample_id == "sample-3":
        raise RuntimeError("no luck")
    return "hallucination" if "crowns" in sample.metadata["stored_output"]["answer"] else "accurate"

def spy(sample: EvaluationSample) -> str:
    seen = hashlib.sha256(repr(sample).encode()).digest()
    return ("accurate", "hallucination", "contradiction")[seen[0] % 3]

def answerer(query: str) -> str:
    print("thinking")
    return "It is 12 millimetres, according to the annual report."
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "watch.py").write_text(DETECTOR, encoding="utf-8")
    true = {sample.sample_id: sample.labels["ground_truth_label"] for sample in demo_labels()}
    for name, always in (("perfect.jsonl", None), ("always.jsonl", "accurate")):
        lines = [json.dumps({"id": key, "predicted_label": always or label}) for key, label in true.items()]
        (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")
    scores = [
        json.dumps({"id": key, "score": 0.9 if label == "accurate" else 0.2}) for key, label in true.items()
    ]
    (tmp_path / "scores.jsonl").write_text("\n".join(scores), encoding="utf-8")
    return tmp_path


def test_predictions_from_a_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["labels", "score", "--dataset", "demo", "--predictions", "perfect.jsonl"]
    assert main([*command, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["metrics"]["overall"]["accuracy"] == record["metrics"]["overall"]["macro_f1"] == 1.0
    assert record["confusion_matrix"]["hallucination"] == {
        "accurate": 0,
        "hallucination": 7,
        "contradiction": 0,
    }
    assert record["slices"] == {}
    assert main([*command, "--slices"]) == 0
    out = capsys.readouterr().out
    for text in (
        "24 samples",
        "True \\ predicted",
        "Always accurate: accuracy 0.5417",
        "numeric_kpi",
    ):
        assert text in out


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ('{"id": "answer_01", "score": null}', 3, "there is not a single score; nothing was measured"),
        ('{"id": "answer_01", "score": 1.5}', 2, "few.jsonl:1: 1.5 is not a score from 0 to 1"),
        ('{"id": "answer_01", "score": 1, "predicted_label": "odd"}', 2, "'odd' is not one of accurate"),
        (
            '{"id": "answer_01", "score": 1, "predicted_label": "Contradiction"}',
            3,
            "23 of 24 samples failed (the scores): coverage 4.2%, less than the 99.0% asked for",
        ),
    ],
)
def test_missing_scores(
    here: Path, capsys: pytest.CaptureFixture[str], line: str, code: int, said: str
) -> None:
    Path("few.jsonl").write_text(line + "\n")
    assert main(["labels", "sweep", "--dataset", "demo", "--scores", "few.jsonl"]) == code
    assert said in capsys.readouterr().err


def test_a_detector_sees_no_label_and_its_failure_is_counted(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["labels", "score", "--dataset", "demo", "--system", "watch.py:detector", "--json"]) == 3
    overall = json.loads(capsys.readouterr().out)["metrics"]["overall"]
    assert (overall["total_samples"], overall["failed_samples"]) == (24, 1)


@pytest.mark.parametrize("command", ["labels score", "run"])
def test_system_cannot_read_the_labels(here: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    said = []
    for turn in range(2):
        samples = list(demo_labels())
        for place, sample in enumerate(samples):
            if turn:
                sample.labels["ground_truth_label"] = LABELS[place % 3]
                for_people = {"notes": f"n{place}", "rubric": ["r"], "your_annotation": LABELS[place % 2]}
                sample.metadata |= {**for_people, "expected_behavior": "refuse", "ground_truth_hint": "h"}
                sample.reference_answer = Response("what is right")
        data = Path(f"data{turn}.jsonl")
        save_dataset(InMemoryDataset("spied", samples), data, "jsonl")
        words = [*command.split(), "--dataset", str(data), "--system", "watch.py:spy"]
        if command == "run":
            assert main([*words, "--metrics", "label_accuracy", "--id", f"r{turn}"]) == 0
            capsys.readouterr()
            outputs = EvaluationResultsStorage().load_run(f"r{turn}").outputs
            said.append([output.response.text for output in outputs])
        else:
            assert main([*words, "--json"]) == 0
            records = json.loads(capsys.readouterr().out)["detailed_results"]
            said.append([record["predicted_label"] for record in records])
    assert len(said[0]) == 24
    assert said[0] == said[1]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("--metric grounding_overlap --thresholds none.yaml", "none.yaml: there is no such file."),
        ("--predictions scores.jsonl", "scores.jsonl:1: the field 'predicted_label' is missing."),
    ],
)
def test_errors_are_one_line(here: Path, capsys: pytest.CaptureFixture[str], words: str, error: str) -> None:
    assert main(["labels", "score", "--dataset", "demo", *words.split()]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert error in captured.err


def test_scores_are_labelled_by_the_thresholds_of_scenarios(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """0.9 for what is accurate, 0.2 for the rest: contradictions cannot be seen in a score."""
    command = ["labels", "score", "--dataset", "demo", "--scores", "scores.jsonl", "--json"]
    assert main(command) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["confusion_matrix"] == {
        "accurate": {"accurate": 13, "hallucination": 0, "contradiction": 0},
        "hallucination": {"accurate": 0, "hallucination": 7, "contradiction": 0},
        "contradiction": {"accurate": 0, "hallucination": 4, "contradiction": 0},
    }
    assert {one["threshold"] for one in record["detailed_results"]} == {0.8, 0.7, 0.75, 0.55, 0.65}
    Path("own.yaml").write_text("{regulatory: 0.95, tides: 0.5}\n")
    assert main([*command, "--thresholds", "own.yaml"]) == 0
    out, err = capsys.readouterr()
    assert "no sample has the scenario 'tides' of own.yaml. Is it misspelt?" in err
    wrong = [one for one in json.loads(out)["detailed_results"] if one["true_label"] == "accurate"]
    assert {one["scenario"] for one in wrong if not one["correct"]} == {"regulatory"}


def test_sweep(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["labels", "sweep", "--dataset", "demo", "--scores", "scores.jsonl"]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert "0.20 *" in out
    assert "cross-validated (5 folds)    0.5926" in out  # (1 + 14 / 18 + 0) / 3
    assert main([*command, "--json", "--per-scenario", "--folds", "0"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert len(record["parts"]) == 5
    assert record["cross_validated"] is None
