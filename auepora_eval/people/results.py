"""Labels as other commands read them: `auepora judge-audit`, `judge --calibrate`, `annotate --agree`.

A label file (JSONL) has a line per item: {"claim", "evidence", "label": {person: number}} of answers and
claims, the texts of an item of another kind, the scores of the run's metrics by their names, and `sample_id`
where a line is about one sample of one run. "Not sure" is not a label, and `settled` is the decision of the
lead. A `.gt.json` has an annotation per person and item. A `.labels.json` is a label set of the answers of
one run, which `auepora labels score` reads.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from statistics import fmean
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
from ..stats.intervals import mean_interval
from .agreement import Figure, figures_of
from .desk import Desk
from .task import Item, Kind, Label

Record = dict[str, Any]
# The aspect of a rating in a .gt.json.
ASPECTS: dict[Kind, str] = {
    "answers": "answer",
    "claims": "claim",
    "documents": "relevance",
    "pairs": "preference",
}
LABELS_FILE, GROUND_TRUTH = "labels.jsonl", "labels.gt.json"


def export(desk: Desk, path: Path, *, force: bool = False) -> int:
    """Write the labels of a task to a .jsonl, .gt.json or .labels.json; return the number of records."""
    name = path.name.removesuffix(".gz")
    if name.endswith((".gt.json", ".gt.yaml", ".gt.yml")):
        annotations = _some(_ground_truth(desk), desk)
        save_ground_truth(annotations, path, dataset_id=desk.task.dataset, force=force)
        return len(annotations)
    if name.endswith((".labels.json", ".labels.yaml", ".labels.yml")):
        samples = _some(_label_set_samples(desk), desk)
        save_label_set(InMemoryDataset(desk.task.dataset, samples), path, force=force)
        return len(samples)
    if not name.endswith(".jsonl"):
        what = f"{path.name!r:.80} is not a .jsonl, .gt.json or .labels.json."
        raise DataError("--export", what, fix="Rename it.")
    records = _some(_label_records(desk), desk)
    save_records(records, path, force=force)
    return len(records)


def _some(records: Iterator[Any], desk: Desk) -> list[Any]:
    listed = list(records)
    if not listed:
        fix = f"Label some: auepora annotate {desk.folder}"
        raise DataError(str(desk.folder), "there are no labels yet.", fix=fix)
    return listed


def write_labels(desk: Desk) -> bool:
    """Write labels.jsonl and labels.gt.json into the folder of the task; False if there are no labels."""
    with suppress(DataError):  # there are no labels yet
        for name in (LABELS_FILE, GROUND_TRUTH):
            export(desk, desk.folder / name, force=True)
        return True
    return False


def _is_of_samples(desk: Desk) -> bool:
    """Return whether each item is one sample of one run: `judge --calibrate` matches such labels by id."""
    return desk.task.kind == "answers" and len(desk.task.runs) == 1


def _label_records(desk: Desk) -> Iterator[Record]:
    """Yield a line per item that has a label."""
    number = int if {label.value for label in desk.task.labels} == {0.0, 1.0} else float
    metrics = list(dict.fromkeys(name for item in desk.items for name in item.scores))
    own = "sample_id" if _is_of_samples(desk) else "query_id"
    everything, decisions = desk.said(), desk.decisions()
    for item in desk.items:
        said, decision = everything[item.item_id], decisions.get(item.item_id)
        if not said:
            continue
        notes = desk.notes(item)
        yield {
            own: item.sample_id,
            **_texts(desk.task.kind, item),
            "label": {person: number(label.value) for person, label in said.items()},
            **({} if decision is None else {"settled": number(decision.value)}),
            "runs": list(item.runs),
            **({"notes": notes} if notes else {}),
            **{name: item.scores.get(name) for name in metrics},  # null: the metric could not score it
        }


def _texts(kind: Kind, item: Item) -> Record:
    """Return the texts of an item: of answers and claims what a judge compares, a claim and its evidence."""
    if kind == "pairs":
        return {"query": item.query, "first": item.text, "second": item.second}
    if kind == "documents":
        return {"query": item.query, "document": item.text, "doc_id": item.doc_id}
    return {"query": item.query, "claim": item.text, "evidence": [each.text for each in item.documents]}


def _label_set_samples(desk: Desk) -> Iterator[EvaluationSample]:
    """Yield the labelled answers of one run as the samples of a label set."""
    if not _is_of_samples(desk):
        what = "a label set has one answer per question, and these are of several runs, or are not answers."
        raise DataError("--export", what, fix="Label the answers of one run.")
    decisions = desk.decisions()
    for item, said in zip(desk.items, desk.said().values(), strict=True):
        # The decision of the lead, or what more than half of the people said.
        most = Counter(said.values()).most_common(1)
        by_people = most[0][0] if most and 2 * most[0][1] > len(said) else None
        label = decisions.get(item.item_id, by_people)
        if label is not None:
            stored = {"answer": item.text, "passages": [each.text for each in item.documents]}
            yield EvaluationSample(
                item.sample_id,
                item.query,
                labels={**item.slices, TRUE_LABEL: label.name},
                metadata={STORED_OUTPUT: stored},
            )


def _ground_truth(desk: Desk) -> Iterator[Annotation]:
    """Yield the annotations of a .gt.json.

    It identifies what was judged by its text. Where two runs gave the same answer to a question, a person has
    one annotation of it, the first.
    """
    kind = desk.task.kind
    seen: set[tuple[str, str, str]] = set()
    for item, said in zip(desk.items, desk.said().values(), strict=True):
        text = f"{item.text}\n\n---\n\n{item.second}" if kind == "pairs" else item.text
        metadata: Record = {"item": item.item_id, "runs": list(item.runs)}
        if item.doc_id:
            metadata["doc_id"] = item.doc_id
        notes = desk.notes(item)
        for person, label in said.items():
            if (person, item.sample_id, text) in seen:
                continue
            seen.add((person, item.sample_id, text))
            yield {
                "annotation_id": f"{person}_{item.item_id}",
                "query_id": item.sample_id,
                "annotator_id": person,
                "answer_text": text,
                "overall_score": label.value,
                "aspect_ratings": {ASPECTS[kind]: label.name},
                "metadata": {**metadata, **({"note": notes[person]} if person in notes else {})},
            }


def next_commands(desk: Desk) -> list[str]:
    """Return the commands to type when the labels are in the folder's label files."""
    commands = []
    if desk.task.kind in ("answers", "claims"):
        path = shlex.quote(str(desk.folder / LABELS_FILE))
        commands.append(f"auepora judge-audit --labels {path} --judge support:lexical")
    if sum(desk.progress(person).labelled > 0 for person in desk.task.people) > 1:
        commands.append(f"auepora annotate --agree {shlex.quote(str(desk.folder / GROUND_TRUTH))}")
    return commands


