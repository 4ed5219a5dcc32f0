"""The public API: evaluate, compare, load_run, and everything that can be imported from the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

import auepora_eval as ae
from tests.builders import a_sample
from tests.generate_docs import API_SECTIONS, public_names
from tests.pages.serving import Served

SAMPLES: list[dict[str, Any]] = [
    {"sample_id": str(n), "query": f"q{n}", "relevant_docs": [f"d{n}"], "reference_answer": f"answer {n}"}
    for n in range(20)
]


def my_rag(query: str, top_k: int = 5) -> Any:
    number = query[1:]
    return [f"d{number}", "x"], f"answer {number}"


def worse_rag(query: str, top_k: int = 5) -> Any:
    number = query[1:]
    return ["x", "y"], f"answer {number}" if int(number) % 2 else "no idea"


METRICS = "recall@5,mrr,token_f1"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


# The use of the API that was agreed on, as it was written down.
AGREED = """
import auepora_eval as ae

run = ae.evaluate(my_rag, samples, metrics="recall@5,mrr,token_f1", top_k=5)   # list of dicts, samples, ...
print(run)                                  # the table; _repr_html_ in a notebook
run["recall@5"].value, run["recall@5"].interval, run["recall@5"].coverage.failed
run.to_records(); run.save("results/")      # and ae.load_run("results/mine")
print(ae.compare(run_a, run_b))             # verdict in words, then the table
ae.compare(run_a, run_b)["recall@5"].test.p
"""


def test_the_agreed_block_runs_as_it_was_written(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"my_rag": my_rag, "samples": SAMPLES}
    for name, system in (("run_a", my_rag), ("run_b", worse_rag)):
        names[name] = ae.evaluate(system, SAMPLES, metrics=METRICS, top_k=5)
    exec(compile(AGREED, "agreed", "exec", dont_inherit=True), names)  # noqa: S102 - our own text
    table, verdict = capsys.readouterr().out.split("worse_rag is worse", 1)
    assert table.startswith("my_rag on samples: 20 samples, top_k 5\nMetric ")
    assert "Verdict" in verdict
    assert ae.load_run(f"results/{names['run'].evaluation_id}")["recall@5"].value == 1.0


@pytest.mark.parametrize("kind", ["dicts", "samples", "generator", "path", "text path", "dataset", "frame"])
def test_every_form_of_a_dataset_gives_the_same_values(here: Path, kind: str) -> None:
    samples = [ae.EvaluationSample(**record) for record in SAMPLES]
    dataset = ae.InMemoryDataset("samples", samples)
    path = here / "samples.jsonl"
    ae.save_jsonl_dataset(dataset, path)

    class Frame:
        columns = tuple(SAMPLES[0])

        def to_dict(self, orient: str) -> list[dict[str, Any]]:
            return SAMPLES

    forms: dict[str, Any] = {
        "dicts": SAMPLES,
        "samples": samples,
        "generator": (sample for sample in samples),
        "path": path,
        "text path": str(path),
        "dataset": dataset,
        "frame": Frame(),
    }
    run = ae.evaluate(worse_rag, forms[kind], metrics=METRICS)
    assert [result.value for result in run.results] == [0.0, 0.0, 0.5]
    assert run.dataset_name == "samples"


@pytest.mark.usefixtures("own_metrics")
def test_metrics_by_default_and_as_objects() -> None:
    @ae.metric("api_brevity@{words}", target="generation_relevance")
    def brevity(sample: ae.EvaluationSample, output: ae.SystemOutputs, *, words: int = 10) -> float:
        return float(len(output.response.text.split()) <= words)

    assert "ndcg@3" in [result.name for result in ae.evaluate(my_rag, SAMPLES, top_k=3).results]
    run = ae.evaluate(my_rag, SAMPLES, metrics=[brevity, brevity(words=1), "mrr", ae.RecallAtK(5)])
    assert [result.name for result in run.results] == ["api_brevity@10", "api_brevity@1", "mrr", "recall@5"]
    assert [result.name for result in ae.evaluate(my_rag, SAMPLES, metrics=brevity).results] == [
        "api_brevity@10"
    ]


@pytest.mark.parametrize(
    ("metrics", "names"),
    [
        ("recall@5", ["recall@5"]),
        ("recall@5, mrr", ["recall@5", "mrr"]),
        (["recall@5", ae.parse_metric("mrr")], ["recall@5", "mrr"]),
        (ae.parse_metric("mrr"), ["mrr"]),
        (("mrr",), ["mrr"]),
        ((), []),
    ],
)
def test_plans_are_made_from_names(metrics: Any, names: list[str]) -> None:
    assert [metric.name for metric in ae.EvaluationPlan(metrics).metrics] == names


def test_a_plan_keeps_its_list() -> None:
    metrics: list[ae.Metric] = [ae.parse_metric("mrr")]
    plan = ae.EvaluationPlan(metrics)
    metrics.append(ae.parse_metric("map"))
    assert [metric.name for metric in plan.metrics] == ["mrr", "map"]
    assert plan == ae.EvaluationPlan(metrics)


def test_the_evaluator_takes_samples_and_dicts() -> None:
    evaluator = ae.AueporaEvaluator(my_rag, ae.EvaluationPlan("token_f1"))
    assert evaluator.run([a_sample("1", "q1", reference="answer 1")])["token_f1"].value == 1.0
    assert evaluator.run(SAMPLES)["token_f1"].value == 1.0
    assert evaluator.evaluate(SAMPLES)[0].value == 1.0


WRONG: Any = 5
TEXT: Any = "5"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ae.evaluate(WRONG, SAMPLES), "system must be an object with run"),
        (lambda: ae.evaluate(cast(Any, [{}]), SAMPLES), "a list is not a system.*ae.score"),
        (lambda: ae.evaluate(my_rag, WRONG), "dataset must be a dataset, a list .*, a DataFrame, or a path"),
        (lambda: ae.evaluate(my_rag, [WRONG]), r"dataset\[0\] must be a sample or a dict"),
        (
            lambda: ae.evaluate(my_rag, SAMPLES, metrics=WRONG),
            "metrics must be a name such as 'recall@5', a metric",
        ),
        (lambda: ae.evaluate(my_rag, SAMPLES, metrics=[WRONG]), "metrics must be a name .*, not int: 5"),
        (
            lambda: ae.evaluate(my_rag, SAMPLES, metrics=[ae.RecallAtK]),
            "RecallAtK, which cannot be made without",
        ),
        (
            lambda: ae.compare(WRONG, WRONG),
            "baseline must be a run, the path of a stored run, or a list of these",
        ),
        (lambda: ae.compare([WRONG], [WRONG]), r"baseline\[0\] must be a run"),
        (lambda: ae.evaluate(my_rag, SAMPLES, top_k=TEXT), "top_k must be a whole number, not str"),
        (lambda: ae.evaluate(my_rag, SAMPLES, executor=TEXT), "executor must be an executor such as"),
        (lambda: ae.evaluate(my_rag, SAMPLES, evaluation_id=WRONG), "evaluation_id must be a string"),
        (lambda: ae.compare("a", "b", alpha=TEXT), "alpha must be a number between 0 and 1"),
        (lambda: ae.compare("a", "b", margin=TEXT), "margin must be a number, a dict of numbers by metric"),
        (
            lambda: ae.evaluate(my_rag, SAMPLES).save(WRONG),
            "path must be the path of a folder or of a .results.json",
        ),
        (lambda: ae.load_run(WRONG), "path must be the path or the id of a stored run, not int: 5"),
    ],
)
def test_errors_name_the_argument_and_the_accepted_forms(call: Any, message: str) -> None:
    with pytest.raises(ae.ArgumentError, match=message):
        call()


def test_a_name_that_is_misspelt() -> None:
    with pytest.raises(ae.UnknownNameError, match="Did you mean recall"):
        ae.evaluate(my_rag, SAMPLES, metrics="recal@5")
    with pytest.raises(ae.NotFoundError):
        ae.load_run("results/missing")


def test_compare_is_the_function_after_the_package_of_that_name_was_imported() -> None:
    code = (
        "import auepora_eval as ae\n"
        "from auepora_eval.comparison.compare import compare_runs\n"
        "from auepora_eval import compare\n"
        "assert compare is ae.compare and callable(compare), compare\n"
        "assert ae.compare_runs is compare_runs\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_reference_page_has_every_name() -> None:
    documented = {module for modules in API_SECTIONS.values() for module in modules}
    assert documented == set(public_names().values())


ANSWERS: dict[str, str] = {}


def broken_rag(query: str) -> str:
    return ANSWERS[query]


def unlucky_rag(query: str) -> Any:
    return broken_rag(query) if query in ("q3", "q7") else my_rag(query)


@pytest.mark.parametrize("stored", [False, True])
def test_system_that_answers_nothing_is_an_error_with_its_place(here: Path, stored: bool) -> None:
    storage = ae.EvaluationResultsStorage() if stored else None
    evaluator = ae.AueporaEvaluator(broken_rag, METRICS)
    with pytest.raises(
        ae.EvaluationError, match=r"every call failed \(3 of 3\).*'0': KeyError: 'q0'"
    ) as caught:
        evaluator.run(SAMPLES[:3], evaluation_id="x", storage=storage)
    assert "test_api.py" in str(caught.value)
    assert str(caught.value).endswith("in broken_rag\n    return ANSWERS[query]")
    run: Any = caught.value.run
    assert [one["message"] for one in run.failures()] == ["'q0'", "'q1'", "'q2'"]
    if stored:  # before the error: what was called is kept
        assert [one["type"] for one in ae.load_run("x").failures()] == ["KeyError"] * 3


@pytest.mark.parametrize(
    "call",
    [
        lambda: ae.evaluate(broken_rag, SAMPLES[:2]),
        lambda: ae.AueporaEvaluator(broken_rag, METRICS).evaluate(SAMPLES[:2]),
    ],
)
def test_every_way_to_evaluate_raises(call: Any) -> None:
    with pytest.raises(ae.EvaluationError, match="KeyError: 'q0'"):
        call()


def test_run_ends_after_twenty_equal_failures(here: Path) -> None:
    samples = [{**SAMPLES[0], "sample_id": str(n)} for n in range(50)]
    calls: list[str] = []

    def rag(query: str) -> str:
        calls.append(query)
        return broken_rag(query)

    with pytest.raises(ae.EvaluationError, match=r"none of the first 20 calls was answered.*KeyError: 'q0'"):
        ae.evaluate(rag, samples, metrics=METRICS)
    assert len(calls) == 20
    with pytest.raises(ae.EvaluationError, match=r"every call failed \(50 of 50\)"):
        ae.evaluate(rag, samples, metrics=METRICS, policy=ae.CallPolicy(keep_going=True))


@pytest.mark.parametrize("stored", [False, True])
def test_some_failures_are_a_warning_and_a_note(here: Path, stored: bool) -> None:
    storage = ae.EvaluationResultsStorage() if stored else None
    evaluator = ae.AueporaEvaluator(unlucky_rag, METRICS)
    with pytest.warns(UserWarning, match=r"2 of 20 calls failed .*1 × KeyError: 'q3'") as caught:
        run = evaluator.run(SAMPLES, evaluation_id="x", storage=storage)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert "2 of 20 calls failed (run.failures() lists them): 1 × KeyError: 'q3'" in str(run)
    assert [(one["sample_id"], one["type"]) for one in run.failures()] == [
        ("3", "KeyError"),
        ("7", "KeyError"),
    ]
    assert ae.evaluate(my_rag, SAMPLES, metrics=METRICS).failures() == []


def test_predictions_that_are_all_errors_are_a_warning() -> None:
    answers = [{"sample_id": str(n), "error": {"type": "Timeout", "message": "late"}} for n in range(20)]
    with pytest.warns(UserWarning, match="20 of 20 calls failed .*20 × Timeout: late"):
        run = ae.score(SAMPLES, answers, metrics=METRICS)
    assert len(run.failures()) == 20


def test_a_run_is_read_as_its_results_and_names_its_worst_samples() -> None:
    rows = [{"sample_id": word, "query": word, "relevant_docs": [f"d{word}"]} for word in "12"]
    run = ae.evaluate(lambda query: (["d1"], "x"), rows, metrics=["recall@5", "mrr"])
    assert [result.name for result in run] == ["recall@5", "mrr"]
    assert len(run) == 2
    assert (run.results[0].name in run, "nothing" in run) == (True, False)
    assert [score.value for score in run.worst("recall@5")] == [0.0]  # the other sample has the best value


# Working with a run in a notebook.


def exact(sample: ae.EvaluationSample, output: ae.SystemOutputs) -> float:
    return float(output.response.text == (sample.reference_answer or ""))


@pytest.mark.usefixtures("own_metrics")
def test_a_plain_function_and_a_bare_decorator_are_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    # What is registered here must not be known to other tests.
    monkeypatch.setattr(ae.METRICS, "_things", {name: ae.METRICS.get(name) for name in ae.METRICS})

    @ae.metric
    def says_something(sample: ae.EvaluationSample, output: ae.SystemOutputs) -> float:
        return float(bool(output.response.text))

    run = ae.evaluate(my_rag, SAMPLES, metrics=["mrr", exact, says_something])
    assert [result.name for result in run] == ["mrr", "exact", "says_something"]
    assert ae.evaluate(my_rag, SAMPLES, metrics=exact)["exact"].target.name == "exact"
    with pytest.raises(ae.ArgumentError, match=r'@metric\("name"\)'):
        ae.evaluate(my_rag, SAMPLES, metrics=[lambda sample, output: 1.0])


def test_what_a_notebook_shows_is_short() -> None:
    run = ae.evaluate(my_rag, SAMPLES, metrics=METRICS, evaluation_id="mine")
    assert repr(run) == "<EvaluationRun mine: my_rag on samples, 20 samples, 3 metrics>"
    assert repr(ae.compare(run, run)) == "<RunComparison mine with mine: 3 same>"
    report = ae.gate(run, min={"mrr": 0.2}, max={"recall@5": 0.3})
    assert repr(report) == "<GateReport gate FAILED: mine (1 pass, 1 FAIL)>"
    assert str(report).startswith("gate FAILED: mine (1 pass, 1 FAIL)\n")
    assert "<table>" in report._repr_html_()
    assert {"evaluate", "score", "compare", "gate", "load_run", "metric"} < set(dir(ae))
    assert len(set(dir(ae)) - {"__version__"}) == 10


def test_the_demo_is_a_dataset() -> None:
    assert len(ae.evaluate(lambda query: "no idea", "demo").samples) == 160


def test_a_run_is_saved_as_the_file_that_is_named(here: Path) -> None:
    run = ae.evaluate(my_rag, SAMPLES, metrics=METRICS, evaluation_id="mine")
    assert run.save("kept/first.results.json") == Path("kept/first.results.json")
    assert ae.load_run("kept/first.results.json").evaluation_id == "first"
    with pytest.raises(ae.StorageError, match=r"x\.results\.json"):
        run.save("x.json")


def test_gate_reads_rules_from_a_file_and_keywords_come_on_top(here: Path) -> None:
    run = ae.evaluate(my_rag, SAMPLES, metrics=METRICS)
    Path("gate.yaml").write_text("min: {mrr: 2, recall@5: 0.5}\n", encoding="utf-8")
    assert ae.gate(run, rules="gate.yaml").outcome == "failed"
    assert ae.gate(run, rules="gate.yaml", min={"mrr": 0.1}).outcome == "passed"
    worse = ae.evaluate(worse_rag, SAMPLES, metrics=METRICS)
    assert ae.gate(worse, run).outcome == "failed"


def test_a_run_as_one_file_and_in_a_browser(here: Path) -> None:
    run = ae.evaluate(my_rag, SAMPLES, metrics=METRICS, evaluation_id="mine")
    assert "my_rag" in run.to_html("page.html").read_text(encoding="utf-8")
    code = (
        "import auepora_eval as ae\n"
        "rows = [{'query': 'a', 'reference_answer': 'a'}]\n"
        "ae.evaluate(lambda query: query, rows).view('--no-open')\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        printed = "".join(next(server.stdout) for _ in range(3))
        server.terminate()
    assert "http://127.0.0.1:" in printed


def test_a_view_in_a_session_returns_and_ends_with_python() -> None:
    code = (
        "import asyncio, sys, auepora_eval as ae\n"
        "rows = [{'query': 'a', 'reference_answer': 'a'}]\n"
        "async def cell():\n"  # a notebook runs cells in an event loop
        "    ae.evaluate(lambda query: query, rows).view('--no-open')\n"
        "sys.ps1 = '>>> '\n"
        "asyncio.run(cell())\n"
        "input()\n"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, text=True) as session:
        assert session.stdout is not None
        address = [next(session.stdout) for _ in range(3)][-1].strip()
        assert Served(session, address).enter().get("/").status == 200
        session.communicate("\n", timeout=30)
    assert session.returncode == 0


def test_rows_with_answers_are_scored_not_evaluated() -> None:
    with pytest.raises(TypeError, match="use score"):
        ae.evaluate([{"question": "Which?", "answer": "this one"}])
