"""Items to annotate: the answers, claims, retrieved documents or pairs of answers of stored runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from ...core.scores import as_columns
from ...core.types import EvaluationRun, EvaluationSample, MetricResult, SystemOutputs, TargetCategory
from ...errors import DataError
from ...judges.metric import no_answer
from ...judges.metrics.texts import claims_in
from .task import Item, Kind, Passage

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
