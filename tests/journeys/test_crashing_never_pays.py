"""A system that crashes on its hardest questions is never called better, in any command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import auepora_eval as ae
from auepora_eval.cli.main import main

SIZE, HARD = 30, 10
METRICS = "recall@5,token_f1,mean_latency,failure_rate"
# B answers as A does, and crashes on the third that A gets wrong.
SYSTEMS = f"""
def a(query):
    number = int(query.split()[1])
    hard = number < {HARD}
    return [("wrong" if hard else "right", "text")], "wrong" if hard else "right answer"

def b(query):
    if int(query.split()[1]) < {HARD}:
        raise RuntimeError("too hard")
    return a(query)
"""
EXPERIMENT = """
dataset: d.jsonl
ab_testing:
  experiment_id: pair
  variants:
    - {variant_id: a, system: "crashing_systems.py:a"}
    - {variant_id: b, system: "crashing_systems.py:b"}
  primary_metric: recall@5
  secondary_metrics: [token_f1]
  min_sample_size: 5
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs a and b, made by `run`, and score-a and score-b, made by `score`."""
    folder = tmp_path_factory.mktemp("crashing")
    sample = {"relevant_docs": ["right"], "reference_answer": "right answer"}
    samples = [{"sample_id": f"{n:02}", "query": f"question {n}", **sample} for n in range(SIZE)]
    (folder / "d.jsonl").write_text("".join(json.dumps(one) + "\n" for one in samples), encoding="utf-8")
    (folder / "crashing_systems.py").write_text(SYSTEMS, encoding="utf-8")
    (folder / "pair.config.yaml").write_text(EXPERIMENT, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, code in (("a", 0), ("b", 3)):
            system = ["--dataset", "d.jsonl", "--system", f"crashing_systems.py:{name}"]
            assert main(["run", *system, "--metrics", METRICS, "--id", name]) == code
            journal = f"data/evaluation/results/{name}.run.db"
            score = ["score", "--dataset", "d.jsonl", "--outputs", journal, "--metrics", METRICS]
            assert main([*score, "--name", "system", "--id", f"score-{name}"]) == code
    return folder


@pytest.fixture
def auepora(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.chdir(folder)
    capsys.readouterr()

    def call(*words: str) -> tuple[int, str]:
        code = main(list(words))
        return code, capsys.readouterr().out

    return call


@pytest.mark.parametrize("first", ["", "score-"], ids=["run", "score"])
def test_compare(auepora: Any, first: str) -> None:
    _, out = auepora("compare", f"{first}a", f"{first}b", "--json")
    verdicts = {one["name"]: one["verdict"] for one in json.loads(out)["metrics"]}
    assert "better" not in verdicts.values()
    assert verdicts["failure_rate"] == "worse"
    assert "b is better" not in auepora("compare", f"{first}a", f"{first}b")[1]
    # The other way round, A is not worse.
    _, out = auepora("compare", f"{first}b", f"{first}a", "--json")
    assert "worse" not in {one["verdict"] for one in json.loads(out)["metrics"]}


def test_three_runs(auepora: Any) -> None:
    auepora("score", "--run", "a", "--metrics", "mrr", "--id", "a2", "--force")
    ranking = json.loads(auepora("compare", "a", "a2", "b", "--json")[1])
    for pair in ranking["pairs"]:
        if pair["candidate_id"] == "b":
            assert "better" not in {one["verdict"] for one in pair["metrics"]}


@pytest.mark.parametrize(
    ("rules", "code"),
    [
        pytest.param(("--baseline", "a"), 1, id="no regression"),
        pytest.param(("--baseline", "a", "--margin", "recall@5=0.05"), 1, id="margin"),
        # The answered samples have a recall of 1. All of them have one of 0.67.
        pytest.param(("--min", "recall@5=0.9"), 3, id="minimum"),
    ],
)
def test_gate(auepora: Any, rules: tuple[str, ...], code: int) -> None:
    assert auepora("gate", "b", *rules)[0] == code
    passed = auepora("gate", "a", *rules)[0] if "--baseline" not in rules else None
    assert passed in (None, 1)


def test_experiment(auepora: Any) -> None:
    document = json.loads(auepora("experiment", "pair.config.yaml", "--json", "--force")[1])
    assert document["winner"] == "none"
    for test in document["primary_metric_results"]["tests"].values():
        assert test["verdict"] != "better"
    means = document["primary_metric_results"]["means"]
    assert means["b"] <= means["a"]


def test_power(auepora: Any) -> None:
    report = json.loads(auepora("power", "a", "b", "--json", "--metric", "recall@5")[1])
    before, after = report["metrics"][0]["values"]
    assert after <= before


def test_values_say_what_the_failures_could_be(auepora: Any) -> None:
    """A table shows the value of what was answered, with the range that the failures leave open."""
    for command in (("show", "b"), ("show", "score-b"), ("show", "b", "--markdown", "-")):
        out = auepora(*command)[1]
        assert "0.6667 to 1.0000" in out
    assert (
        "0.6667 to 1.0000" in auepora("score", "--run", "b", "--metrics", "mrr", "--id", "b2", "--force")[1]
    )


def test_trend(auepora: Any) -> None:
    """Both are points of one line, since `score` has given them one name."""
    _, out = auepora("list", "--trend", "recall@5", "--json")
    [line] = [one for one in json.loads(out)["lines"] if one["system"] == "system"]
    values = {point["evaluation_id"]: point["value"] for point in line["points"]}
    assert values["score-b"] <= values["score-a"]


def test_results_side_by_side(auepora: Any) -> None:
    compared = ae.EvaluationResultsStorage().compare_results(["a", "b"])
    assert compared["failures"] == {"a": 0, "b": HARD}
    metrics = compared["metrics_comparison"]
    share = (SIZE - HARD) / SIZE
    assert metrics["recall@5"] == {"a": pytest.approx(share), "b": pytest.approx(share)}
    assert metrics["token_f1"] == {"a": pytest.approx(share), "b": pytest.approx(share)}
    assert metrics["failure_rate"] == {"a": 0, "b": pytest.approx(HARD / SIZE)}
    assert (
        metrics["mean_latency[end_to_end]"]["b"] is None
    )  # how long the failed calls would take is not known


def test_figures_under_their_second_names_side_by_side(tmp_path: Path) -> None:
    """One answer cites the gold span; the other call failed, so 1/2 is all that is known to be right."""
    cited = {"file_name": "d", "start_char": 0, "end_char": 3}
    samples = [ae.EvaluationSample(n, "q", metadata={"citations": [cited]}) for n in (1, 2)]

    def system(sample: ae.EvaluationSample) -> Any:
        if sample.sample_id == "2":
            raise RuntimeError("too hard")
        return [], ae.Response("abc", metadata={"citations": [cited]})

    metrics = ["citation_span_exact", "citation_span_accuracy"]
    storage = ae.EvaluationResultsStorage(tmp_path)
    run = ae.evaluate(system, samples, metrics=metrics)
    storage.save_run(run)
    values = storage.compare_results([run.evaluation_id])["metrics_comparison"]
    for name in (*metrics, "span_accuracy.mean_exact_jaccard", "span_accuracy.mean_tolerance_jaccard"):
        (value,) = values[name].values()
        assert value == 0.5, name
