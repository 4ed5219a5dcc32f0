"""Recorded scenarios: commands with seeds, and the numbers that they printed and stored.

`python -m tests.journeys.scenarios` records them into tests/golden/scenarios. Do that only when a change
of the numbers is intended, and say in the commit which numbers changed and why.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from auepora_eval.cli.main import main
from tests.raw_tasks import a_raw_task

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "scenarios"

# Times, the machine and the place of files: they differ from run to run.
VOLATILE = {
    *("timestamp", "_metadata", "queries_file", "total_evaluation_time_seconds", "average_latency_ms"),
    *("latency_stats", "resource_usage", "plan_sha256", "outputs_sha256", "evaluation_environment"),
    *("evaluation_parameters", "latency_ms", "started_at", "finished_at", "created_at", "path", "file"),
    *("generated_at_utc", "seconds", "duration_seconds", "created", "html", "written", "stored"),
    *("baselines_file", "report_file", "start_date", "end_date", "recorded_at", "configuration"),
    *(
        "mean_latency[end_to_end]",
        "mean_latency_seconds",
        "p95_latency[end_to_end]",
        "files",
        "sizes",
        "version",
        "python",
    ),
}

RAG = """
import hashlib

CORPUS = {}

def _load():
    if not CORPUS:
        from auepora_eval.demo.world import demo_corpus
        CORPUS.update({doc.doc_id: doc.text for doc in demo_corpus()})
    return CORPUS

def _number(text):
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)

class Rag:
    '''Word overlap with seeded mistakes: some calls fail, some answers are empty.'''

    def __init__(self, salt="a", fails=0):
        self.salt, self.fails = salt, fails

    def place(self, words, query, name, text):
        shared = len(words & set(text.lower().split()))
        return _number(self.salt + name + query) % 3 - shared, name

    def __call__(self, query, top_k=5):
        luck = _number(self.salt + query) % 100
        if luck < self.fails:
            raise RuntimeError("no answer")
        words = set(query.lower().split())
        order = sorted(
            _load().items(),
            key=lambda item: self.place(words, query, *item),
        )
        found = [{"doc_id": name, "text": text} for name, text in order[:top_k]]
        answer = "" if luck > 95 else ". ".join(found[0]["text"].split(". ")[: 1 + luck % 3])
        return {"answer": answer, "retrieved": found}

