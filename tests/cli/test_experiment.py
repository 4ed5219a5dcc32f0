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
        from auepora_eval.core.rag_interface import as_outputs
        if self.stop and int(sample.sample_id) == self.stop:
            raise KeyboardInterrupt
        good = int(sample.sample_id) < self.right
        return as_outputs({"answer": "white" if good else "", "retrieved": ["light" if good else "ferry"]})
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
  assignment: {how}
  guard_rails:
    - {{metric: failure_rate, max: 0.05}}
    - {{metric: exact_match, margin: 0.05}}
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


def config(here: Path, *, new: str = BETTER, least: int = 10, how: str = "paired") -> None:
    text = CONFIG.format(new=new, least=least, how=how)
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
    assert "A trial: 2 variants, paired" in out
    assert "Winner: new. new is better on recall@1 than old (+0.625, p < 0.001)." in out
    assert "stored: runs/ab_test_trial.results.json" in err
    document = json.loads((here / "runs" / "ab_test_trial.results.json").read_text(encoding="utf-8"))
    assert (document["winner"], document["_metadata"]["evaluation_type"]) == ("new", "ab_test")
    assert document["variants"]["new"]["arguments"] == {"right": 35}
    # Variants are runs like any other, and the results are a file of a known format.
    assert main(["compare", "trial-old", "trial-new", "--out", "runs"]) == 0
    assert main(["verify", "trial-new", "--out", "runs"]) == 0
    assert main(["dataset", "validate", "runs/ab_test_trial.results.json"]) == 0
    assert main(["list", "--out", "runs"]) == 0


def test_json_and_force(here: Path, experiment: Run) -> None:
    config(here)
    assert json.loads(experiment("--json")[0])["winner"] == "new"
    assert "exists already" in experiment(code=2)[1]
    out, err = experiment("--json", "--resume")
    assert json.loads(out)["winner"] == "new"
    assert "new: 40 samples, finished before" in err
    assert "replaced" not in err
    assert json.loads(experiment("--json", "--force")[0])["winner"] == "new"
    assert "would discard" in experiment("--force", "--resume", code=2)[1]


def edit(here: Path, old: str, new: str, file: str = "trial.config.yaml") -> None:
    text = (here / file).read_text(encoding="utf-8")
    assert old in text
    (here / file).write_text(text.replace(old, new), encoding="utf-8")


def test_resume_uses_the_current_rules(here: Path, experiment: Run) -> None:
    config(here)
    experiment()
    edit(here, "min_sample_size: 10", "min_sample_size: 50")
    edit(here, "[exact_match]", "[exact_match, mrr]")
    edit(
        here,
        "def run(self, sample, top_k=5):",
        "def run(self, sample, top_k=5):\n        1/0",
        "trial_rag.py",
    )
    out, _ = experiment("--resume")
    assert "Winner: none. Reason: old has 40 samples" in out
    assert "mrr" in out
    document = json.loads((here / "runs" / "ab_test_trial.results.json").read_text(encoding="utf-8"))
    assert (document["winner"], document["summary"]["failed_queries"]) == ("none", 0)
    assert main(["verify", "trial-new", "--out", "runs"]) == 0


def test_added_samples(here: Path, experiment: Run) -> None:
    config(here)
    experiment()
    more = {"sample_id": "40", "query": "?", "relevant_docs": ["light"], "reference_answer": "white"}
    text = (here / "questions.jsonl").read_text(encoding="utf-8")
    (here / "questions.jsonl").write_text(f"{text}\n{json.dumps(more)}", encoding="utf-8")
    said = experiment("--resume", code=4)[1]
    assert "started on other samples" in said
    assert "resume:" not in said  # it is what was just refused
    assert "--force" in said
    edit(here, "dataset:", "cache: answers\ndataset:")
    experiment("--force")
    (here / "questions.jsonl").write_text(text, encoding="utf-8")
    kept = sorted((here / "answers").iterdir())
    out, err = experiment("--force")
    assert "new: 40 samples (trial-new)" in err
    assert "Winner: new" in out
    assert sorted((here / "answers").iterdir()) == kept  # nobody was asked


def test_all_calls_failed(here: Path, experiment: Run) -> None:
    edit(
        here,
        "def run(self, sample, top_k=5):",
        "def run(self, sample, top_k=5):\n        1/0",
        "trial_rag.py",
    )
    config(here)
    out, err = experiment(code=1)
    assert "Winner: none. Reason: nothing was measured by recall@1: all 80 answers failed." in out
    assert "auepora: nothing was measured." in err
    assert "-0.0000" not in out


def test_shares_of_paired_samples_have_no_effect(here: Path, experiment: Run) -> None:
    config(here)
    edit(here, "{old: 0.5, new: 0.5}", "{old: 0.9, new: 0.1}")
    assert "here every variant is asked all of them" in experiment("--check")[1]


def test_times_cannot_decide(here: Path, experiment: Run) -> None:
    config(here)
    edit(here, "primary_metric: recall@1", "primary_metric: mean_latency")
    assert "there can be no winner" in experiment("--check")[1]
    out, _ = experiment()
    assert "one run each: inconclusive" in out
    assert "Winner: none. Reason: mean_latency[end_to_end] is a time" in out


@pytest.mark.parametrize(
    ("rail", "says"),
    [
        ("{metric: mrr, max_increase: 0.1}", "guard_rails[0].max_increase: more mrr is better"),
        ("{metric: throughput, max_increase: 0}", "more throughput is better"),
        ("{metric: mean_latency, margin: 0.1}", "one run each cannot rule out a loss"),
    ],
)
def test_guard_rails_with_the_wrong_direction(here: Path, experiment: Run, rail: str, says: str) -> None:
    config(here)
    edit(here, "{metric: failure_rate, max: 0.05}", rail)
    assert says in experiment("--check", code=2)[1]


