"""Create an annotation task from stored runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from ...core.types import EvaluationRun
from ...errors import DataError
from .choosing import chosen
from .items import LeftOut, items_of
from .task import DEFAULTS, Item, Kind, Task, check_people, create_task, labels_of

COUNT, CHOICE, PERSON = 50, "random", "me"


@dataclass(frozen=True)
class Wanted:
    """What a task is to be; None means the usual."""

    kind: Kind | None = None
    count: int | None = None
    choose: str | None = None
    question: str | None = None
    labels: Sequence[str] | None = None
    people: Sequence[str] | None = None
    overlap: float | None = None
    seed: int | None = None


def kind_for(wanted: Wanted, runs: Sequence[object]) -> Kind:
    """Return what is judged: what was asked for, or pairs of two runs, or the answers of one."""
    return wanted.kind or ("pairs" if len(runs) == 2 else "answers")


def task_of_runs(folder: Path, runs: Sequence[EvaluationRun], wanted: Wanted) -> tuple[Task, LeftOut]:
    """Write a new task on the answers of runs; return it, and how many answers cannot be judged."""
    datasets = {run.dataset_fingerprint for run in runs}
    if len(datasets) > 1:
        raise DataError("annotate", "the runs are of different datasets.", fix="Name runs of one dataset.")
    kind = kind_for(wanted, runs)
    choice, seed = wanted.choose or CHOICE, wanted.seed or 0
    # "The documents do not say." has nothing that documents could support: judges leave it out as well.
    about_support = kind in ("answers", "claims") and wanted.question is None
    every, left_out = items_of(kind, runs, without_declined=about_support)
    items = chosen(every, choice, wanted.count or COUNT, seed=seed)
    metric = choice.removeprefix("narrow:") if choice.startswith("narrow:") else ""
    task = Task(
        kind=kind,
        question=wanted.question or DEFAULTS[kind][0],
        labels=labels_of(kind, wanted.labels or ()),
        runs=tuple(run.evaluation_id for run in runs),
        dataset=runs[0].dataset_name,
        people=check_people(wanted.people or [PERSON]),
        overlap=1.0 if wanted.overlap is None else wanted.overlap,
        seed=seed,
        chosen=choice,
        out_of=len(every),
        scores_of=metric,
        mean_score=_mean_score(every, metric) if metric else None,
    )
    create_task(folder, task, items)
    return task, left_out


def _mean_score(items: Sequence[Item], metric: str) -> float:
    # As in the choice: what the metric could not score is as open as 0.5.
    return fmean(item.scores.get(metric, 0.5) for item in items)


def differences(task: Task, items: Sequence[Item], wanted: Wanted) -> list[str]:
    """Return the settings in which a task is not what is wanted; what is not asked for may be anything."""
    own = {
        "kind": task.kind,
        "count": len(items),
        "choose": task.chosen,
        "question": task.question,
        "labels": [label.name for label in task.labels],
        "people": list(task.people),
        "overlap": task.overlap,
        "seed": task.seed,
    }
    asked = {name: value for name, value in vars(wanted).items() if value is not None}
    if wanted.count is not None:
        asked["count"] = min(wanted.count, task.out_of)
    return [name for name, value in asked.items() if value != own[name]]
