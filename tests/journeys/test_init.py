"""`auepora init`: what it writes works as it is, for a function and for an endpoint."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from auepora_eval.cli.main import main
from auepora_eval.io.config.new_project import FILES, PLAN, RULES, TEST, WORKFLOW, project_files
from auepora_eval.io.jsonl import save_records
from tests.servers import chat_server
from tests.stored import kept

pytestmark = pytest.mark.full

RAG = """
from auepora_eval.demo.world import demo_corpus

def my_rag(query, top_k=5):
    words = set(query.lower().split())
    best = sorted(demo_corpus(), key=lambda doc: -len(words & set(doc.text.lower().split())))[:top_k]
    return best, best[0].text.split(". ")[0]
"""

# Chunks with ids of their own, as an index makes them: only their source names the document.
CHUNKS = """
def rag(query):
    number = int(query.removeprefix("Question ").rstrip("?"))
    chunk = {"doc_id": f"c{number + 7}", "text": "Fact", "metadata": {"source": f"d{number}.md"}}
    return {"answer": str(number) if number % 3 else "I don't know.", "retrieved": [chunk]}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "my_rag.py").write_text(RAG, encoding="utf-8")
    lines = [{"sample_id": f"s{n}", "query": f"question {n}", "reference_answer": "a"} for n in range(12)]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path.with_suffix(".md")))
    return tmp_path