def test_incomplete_predictions(here: Path, experiment: Run) -> None:
    lines = (json.dumps({"sample_id": f"{n}", "retrieved": ["light"], "answer": "white"}) for n in range(30))
    (here / "new.jsonl").write_text("\n".join(lines), encoding="utf-8")
    config(here, new="outputs: new.jsonl")
    out, _ = experiment()
    assert "new: the predictions have no line for 10 of its 40 samples. They count as failed." in out
    assert "failed 0 10" in out
    # A file that has become whole is read again.
    lines = (json.dumps({"sample_id": f"{n}", "retrieved": ["light"], "answer": "white"}) for n in range(40))
    (here / "new.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert "no line for" not in experiment("--resume")[0]


def test_too_few_samples(here: Path, experiment: Run) -> None:
    config(here, least=100)
    assert "Winner: none. Reason: old has 40 samples measured by recall@1" in experiment()[0]


def test_split_samples(here: Path, experiment: Run) -> None:
    config(here, how="split")
    out, _ = experiment("--check")
    assert "split samples of questions, nothing was run" in out
    planned = json.loads(experiment("--check", "--json")[0])["variant_samples"]
    assert sum(planned.values()) == 40
    assert not (here / "runs").exists()
    document = json.loads(experiment("--json")[0])
    assert document["variant_samples"] == planned
    assert document["statistical_tests"]["old_vs_new"]["test"].startswith("Welch")


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
    assert "other settings" in refused
    assert "resume:" not in refused
    (here / "trial_rag.py").write_text(RAG.replace("raise KeyboardInterrupt", "pass"), encoding="utf-8")
    config(here, new='system: "trial_rag.py:Rag", config_overrides: {right: 35, stop: 20}')
    out, err = experiment("--resume")
    assert "old: 40 samples, finished before" in err
    assert "Winner: new" in out


def _changed(here: Path, experiment: Run) -> str:
    config(here)
    return experiment("--resume", code=4)[1]


def test_all_errors_of_form_are_listed(here: Path, experiment: Run) -> None:
    config(here, new="system: 3", least=0)
    text = (here / "trial.config.yaml").read_text(encoding="utf-8").replace("recall@1", "recal@1")
    (here / "trial.config.yaml").write_text(text, encoding="utf-8")
    _, err = experiment(code=2)
    for place in ("variants[1].system", "min_sample_size"):
        assert f"trial.config.yaml: $.ab_testing.{place}" in err
    assert "recal" not in err  # names are checked when the form is right


def test_unknown_metric_is_an_error(here: Path, experiment: Run) -> None:
    config(here)
    text = (here / "trial.config.yaml").read_text(encoding="utf-8").replace("recall@1", "recal@1")
    (here / "trial.config.yaml").write_text(text, encoding="utf-8")
    assert "$.ab_testing.primary_metric: there is no metric 'recal'" in experiment(code=2)[1]


@pytest.mark.parametrize(
    ("new", "says"),
    [
        ('system: "trial_rag.py:Nothing"', "has no 'Nothing'"),
        ('system: "trial_rag.py:Rag", config_overrides: {wrong: 1}', "unexpected keyword argument 'wrong'"),
        ("outputs: nowhere.jsonl", "nowhere.jsonl"),
    ],
)
def test_unavailable_variant_is_an_error_before_any_call(
    here: Path, experiment: Run, new: str, says: str
) -> None:
    config(here, new=new)
    assert says in experiment("--check", code=2)[1]
    assert says in experiment(code=2)[1]
    assert not (here / "runs").exists()


def test_no_dataset(here: Path, experiment: Run) -> None:
    config(here)
    text = (here / "trial.config.yaml").read_text(encoding="utf-8").replace("dataset: questions.jsonl", "")
    (here / "trial.config.yaml").write_text(text, encoding="utf-8")
    assert "does not say on what" in experiment(code=2)[1]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_demo(experiment: Run) -> None:
    assert "words 50% 160 demo-words" in experiment("--check", file="demo")[0]
    assert "Winner: " in experiment(file="demo")[0]


def test_a_statistical_test_that_cannot_be_used_is_reported(here: Path, experiment: Run) -> None:
    config(here)
    edit(here, "  primary_metric: recall@1", "  statistical_test: t_test\n  primary_metric: recall@1")
    edit(here, "[exact_match]", "[exact_match, bleu]")
    err = experiment()[1]
    assert "statistical_test: bleu is not a mean, so it has no t-test; resampling tests it." in err
    assert "recall@1 is not a mean" not in err
    document = json.loads((here / "runs" / "ab_test_trial.results.json").read_text(encoding="utf-8"))
    assert "paired t," in document["statistical_tests"]["old_vs_new"]["test"]
    assert "paired t," not in document["secondary_metric_results"]["bleu"]["tests"]["old_vs_new"]["test"]


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
    out, _ = experiment()
    assert "Winner: new. new is better on judged_faithfulness than old (+0.625, p < 0.001)." in out
    assert "judged_faithfulness: uncalibrated judge: the change is one of judged scores." in out
    asked = (here / "asked.txt").stat().st_size
    assert 0 < asked <= 80
    # Stored verdicts are not asked for again. The judge says nothing about the systems: it may change.
    assert "Winner: new" in experiment("--resume")[0]
    assert (here / "asked.txt").stat().st_size == asked
    edit(here, "judge: judged_rag.py:judge", "judge: support:lexical")
    out, err = experiment("--resume")
    assert "finished before" in err
    edit(here, "judge: support:lexical\n", "")
    for flag in ("--resume", "--check"):
        assert (
            "judged_faithfulness needs a judge. Add a line 'judge: URL#model'" in experiment(flag, code=2)[1]
        )
