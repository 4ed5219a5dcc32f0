"""Scenarios whose output is data: what commands store, and what they print with --json."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.journeys.material import RAG, run, with_runs, with_systems
from tests.journeys.recording import ROOT, call, digest, document, facts, stored
from tests.raw_tasks import a_raw_task

DEMO_METRICS = (
    "recall@5,precision@5,mrr,ndcg@5,map@5,hit@5,r_precision,rbp@0.8,bpref,query_coverage,grounding_overlap,"
    "contains_answer,token_f1,exact_match,rouge1,rouge2,rougeL_answer,rougeLsum,bleu,chrf,"
    "lexical_diversity@5,near_duplicate_rate@5,noise_retention,rejection_rate,over_refusal_rate,"
    "fake_adoption_rate,distinct_n@2,number_support,numeric_match,citation_density,alce_citation_recall,"
    "best_sentence_overlap,noise_accuracy,abstention_f1,query_term_coverage@5"
)


def many_metrics() -> Any:
    """Metrics of every target: of a system that makes mistakes, and of one that declines some questions."""
    with_systems()
    for name, system in (("shaky", "rag.py:shaky"), ("bigram", "auepora_eval.demo.systems:bigram")):
        run(name, f"--dataset demo --system {system}", DEMO_METRICS)
    return {"shaky": stored("shaky"), "bigram": _without_clock(stored("bigram"))}


def example_project() -> Any:
    shutil.copytree(ROOT / "examples" / "tool_library", "project")
    words = [sys.executable, "evaluate.py", "again", "../data/evaluation/results"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(words, cwd="project", env=environment, check=True, capture_output=True)
    return _without_clock(stored("again"))


def _without_clock(found: Any) -> Any:
    """Return a run without its latencies: its system does not say how long it took, the clock does."""
    del found["document"]["summary"]["average_latency_ms"]
    del found["document"]["performance_metrics"]["latency_stats"]
    return found


def results_document() -> Any:
    """Return whole results documents, with their rows: also of failed calls."""
    with_runs("few2")
    return document("few2")


def comparison() -> Any:
    with_runs("steady", "shaky", "sharp")
    Path("seed.config.yaml").write_text("seed: 3\n", encoding="utf-8")
    return {
        "failures": call("compare steady shaky --json --margin 0.05 --by scenario"),
        "turned": call("compare shaky steady --json --resamples 2000 --config seed.config.yaml"),
        "better": call("compare steady sharp --json --resamples 2000 --regressions-of mrr"),
    }


def ranking() -> Any:
    with_runs("steady", "shaky", "sharp")
    return call("compare steady shaky sharp --json --resamples 2000")


def repeats() -> Any:
    with_runs("steady", "other")
    for name, salt in (("steady2", "d"), ("other2", "e")):
        Path(f"{name}.py").write_text(f"{RAG}\n{name} = Rag({salt!r})\n", encoding="utf-8")
        run(name, f"--dataset demo --system {name}.py:{name}")
    return call("compare steady,steady2 other,other2 --json --resamples 2000 --allow-mismatch")


def write_predictions(path: str) -> None:
    """Write the outputs of another program: a good one, a wrong one and a failed one."""
    lines = [
        {"sample_id": "q001", "retrieved": ["profile-verrill", "x"], "answer": "Tobin Verrill"},
        {"sample_id": "q015", "retrieved": ["station-sallow"], "answer": "8", "timings": {"end_to_end": 2}},
        {"sample_id": "q029", "error": "timeout"},
    ]
    Path(path).write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")


def scored() -> Any:
    """Score predictions in a file, and the outputs of a run again."""
    with_runs("few2")
    write_predictions("predictions.jsonl")
    metrics = "recall@3,precision@3,f1@3,ndcg@10,token_f1,chrf,bleu,rougeL_answer"
    flags = f"--dataset few.jsonl --outputs predictions.jsonl --metrics {metrics} --min-coverage 0"
    return {
        "file": call(f"score {flags} --id scored --json"),
        "run": call(
            "score --run few2 --metrics hit@3,exact_match,rouge1 --id again --min-coverage 0.5 --json"
        ),
    }


def gates() -> Any:
    with_runs("steady", "shaky", "other", "sharp")
    Path("bounds.yaml").write_text("min: {recall@5: 0.5}\non: bound\n", encoding="utf-8")
    Path("loss.yaml").write_text("max_loss: {ndcg@5: 0.05}\nmax_count_drop: 0.05\n", encoding="utf-8")
    return {
        "absolute": call("gate shaky --min recall@5=0.3 --min mrr=0.6 --max-failed 0.01 --json"),
        "bounds": call("gate steady --rules bounds.yaml --json"),
        "no regression": call("gate shaky --baseline sharp --no-regression all --json"),
        "margins": call("gate other --baseline steady --margin recall@5=0.1 --margin token_f1=0.02 --json"),
        "max loss": call("gate shaky --baseline steady --rules loss.yaml --json"),
    }


EXPERIMENT = """
dataset: DATASET
ab_testing:
  experiment_id: trial
  name: A trial
  variants:
    - {variant_id: old, system: "rag.py:Rag", config_overrides: {salt: a}}
    - {variant_id: new, system: "rag.py:Rag", config_overrides: {salt: b, fails: 7}}
    - {variant_id: other, system: "rag.py:Rag", config_overrides: {salt: a, rare: true}}
  primary_metric: recall@5
  secondary_metrics: [token_f1, mrr]
  min_sample_size: 10
  guard_rails: {max: {failure_rate: 0.05}, margin: {token_f1: 0.05}}
