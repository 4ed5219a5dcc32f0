"""Scenarios whose output is what a person reads at the terminal, in files of text and in Python."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from pathlib import Path
from unittest.mock import patch

import auepora_eval as ae
from auepora_eval.metrics.embeddings import embedder
from tests.journeys.material import with_runs, with_systems
from tests.journeys.numbers import BUILD, with_judge, write_experiment, write_predictions, write_raw_tasks
from tests.journeys.recording import (
    call,
    command,
    on_a_small_screen,
    screens,
    shown_file,
    stable_text,
)


def overview() -> str:
    return screens("", "dataset", "shwo few", "show few --smaple q001", "metrics recal@5", "show")


def show() -> str:
    with_runs("steady", "shaky", "few2")
    return screens("show steady", "show shaky", "show few2", "show few2 --verify")


def show_samples() -> str:
    with_runs("shaky", "few2")
    return screens(
        "show shaky --worst ndcg@5 --n 3",
        "show shaky --worst mean_latency --n 2",
        "show few2 --sample q001",
        "show few2 --sample q043",  # its call failed
        "show few2 --sample q999",
        "show few2 --worst nothing",
    )


def compare_two() -> str:
    with_runs("steady", "shaky", "sharp")
    return screens(
        "compare steady sharp --full --resamples 2000",
        "compare steady shaky --margin 0.05 --regressions 0 --resamples 2000",
        "compare sharp steady --by scenario --regressions-of mrr --regressions 1 --resamples 2000",
    )


def compare_three() -> str:
    with_runs("steady", "shaky", "sharp")
    return screens("compare steady shaky sharp --full --resamples 2000")


def compare_different_data() -> str:
    with_runs("steady", "few")
    return screens(
        "compare steady few", "compare few steady --allow-mismatch", "compare few few", "compare few none"
    )


def small_screen() -> str:
    """The verdict and the next step are on a terminal of 80 columns and 24 lines, in colour."""
    with_runs("steady", "shaky", "sharp")
    Path("fails.py").write_text("def system(query):\n    raise KeyError('x')\n", encoding="utf-8")
    return on_a_small_screen(
        "compare steady sharp --resamples 2000",
        "gate steady --baseline sharp --min mrr=0.9",
        "list",
        "run --dataset few.jsonl --system rag.py:shaky --min-coverage 0.5",
        "show shaky",
        "run --dataset few.jsonl --system fails.py:system",
    )


def gate() -> str:
    """A gate that passes, one that fails and one that cannot tell; the exit codes are 0, 1 and 3."""
    with_runs("steady", "shaky", "sharp")
    return screens(
        "gate sharp --baseline steady --full",
        "gate sharp --min recall@5=0.3 --max p95_latency=3",
        "gate steady --baseline sharp --no-regression recall@5,mrr --min mrr=0.9",
        "gate shaky --baseline steady --margin recall@5=0.05",
        "gate shaky --baseline steady --margin recall@5=0.05 --if-inconclusive fail",
        "gate shaky --min recall@5=0.3 --max-failed 0.01",
    )


def gate_in_ci() -> str:
    """The rules are in a file; the outcome goes to a JUnit file, a job summary and a comment."""
    with_runs("steady", "sharp")
    Path("gate.yaml").write_text(
        "min: {recall@5: 0.9}\nno_regression: [mrr]\nmax_failed: 0.01\n", encoding="utf-8"
    )
    flags = "--baseline steady --rules gate.yaml"
    printed = screens(f"gate sharp {flags} --markdown")
    with patch.dict(os.environ, {"GITHUB_STEP_SUMMARY": "summary.md"}):
        printed += "\n" + screens(f"gate sharp {flags} --junit gate.xml --github-summary")
    return "\n".join([printed, shown_file("gate.xml"), shown_file("summary.md")])


def power_in_words() -> str:
    with_runs("steady", "shaky")
    return screens(
        "power steady shaky",
        "power steady --effect 0.05 --metric recall@5",
        "power --effect 0.03 --rate 0.8",
        "power --n 100 --sd 0.3",
    )


def lists() -> str:
    empty = screens("list")
    with_runs("steady", "shaky", "sharp", "few")
    return f"{empty}\n" + screens("list", "list --trend recall@5")


def metrics() -> str:
    return screens("metrics recall@5", "metrics judged_faithfulness", "metrics --target latency")


def run_and_resume() -> str:
    """A run that its budget stops, one with failed calls, one that exists already, and an estimate."""
    with_runs()
    flags = "--dataset few.jsonl --system rag.py"
    return screens(
        f"run {flags}:steady --id stopped --metrics recall@5 --budget-calls 5",
        "list",
        "run --resume stopped --budget-calls 20",
        f"run {flags}:shaky --id failures",
        f"run {flags}:shaky --id failures --metrics recall@5",
        f"run {flags}:steady --id full --metrics recall@5,token_f1",
        "show full",
        f"run {flags}:steady --id pilot --metrics recall@5 --estimate",
    )


def score() -> str:
    with_runs("few2")
    write_predictions("predictions.jsonl")
    return screens(
        "score --dataset few.jsonl --outputs predictions.jsonl --metrics recall@3,token_f1 --id scored",
        "score --run few2 --metrics hit@3,exact_match --only --id again --min-coverage 0.5",
        "show scored --sample q029",
    )


LABELS = [
    {"sample_id": name, "label": {"ada": int(place % 3 > 0), "ben": int(place % 2 > 0)}}
    for place, name in enumerate(["q001", "q015", "q029", "q043", "q057", "q071", "q085"])
]


def judge() -> str:
    with_runs("few2")
    with_judge()
    Path("labels.jsonl").write_text("\n".join(map(json.dumps, LABELS)), encoding="utf-8")
    asked = "judge few2 --judge judge.py:judge --min-coverage 0.5"
    return screens(
        f"{asked} --dry-run",
        f"{asked} --metrics judged_faithfulness,judged_answer_relevance",
        f"{asked} --calibrate labels.jsonl --probe",
        "show few2",
        "show few2 --sample q001",
    )


def judge_audit() -> str:
    with_judge()
    return screens(
        "judge-audit --labels demo --judge support:lexical --threshold 0.7",
        "judge-audit --labels demo --judge judge.py:judge",
    )


def dataset_build() -> str:
    write_raw_tasks("raw.jsonl")
    with Path("raw.jsonl").open("a", encoding="utf-8") as file:
        file.write('\n{"task_id": "bad", "task_type": "qa"}\n{"task_id": "x", "task_type": "chat"}\n')
    return "\n".join(
        [
            screens(BUILD, BUILD, "dataset check out/manifest.json", "dataset check out/qa.jsonl"),
            shown_file("out/manifest.json"),
        ]
    )


def dataset_check() -> str:
    with_runs()
    lines = Path("few.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    twice = lines[0].replace('"q001"', '"q002"')
    Path("odd.jsonl").write_text("".join([*lines[:3], twice]), encoding="utf-8")
    Path("bad.jsonl").write_text(lines[0] + '{"sample_id": 5}\n{"query": \n', encoding="utf-8")
    return screens(
        "dataset check few.jsonl",
        "dataset check odd.jsonl --fail-on warning",
        "dataset check bad.jsonl",
        "dataset check few.jsonl --id q155",
    )


def dataset_convert() -> str:
    with_runs("few2")
    steps = ["few.jsonl few.eval.json", "few.eval.json few.yaml", "few.yaml few.csv", "few.jsonl again.jsonl"]
    steps += ["data/evaluation/results/few2.results.json few2.results.csv", "few.jsonl few.nothing"]
    lines = Path("few.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    Path("fewer.jsonl").write_text("".join(lines[:9]).replace("Tobin", "Robin"), encoding="utf-8")
    printed = screens(
        *(f"dataset convert {step}" for step in steps),
        "dataset diff few.jsonl again.jsonl",
        "dataset diff few.jsonl few.yaml",
        "dataset diff few.jsonl fewer.jsonl",
    )
    heads = [
        f"{name}: {_beginning(name)}" for name in ("few.eval.json", "few.yaml", "few.csv", "few2.results.csv")
    ]
    return "\n".join([printed, *heads]) + "\n"


def _beginning(name: str) -> str:
    return " ".join(stable_text(Path(name).read_text(encoding="utf-8")[:600]).split())


def dataset_generate() -> str:
    """Only how many tasks there are: which ones may change with the generator."""
    done = command("dataset generate demo --out tasks.jsonl --seed 4 --json")
    kinds: dict[str, int] = {}
    for line in Path("tasks.jsonl").read_text(encoding="utf-8").splitlines():
        kind = json.loads(line)["task_type"]
        kinds[kind] = kinds.get(kind, 0) + 1
    return "".join(f"{kind} {count}\n" for kind, count in sorted(kinds.items())) + f"exit {done.code}\n"


def labels_in_words() -> str:
    return screens(
        "labels score --dataset demo --metric grounding_overlap --slices",
        "labels sweep --dataset demo --metric grounding_overlap",
        "labels sweep --dataset demo --metric grounding_overlap --per-scenario --folds 0",
    )


def experiment_in_words() -> str:
    with_runs()
    file = write_experiment("few.jsonl")
    return screens(f"experiment {file} --check", f"experiment {file}", "show ab_test_trial")


def people_in_words() -> str:
    with_runs("few", "few2")
    task = "data/evaluation/annotations"
    printed = screens(
        "annotate --agree demo",
        "annotate few --prepare --count 5 --people ada,ben",
        "annotate few few2 --prepare --count 4",
        f"annotate {task}/few-answers --export labels.jsonl",
    )
    files = sorted(path.relative_to(task).as_posix() for path in Path(task).rglob("*") if path.is_file())
    return printed + "\n" + "".join(f"{name}\n" for name in files)


def _span(trace: str, parent: bool, seconds: int, kind: str, **attributes: object) -> dict[str, object]:
    name = f"{trace}-{'r' if parent else '0'}"
    return {
        "name": name,
        "context": {"trace_id": trace, "span_id": name},
        "parent_id": f"{trace}-0" if parent else None,
        "start_time": "2001-01-01T10:00:00Z",
        "end_time": f"2001-01-01T10:00:0{seconds}Z",
        "attributes": {"openinference.span.kind": kind, **attributes},
    }


def import_traces() -> str:
    found = [{"document.id": name, "document.content": f"text of {name}"} for name in ("d1", "d2")]
    traces = {
        "t1": ("How many boats?", "three"),
        "t2": ("Who keeps the light?", "Ansel"),
        "t3": (None, "no question"),
    }
    spans = [
        span
        for name, (question, answer) in traces.items()
        for span in (
            _span(name, True, 2, "RETRIEVER", **{"retrieval.documents": found}),
            _span(name, False, 4, "CHAIN", **{"input.value": question, "output.value": answer}),
        )
    ]
    Path("spans.jsonl").write_text("\n".join([*map(json.dumps, spans), '{"no": "span"}']), encoding="utf-8")
    flags = "--samples live.jsonl --outputs live.p.jsonl"
    printed = screens(
        f"import-traces spans.jsonl {flags}", f"import-traces spans.jsonl {flags} --force --json"
    )
    return "\n".join([printed, shown_file("live.jsonl"), shown_file("live.p.jsonl")])


def spans() -> str:
    """What a run writes as spans can be imported again."""
    with_runs("few2")
    call("show few2 --spans spans.jsonl")
    return screens("import-traces spans.jsonl --dataset few.jsonl --outputs again.jsonl")


def init() -> str:
    with_runs()
    printed = screens("init --dataset few.jsonl --system rag.py:steady")
    written = [
        line.removeprefix("! written: ") for line in printed.splitlines() if line.startswith("! written: ")
    ]
    return "\n".join([printed, *(shown_file(name) for name in written)])


def demo() -> str:
    # As if no embeddings were installed: the second system then needs nothing that is optional.
    embedder.cache_clear()  # another test may have loaded them
    with patch.dict(sys.modules, {"wordllama": None}):
        return screens("demo")


def report_in_markdown() -> str:
    with_runs("few", "few2", "steady", "sharp")
    return screens("show few2 --markdown -", "compare steady sharp --markdown -")


def bad_input() -> str:
    with_systems()
    good = '{"sample_id":"1","query":"q","relevant_docs":["a"],"reference_answer":"x"}\n'
    files = {
        "good.jsonl": good,
        "twice.jsonl": good + good,
        "cut.jsonl": good + '{"sample_id":"2","que',
        "type.jsonl": good + '{"sample_id":5}\n',
        "nan.jsonl": '{"sample_id":"1","labels":{"x":NaN}}\n',
        "empty.jsonl": "",
        "plan.config.yaml": "dataset: good.jsonl\nsystem: rag.py:steady\nmetrcs: [recall@5]\n",
        "rules.yaml": "min: {recall@5: high}\n",
        "broken.results.json": '{"schema_version": "1.1", "evaluation_id"',
        "p.jsonl": '{"sample_id":"7","retrieved":["a"],"answer":"x"}\n',
    }
    for name, text in files.items():
        Path(name).write_text(text, encoding="utf-8")
    system = "--system rag.py:steady"
    datasets = ("missing.jsonl", "twice.jsonl", "cut.jsonl", "type.jsonl", "nan.jsonl", "empty.jsonl")
    return screens(
        *(f"run --dataset {name} {system}" for name in datasets),
        "run --dataset good.jsonl --system rag.py:nothing",
        "run --dataset good.jsonl --system missing.py:rag",
        f"run --dataset good.jsonl {system} --metrics recall@5,rogue1",
        f"run --dataset good.jsonl {system} --metrics recall@0",
        f"run --dataset good.jsonl {system} --top-k none",
        "run --config plan.config.yaml",
        "run --resume nothing",
        "score --dataset good.jsonl --outputs p.jsonl",
        "show broken.results.json",
        "gate broken.results.json --rules rules.yaml",
        "judge nothing --judge http://example.org/v1#m",
        "experiment good.jsonl",
        "labels score --dataset good.jsonl --metric grounding_overlap",
        "dataset convert missing.jsonl out.csv",
        "import-traces missing.jsonl --outputs o.jsonl",
    )


def python() -> str:
    """The same from Python: what is printed in a notebook or a script."""
    samples = [
        {
            "sample_id": f"s{n}",
            "query": f"question {n}",
            "relevant_docs": [f"d{n}"],
            "reference_answer": f"answer {n}",
        }
        for n in range(8)
    ]

    def first(query: str) -> dict[str, object]:
        number = int(query.split()[1])
        if number == 5:
            raise RuntimeError("no answer")
        return {"retrieved": ["d0", f"d{number // 2 * 2}"], "answer": f"answer {number}"}

    def second(query: str) -> dict[str, object]:
        return {"retrieved": [f"d{query.split()[1]}"], "answer": "answer 0"}

    with contextlib.redirect_stdout(io.StringIO()) as out:
        runs = [
            ae.evaluate(system, samples, metrics=["recall@5", "mrr", "token_f1"], top_k=5)
            for system in (first, second)
        ]
        found = runs[0]["recall@5"]
        low, high = found.interval or (None, None)
        print(
            runs[0],
            f"\n{found.value:.4f} {low:.4f} {high:.4f} {found.coverage}\n",
            ae.compare(*runs),
            sep="\n",
        )
    return stable_text(out.getvalue())


SCENARIOS = (
    *(overview, show, show_samples, compare_two, compare_three, compare_different_data),
    *(
        small_screen,
        gate,
        gate_in_ci,
        power_in_words,
        lists,
        metrics,
        run_and_resume,
        score,
        judge,
        judge_audit,
    ),
    *(dataset_build, dataset_check, dataset_convert, dataset_generate, labels_in_words, experiment_in_words),
    *(people_in_words, import_traces, spans, init, demo, report_in_markdown, bad_input, python),
)
