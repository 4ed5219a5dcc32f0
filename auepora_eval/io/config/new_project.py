"""The files of a new project: a plan, the rules of a gate, a test, and a workflow for GitHub Actions."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence

from ...errors import DataError, installed_from
from ...read.plain_yaml import yaml_text

PLAN, RULES = "evaluation.config.yaml", "gate.yaml"
TEST, WORKFLOW = "tests/test_evaluation.py", ".github/workflows/evaluation.yml"
FILES = (PLAN, RULES, TEST, WORKFLOW)
BASELINE, BASELINES = "baseline", "baselines"  # id and folder of the run that changes are compared with

_PLAN = f"""\
# What is evaluated, and how. The keys are the flags of `auepora run`.
#   auepora run --config {PLAN} --id this-change
"""

_RULES = f"""\
# What every change must pass, compared with the run in {BASELINES}/:
#   auepora gate this-change --baseline {BASELINES}/{BASELINE}.results.json --rules {RULES}
"""
_MAX_FAILED = """\
# At most 1% of the calls may fail.
max_failed: 0.01
"""
_NO_REGRESSION = "# None of these metrics may be significantly worse.\n"
_MAX_LOSS = "# There are too few samples for a test: at most 20% of the value may be lost, be it by chance.\n"
_MIN = """\
# Values that must be reached. Choose them once you know what the system can do.
"""

_TEST = f'''\
"""Evaluate the system by {PLAN}, and check it by {RULES}: pytest {TEST}

This calls the system for every sample.
"""

import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]
BASELINE = PROJECT / "{BASELINES}" / "{BASELINE}.results.json"


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """Evaluate the system, and return the path of the stored run."""
    # First: without a baseline, every call would be wasted.
    assert BASELINE.exists(), "Finish the baseline: auepora run --resume {BASELINE} --out {BASELINES}"
    out = tmp_path_factory.mktemp("runs")
    command = ["run", "--config", "{PLAN}", "--id", "this-change", "--out", str(out)]
    done = subprocess.run([sys.executable, "-m", "auepora_eval", *command], cwd=PROJECT)
    # 3: the run is stored, but many calls failed. The gate reports how many.
    assert done.returncode in (0, 3), "auepora run failed, see above"
    return out / "this-change.results.json"


def test_passes_the_gate(run, assert_gate):
    assert_gate(run, BASELINE, rules=PROJECT / "{RULES}")
'''

_WORKFLOW = f"""\
# Evaluate every pull request. The gate fails the build, and writes its table to the summary of the job.
name: evaluation
on:
  pull_request:

permissions:
  contents: read

jobs:
  evaluate:
    runs-on: ubuntu-latest
    timeout-minutes: 60
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
{{install}}\
      - run: auepora run --config {PLAN} --id this-change
{{env}}\
      - run: >-
          auepora gate this-change --baseline {BASELINES}/{BASELINE}.results.json
          --rules {RULES} --github-summary
"""
REQUIREMENTS = "requirements.txt"
_PACKAGES = """\
      # Add the packages that the system itself needs.
"""
_LOCAL = f"""\
      # {REQUIREMENTS} lists what the system needs, and auepora-eval. That was installed from a local folder,
      # which CI does not have: name a wheel in this repository, or a Git address.
"""
_ENV = """\
        env:
"""


def project_files(
    plan: Mapping[str, object],
    guarded: Sequence[str],
    key_names: Sequence[str] = (),
    too_few: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the content of each file by its path.

    `guarded` are the metrics that the gate compares with the baseline; `too_few` says why others are not
    compared. `key_names` are the environment variables with API keys, which the workflow takes from the
    secrets of the repository.
    """
    rules = [_RULES]
    if guarded:
        limits = yaml_text({"min": dict.fromkeys(guarded[:1], 0.8)}).splitlines()
        rules += [_NO_REGRESSION, yaml_text({"no_regression": list(guarded)})]
        rules += [_MIN, *(f"# {line}\n" for line in limits)]
    elif too_few:
        # With no rule of its own, the gate would test every metric.
        rules += [_MAX_LOSS, yaml_text({"max_loss": dict.fromkeys(list(too_few)[-1:], 0.2)})]
    rules += [f"# No test of {name}: {why}.\n" for name, why in (too_few or {}).items()]
    return {
        PLAN: _PLAN + yaml_text(dict(plan)),
        RULES: "".join([*rules, _MAX_FAILED]),
        TEST: _TEST,
        WORKFLOW: _WORKFLOW.format(install=_install(), env=_environment(key_names)),
    }


def _install() -> str:
    """Return the lines of the workflow that install what it runs, from where it exists."""
    source = installed_from()
    command = f"pip install -r {REQUIREMENTS}" if source is None else f"pip install {shlex.quote(source)}"
    return f"{_LOCAL if source is None else _PACKAGES}      - run: {json.dumps(command)}\n"


def _environment(key_names: Sequence[str]) -> str:
    """Return the lines of the workflow that pass API keys on."""
    for name in key_names:
        # The name becomes part of an expression of the workflow.
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise DataError("--api-key-env", f"{name!r:.60} is not the name of an environment variable.")
    lines = [f"          {name}: ${{{{ secrets.{name} }}}}\n" for name in key_names]
    return "".join([_ENV, *lines]) if lines else ""
