"""Checks before runs are compared. Differences are named; they are passed over only on request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..core.types import EvaluationRun, MetricResult
from ..errors import PlanError

_ANYWAY = "--allow-mismatch compares them all the same, and the result says so."

# How the reasons of `signature_mismatch` start.
NOT_ALIKE = ("it has another judge in each run", "it was not computed alike")


def data_mismatches(runs: Sequence[EvaluationRun], *, allowed: bool) -> list[str]:
    """How the runs' datasets differ, and which of them stopped early; PlanError unless that is allowed."""
    # One run alone may have stopped early: `power` uses only how much its scores vary.
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


def signature_mismatch(a: MetricResult, b: MetricResult) -> tuple[str, str]:
    """How two results of a metric were computed differently, and what to do; "" if they were not."""
    ours, theirs = a.signature, b.signature
    if ours == theirs:
        return "", ""
    judges = [judge_text(signature) for signature in (ours, theirs)]
    if all(judges) and judges[0] != judges[1]:
        return f"{NOT_ALIKE[0]}: {judges[0]} and {judges[1]}", "judge both by the same one"
    names = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    sides = (", ".join(f"{name} {side.get(name, '-')}" for name in names) for side in (ours, theirs))
    return f"{NOT_ALIKE[1]}: {' and '.join(sides)}", "score one again"


def judge_text(signature: Mapping[str, object]) -> str:
    """Return the identities of a judge, with the models as their servers report them; "" without a judge."""
    parts = [signature.get(name) for name in ("judge", "models")]
    return " as ".join(", ".join(map(str, part)) for part in parts if isinstance(part, list) and part)


def value_notes(names: Iterable[str], *runs: EvaluationRun) -> list[str]:
    """What the values of these metrics do not show: ids that never match, values by construction."""
    wanted = set(names)
    # What is known of a judge is said beside its metrics.
    results = [r for run in runs for r in run.results if r.name in wanted and "judge" not in r.details]
    return list(dict.fromkeys(note.removesuffix(".") for result in results for note in result.notes))


def snapshot_notes(a: EvaluationRun, b: EvaluationRun) -> list[str]:
    """The samples are the same; the builds that they come from need not be."""
    if not (a.snapshot and b.snapshot) or a.snapshot == b.snapshot:
        return []
    versions = [
        f"{run.snapshot.get('version', '?')} (manifest {run.snapshot.get('manifest_sha256', '?')[:12]})"
        for run in (a, b)
    ]
    equal = ", with equal samples" if a.dataset_fingerprint == b.dataset_fingerprint else ""
    return [f"the runs are on different snapshots of the dataset, {versions[0]} and {versions[1]}{equal}"]


def _data(run: EvaluationRun) -> str:
    version = run.snapshot.get("version")
    name = f"{run.dataset_name} {version}" if version else run.dataset_name
    return f"{name} ({run.dataset_fingerprint[:12]})"


def failed_calls(name: str, counts: Sequence[tuple[int, int, str]]) -> str:
    """ "10 of 60 calls of new failed", by (failed, calls, metric) of each metric; nothing if none did."""
    most, calls, metric = max(counts, key=lambda each: each[0], default=(0, 0, ""))
    if not most:
        return ""
    # A call that fails, fails for every metric; a judge fails for its own.
    if all(count for count, _, _ in counts):
        # A metric that does not concern all samples says nothing of the other calls.
        what = "calls" if len({total for _, total, _ in counts}) == 1 else "scores"
        return f"{most} of {calls} {what} of {name} failed"
    return f"{most} of {calls} scores of {name} failed ({metric})"


def failed_by_metric(result: MetricResult) -> int:
    """Return how many answers the metric itself could not score: that shows nothing about the system."""
    count = result.details.get("num_failed_by_metric")
    return count if isinstance(count, int) else 0


def left_unscored(metric: str, counts: Iterable[tuple[int, int, str]]) -> str:
    """ "recall@5 could not score 13 of 25 answers of new", by (unmeasured, calls, run)."""
    answers = " and ".join(f"{count} of {calls} answers of {name}" for count, calls, name in counts if count)
    return f"{metric} could not score {answers}; they are left out"
