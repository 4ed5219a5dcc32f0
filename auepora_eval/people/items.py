"""Create a task from stored runs: answers, claims, retrieved documents or pairs of answers, at random."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import msgspec

from ..core.scores import as_columns
from ..core.types import EvaluationRun, EvaluationSample, SystemOutputs
from ..errors import DataError
from ..judges.metric import no_answer
from ..judges.texts import claims_in
from ..text.label_terms import LABELS
from .task import DEFAULTS, Item, Kind, Passage, Task, check_people, create_task, labels_of

COUNT, PERSON = 50, "me"
Scores = dict[str, dict[str, float]]  # by sample and metric


@dataclass(frozen=True)
class Wanted:
    """What a task is to be; None means the usual."""

    kind: Kind | None = None
    count: int | None = None
    question: str | None = None
    labels: Sequence[str] | None = None
    people: Sequence[str] | None = None


class LeftOut(NamedTuple):
    """How many answers cannot be judged: those of calls that failed, and those that decline or are empty."""

    failed: int
    declined: int = 0


def kind_for(wanted: Wanted, runs: Sequence[object]) -> Kind:
    """Return what is judged: what was asked for, or pairs of two runs, or the answers of one."""
    return wanted.kind or ("pairs" if len(runs) == 2 else "answers")


def task_of_runs(folder: Path, runs: Sequence[EvaluationRun], wanted: Wanted) -> tuple[Task, LeftOut]:
    """Write a new task on the answers of runs; return it, and how many answers cannot be judged."""
    if len({run.dataset_fingerprint for run in runs}) > 1:
        raise DataError("annotate", "the runs are of different datasets.", fix="Name runs of one dataset.")
    kind, labels = kind_for(wanted, runs), wanted.labels or ()
    # "The documents do not say." has nothing that documents could support: judges leave it out as well.
    about_support = kind in ("answers", "claims") and not (wanted.question or wanted.labels)
    every, left_out = items_of(kind, runs, without_declined=about_support)
    if not every:
        raise DataError("annotate", "there is nothing to judge.", fix="Choose other --items or runs.")
    # Seeded by a text: every copy of the command chooses the same items.
    chosen = Random("items").sample(every, min(wanted.count or COUNT, len(every)))  # noqa: S311
    task = Task(
        kind=kind,
        question=wanted.question or _question(kind, labels),
        labels=labels_of(kind, labels),
        runs=tuple(run.evaluation_id for run in runs),
        dataset=runs[0].dataset_name,
        people=check_people(wanted.people or [PERSON]),
        out_of=len(every),
    )
    numbered = (
        msgspec.structs.replace(item, item_id=str(number)) for number, item in enumerate(chosen, start=1)
    )
    create_task(folder, task, list(numbered))
    return task, left_out


def _question(kind: Kind, labels: Sequence[str]) -> str:
    usual = DEFAULTS[kind][0]
    # The labels of a label set do not answer the usual question.
    return "What is this answer?" if labels and set(labels) <= set(LABELS) else usual


def differences(task: Task, items: Sequence[Item], wanted: Wanted) -> list[str]:
    """Return the settings in which a task is not what is wanted; what is not asked for may be anything."""
    own = {
        "kind": task.kind,
        "count": len(items),
        "question": task.question,
        "labels": [label.name for label in task.labels],
        "people": list(task.people),
    }
    asked = {name: value for name, value in vars(wanted).items() if value is not None}
    if wanted.count is not None:
        asked["count"] = min(wanted.count, task.out_of)
    return [name for name, value in asked.items() if value != own[name]]


def items_of(
    kind: Kind, runs: Sequence[EvaluationRun], *, without_declined: bool = False
) -> tuple[list[Item], LeftOut]:
    """Return everything of a kind that can be judged, and how many answers cannot be.

    Items have no id yet; they get one when they are chosen.
    """
    if kind == "pairs":
        return _pairs(runs)
    failed = declined = 0
    items: dict[tuple[str, ...], Item] = {}
    for run in runs:
        scores = _scores_by_sample(run)
        for sample, output in zip(run.samples, run.outputs, strict=True):
            if output.error is not None:
                failed += 1
                continue
            if without_declined and no_answer(output) is not None:
                declined += 1
                continue
            for item in _ITEMS[kind](sample, output):
                own = (run.evaluation_id,)
                # A document is judged once, whichever run retrieved it.
                about = (item.doc_id,) if kind == "documents" else own
                key = (*about, item.sample_id, item.text)
                known = items.get(key)
                if known is None:
                    found = scores.get(sample.sample_id, {})
                    items[key] = msgspec.structs.replace(item, runs=own, scores=found)
                elif own[0] not in known.runs:
                    items[key] = msgspec.structs.replace(known, runs=known.runs + own)
    return list(items.values()), LeftOut(failed, declined)


def _item(sample: EvaluationSample, text: str, **more: Any) -> Item:
    item = Item(
        item_id="",
        sample_id=sample.sample_id,
        query=sample.query,
        text=text,
        reference=sample.reference_answer.text if sample.reference_answer else "",
        slices={str(name): str(value) for name, value in sample.labels.items()},
    )
    return msgspec.structs.replace(item, **more)


def _passages(output: SystemOutputs) -> tuple[Passage, ...]:
    docs = [hit.doc for hit in sorted(output.retrieved, key=lambda hit: hit.rank)]
    return tuple(Passage(doc.doc_id, doc.text, str(doc.metadata.get("title") or "")) for doc in docs)


def _answers(sample: EvaluationSample, output: SystemOutputs) -> Iterator[Item]:
    yield _item(sample, output.response.text, documents=_passages(output))


def _claims(sample: EvaluationSample, output: SystemOutputs) -> Iterator[Item]:
    answer = output.response.text
    for claim in claims_in(answer):
        yield _item(sample, claim.text, answer=answer, documents=_passages(output))


def _documents(sample: EvaluationSample, output: SystemOutputs) -> Iterator[Item]:
    for passage in _passages(output):
        yield _item(sample, passage.text, doc_id=passage.doc_id, documents=(passage,))


_ITEMS = {"answers": _answers, "claims": _claims, "documents": _documents}


def _pairs(runs: Sequence[EvaluationRun]) -> tuple[list[Item], LeftOut]:
    """Return the questions that two runs answered differently; an answer given twice is not a choice."""
    if len(runs) != 2:
        raise DataError("pairs", f"{len(runs)} runs are given.", fix="Name the two runs to compare.")
    first, second = runs
    others = {sample.sample_id: output for sample, output in zip(second.samples, second.outputs, strict=True)}
    scores, other_scores = _scores_by_sample(first), _scores_by_sample(second)
    ids = (first.evaluation_id, second.evaluation_id)
    items, failed = [], 0
    for sample, output in zip(first.samples, first.outputs, strict=True):
        other = others.get(sample.sample_id)
        if other is None or output.error is not None or other.error is not None:
            failed += 1
            continue
        one, two = output.response.text, other.response.text
        if one.split() == two.split():
            continue
        ours, theirs = scores.get(sample.sample_id, {}), other_scores.get(sample.sample_id, {})
        # 1 where the first run scores 1 and the second 0, 0.5 where both score the same.
        lead = {name: (1 + ours[name] - theirs[name]) / 2 for name in ours if name in theirs}
        items.append(_item(sample, one, second=two, runs=ids, scores=lead))
    return items, LeftOut(failed)


def _scores_by_sample(run: EvaluationRun) -> Scores:
    """Return the scores of each sample by metrics from 0 to 1, turned so that higher is better."""
    scores: Scores = {}
    for result in run.results:
        if result.bounds != (0.0, 1.0):
            continue
        columns = as_columns(result.scores)
        for sample_id, value in zip(columns.sample_ids, columns.values.tolist(), strict=True):
            if value == value:  # NaN is not measured
                turned = value if result.higher_is_better else 1 - value
                scores.setdefault(sample_id, {})[result.name] = turned
    return scores