steady = Rag()
shaky = Rag("b", 7)
other = Rag("c")
"""


def answers() -> dict[str, Callable[[], Any]]:
    """Return every scenario by its name. Each runs in an empty folder and returns what it measured."""
    return {
        "demo_runs": demo_runs,
        "example_project": example_project,
        "comparison": comparison,
        "ranking": ranking,
        "repeats": repeats,
        "stored_outputs": stored_outputs,
        "gates": gates,
        "experiment": experiment,
        "power": power,
        "labels": labels,
        "people": people,
        "early_stop": early_stop,
        "built_dataset": built_dataset,
        "generated_dataset": generated_dataset,
        "history": history,
    }


def demo_runs() -> Any:
    metrics = (
        "recall@5,precision@5,mrr,ndcg@5,map@5,hit@5,r_precision,rbp@0.8,bpref,query_coverage,grounding_overlap,"
        "contains_answer,token_f1,exact_match,rouge1,rouge2,rougeL_answer,rougeLsum,bleu,chrf,"
        "lexical_diversity@5,near_duplicate_rate@5,noise_retention,rejection_rate,over_refusal_rate,"
        "fake_adoption_rate,distinct_n@2,self_bleu,number_support,numeric_match,citation_density,alce_citation_recall,"
        "best_sentence_overlap,noise_accuracy,abstention_f1,query_term_coverage@5"
    )
    systems = {"bm25": "bm25", "hybrid": "hybrid"}
    for name, system in systems.items():
        call(
            "run",
            "--dataset",
            "demo",
            "--system",
            f"auepora_eval.demo.systems:{system}",
            "--id",
            name,
            "--metrics",
            metrics,
        )
    return {name: stored(name) for name in systems}


def example_project() -> Any:
    shutil.copytree(ROOT / "examples" / "tool_library", "project")
    command = [sys.executable, "evaluate.py", "again", "../data/evaluation/results"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(command, cwd="project", env=environment, check=True, capture_output=True)
    return stored("again")


def runs(*names: str, metrics: str = "recall@5,mrr,ndcg@5,contains_answer,token_f1,bleu") -> None:
    Path("rag.py").write_text(RAG, encoding="utf-8")
    for name in names:
        call(
            "run",
            "--dataset",
            "demo",
            "--system",
            f"rag.py:{name}",
            "--id",
            name,
            "--metrics",
            metrics,
            "--min-coverage",
            "0.5",
        )


def comparison() -> Any:
    runs("steady", "shaky")
    return {
        "runs": {name: stored(name) for name in ("steady", "shaky")},
        "compare": call("compare", "steady", "shaky", "--json", "--margin", "0.05", "--by", "scenario"),
        "turned": call("compare", "shaky", "steady", "--json", "--resamples", "2000", "--seed", "3"),
    }


def ranking() -> Any:
    runs("steady", "shaky", "other")
    return call("compare", "steady", "shaky", "other", "--json", "--resamples", "2000")


def repeats() -> Any:
    runs("steady", "other", metrics="recall@5,token_f1")
    for name, salt in (("steady2", "d"), ("other2", "e")):
        Path(f"{name}.py").write_text(f"{RAG}\n{name} = Rag({salt!r})\n", encoding="utf-8")
        call(
            "run",
            "--dataset",
            "demo",
            "--system",
            f"{name}.py:{name}",
            "--id",
            name,
            "--metrics",
            "recall@5,token_f1",
        )
    return call(
        "compare", "steady,steady2", "other,other2", "--json", "--resamples", "2000", "--allow-mismatch"
    )


def stored_outputs() -> Any:
    runs("shaky", metrics="recall@5")
    call(
        "score",
        "--dataset",
        "demo",
        "--outputs",
        "data/evaluation/results/shaky.run/journal.jsonl",
        "--id",
        "scored",
        "--metrics",
        "recall@3,precision@3,f1@3,ndcg@10,token_f1,chrf,bleu,rougeL_answer",
        "--min-coverage",
        "0.5",
    )
    call("rescore", "shaky", "--metrics", "hit@3,exact_match,rouge1", "--id", "again")
    return {"scored": stored("scored"), "again": stored("again")}


def gates() -> Any:
    runs("steady", "shaky", "other")
    relative = ("--baseline", "steady", "--json")
    return {
        "absolute": call(
            "gate", "shaky", "--min", "recall@5=0.3", "--min", "mrr=0.6", "--max-failed", "0.01", "--json"
        ),
        "bounds": call(
            "gate", "steady", "--min", "recall@5=0.5", "--on", "bound", "--min-samples", "10", "--json"
        ),
        "no regression": call("gate", "shaky", *relative, "--no-regression", "all"),
        "margins": call("gate", "other", *relative, "--margin", "recall@5=0.1", "--margin", "token_f1=0.02"),
        "max loss": call("gate", "shaky", *relative, "--max-loss", "ndcg@5=0.05", "--max-count-drop", "0.05"),
    }


EXPERIMENT = """
dataset: demo
ab_testing:
  experiment_id: trial
  name: A trial
  variants:
    - {variant_id: old, system: "rag.py:Rag", config_overrides: {salt: a}}
    - {variant_id: new, system: "rag.py:Rag", config_overrides: {salt: b, fails: 7}}
    - {variant_id: other, system: "rag.py:Rag", config_overrides: {salt: c}}
  traffic_allocation: {old: 0.4, new: 0.3, other: 0.3}
  primary_metric: recall@5
  secondary_metrics: [token_f1, mrr]
  min_sample_size: 10
  assignment: HOW
  guard_rails:
    - {metric: failure_rate, max: 0.05}
    - {metric: token_f1, margin: 0.05}
