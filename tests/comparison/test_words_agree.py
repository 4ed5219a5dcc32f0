"""Words beside a verdict say what the verdict says, and why it is not another."""

from __future__ import annotations

from pathlib import Path

import pytest

from auepora_eval.decide.figures import GatedRun
from auepora_eval.decide.gate import gate_run
from auepora_eval.errors import PlanError
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.decide.gated import a_run


def test_a_run_is_not_its_own_baseline(tmp_path: Path) -> None:
    storage = EvaluationResultsStorage(tmp_path)
    run, equal = a_run("r", {"hit@5": [1.0] * 40}), a_run("r", {"hit@5": [1.0] * 40})
    storage.save_run(run)
    stored = [GatedRun.stored(storage, name) for name in ("r", str(tmp_path / "r.results.json"))]
    for one, other in ((run, run), (GatedRun.of(run), run), (stored[0], stored[1])):
        with pytest.raises(PlanError, match="r is its own baseline"):
            gate_run(one, baseline=other)
    assert gate_run(equal, baseline=run, resamples=200).outcome == "passed"
