"""Labels as other commands read them: `auepora judge-audit`, `judge --calibrate`, `agree`.

A label file (JSONL) has a line per item: {"claim", "evidence", "label": {person: number}}, the scores of the
run's metrics by their names, and `sample_id` where a line is about one sample of one run. "Not sure" is not a
label. A `.gt.json` has an annotation per person and item. A `.labels.json` is a label set of the answers of
one run, which `auepora labels score` reads.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

from ..core.dataset import InMemoryDataset
from ..core.display import interval_text, value_text
from ..core.scores import shared_or_none
from ..core.types import STORED_OUTPUT, TRUE_LABEL, EvaluationSample
from ..errors import DataError
from ..io.ground_truth import Annotation, save_ground_truth
from ..io.jsonl import save_records
from ..io.label_set import save_label_set
from ..stats.agreement import Agreement, Statistic, agreement, numbered
from ..stats.sampling import SampledMean, sampled_mean
from .items import metric_names
from .labels import SETTLED, PersonLabels, labels_of_all, read_labels
from .task import Item, Kind, Task, queue_of, read_task

Record = dict[str, Any]
Labels = Mapping[str, PersonLabels]  # by person
# The aspect of a rating in a .gt.json.
ASPECTS: dict[Kind, str] = {
    "answers": "answer",
    "claims": "claim",
    "documents": "relevance",
    "pairs": "preference",
}
LABELS_FILE, GROUND_TRUTH = "labels.jsonl", "labels.gt.json"


def export(folder: Path, path: Path, *, settled: bool = False, force: bool = False) -> int:
    """Write the labels of a task to a .gt.json or a .jsonl, by its name; return the number of records.

    With `settled` each item has one label: the decision of the lead, or what most people said.
    """
    task, items = read_task(folder)
    people = labels_of_all(folder, task)
    if path.name.removesuffix(".gz").endswith((".gt.json", ".gt.yaml", ".gt.yml")):
        annotations = list(ground_truth(task, items, people))
        _check_some(len(annotations), folder)
        save_ground_truth(annotations, path, dataset_id=task.dataset, force=force)
        return len(annotations)
    if path.name.removesuffix(".gz").endswith((".labels.json", ".labels.yaml", ".labels.yml")):
        samples = list(label_set_samples(task, items, settled_labels(folder, task, items, people)))
        _check_some(len(samples), folder)
        save_label_set(InMemoryDataset(task.dataset, samples), path, force=force)
        return len(samples)
    if not path.name.removesuffix(".gz").endswith(".jsonl"):
        what = f"{path.name!r:.80} is not a .jsonl, .gt.json or .labels.json."
        raise DataError("--export", what, fix="Rename it.")
    decided = settled_labels(folder, task, items, people) if settled else None
    records = list(label_records(task, items, people, decided))
    _check_some(len(records), folder)
    save_records(records, path, force=force)
    return len(records)


def _check_some(count: int, folder: Path) -> None:
    if not count:
        raise DataError(str(folder), "there are no labels yet.", fix=f"Label some: auepora annotate {folder}")


def label_records(
    task: Task, items: Sequence[Item], people: Labels, settled: Mapping[str, str] | None = None
) -> Iterator[Record]:
    """Yield a line per item that has a label; with `settled` the label is a number, not one per person."""
    values = {label.name: label.value for label in task.labels}
    is_binary = set(values.values()) == {0.0, 1.0}
    number = int if is_binary else float
    # The labels of a run's own samples: `judge --calibrate` matches them by sample_id.
    metrics = metric_names(items)
    own = "sample_id" if _is_of_samples(task) else "query_id"
    for item in items:
        label: Any
        if settled is not None:
            label = number(values[settled[item.item_id]]) if item.item_id in settled else None
        else:
            label = {
                person: number(values[name])
                for person, labels in people.items()
                if (name := _label_of(labels, item.item_id)) in values
            }
        if label is None or label == {}:
            continue
        yield {
            own: item.sample_id,
            **_texts(task.kind, item),
            "label": label,
            "runs": list(item.runs),
            "chance": item.chance,
            **_notes(people, item.item_id),
            **{name: item.scores.get(name) for name in metrics},  # null: the metric could not score it
        }


def label_set_samples(
    task: Task, items: Sequence[Item], settled: Mapping[str, str]
) -> Iterator[EvaluationSample]:
    """Yield the labelled answers of one run as the samples of a label set."""
    if not _is_of_samples(task):
        what = "a label set has one answer per question, and these are of several runs, or are not answers."
        raise DataError("--export", what, fix="Label the answers of one run.")
    for item in items:
        if item.item_id in settled:
            stored = {"answer": item.text, "passages": [each.text for each in item.documents]}
            yield EvaluationSample(
                item.sample_id,
                item.query,
                labels={**item.slices, TRUE_LABEL: settled[item.item_id]},
                metadata={STORED_OUTPUT: stored},
            )


def _label_of(labels: PersonLabels, item_id: str) -> str:
    said = labels.said.get(item_id)
    return "" if said is None or said.label is None else said.label


def _texts(kind: Kind, item: Item) -> Record:
    """Return what a judge compares: a claim and its evidence."""
    if kind == "pairs":
        return {"query": item.query, "first": item.text, "second": item.second}
    if kind == "documents":
        return {"claim": item.query, "evidence": [item.text], "doc_id": item.doc_id}
    return {"query": item.query, "claim": item.text, "evidence": [each.text for each in item.documents]}


def _notes(people: Labels, item_id: str) -> Record:
    notes = {person: labels.notes[item_id] for person, labels in people.items() if labels.notes.get(item_id)}
    return {"notes": notes} if notes else {}


def ground_truth(task: Task, items: Sequence[Item], people: Labels) -> Iterator[Annotation]:
    """Yield the annotations of a .gt.json, by person.

    It identifies what was judged by its text. Where two runs gave the same answer to a question, a person has
    one annotation of it, the first.
    """
    for person, labels in people.items():
        seen: set[tuple[str, str]] = set()
        for item in items:
            text = f"{item.text}\n\n---\n\n{item.second}" if task.kind == "pairs" else item.text
            label = task.label(_label_of(labels, item.item_id))
            if label is None or (item.sample_id, text) in seen:
                continue
            seen.add((item.sample_id, text))
            annotation: Annotation = {
                "annotation_id": f"{person}_{item.item_id}",
                "query_id": item.sample_id,
                "annotator_id": person,
                "answer_text": text,
                "overall_score": label.value,
                "aspect_ratings": {ASPECTS[task.kind]: label.name},
                "metadata": {"item": item.item_id, "runs": list(item.runs)},
            }
            said = labels.said[item.item_id]
            if said.at:
                annotation["timestamp"] = said.at
            if said.seconds is not None:
                annotation["metadata"]["seconds"] = said.seconds
            if note := labels.notes.get(item.item_id):
                annotation["metadata"]["note"] = note
            if item.doc_id:
                annotation["metadata"]["doc_id"] = item.doc_id
            yield annotation


def settled_labels(
    folder: Path, task: Task, items: Sequence[Item], people: Labels | None = None
) -> dict[str, str]:
    """Return one label per item: the decision of the lead, or what more than half of the people said."""
    people = labels_of_all(folder, task) if people is None else people
    decisions = read_labels(folder, task, SETTLED)
    settled: dict[str, str] = {}
    for item in items:
        names = [name for labels in people.values() if (name := _label_of(labels, item.item_id))]
        decision = _label_of(decisions, item.item_id)
        name, most = Counter(names).most_common(1)[0] if names else ("", 0)
        if decision:
            settled[item.item_id] = decision
        elif 2 * most > len(names):
            settled[item.item_id] = name
    return settled


def next_commands(folder: Path, task: Task, items: Sequence[Item]) -> list[str]:
    """Return the commands to type when the labels are in the folder's label files."""
    labels = shlex.quote(str(folder / LABELS_FILE))
    commands = []
    if task.kind != "pairs":
        commands.append(f"auepora judge-audit --labels {labels} --judge lexical")
    elif metric := _telling_metric(items):
        score = f"--score {shlex.quote(metric)} --threshold 0.5"
        commands.append(f"auepora judge-audit --labels {labels} {score}")
    if sum(bool(labels.said) for labels in labels_of_all(folder, task).values()) > 1:
        commands.append(f"auepora annotate --agree {shlex.quote(str(folder / GROUND_TRUTH))}")
    return commands


def _is_of_samples(task: Task) -> bool:
    """Return whether each item is one sample of one run: `judge --calibrate` matches such labels by id."""
    return task.kind == "answers" and len(task.runs) == 1


def _telling_metric(items: Sequence[Item]) -> str:
    """Return the first metric that differs in a tenth of the pairs; "" if there is none."""
    counts = Counter(name for item in items for name, lead in item.scores.items() if lead != 0.5)
    return next((name for name in metric_names(items) if counts[name] * 10 >= len(items)), "")


# What the lead of a task sees: progress, agreement, disagreements, and the mean that the labels give.


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
    return sampled_mean(
        np.array([value for value, _ in rows]),
        np.array([item.chance * share for _, item in rows]),
        task.out_of,
    )