"""


def experiment() -> Any:
    Path("rag.py").write_text(RAG, encoding="utf-8")
    verdicts = {}
    for how in ("paired", "split"):
        Path(f"{how}.config.yaml").write_text(EXPERIMENT.replace("HOW", how), encoding="utf-8")
        verdicts[how] = call("experiment", f"{how}.config.yaml", "--json", "--out", how)
    return verdicts


def power() -> Any:
    runs("steady", "shaky")
    return {
        "rate": call("power", "--effect", "0.03", "--rate", "0.8", "--json"),
        "sd": call("power", "--n", "100", "--sd", "0.3", "--json"),
        "clusters": call(
            "power",
            "--effect",
            "0.05",
            "--sd",
            "0.4",
            "--cluster-size",
            "4",
            "--cluster-correlation",
            "0.3",
            "--json",
        ),
        "one run": call("power", "steady", "--effect", "0.05", "--json"),
        "two runs": call("power", "steady", "shaky", "--json"),
    }


def labels() -> Any:
    return {
        "score": call("labels", "score", "--dataset", "demo", "--fhri", "--slices", "--json"),
        "sweep": call("labels", "sweep", "--dataset", "demo", "--fhri", "--json"),
        "by scenario": call("labels", "sweep", "--dataset", "demo", "--fhri", "--per-scenario", "--json"),
    }


def people() -> Any:
    return {
        "agree": call("agree", "demo", "--json"),
        "audit": call(
            "judge-audit",
            "--labels",
            "demo",
            "--judge",
            "lexical",
            "--threshold",
            "0.7",
            "--budget",
            "8,12",
            "--json",
        ),
    }


def early_stop() -> Any:
    runs("steady", metrics="recall@5,mrr")
    flags = ("--dataset", "demo", "--metrics", "recall@5,mrr", "--stop-when", "clear")
    call("run", *flags, "--system", "rag.py:other", "--id", "limit", "--min", "recall@5=0.15")
    call(
        "run",
        *flags,
        "--system",
        "auepora_eval.demo.systems:hybrid",
        "--id",
        "better",
        "--baseline",
        "steady",
        "--stop-on",
        "recall@5",
    )
    return {name: stored(name) for name in ("limit", "better")}


def built_dataset() -> Any:
    tasks = [
        a_raw_task(f"t{n}", "summaries" if n % 3 == 2 else "qa", metadata={"document": f"d{n % 4}.txt"})
        for n in range(24)
    ]
    Path("raw.jsonl").write_text("\n".join(map(json.dumps, tasks)), encoding="utf-8")
    places = [word for name in ("qa", "summary") for word in (f"--{name}-output", f"out/{name}.jsonl")]
    call(
        "dataset",
        "build",
        "--offline-dataset",
        "raw.jsonl",
        "--version",
        "v1",
        *places,
        "--manifest-output",
        "out/manifest.json",
    )
    return {"files": folder("out"), "manifest": facts(json.loads(Path("out/manifest.json").read_text()))}


def generated_dataset() -> Any:
    Path("corpus").mkdir()
    from auepora_eval.demo.world import demo_corpus

    for doc in list(demo_corpus())[:12]:
        Path("corpus", f"{doc.doc_id}.txt").write_text(doc.text, encoding="utf-8")
    done = call("dataset", "generate", "corpus", "--out", "raw.jsonl", "--seed", "4")
    return {"exit": done["exit"], "files": {"raw.jsonl": digest(Path("raw.jsonl").read_bytes())}}


def history() -> Any:
    for day, factor in ((1, 1.0), (2, 1.01), (3, 1.4)):
        rows = [
            {
                "operation": "search",
                "timestamp": f"2026-03-{day:02}T00:00:00Z",
                "duration": round(factor * one, 4),
                "memory_usage": 100,
            }
            for one in [1.0, 1.02, 0.98, 1.01, 0.99] * 2
        ]
        Path(f"{day}.benchmark.json").write_text(json.dumps(rows), encoding="utf-8")
    recorded = [
        call("bench-record", f"{day}.benchmark.json", "--baselines", "b.json", "--json") for day in (1, 2, 3)
    ]
    runs("steady", "shaky", "other")
    trend = call("list", "--trend", "recall@5", "--across-systems", "--json")
    for line in trend["json"]["lines"]:
        # The three runs start within one second, so their order is not fixed.
        line["points"].sort(key=lambda point: point["evaluation_id"])
    return {"bench": recorded, "trend": trend}


def call(*words: str) -> Any:
    """Run a command and return its exit code and, with --json, the facts that it printed."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(words))
    if code not in (0, 1, 3):
        raise RuntimeError(f"{' '.join(words)}: exit code {code}\n{err.getvalue()}")
    return {"exit": code, **({"json": facts(json.loads(out.getvalue()))} if "--json" in words else {})}


def stored(name: str) -> Any:
    """Return what a stored run says, with the scores of each metric as one digest."""
    document = json.loads(Path(f"data/evaluation/results/{name}.results.json").read_text(encoding="utf-8"))
    rows = document.pop("query_results", [])
    scores: dict[str, list[Any]] = {}
    for row in rows:
        for metric, value in sorted(row.get("individual_metrics", {}).items()):
            if metric not in VOLATILE:
                scores.setdefault(metric, []).append([row["query_id"], rounded(value)])
    digests = {metric: digest(json.dumps(pairs).encode()) for metric, pairs in sorted(scores.items())}
    return {"document": facts(document), "rows": len(rows), "scores": digests}


def facts(value: Any) -> Any:
    """Return a document without volatile facts and with "..." for prose: numbers may not change."""
    if isinstance(value, dict):
        return {name: facts(each) for name, each in sorted(value.items()) if name not in VOLATILE}
    if isinstance(value, list):
        return [facts(each) for each in value]
    if isinstance(value, str):
        return value if value in VERDICTS or " " not in value else "..."
    return rounded(value)


# Verdicts of several words: they are facts, not prose.
VERDICTS = {"no worse", "not worse"}


def rounded(value: Any) -> Any:
    return float(f"{value:.10g}") if isinstance(value, float) else value


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def folder(name: str) -> dict[str, str]:
    return {
        path.name: digest(path.read_bytes())
        for path in sorted(Path(name).glob("*"))
        if path.is_file() and path.name != "manifest.json"
    }


@contextlib.contextmanager
def empty_folder() -> Iterator[None]:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        try:
            yield
        finally:
            os.chdir(before)


def measure(name: str) -> Any:
    with empty_folder():
        return json.loads(json.dumps(answers()[name]()))


def record(*names: str) -> None:
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for name in names or answers():
        text = json.dumps(measure(name), indent=1, sort_keys=True, ensure_ascii=False)
        (GOLDEN / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        print(name, len(text))


if __name__ == "__main__":
    record(*sys.argv[1:])
