"""May these runs be put side by side? What differs is named; it is gone past only when asked to."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.types import EvaluationRun, MetricResult
from ..errors import PlanError

_ANYWAY = "To go on all the same, with this on record, allow the mismatch (--allow-mismatch)."


def refuse_other_data(runs: Sequence[EvaluationRun]) -> None:
    """Runs can be put side by side only if they are on the same samples."""
    data_mismatches(runs, allowed=False)


def data_mismatches(runs: Sequence[EvaluationRun], *, allowed: bool) -> list[str]:
    """How the runs' datasets differ; PlanError if they do and that is not allowed."""
    others = {
        f"the runs are on different data: {_data(runs[0])} and {_data(run)}"
        for run in runs[1:]
        if run.dataset_fingerprint != runs[0].dataset_fingerprint
    }
    if others and not allowed:
        raise PlanError(f"{sorted(others)[0]}. Use one dataset. {_ANYWAY}")
    return sorted(others)


def signature_mismatch(a: MetricResult, b: MetricResult, *, allowed: bool) -> str:
    """How two results of a metric were computed differently; "" if they were not."""
    ours, theirs = a.details.get("signature"), b.details.get("signature")
    if ours == theirs:
        return ""
    what = f"{a.name} was not computed alike in the two runs: {ours} and {theirs}"
    if not allowed:
        raise PlanError(f"{what}. Score one again. {_ANYWAY}")
    return what


def snapshot_notes(a: EvaluationRun, b: EvaluationRun) -> list[str]:
    """The samples are the same; the builds that they come from need not be."""
    if not (a.snapshot and b.snapshot) or a.snapshot == b.snapshot:
        return []
    told = [
        f"{run.snapshot.get('version', '?')} (manifest {run.snapshot.get('manifest_sha256', '?')[:12]})"
        for run in (a, b)
    ]
    equal = ", with equal samples" if a.dataset_fingerprint == b.dataset_fingerprint else ""
    return [f"the runs are on different snapshots of the dataset, {told[0]} and {told[1]}{equal}"]


def _data(run: EvaluationRun) -> str:
    version = run.snapshot.get("version")
    name = f"{run.dataset_name} {version}" if version else run.dataset_name
    return f"{name} ({run.dataset_fingerprint[:12]})"
