"""The recipe of docs/how-to/observe.md, run against the real package where it is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.cli.main import main
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.journeys.test_frameworks import OFFLINE
from tests.test_docs import blocks

pytestmark = pytest.mark.full

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "observe.md"
READ = """
import json, sys, mlflow
tracked = mlflow.get_run(sys.argv[1])
files = [file.path for file in mlflow.MlflowClient().list_artifacts(sys.argv[1])]
print(json.dumps({"metrics": tracked.data.metrics, "params": tracked.data.params, "files": files}))
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    system = "auepora_eval.demo.systems:bm25"
    assert main(["run", "--dataset", "demo", "--system", system, "--id", "mine", "--limit", "20"]) == 0
    [recipe] = [block for block in blocks(PAGE) if block.needs == "mlflow"]
    (tmp_path / "log_to_mlflow.py").write_text(recipe.body, encoding="utf-8")
    return tmp_path


def python(project: Path, *words: str) -> str:
    """Run Python without a network; fail if it tries to use one."""
    settings = {
        "MLFLOW_TRACKING_URI": (project / "mlruns").as_uri(),
        "MLFLOW_ALLOW_FILE_STORE": "true",  # a database would need further packages
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE, *words],
        env={**os.environ, **settings},
        cwd=project,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "NETWORK" not in done.stderr
    return done.stdout.splitlines()[-1]


def test_recipe_logs_values_intervals_and_coverage(project: Path) -> None:
    pytest.importorskip("mlflow.version", reason="mlflow is not installed")
    path = "data/evaluation/results/mine.results.json"
    run_id = python(project, "log_to_mlflow.py", path)
    (project / "read.py").write_text(READ, encoding="utf-8")
    tracked: dict[str, Any] = json.loads(python(project, "read.py", run_id))
    run = EvaluationResultsStorage().load_run("mine")
    recall = run["recall@5"]
    assert recall.interval is not None
    assert tracked["metrics"]["recall_5"] == recall.value
    assert [tracked["metrics"][f"recall_5.{end}"] for end in ("low", "high")] == list(recall.interval)
    assert tracked["metrics"]["recall_5.scored"] == recall.coverage.scored
    for result in run.results:
        name = result.name.replace("@", "_").replace("[", "_").rstrip("]")
        assert (name in tracked["metrics"]) == (result.value == result.value), name
    assert tracked["params"]["dataset_sha256"] == run.dataset_fingerprint
    assert sorted(tracked["files"]) == ["mine.results.json", "samples.json"]
