"""Create a task from stored runs: choose answers, claims, retrieved documents or pairs of answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple

import msgspec

from ..core.scores import as_columns
from ..core.types import EvaluationRun, EvaluationSample, MetricResult, SystemOutputs, TargetCategory
from ..errors import DataError, did_you_mean
from ..judges.metric import no_answer
from ..judges.texts import claims_in
from .task import (
    Item,
    Kind,
    Passage,
    Task,
    check_people,
    create_task,
    is_label_set,
    labels_of,
    question_about,
)

Scores = dict[str, dict[str, float]]  # by sample and metric


class LeftOut(NamedTuple):
    """How many answers cannot be judged: those of calls that failed, and those that decline or are empty."""

    failed: int
    declined: int = 0


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
        scores = scores_by_sample(run)
        for sample, output in zip(run.samples, run.outputs, strict=True):
            if output.error is not None:
                failed += 1
                continue
            if without_declined and no_answer(output) is not None:
                declined += 1
                continue
            for item in _ITEMS[kind](sample, output):
                item = msgspec.structs.replace(
                    item, runs=(run.evaluation_id,), scores=scores.get(sample.sample_id, {})
                )
                _add(items, _key(kind, run, item), item)
    return list(items.values()), LeftOut(failed, declined)


def _key(kind: Kind, run: EvaluationRun, item: Item) -> tuple[str, ...]:
    """Return what makes an item another one: a document is judged once, whichever run retrieved it."""
    if kind == "documents":
        return item.sample_id, item.doc_id, item.text
    return run.evaluation_id, item.sample_id, item.text


def _add(items: dict[tuple[str, ...], Item], key: tuple[str, ...], item: Item) -> None:
    known = items.setdefault(key, item)
    if known is not item and item.runs[0] not in known.runs:
        items[key] = msgspec.structs.replace(known, runs=(*known.runs, *item.runs))


def _item(sample: EvaluationSample, text: str) -> Item:
    reference = sample.reference_answer.text if sample.reference_answer else ""
    slices = {str(name): str(value) for name, value in sample.labels.items()}
    return Item(
        item_id="",
        sample_id=sample.sample_id,
        query=sample.query,
        text=text,
        reference=reference,
        slices=slices,
    )


def _passages(output: SystemOutputs) -> tuple[Passage, ...]:
    hits = sorted(output.retrieved, key=lambda hit: hit.rank)
    return tuple(
        Passage(hit.doc.doc_id, hit.doc.text, str(hit.doc.metadata.get("title") or "")) for hit in hits
    )


def _answers(sample: EvaluationSample, output: SystemOutputs) -> Iterator[Item]:
    yield msgspec.structs.replace(_item(sample, output.response.text), documents=_passages(output))


def _claims(sample: EvaluationSample, output: SystemOutputs) -> Iterator[Item]:
    answer = output.response.text
    for claim in claims_in(answer, sample.query, "sentences", lambda questions: []):
        item = _item(sample, claim.text)
        yield msgspec.structs.replace(item, answer=answer, documents=_passages(output))


def _documents(sample: EvaluationSample, output: SystemOutputs) -> Iterator[Item]:
    for passage in _passages(output):
        item = _item(sample, passage.text)
        yield msgspec.structs.replace(item, doc_id=passage.doc_id, documents=(passage,))


_ITEMS = {"answers": _answers, "claims": _claims, "documents": _documents}


def _pairs(runs: Sequence[EvaluationRun]) -> tuple[list[Item], LeftOut]:
    """Return the questions that two runs answered differently; an answer given twice is not a choice."""
    if len(runs) != 2:
        raise DataError("pairs", f"{len(runs)} runs are given.", fix="Name the two runs to compare.")
    first, second = runs
    others = {sample.sample_id: output for sample, output in zip(second.samples, second.outputs, strict=True)}
    scores, other_scores = scores_by_sample(first), scores_by_sample(second)
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
        item = _item(sample, one)
        ids = (first.evaluation_id, second.evaluation_id)
        items.append(msgspec.structs.replace(item, second=two, runs=ids, scores=lead))
    return items, LeftOut(failed)


def scores_by_sample(run: EvaluationRun) -> Scores:
    """Return the scores of each sample by metrics from 0 to 1, turned so that higher is better."""
    scores: Scores = {}
    # What is about the text of an answer first: that is what people judge.
    for result in sorted(run.results, key=lambda result: _ORDER.get(result.target.name, len(_ORDER))):
        if result.bounds != (0.0, 1.0):
            continue
        columns = as_columns(result.scores)
        for sample_id, value in zip(columns.sample_ids, columns.values.tolist(), strict=True):
            if value == value:  # NaN is not measured
                scores.setdefault(sample_id, {})[result.name] = _turned(result, value)
    return scores


_ORDER = {
    target.name: place
    for place, target in enumerate(
        (
            TargetCategory.GENERATION_CORRECTNESS,
            TargetCategory.GENERATION_FAITHFULNESS,
            TargetCategory.GENERATION_RELEVANCE,
        )
    )
}


def _turned(result: MetricResult, value: float) -> float:
    return value if result.higher_is_better else 1 - value


# What is chosen. Each item keeps the chance with which it was chosen, so that the mean over all items can be
# estimated from any choice except `disagree`, which takes the extremes.
#
# | random          each item with the same chance
# | slice:NAME      the same number from each value of a label of the samples, as far as it has them
# | run             the same number from each run
# | disagree:A,B    where two metrics differ most

HOW = ("random", "slice:NAME", "run", "disagree:A,B")


def chosen(items: Sequence[Item], how: str, count: int, *, seed: int) -> list[Item]:
    """Return `count` items, or all if there are fewer, numbered from 1, each with its chance."""
    if not items:
        raise DataError("annotate", "there is nothing to judge.", fix="Choose other --items or runs.")
    kind, _, about = how.partition(":")
    choose = _WAYS.get(kind)
    if choose is None or bool(about) != (kind not in ("random", "run")):
        raise DataError("--choose", f"{how!r:.60} is not one of {', '.join(HOW)}.")
    chances, places = choose(items, about, min(count, len(items)), Random(f"{seed}/choice"))  # noqa: S311
    return [
        msgspec.structs.replace(items[place], item_id=str(number), chance=round(chances[place], 9))
        for number, place in enumerate(places, start=1)
    ]


Choice = tuple[Sequence[float], list[int]]  # the chance of each item, and the places of the chosen ones


def _random(items: Sequence[Item], about: str, count: int, random: Random) -> Choice:
    return [count / len(items)] * len(items), random.sample(range(len(items)), count)


def _stratified(items: Sequence[Item], count: int, random: Random, stratum: Callable[[Item], str]) -> Choice:
    strata: dict[str, list[int]] = {}
    for place, item in enumerate(items):
        strata.setdefault(stratum(item), []).append(place)
    if count < len(strata):
        what = f"{count} items are fewer than the {len(strata)} groups to choose from."
        raise DataError("--count", what, fix=f"Give at least {len(strata)}.")
    # Smallest first: what a small stratum lacks is shared by the others.
    left, chances, places = count, [0.0] * len(items), []
    by_size = sorted(strata.values(), key=len)
    for number, members in enumerate(by_size):
        share = min(len(members), -(-left // (len(by_size) - number)))
        left -= share
        places += random.sample(members, share)
        for place in members:
            chances[place] = share / len(members)
    random.shuffle(places)
    return chances, places


def _by_slice(items: Sequence[Item], about: str, count: int, random: Random) -> Choice:
    names = sorted({name for item in items for name in item.slices})
    if about not in names:
        hint = did_you_mean(about, names, f"There are: {', '.join(names)[:200] or 'none'}.")
        raise DataError("--choose", f"no sample has a label {about!r:.60}.", fix=hint)
    return _stratified(items, count, random, lambda item: item.slices.get(about, ""))


def _by_run(items: Sequence[Item], about: str, count: int, random: Random) -> Choice:
    return _stratified(items, count, random, lambda item: item.runs[0])


def _disagreeing(items: Sequence[Item], about: str, count: int, random: Random) -> Choice:
    one, other = _two_metrics(items, about)
    order = [place for place, item in enumerate(items) if one in item.scores and other in item.scores]
    random.shuffle(order)  # among equal differences
    order.sort(key=lambda place: -abs(items[place].scores[one] - items[place].scores[other]))
    return [1.0] * len(items), order[:count]


def _two_metrics(items: Sequence[Item], about: str) -> tuple[str, str]:
    # A name may have commas in its brackets, so every comma is tried.
    names = metric_names(items)
    for place, letter in enumerate(about):
        one, other = about[:place].strip(), about[place + 1 :].strip()
        if letter == "," and one in names and other in names and one != other:
            return one, other
    what = f"{about!r:.80} are not two metrics of the run with scores from 0 to 1."
    raise DataError("--choose", what, fix=f"There are: {', '.join(names)[:300] or 'none'}.")


def metric_names(items: Sequence[Item]) -> list[str]:
    """Return the metrics that some items have a score of."""
    return list(dict.fromkeys(name for item in items for name in item.scores))


_WAYS: dict[str, Callable[[Sequence[Item], str, int, Random], Choice]] = {
    "random": _random,
    "slice": _by_slice,
    "run": _by_run,
    "disagree": _disagreeing,
}


# A task on the answers of stored runs.

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
    asks_other = wanted.question is not None or is_label_set(wanted.labels or ())
    about_support = kind in ("answers", "claims") and not asks_other
    every, left_out = items_of(kind, runs, without_declined=about_support)
    items = chosen(every, choice, wanted.count or COUNT, seed=seed)
    task = Task(
        kind=kind,
        question=wanted.question or question_about(kind, wanted.labels or ()),
        labels=labels_of(kind, wanted.labels or ()),
        runs=tuple(run.evaluation_id for run in runs),
        dataset=runs[0].dataset_name,
        people=check_people(wanted.people or [PERSON]),
        overlap=1.0 if wanted.overlap is None else wanted.overlap,
        seed=seed,
        chosen=choice,
        out_of=len(every),
    )
    create_task(folder, task, items)
    return task, left_out


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
