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
    """How the runs' datasets differ, and which of them stopped early; PlanError unless that is allowed."""
    early = [stopped for run in runs if len(runs) > 1 and (stopped := _stopped_early(run))]
    if early and not allowed:
        raise PlanError(f"{early[0]}. Run all samples to compare it. {_ANYWAY}")
    others = {
        f"the runs are on different data: {_data(runs[0])} and {_data(run)}"
        for run in runs[1:]
        if run.dataset_fingerprint != runs[0].dataset_fingerprint
    }
    if others and not allowed:
        raise PlanError(f"{sorted(others)[0]}. Use one dataset. {_ANYWAY}")
    return [*early, *sorted(others)]


def _stopped_early(run: EvaluationRun) -> str:
    """What is wrong with comparing a run that stopped when it was clear; "" for any other run."""
    if run.stopping is None or not run.stopping.stopped_early:
        return ""
    used, total = run.stopping.samples_used, run.stopping.samples_in_dataset
    return (
        f"{run.evaluation_id} stopped after {used} of {total} samples, when its verdict was clear: a test "
        "for a fixed number of samples would find too much in it (its own verdict holds)"
    )


def stopping_notes(*runs: EvaluationRun) -> list[str]:
    """Which runs could have stopped early and did not: their tests are no longer quite those of one look."""
    return [
        f"{run.evaluation_id} was to stop when clear and went on to the last sample: looking at it again is "
        f"a second look, and the chance of a false alarm is that of both ({run.stopping.alpha:g} more)"
        for run in runs
        if run.stopping is not None and not run.stopping.stopped_early
    ]


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
