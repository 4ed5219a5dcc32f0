"""auepora experiment: from a file to a verdict, through the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from auepora_eval.cli.main import main

Run = Callable[..., tuple[str, str]]

RAG = """
NOTES = {"ferry": "The ferry carries 22 cars.", "light": "The light is white.", "water": "Water on Tuesday."}

class Rag:
    def __init__(self, right=0, stop=None):
        self.right, self.stop = right, stop
    def run(self, sample, top_k=5):
        from auepora_eval.core.rag_interface import to_output
        if self.stop and int(sample.sample_id) == self.stop:
            raise KeyboardInterrupt
        good = int(sample.sample_id) < self.right
        return to_output({"answer": "white" if good else "", "retrieved": ["light" if good else "ferry"]})
"""
CONFIG = """
dataset: questions.jsonl
ab_testing:
  experiment_id: trial
  name: A trial
  variants:
    - {{variant_id: old, system: "trial_rag.py:Rag", config_overrides: {{right: 10}}}}
    - {{variant_id: new, {new}}}
  traffic_allocation: {{old: 0.5, new: 0.5}}
  primary_metric: recall@1
  secondary_metrics: [exact_match]
  min_sample_size: {least}
  guard_rails:
    max: {{failure_rate: 0.05}}
    margin: {{exact_match: 0.05}}
"""
BETTER = 'system: "trial_rag.py:Rag", config_overrides: {right: 35}'


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trial_rag.py").write_text(RAG, encoding="utf-8")
    lines = (
        json.dumps(
            {"sample_id": f"{n}", "query": "?", "relevant_docs": ["light"], "reference_answer": "white"}
        )
        for n in range(40)
    )
    (tmp_path / "questions.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return tmp_path


def config(here: Path, *, new: str = BETTER, least: int = 10) -> None:
    text = CONFIG.format(new=new, least=least)
    (here / "trial.config.yaml").write_text(text, encoding="utf-8")


@pytest.fixture
def experiment(here: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: str, code: int = 0, file: str = "trial.config.yaml") -> tuple[str, str]:
        capsys.readouterr()
        assert main(["experiment", file, "--out", "runs", *words]) == code
        shown = capsys.readouterr()
        assert "Traceback" not in shown.err
        return " ".join(shown.out.split()), shown.err

    return run


def test_a_winner(here: Path, experiment: Run) -> None:
    config(here)
    out, err = experiment()
    assert "2 systems, each pair compared sample by sample" in out
    assert "gate passed: trial-new against trial-old" in out
    assert "Winner: new. new is better on recall@1 than old (+0.625, p < 0.001)." in out
    assert "stored: runs/ab_test_trial.results.json" in err
    document = json.loads((here / "runs" / "ab_test_trial.results.json").read_text(encoding="utf-8"))
    assert (document["winner"], document["_metadata"]["evaluation_type"]) == ("new", "ab_test")
    assert document["variants"]["new"]["arguments"] == {"right": 35}
    # Variants are runs like any other, and the results are a file of a known format.
    assert main(["compare", "trial-old", "trial-new", "--out", "runs"]) == 0
    assert main(["show", "trial-new", "--verify", "--out", "runs"]) == 0
    assert main(["dataset", "check", "runs/ab_test_trial.results.json"]) == 0
    assert main(["list", "--out", "runs"]) == 0


def test_resume_decides_again_by_the_current_file(here: Path, experiment: Run) -> None:
    config(here)
    experiment()
    config(here, least=50)
    edit(here, "def run(", "def run_no_more(", "trial_rag.py")  # nobody is asked again
    edit(here, "class Rag:", "class Rag:\n    def run(self, sample, top_k=5): 1/0", "trial_rag.py")
    assert "40 samples, and 50 are required" in experiment("--resume")[0]


def edit(here: Path, old: str, new: str, file: str = "trial.config.yaml") -> None:
    text = (here / file).read_text(encoding="utf-8")
    assert old in text
    (here / file).write_text(text.replace(old, new), encoding="utf-8")


def test_a_file_of_predictions_is_a_variant(here: Path, experiment: Run) -> None:
    lines = (json.dumps({"sample_id": f"{n}", "retrieved": ["light"], "answer": "white"}) for n in range(40))
    (here / "new.jsonl").write_text("\n".join(lines), encoding="utf-8")
    config(here, new="outputs: new.jsonl")
    assert "Winner: new" in experiment()[0]


def test_interrupted_experiment_is_resumed(here: Path, experiment: Run) -> None:
    config(here, new='system: "trial_rag.py:Rag", config_overrides: {right: 35, stop: 20}')
    _, err = experiment(code=130)
    assert "resume: auepora experiment trial.config.yaml --resume --out runs" in err
    refused = _changed(here, experiment)
    assert "stop was 20, now it is None" in refused
    assert "resume:" not in refused
    (here / "trial_rag.py").write_text(RAG.replace("raise KeyboardInterrupt", "pass"), encoding="utf-8")
    config(here, new='system: "trial_rag.py:Rag", config_overrides: {right: 35, stop: 20}')
    assert "Winner: new" in experiment("--resume")[0]


def _changed(here: Path, experiment: Run) -> str:
    config(here)
    return experiment("--resume", code=4)[1]


@pytest.mark.parametrize(
    ("new", "says"),
    [
        ('system: "trial_rag.py:Nothing"', "has no 'Nothing'"),
        ('system: "trial_rag.py:Rag", config_overrides: {wrong: 1}', "unexpected keyword argument 'wrong'"),
        ('system: "http://127.0.0.1/", config_overrides: {depth: 1}', "only a system that is Python code"),
        ("outputs: nowhere.jsonl", "nowhere.jsonl"),
        ("name: nothing", "--system is missing"),
    ],
)
def test_unavailable_variant_is_an_error_before_any_call(
    here: Path, experiment: Run, new: str, says: str
) -> None:
    config(here, new=new)
    assert says in experiment("--check", code=2)[1]
    assert says in experiment(code=2)[1]
    assert not (here / "runs").exists()


@pytest.mark.parametrize(("old", "bad"), [("trial", "../trial"), ("trial", "-rf"), ("new", "a/b")])
def test_an_id_that_is_no_file_name_is_an_error(here: Path, experiment: Run, old: str, bad: str) -> None:
    config(here)
    edit(here, f"_id: {old}", f"_id: {bad}")
    edit(here, "  traffic_allocation: {old: 0.5, new: 0.5}\n", "")
    assert "cannot be a file name" in experiment(code=2)[1]
    assert not (here / "runs").exists()


JUDGED = """
def answer(says):
    def run(query):
        number = int(query.split()[1])
        text = "The light is white." if number < says else "The light is red."
        return {"answer": text, "retrieved": [{"doc_id": "light", "text": "The light is white."}]}
    return run

