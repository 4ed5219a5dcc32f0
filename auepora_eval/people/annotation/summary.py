"""What the lead of a task sees: progress, agreement, disagreements, and the mean that the labels give."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

import numpy as np

from ...core.display import interval_text, value_text
from ...core.scores import shared_or_none
from ...stats.agreement import Agreement, Statistic, agreement, numbered
from ...stats.sampling import SampledMean, sampled_mean
from .export import Labels
from .saved import SETTLED, PersonLabels, labels_of_all, read_labels
from .task import Item, Task, queue_of, read_task


@dataclass(frozen=True)
class Progress:
    """How far a person is. `seconds` is the median time per label; None if nothing was timed."""

    person: str
    labelled: int
    not_sure: int
    skipped: int
    total: int
    seconds: float | None

    @property
    def is_finished(self) -> bool:
        """Whether every item of the queue has a label, or a "not sure"."""
        return self.labelled + self.not_sure >= self.total


@dataclass(frozen=True)
class Dispute:
    """An item on which people differ: what each said, and what the lead decided."""

    item: Item
    said: dict[str, str]
    notes: dict[str, str]
    decision: str | None


@dataclass(frozen=True)
class TaskSummary:
    """A task so far."""

    task: Task
    people: list[Progress]
    agreement: dict[Statistic, Agreement]  # empty if no item was judged by two people
    disputes: list[Dispute]
    mean: SampledMean | None  # of all items that the task's were chosen from

    @property
    def labels(self) -> int:
        """The number of labels of all people, without "not sure"."""
        return sum(one.labelled for one in self.people)


def task_summary(folder: Path) -> TaskSummary:
    """Return the state of a task, by its files."""
    task, items = read_task(folder)
    people = labels_of_all(folder, task)
    return TaskSummary(
        task,
        [progress_of(name, set(queue_of(task, items, name)), people[name]) for name in task.people],
        _agreement(task, items, people),
        _disputes(folder, task, items, people),
        _mean(task, items, people),
    )


def mean_text(summary: TaskSummary) -> str:
    """Return what the labels say about all items that the task's were chosen from; "" if they do not."""
    mean, task = summary.mean, summary.task
    if mean is None:
        return ""
    value = f"{value_text(mean.value)} {interval_text((mean.low, mean.high))}"
    if task.kind == "pairs":
        first, second = task.runs
        return f"{first} wins {value} of all {task.out_of} pairs against {second}; a tie counts one half."
    best = max(task.labels, key=lambda label: label.value).name
    if {label.value for label in task.labels} == {0.0, 1.0}:
        return f"Share of {best!r} in all {task.out_of} {task.kind}: {value}."
    return f"Mean label of all {task.out_of} {task.kind}, from 0 to 1 ({best!r}): {value}."


def progress_of(person: str, queue: Collection[str], labels: PersonLabels) -> Progress:
    """Return how far one person is with their queue."""
    # A file that was copied from another folder may have labels of items that are not in this queue.
    said = [each for item, each in labels.said.items() if item in queue]
    times = [each.seconds for each in said if each.seconds is not None]
    not_sure = sum(each.label is None for each in said)
    skipped = sum(item in queue for item in labels.skipped)
    seconds = median(times) if times else None
    return Progress(person, len(said) - not_sure, not_sure, skipped, len(queue), seconds)


def _names(item: Item, people: Labels) -> dict[str, str]:
    """Return the label that each person gave an item."""
    said = ((person, labels.said.get(item.item_id)) for person, labels in people.items())
    return {person: each.label for person, each in said if each is not None and each.label is not None}


def _agreement(task: Task, items: Sequence[Item], people: Labels) -> dict[Statistic, Agreement]:
    rows = [(item, names) for item in items if len(names := _names(item, people)) > 1]
    raters = [person for person in people if any(person in names for _, names in rows)]
    if not rows:
        return {}
    order = [label.name for label in task.labels]
    table = numbered([[names.get(person) for person in raters] for _, names in rows], order)[0]
    clusters = shared_or_none([item.sample_id for item, _ in rows])
    statistics: list[Statistic] = ["cohen_kappa", "krippendorff_alpha_nominal"]
    # Two labels have no distances to weigh, and the tie of pairs is the third label but lies in the middle.
    if len(order) > 2 and task.kind != "pairs":
        statistics.append("krippendorff_alpha_ordinal")
    return {name: agreement(table, name, clusters=clusters) for name in statistics}


def _disputes(folder: Path, task: Task, items: Sequence[Item], people: Labels) -> list[Dispute]:
    decisions = read_labels(folder, task, SETTLED).said
    disputes = []
    for item in items:
        names = _names(item, people)
        if len(set(names.values())) < 2:
            continue
        notes = {name: labels.notes.get(item.item_id, "") for name, labels in people.items()}
        decision = decisions.get(item.item_id)
        disputes.append(Dispute(item, names, notes, None if decision is None else decision.label))
    return disputes


def _mean(task: Task, items: Sequence[Item], people: Labels) -> SampledMean | None:
    """Return the mean value of all items that the task's items were chosen from; None if that is unknown."""
    if task.chosen.startswith("disagree:"):  # the extremes represent only themselves
        return None
    values = {label.name: label.value for label in task.labels}
    rows = [
        (fmean(values[name] for name in names.values()), item)
        for item in items
        if (names := {who: name for who, name in _names(item, people).items() if name in values})
    ]
    if not rows:
        return None
    # Items without a label are taken to be like the others: the chances shrink by their share.
    share = len(rows) / len(items)
    scores = [item.scores.get(task.scores_of, 0.5) for _, item in rows] if task.scores_of else None
    return sampled_mean(
        np.array([value for value, _ in rows]),
        np.array([item.chance * share for _, item in rows]),
        task.out_of,
        scores=None if scores is None else np.array(scores),
        mean_score=task.mean_score,
    )
