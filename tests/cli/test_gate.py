"""auepora gate: exit codes, output and files for CI systems."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from auepora_eval.cli.main import main
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.commands import ran
from tests.decide.gated import a_run

Run = Callable[..., tuple[str, str]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A baseline that hits 30 of 40; one that hits as many, one that hits 15, one that failed on 4."""
    folder = tmp_path_factory.mktemp("runs")
    storage = EvaluationResultsStorage(folder)
    before = [1.0] * 30 + [0.0] * 10
    storage.save_run(a_run("old", {"hit@5": before}))
    storage.save_run(a_run("same", {"hit@5": before}))
    storage.save_run(a_run("worse", {"hit@5": [1.0] * 15 + [0.0] * 25}))
    storage.save_run(a_run("shaky", {"hit@5": [None] * 4 + [1.0] * 26 + [0.0] * 10}, failed=4))
    return folder


@pytest.fixture
def gate(runs: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: str, code: int = 0) -> tuple[str, str]:
        capsys.readouterr()
        assert main(["gate", *words, "--out", str(runs), "--resamples", "500"]) == code
        shown = capsys.readouterr()
        assert "Traceback" not in shown.err
        return shown.out, shown.err

    return run


@pytest.mark.parametrize(
    ("words", "rules", "code"),
    [
        (("same",), "min: {hit@5: 0.75}\non: bound", 1),
        (("worse", "--baseline", "old"), "max_loss: {hit@5: 0.4}", 1),
        (("shaky", "--baseline", "old", "--no-regression", "hit@5"), "max_count_drop: 0.05", 1),
    ],
)
def test_rules_that_are_in_a_file_only(
    gate: Run, words: tuple[str, ...], rules: str, code: int, tmp_path: Path
) -> None:
    (tmp_path / "gate.yaml").write_text(rules, encoding="utf-8")
    out, _ = gate(*words, "--rules", str(tmp_path / "gate.yaml"), code=code)
    assert out.splitlines()[-1].startswith("gate ")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("same",), "there is no rule"),
        (("nobody", "--min", "hit@5=1"), "No run 'nobody'"),
        (("same", "--margin", "0.1"), "needs a baseline: --baseline RUN"),
        (("same", "--min", "0.8"), "is not NAME=NUMBER"),
        (("same", "--min", "hit@5=many"), "'hit@5=many' has no number"),
        (("same", "--baseline", "old", "--margin", "-1"), "the flags: margin"),
        (("same", "--max-failed", "2"), "is not a number from 0 to 1"),
        (("same", "--rules", "/nowhere/gate.yaml"), "gate.yaml"),
    ],
)
def test_impossible_requests(gate: Run, words: tuple[str, ...], says: str) -> None:
    assert says in gate(*words, code=2)[1]


def test_rules_of_a_file_with_flags_on_top(gate: Run, tmp_path: Path) -> None:
    rules = tmp_path / "gate.yaml"
    rules.write_text("min: {hit@5: 0.9}\nalpha: 0.01\nif_inconclusive: pass\n", encoding="utf-8")
    gate("same", "--rules", str(rules), code=1)
    document = json.loads(gate("same", "--rules", str(rules), "--min", "hit@5=0.7", "--json")[0])
    assert (document["alpha"], document["if_inconclusive"], len(document["verdicts"])) == (0.01, "pass", 1)
    rules.write_text("minimum: {hit@5: 0.9}\n", encoding="utf-8")
    assert "Did you mean" in gate("same", "--rules", str(rules), code=2)[1]


def test_limits_on_stored_resources(gate: Run, runs: Path) -> None:
    run = a_run("counted", {"hit@5": [1.0, 0.0]}, resource_usage={"memory_mb": {"peak": 120.0}})
    for place, output in enumerate(run.outputs):
        output.extra |= {"input_tokens": 40, "output_tokens": 10}
        output.timings["end_to_end"] = 0.1 + place
    EvaluationResultsStorage(runs).save_run(run)
    limits = {"total_tokens": 100, "memory_mb.peak": 119, "latency_stats.max": 1101, "total_requests": 1}
    words = [word for name, limit in limits.items() for word in ("--max", f"{name}={limit}")]
    verdicts = json.loads(gate("counted", *words, "--json", code=1)[0])["verdicts"]
    assert [one["outcome"] for one in verdicts] == ["passed", "failed", "passed", "failed"]


