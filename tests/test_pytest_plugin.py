"""The pytest plug-in, as a project has it: a run of pytest of its own."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from auepora_eval.store.storage import EvaluationResultsStorage
from tests.decide.gated import a_run

pytestmark = pytest.mark.full

TESTS = """
from pathlib import Path

import pytest

from auepora_eval import EvaluationResultsStorage

HERE = Path(__file__).parent


@pytest.fixture
def worse():
    return EvaluationResultsStorage(HERE / "kept").load_run("worse")


def test_stored_runs_pass(assert_no_regression):
    assert assert_no_regression("same", "old", margin={"hit@5": 0.08}).outcome == "passed"


def test_paths_pass(assert_no_regression):
    assert_no_regression(HERE / "kept" / "same.results.json", str(HERE / "kept" / "old.results.json"))


def test_a_run_in_memory_fails(worse, assert_no_regression):
    assert_no_regression(worse, "old", margin=0.1)


def test_without_a_margin_fails(worse, assert_no_regression):
    assert_no_regression(worse, "old", metrics=["hit@5"])


def test_a_margin_for_some_metrics_fails(worse, assert_no_regression):
    assert_no_regression(worse, "old", metrics=["hit@5"], margin=0.1)


def test_a_wide_margin_passes(worse, assert_no_regression):
    assert_no_regression(worse, "old", margin=0.7)


def test_what_cannot_be_judged_fails(assert_no_regression):
    assert_no_regression("same", "old", metrics=["mrr"])


def test_what_is_unclear_fails(assert_no_regression):
    assert_no_regression("worse", "old", margin=0.5)


def test_what_is_unclear_passes_if_told_so(assert_no_regression):
    assert_no_regression("worse", "old", margin=0.5, if_inconclusive="pass")


def test_the_rules_of_a_file_fail(assert_gate):
    assert_gate("worse", "old", rules="gate.yaml")


def test_a_keyword_is_on_top_and_passes(assert_gate):
    assert_gate("worse", "old", rules="gate.yaml", min={"hit@5": 0.3}, max_loss={"hit@5": 0.9})


def test_an_absolute_bar_passes(assert_gate):
    report = assert_gate("same", min={"hit@5": 0.7}, max_failed=0.0)
    assert report.baseline_id is None


def test_no_rule_fails(assert_gate):
    assert_gate("same")


def test_its_own_baseline_fails(assert_no_regression):
    assert_no_regression("old", "old")


def test_no_baseline_fails(assert_no_regression):
    assert_no_regression("same")


def test_an_unknown_run_fails(assert_gate):
    assert_gate("nobody", min={"hit@5": 0.7})


def test_an_unknown_rule_fails(assert_gate):
    assert_gate("same", minimum={"hit@5": 0.7})


def test_what_is_no_run_fails(assert_no_regression):
    assert_no_regression(42, "old")
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> str:
    project = tmp_path_factory.mktemp("project")
    storage = EvaluationResultsStorage(project / "kept")
    before = [1.0] * 30 + [0.0] * 10
    storage.save_run(a_run("old", {"hit@5": before}))
    storage.save_run(a_run("same", {"hit@5": before}))
    storage.save_run(a_run("worse", {"hit@5": [1.0] * 15 + [0.0] * 25}))
    (project / "gate.yaml").write_text("min: {hit@5: 0.5}\nmax_loss: {hit@5: 0.9}\n", encoding="utf-8")
    (project / "test_it.py").write_text(TESTS, encoding="utf-8")
    settings = 'addopts = "--strict-markers"\nfilterwarnings = ["error"]\nauepora_out = "kept"\n'
    (project / "pyproject.toml").write_text(f"[tool.pytest.ini_options]\n{settings}", encoding="utf-8")
    words = [sys.executable, "-m", "pytest", "-rA", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(words, cwd=project, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def test_each_test_ends_as_its_name_says(said: str) -> None:
    found = re.findall(r"^(PASSED|FAILED) test_it\.py::(\S+)", said, re.MULTILINE)
    outcomes = {name: word for word, name in found}
    assert len(outcomes) == TESTS.count("def test_")
    for name, word in outcomes.items():
        assert ("fails" in name or name.endswith("_fail")) == (word == "FAILED"), name


def test_the_message_is_the_table_of_the_gate(said: str) -> None:
    assert "gate FAILED: worse against old (1 FAIL, 1 pass)" in said
    assert re.search(r"^margin hit@5 +-0\.3750 +\[-0\.\d+, -0\.\d+\] +loss < 0\.1 +FAIL$", said, re.MULTILINE)
    assert "- no_regression mrr: same has no figure 'mrr'" in said
    assert "pytest_plugin.py" not in said
    assert "auepora score --run same --metrics mrr --out kept" in said


def test_a_mistake_is_said_in_the_words_of_a_test(said: str) -> None:
    for words in (
        "The run cannot be checked: there is no rule",
        "assert_no_regression needs a baseline",
        "No run 'nobody'",
        "The run cannot be checked: old is its own baseline. Name another run to compare it with.",
        "Did you mean min?",
        "The run cannot be checked: 42 is not a run, nor the id or path of a stored one.",
    ):
        assert words in said, words
    assert "Traceback" not in said
    assert "--baseline" not in said


def test_the_plug_in_costs_nothing_until_it_is_used() -> None:
    code = (
        "import sys, auepora_eval.pytest_plugin; print(sorted({'numpy', 'scipy', 'yaml'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
