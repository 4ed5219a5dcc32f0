"""Runs in memory as one file."""

from __future__ import annotations

from pathlib import Path

from auepora_eval.comparison.compare import compare_runs
from auepora_eval.comparison.ranking import rank_runs
from auepora_eval.core.types import EvaluationRun
from auepora_eval.pages.one_file import one_file
from auepora_eval.pages.workspace import Workspace
from auepora_eval.store.storage import EvaluationResultsStorage


def file_of(folder: Path, *runs: EvaluationRun, margin: float | None = None, resamples: int = 100) -> str:
    """Store the runs and return their pages in one file."""
    storage = EvaluationResultsStorage(folder)
    for run in runs:
        storage.save_run(run, force=True)
    workspace = Workspace.named(folder, [run.evaluation_id for run in runs])
    ids = [run.evaluation_id for run in runs]
    if len(runs) == 1:
        return one_file(workspace, ids)
    if len(runs) == 2:
        fields = list(workspace.index(ids[1]).fields)
        comparison = compare_runs(*runs, margin=margin, resamples=resamples, by=fields)
        return one_file(workspace, ids, comparison=comparison)
    return one_file(workspace, ids, ranking=rank_runs(runs, resamples=resamples))