# What the lead of a task sees: agreement, disagreements, and the mean that the labels give.


def task_agreement(desk: Desk) -> list[Figure]:
    """Return how far people agree; nothing if no item was judged by two of them."""
    task = desk.task
    several = [
        (item.sample_id, {person: label.name for person, label in said.items()})
        for item, said in zip(desk.items, desk.said().values(), strict=True)
        if len(said) > 1
    ]
    # Two labels have no distances to weigh, and the tie of pairs is the third label but lies in the middle.
    has_order = len(task.labels) > 2 and task.kind != "pairs"
    order = [label.name for label in task.labels] if has_order else None
    return figures_of(ASPECTS[task.kind], several, order) if several else []


def disputes(desk: Desk) -> list[tuple[Item, dict[str, Label]]]:
    """Return the items on which people differ, with what each said; those to be settled come first."""
    every = zip(desk.items, desk.said().values(), strict=True)
    differ = [(item, said) for item, said in every if len({label.name for label in said.values()}) > 1]
    decided = desk.decisions()
    return sorted(differ, key=lambda each: each[0].item_id in decided)


def mean_in_words(desk: Desk) -> str:
    """Return the mean label with its interval, in words; "" without labels."""
    task = desk.task
    rows = [
        (item.sample_id, fmean(label.value for label in said.values()))
        for item, said in zip(desk.items, desk.said().values(), strict=True)
        if said
    ]
    if not rows:
        return ""
    values = np.array([value for _, value in rows])
    clusters = shared_or_none([sample_id for sample_id, _ in rows])
    interval = mean_interval(values, clusters=clusters, bounds=(0.0, 1.0))
    value = value_text(float(values.mean())) + (f" {interval_text(interval[:2])}" if interval else "")
    if task.kind == "pairs":
        first, second = task.runs
        return f"{first} wins {value} of the pairs against {second}; a tie counts one half."
    best = max(task.labels, key=lambda label: label.value).name
    if {label.value for label in task.labels} == {0.0, 1.0}:
        return f"Share of {best!r} in the {task.kind}: {value}."
    return f"Mean label of the {task.kind}, from 0 to 1 ({best!r}): {value}."
