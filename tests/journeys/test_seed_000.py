"""A new user of seed 000: from raw tasks to splits, and from splits to a scored run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.cli.main import main
from tests.builders import plan
from tests.raw_tasks import write_tasks
from tests.servers import chat_server

pytestmark = pytest.mark.full

SYSTEMS = '''
def from_prompt(prompt):
    """A model that is given the prompt of the record, and quotes its first context."""
    return prompt.partition("[1] ")[2].partition("\\n")[0]

def from_rag_prompt(query, rag_prompt):
    return f"{query} {len(rag_prompt)}"

def inventing(query):
    return "Seventeen purple submarines."
'''
Run = Callable[..., tuple[str, str]]


def a_task(number: int, kind: str = "qa") -> dict[str, Any]:
    """A line of offline_dataset.jsonl as the seed's generator writes it."""
    text = f"Pier {number} has {number + 10} berths."
    context = f"[1] {text}"
    chunk = {"id": number, "text": text, "source_path": "harbour.txt", "page": number, "ordinal": 1}
    return {
        "task_id": f"{kind}-{number}",
        "task_type": kind,
        "instruction": f"How many berths has pier {number}?" if kind != "summaries" else "Sum it up.",
        "expected_response": f"Pier {number} has {number + 10} berths [1].",
        "rag": {
            "prompt": f"You are a harbour assistant.\n{context}\nAnswer the question.",
            "contexts": [context],
            "sources": [f"harbour.txt#page={number}"],
            "scores": [0.5],
            "citations": [{"id": number, "source_path": "harbour.txt", "page": number, "ordinal": 1}],
            "retrieved": [chunk],
        },
        "metadata": {"source_path": "harbour.txt", "selected_chunk_ids": [number]},
    }


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a command in a new project and returns what it printed."""
    monkeypatch.chdir(tmp_path)
    tasks = [
        *(a_task(n) for n in range(6)),
        *(a_task(n, "summaries") for n in range(3)),
        a_task(0, "citations"),
    ]
    write_tasks(Path("evaluation/datasets/offline_dataset.jsonl"), tasks)
    Path("systems.py").write_text(SYSTEMS, encoding="utf-8")

    def command(*words: str, code: int = 0) -> tuple[str, str]:
        capsys.readouterr()
        assert main(list(words)) == code
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return printed.out, printed.err

    return command


def results(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(Path(f"data/evaluation/results/{name}.results.json").read_text())
    return document


def test_a_split_is_chosen_by_its_type(run: Run) -> None:
    run("dataset", "build", "--splits", "qa,summaries,citations")
    for kind, count in (("qa", 6), ("summaries", 3), ("citations", 1)):
        run("run", "--dataset-type", kind, "--system", "systems.py:from_prompt", "--id", kind)
        document = results(kind)
        assert document["summary"]["total_queries"] == count
        assert document["metadata"]["dataset_snapshot"]["version"] == "v1"
        assert document["configuration"]["dataset_type"] == kind
    system = ("--system", "systems.py:from_prompt")
    for place in ("evaluation/datasets/manifest.json", "evaluation/datasets/offline_dataset.jsonl"):
        run("run", "--dataset", place, "--dataset-type", "summaries", *system, "--id", "s", "--force")
        assert results("s")["summary"]["total_queries"] == 3
    split = "evaluation/datasets/qa_pairs.jsonl"
    _, err = run("run", "--dataset", split, "--dataset-type", "summaries", *system, code=2)
    assert "it has no records of the type 'summaries'. It has qa." in err
    _, err = run("run", "--dataset", "evaluation/datasets/manifest.json", *system, code=2)
    assert "choose one with --dataset-type qa|summaries|citations" in err


def test_the_prompt_reaches_the_system_that_asks_for_it(run: Run) -> None:
    run("dataset", "build")
    metrics = ("--metrics", "contains_answer,token_f1")
    run("run", "--dataset-type", "qa", "--system", "systems.py:from_prompt", "--id", "a", *metrics)
    rows = results("a")["query_results"]
    assert [row["generated_answer"] for row in rows] == [f"Pier {n} has {n + 10} berths." for n in range(6)]
    run("run", "--dataset-type", "qa", "--system", "systems.py:from_rag_prompt", "--id", "b", *metrics)
    assert results("b")["query_results"][0]["generated_answer"].startswith("How many berths has pier 0? ")


@pytest.mark.parametrize("by", ["run", "score"])
def test_grounding_is_scored_against_what_the_model_was_shown(run: Run, by: str) -> None:
    run("dataset", "build")

    def value(name: str, system: str) -> float:
        flags = [*plan(contexts_as_retrieved=True), "--metrics", "grounding_overlap", "--id", name]
        if by == "run":
            run("run", "--dataset-type", "qa", "--system", f"systems.py:{system}", *flags)
        else:
            answers = [f"Pier {n} has {n + 10} berths." for n in range(6)]
            if system == "inventing":
                answers = ["Seventeen purple submarines."] * 6
            lines: list[Any] = [{"sample_id": f"qa-{n}", "answer": text} for n, text in enumerate(answers)]
            write_tasks(Path(f"{name}.jsonl"), lines)
            run(
                "score",
                "--dataset",
                "evaluation/datasets/qa_pairs.jsonl",
                "--outputs",
                f"{name}.jsonl",
                *flags,
            )
        document = results(name)
        assert document["query_results"][1]["retrieval_results"]["retrieved_docs"] == ["1"]
        figure: float = document["answer_quality_metrics"]["grounding_overlap"]["value"]
        return figure

    assert value("good", "from_prompt") == pytest.approx(1.0)
    assert value("bad", "inventing") < 0.5
    run("show", "good", "--verify")


def test_what_is_wrong_with_records_is_found_before_a_run(run: Run) -> None:
    """Empty prompts, no contexts, two versions of a field: `validate` and `check` name the record."""
    empty, bare, double, twice = a_task(7), a_task(8), a_task(9), a_task(10)
    empty["rag"]["prompt"] = " "
    bare["rag"] |= {"contexts": [], "sources": [], "retrieved": [], "citations": [], "scores": []}
    double |= {"contexts": ["[1] Another text."], "sources": ["other.txt"]}
    twice["reference_answer"] = "Another answer."
    write_tasks(Path("odd.jsonl"), [{"instruction": "Sum it up."}, empty, bare, double, twice])
    out, _ = run("dataset", "check", "odd.jsonl", code=1)
    assert "odd.jsonl:1" in out  # the first record does not decide the format, and is itself an error
    assert "odd.jsonl:2: $.rag_prompt: the prompt is empty." in out
    assert "odd.jsonl:3: $.contexts: there are no contexts." in out
    assert "odd.jsonl:4: $.contexts: 'contexts' differs from 'rag.contexts', which is used." in out
    assert "odd.jsonl:5: $.reference_answer: 'reference_answer' differs from 'expected_response'" in out
    write_tasks(Path("odd.jsonl"), [empty, bare, double])
    out, _ = run("dataset", "check", "odd.jsonl", code=1)
    assert "(qa-7): the rag_prompt is empty." in out
    assert "(qa-8): there are no contexts." in out
    assert "(qa-9): 'contexts' differs from 'rag.contexts', which is used." in out


def test_a_cut_off_line_is_the_same_error_in_raw_tasks_and_splits(run: Run) -> None:
    run("dataset", "build")
    errors = set()
    for name in ("offline_dataset.jsonl", "qa_pairs.jsonl"):
        path = Path("evaluation/datasets") / name
        text = path.read_text(encoding="utf-8")
        path.write_text(text.splitlines()[0] + "\n" + text.splitlines()[1][:40] + "\n", encoding="utf-8")
        out, _ = run("dataset", "check", str(path), code=1)
        error = next(line.strip() for line in out.splitlines() if f"{name}:2" in line)
        errors.add(error.split(":2", 1)[1])
    assert len(errors) == 1


def test_the_prompt_reaches_a_server_that_asks_for_it(run: Run) -> None:
    run("dataset", "build")
    Path("mine.md").write_text("# system\nBe brief.\n# user\n{{rag_prompt}}\n", encoding="utf-8")
    Path("plan.config.yaml").write_text("http: {prompt: rag_prompt}\n", encoding="utf-8")
    flags = ("--dataset-type", "qa", "--metrics", "token_f1", "--limit", "1")
    prompt = a_task(0)["rag"]["prompt"]
    with chat_server() as server:
        run("run", *flags, "--system", f"openai:{server.url}#m", *plan(prompt="mine.md"), "--id", "a")
        assert server.requests[0]["messages"][1]["content"] == prompt
    with chat_server(says=lambda body: {"answer": "x"}, bare=True) as server:
        run("run", *flags, "--system", f"http:{server.url}/ask", "--config", "plan.config.yaml", "--id", "b")
        assert server.requests[0]["rag_prompt"] == prompt


@pytest.mark.parametrize("by", ["run", "score"])
def test_values_by_construction_say_so_and_are_not_in_the_defaults(run: Run, by: str) -> None:
    run("dataset", "build")
    note = "The retrieved documents are contexts of the dataset (contexts_as_retrieved)"
    data = ["--dataset", "evaluation/datasets/qa_pairs.jsonl", *plan(contexts_as_retrieved=True)]
    if by == "run":
        command = ["run", *data, "--system", "systems.py:inventing"]
    else:
        lines: list[Any] = [{"sample_id": f"qa-{n}", "answer": "Seventeen submarines."} for n in range(6)]
        write_tasks(Path("answers.jsonl"), lines)
        command = ["score", *data, "--outputs", "answers.jsonl"]

    out, err = run(*command, "--metrics", "recall@5,mrr,token_f1", "--id", "named")
    assert note in out + err
    document = results("named")
    for name in ("recall@5", "mrr"):
        entry = document["retrieval_metrics"][name]
        assert entry["value"] == 1.0
        assert note in entry["details"]["notes"][0]
        assert "by construction: recall@5, mrr." in entry["details"]["notes"][0]
    assert "notes" not in document["answer_quality_metrics"]["token_f1"]["details"]
    run("score", "--run", "named", "--metrics", "recall@5,token_f1", "--id", "again")
    listed: list[list[str]] = [["compare", "named", "again"], ["gate", "named", "--min", "recall@5=0.5"]]
    for words in (
        *listed,
        ["show", "named"],
        ["show", "named", "--markdown", "-"],
        ["score", "--run", "named", "--metrics", "hit@5"],
    ):
        assert note in " ".join("".join(run(*words)).split()), words
    run("show", "named", "--html", "page.html")
    assert note in Path("page.html").read_text(encoding="utf-8")

    run(*command, "--id", "default")
    assert not {"recall@5", "mrr", "hit@1"} & results("default")["retrieval_metrics"].keys()
    assert note not in "".join(run("show", "default"))