def pytest_of(project: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:langsmith_plugin"]
    return subprocess.run(words, cwd=project, capture_output=True, text=True, timeout=120, check=False)


def steps_of(project: Path) -> list[dict[str, Any]]:
    workflow = yaml.safe_load((project / WORKFLOW).read_text(encoding="utf-8"))
    # YAML 1.1 reads the key `on` as true.
    assert set(workflow) == {"name", True, "permissions", "jobs"}
    steps: list[dict[str, Any]] = workflow["jobs"]["evaluate"]["steps"]
    assert all(("uses" in step) != ("run" in step) for step in steps)
    return steps


def commands_of(project: Path) -> list[list[str]]:
    """Return the commands of the workflow that are ours."""
    lines = [shlex.split(step["run"]) for step in steps_of(project) if "run" in step]
    return [words[1:] for words in lines if words[0] == "auepora"]


def check_works(project: Path) -> None:
    """Finish the baseline; then the test passes, and every command of the workflow ends with code 0."""
    assert main(["run", "--resume", "baseline", "--out", "baselines"]) == 0
    done = pytest_of(project)
    assert done.returncode == 0, done.stdout + done.stderr
    commands = commands_of(project)
    assert [words[0] for words in commands] == ["run", "gate"]
    assert [main(words) for words in commands] == [0, 0]
    assert "### gate passed" in Path(os.environ["GITHUB_STEP_SUMMARY"]).read_text(encoding="utf-8")


def test_project_of_a_function(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--dataset", "demo", "--system", "my_rag.py:my_rag"]) == 0
    captured = capsys.readouterr()
    assert [line for line in captured.err.splitlines() if line.startswith("written: ")] == [
        f"written: {name}" for name in FILES
    ]
    assert "my_rag on skerravane: 5 samples" in captured.out
    assert "Estimate for 160 samples, based on 5" in captured.out
    assert "Next: auepora run --resume baseline --out baselines\n" in captured.out
    assert yaml.safe_load((project / RULES).read_text(encoding="utf-8")) == {
        "no_regression": ["recall@5", "contains_answer", "rejection_rate"],
        "max_failed": 0.01,
    }
    assert "auepora run --resume baseline --out baselines" in pytest_of(project).stdout
    check_works(project)

    # The gate fails a change for the worse: the system that was 20% right finds nothing.
    (project / "my_rag.py").write_text("def my_rag(query):\n    return ['x'], 'no'\n", encoding="utf-8")
    done = pytest_of(project)
    assert done.returncode == 1
    assert "no_regression recall@5" in done.stdout
    assert "FAIL" in done.stdout


def test_project_with_chunks_and_few_unanswerable_questions(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The plan has the match that the documents need, and no rule that the dataset is too small for."""
    (project / "chunks.py").write_text(CHUNKS, encoding="utf-8")
    answerable = [
        {
            "sample_id": f"q{n}",
            "query": f"Question {n}?",
            "reference_answer": str(n),
            "relevant_docs": [f"d{n}.md"],
        }
        for n in range(10)
    ]
    others = [
        {"sample_id": f"q{n}", "query": f"Question {n}?", "labels": {"answerable": False}} for n in (10, 11)
    ]
    save_records([*answerable, *others], project / "q.jsonl")
    assert main(["init", "--dataset", "q.jsonl", "--system", "chunks.py:rag"]) == 0
    captured = capsys.readouterr()
    assert "so the plan has match: source." in captured.err
    assert re.search(r"recall@5 +1\.0000", captured.out)
    assert yaml.safe_load((project / PLAN).read_text(encoding="utf-8"))["match"] == "source"
    text = (project / RULES).read_text(encoding="utf-8")
    assert yaml.safe_load(text) == {"no_regression": ["recall@5", "contains_answer"], "max_failed": 0.01}
    assert "# No test of rejection_rate: it has 2 samples, and a loss can be significant from 7 on.\n" in text
    assert kept(project / "baselines/baseline.run.db") == 5, "no sample is called again to match otherwise"
    check_works(project)


@pytest.mark.parametrize(
    ("samples", "rules"),
    [
        pytest.param(5, {"max_loss": {"exact_match": 0.2}}, id="too few for a test"),
        pytest.param(6, {"no_regression": ["exact_match"]}, id="enough for one"),
    ],
)
def test_rules_that_the_dataset_can_decide(project: Path, samples: int, rules: dict[str, Any]) -> None:
    lines = (project / "d.jsonl").read_text(encoding="utf-8").splitlines()[:samples]
    (project / "small.jsonl").write_text("\n".join(lines), encoding="utf-8")
    words = ["--dataset", "small.jsonl", "--system", "my_rag.py:my_rag", "--metrics", "exact_match"]
    assert main(["init", *words]) == 0
    assert yaml.safe_load((project / RULES).read_text(encoding="utf-8")) == {**rules, "max_failed": 0.01}
    assert main(["run", "--resume", "baseline", "--out", "baselines"]) == 0
    assert [main(command) for command in commands_of(project)] == [0, 0]


def test_project_of_an_endpoint(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", "not-a-secret-key")
    with chat_server(["ok"], says=lambda body: "a") as server:
        words = ["init", "--dataset", "d.jsonl", "--system", f"openai:{server.url}#m", "--concurrency", "2"]
        assert main([*words, "--api-key-env", "TEST_KEY"]) == 0
        assert len(server.requests) == 5
        plan = yaml.safe_load((project / PLAN).read_text(encoding="utf-8"))
        assert (plan["dataset"], plan["concurrency"], plan["api_key_env"]) == ("d.jsonl", 2, "TEST_KEY")
        check_works(project)
        assert len(server.requests) == 12 + 12 + 12, "baseline with its pilot, the test, the workflow"
    [step] = [step for step in steps_of(project) if "env" in step]
    assert step["env"] == {"TEST_KEY": "${{ secrets.TEST_KEY }}"}
    assert step["run"].startswith("auepora run")
    assert not [
        path for path in project.rglob("*") if path.is_file() and b"not-a-secret-key" in path.read_bytes()
    ]


def test_a_plan_to_start_from(project: Path) -> None:
    start = project / "plans" / "start.config.yaml"
    start.parent.mkdir()
    start.write_text("dataset: ../d.jsonl\nretries: 2\nid: other\nstop_when: clear\n", encoding="utf-8")
    words = ["init", "--config", str(start), "--system", "my_rag.py:my_rag", "--metrics", "token_f1"]
    assert main(words) == 0
    plan = yaml.safe_load((project / PLAN).read_text(encoding="utf-8"))
    # The baseline has its own id, and is never stopped early.
    assert plan == {"dataset": "d.jsonl", "retries": 2, "system": "my_rag.py:my_rag", "metrics": ["token_f1"]}


def test_nothing_is_overwritten(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["init", "--dataset", "d.jsonl", "--system", "my_rag.py:my_rag"]
    (project / RULES).write_text("mine", encoding="utf-8")
    assert main(words) == 4
    assert "gate.yaml exists already" in capsys.readouterr().err
    assert sorted(path.name for path in project.iterdir()) == ["d.jsonl", "gate.yaml", "my_rag.py"]
    assert main([*words, "--force"]) == 0
    assert (project / RULES).read_text(encoding="utf-8") != "mine"
    assert main([*words, "--force"]) == 0


def test_a_system_that_cannot_be_loaded_leaves_nothing_behind(project: Path) -> None:
    assert main(["init", "--dataset", "d.jsonl", "--system", "my_rag.py:no_such"]) == 2
    assert main(["init", "--dataset", "none.jsonl", "--system", "my_rag.py:my_rag"]) == 2
    assert main(["init", "--dataset", "d.jsonl"]) == 2
    assert sorted(path.name for path in project.iterdir() if path.suffix) == ["d.jsonl", "my_rag.py"]


def test_system_without_documents_has_no_metrics_of_documents(project: Path) -> None:
    (project / "plain.py").write_text("def answer(query):\n    return 'a'\n", encoding="utf-8")
    assert main(["init", "--dataset", "demo", "--system", "plain.py:answer"]) == 0
    plan = yaml.safe_load((project / PLAN).read_text(encoding="utf-8"))
    assert "recall@5" not in plan["metrics"]
    rules = yaml.safe_load((project / RULES).read_text(encoding="utf-8"))
    assert rules["no_regression"] == ["contains_answer", "rejection_rate"]


def test_hostile_names_stay_data() -> None:
    plan = {
        "dataset": "a'b\n# c: ${{ secrets.X }}.jsonl",
        "system": 'x"; import os; ".py:s',
        "metrics": ["mrr"],
    }
    files = project_files(plan, ["recall@5"])
    assert yaml.safe_load(files[PLAN]) == plan
    assert "secrets" not in files[WORKFLOW]
    assert "import os" not in files[TEST]
    with pytest.raises(ValueError, match="not the name of an environment variable"):
        project_files(plan, [], ["X }} ${{ github.token"])