"""


def write_experiment(dataset: str = "demo") -> str:
    """Write an experiment file and return its name."""
    Path("trial.config.yaml").write_text(EXPERIMENT.replace("DATASET", dataset), encoding="utf-8")
    return "trial.config.yaml"


def experiment() -> Any:
    with_systems()
    return call(f"experiment {write_experiment()} --json")


def power() -> Any:
    with_runs("steady", "shaky")
    return {
        "rate": call("power --effect 0.03 --rate 0.8 --json"),
        "sd": call("power --n 100 --sd 0.3 --json"),
        "one run": call("power steady --effect 0.05 --json"),
        "two runs": call("power steady shaky --json"),
    }


def labels() -> Any:
    return {
        "score": call("labels score --dataset demo --metric grounding_overlap --json"),
        "sweep": call("labels sweep --dataset demo --metric grounding_overlap --json"),
        "by scenario": call("labels sweep --dataset demo --metric grounding_overlap --per-scenario --json"),
    }


def people() -> Any:
    return {
        "agree": call("annotate --agree demo --json"),
        "audit": call("judge-audit --labels demo --judge support:lexical --threshold 0.7 --json"),
    }


def early_stop() -> Any:
    with_runs("steady")
    goals = {"limit": "min: [recall@5=0.15]", "better": "baseline: steady\nstop_on: [recall@5]"}
    for name, goal in goals.items():
        Path(f"{name}.config.yaml").write_text(f"stop_when: clear\n{goal}\n", encoding="utf-8")
    flags = "--dataset demo --metrics recall@5,mrr"
    call(f"run {flags} --system rag.py:other --id limit --config limit.config.yaml")
    call(f"run {flags} --system rag.py:sharp --id better --config better.config.yaml")
    return {name: stored(name) for name in ("limit", "better")}


def write_raw_tasks(path: str) -> None:
    """Write 24 tasks in the form that a generator writes."""
    tasks = [
        a_raw_task(f"t{n}", "summaries" if n % 3 == 2 else "qa", metadata={"document": f"d{n % 4}.txt"})
        for n in range(24)
    ]
    Path(path).write_text("\n".join(map(json.dumps, tasks)), encoding="utf-8")


BUILD = (
    "dataset build --offline-dataset raw.jsonl --version v1 --qa-output out/qa.jsonl "
    "--summary-output out/summary.jsonl --manifest-output out/manifest.json"
)


def built_dataset() -> Any:
    write_raw_tasks("raw.jsonl")
    done = call(f"{BUILD} --json")
    files = {name: digest(Path(f"out/{name}.jsonl").read_bytes()) for name in ("qa", "summary")}
    manifest = json.loads(Path("out/manifest.json").read_text(encoding="utf-8"))
    check = call("dataset check out/manifest.json --json")
    return {"build": done, "files": files, "manifest": facts(manifest), "check": check}


def trend() -> Any:
    with_runs("steady", "shaky", "other", "sharp")
    return call("list --trend recall@5 --json")


def shown_as_json() -> Any:
    """Return what the commands about stored runs print with --json."""
    with_runs("steady", "few", "few2")
    return {
        "show": call("show steady --json"),
        "worst": call("show few --worst ndcg@5 --n 2 --json"),
        "sample": call("show few2 --sample q043 --json"),
        "list": call("list --json"),
        "verify": call("show few --verify --json"),
        "metric": call("metrics recall@5 --json"),
        "metrics of a target": call("metrics --target latency --json"),
    }


def run_as_json() -> Any:
    """Return what a run prints with --json: finished, and stopped by its budget."""
    with_runs()
    flags = "--dataset few.jsonl --metrics recall@5,token_f1 --json"
    return {
        "finished": call(f"run {flags} --system rag.py:shaky --id finished --min-coverage 0.5"),
        "stopped": call(f"run {flags} --system rag.py:steady --id stopped --budget-calls 5"),
        "resumed": call("run --resume stopped --budget-calls 20 --json"),
    }


JUDGE = '''
def judge(question):
    """Say yes if a passage has the last word of the claim."""
    material = question.material
    if "claim" not in material:
        return question.kind.options[-1]
    return "yes" if material["claim"].split()[-1].strip(".") in material["passage"] else "no"
'''


def with_judge() -> None:
    """Write judge.py."""
    Path("judge.py").write_text(JUDGE, encoding="utf-8")


def judged() -> Any:
    with_runs("few2")
    with_judge()
    done = call("judge few2 --judge judge.py:judge --min-coverage 0.5 --json")
    # The rest is as in the run.
    return {
        **done,
        "json": {name: done["json"][name] for name in ("answer_quality_metrics", "query_results")},
    }


def dataset_as_json() -> Any:
    """Return what the commands about datasets print with --json."""
    with_runs()
    lines = Path("few.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    Path("fewer.jsonl").write_text("".join(lines[:9]).replace("Tobin", "Robin"), encoding="utf-8")
    Path("bad.jsonl").write_text(lines[0] + '{"sample_id": 5}\n' + lines[0], encoding="utf-8")
    return {
        "check": call("dataset check few.jsonl --sample 1 --json"),
        "check, bad": call("dataset check bad.jsonl --json"),
        "diff": call("dataset diff few.jsonl fewer.jsonl --json"),
        "convert": call("dataset convert few.jsonl few.eval.json --json"),
    }


SCENARIOS = (
    *(many_metrics, example_project, results_document, comparison, ranking, repeats, scored, gates),
    *(experiment, power, labels, people, early_stop, built_dataset, trend),
    *(shown_as_json, run_as_json, judged, dataset_as_json),
)