def test_a_ci_system_gets_junit_and_a_summary(
    gate: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, summary = tmp_path / "gate.xml", tmp_path / "summary.md"
    summary.write_text("# before\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    gate("worse", "--baseline", "old", "--junit", str(path), "--github-summary", code=1)
    suite = ElementTree.parse(path).getroot()  # noqa: S314 - our own
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert [case[0].tag for case in suite] == ["failure", "system-out"]
    assert summary.read_text(encoding="utf-8").startswith("# before\n### gate FAILED")
    gate("same", "--baseline", "old", "--junit", str(path), code=4)
    gate("same", "--baseline", "old", "--junit", str(path), "--force")
    assert ElementTree.parse(path).getroot().get("failures") == "0"  # noqa: S314
    monkeypatch.delenv("GITHUB_STEP_SUMMARY")
    assert "GITHUB_STEP_SUMMARY" in gate("same", "--baseline", "old", "--github-summary", code=2)[1]


def test_a_hostile_run_gives_a_ci_system_no_commands(gate: Run, runs: Path) -> None:
    text = (runs / "worse.results.json").read_text(encoding="utf-8")
    hostile = text.replace('"hit@5"', json.dumps("::error::x\n::stop-commands::y ##[add-path]z"))
    copy = runs.parent / "hostile.results.json"
    copy.write_text(hostile.replace('"worse"', json.dumps("\n::add-mask::w")), encoding="utf-8")
    name = "::error::x\n::stop-commands::y ##[add-path]z"
    shown = [*gate(str(copy), "--min", "hit@5=0.5", code=3), *gate(str(copy), "--min", f"{name}=0.9", code=1)]
    shown += gate(str(copy), "--min", f"{name}=0.9", "--markdown", code=1)
    for line in "\n".join(shown).splitlines():
        assert not line.lstrip().startswith("::")


@pytest.mark.parametrize("by_path", [False, True])
def test_proposed_commands_work(
    runs: Path, gate: Run, capsys: pytest.CaptureFixture[str], by_path: bool
) -> None:
    """They are printed for a reader who types them as they stand, wherever the runs are kept."""
    worse, old = [str(runs / f"{name}.results.json") if by_path else name for name in ("worse", "old")]
    printed, _ = gate(worse, "--baseline", old, "--no-regression", "hit@5", "--json", code=1)
    proposed = next(rule["fix"] for rule in json.loads(printed)["verdicts"] if rule["fix"])
    name, *words = shlex.split(proposed.removeprefix("See the regressions: "))
    assert name == "auepora"
    assert main([*words, "--resamples", "500"]) == 0
    assert "hit@5" in capsys.readouterr().out
    printed, _ = gate(worse, "--min", "hit@5=0.99", "--json", code=1)
    _, *words = shlex.split(json.loads(printed)["verdicts"][0]["fix"].partition(": ")[2])
    assert main(words) == 0, "the folder of the runs is in it"
    table, _ = gate(worse, "--min", "mrr=0.1", code=3)
    assert f"auepora score --run {worse} --metrics mrr --out {runs}" in " ".join(table.split())


def test_the_command_for_failed_calls_calls_them_again(tmp_path: Path) -> None:
    """The answers of a server that was down: the command that a gate prints is all that it takes."""
    (tmp_path / "down").touch()
    (tmp_path / "rag.py").write_text(
        "from pathlib import Path\n"
        "def rag(query):\n"
        "    if query == 'q 1' and Path('down').exists():\n"
        "        raise ConnectionError('no server')\n"
        "    return 'yes'\n"
    )
    rows = [{"sample_id": str(n), "query": f"q {n}", "reference_answer": "yes"} for n in range(4)]
    (tmp_path / "q.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    made = (
        "run",
        "--dataset",
        "q.jsonl",
        "--system",
        "rag.py:rag",
        "--metrics",
        "exact_match",
        "--id",
        "mine",
    )
    assert ran(tmp_path, *made).returncode == 3
    rule = ("gate", "mine", "--min", "exact_match=0.9")
    stopped = ran(tmp_path, *rule)
    assert stopped.returncode == 3
    command = " ".join(stopped.stdout.split()).split("Call the failed samples again (auepora ")[1]
    (tmp_path / "down").unlink()
    assert ran(tmp_path, *shlex.split(command.split("), then")[0])).returncode == 0
    assert ran(tmp_path, *rule).returncode == 0