old, new = answer(10), answer(35)

def judge(question):
    with open("asked.txt", "a") as file:
        file.write("x")
    return "yes" if question.material["claim"] in question.material["passage"] else "no"
"""
JUDGED_CONFIG = """
dataset: numbered.jsonl
judge: judged_rag.py:judge
ab_testing:
  experiment_id: trial
  variants: [{variant_id: old, system: "judged_rag.py:old"}, {variant_id: new, system: "judged_rag.py:new"}]
  primary_metric: judged_faithfulness
  min_sample_size: 10
"""


def test_a_judge_decides_an_experiment(here: Path, experiment: Run) -> None:
    (here / "judged_rag.py").write_text(JUDGED, encoding="utf-8")
    rows = (json.dumps({"sample_id": f"{n}", "query": f"question {n}"}) for n in range(40))
    (here / "numbered.jsonl").write_text("\n".join(rows), encoding="utf-8")
    (here / "trial.config.yaml").write_text(JUDGED_CONFIG, encoding="utf-8")
    out, err = experiment()
    assert "Winner: new. new is better on judged_faithfulness than old (+0.625, p < 0.001)." in out
    assert "uncalibrated judge judged_rag.py:judge" in err
    asked = (here / "asked.txt").stat().st_size
    assert 0 < asked <= 80
    # Stored verdicts are not asked for again. The judge says nothing about the systems: it may change.
    assert "Winner: new" in experiment("--resume")[0]
    assert (here / "asked.txt").stat().st_size == asked
    edit(here, "judge: judged_rag.py:judge", "judge: support:lexical")
    experiment("--resume")
    edit(here, "judge: support:lexical\n", "")
    for flag in ("--resume", "--check"):
        assert (
            "judged_faithfulness needs a judge. Add a line 'judge: URL#model'" in experiment(flag, code=2)[1]
        )
