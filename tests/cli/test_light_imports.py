"""Commands that read stored runs do not wait for packages that they do not need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import a_dataset, a_sample

pytestmark = pytest.mark.full

SCRIPT = """
import sys
from auepora_eval.cli.main import main
main(sys.argv[2:])
sys.exit(sys.argv[1] in sys.modules)
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    samples = [a_sample(str(n), relevant="ab", reference="x") for n in range(30)]
    for name in ("a", "b"):
        found = {"retrieved": [name], "answer": "x" if name == "a" else "y", "timings": {"end_to_end": 1.0}}
        evaluator = AueporaEvaluator(
            lambda query, found=found: found, EvaluationPlan("recall@1,mrr,bleu,exact_match,latency@0.5")
        )
        evaluator.run(a_dataset(*samples), evaluation_id=name, storage=EvaluationResultsStorage(folder))
    return folder


@pytest.mark.parametrize("words", ["compare a b", "gate b --baseline a", "power a"])
def test_command_does_not_import_scipy_stats(runs: Path, words: str) -> None:
    command = [sys.executable, "-c", SCRIPT, "scipy.stats", *words.split(), "--out", str(runs)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout
