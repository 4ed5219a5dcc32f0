"""Where does it get better, and where worse? A comparison within each value of a label or metadata field."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

from ..core.scores import given
from ..core.types import EvaluationSample
from ..core.verdict import Verdict
from ..errors import PlanError
from ..stats.significance import benjamini_hochberg
from .paired_tests import Tested, corrected, tested_pairs
from .pairs import Pairs

FEW = 20  # samples; below, a slice is marked: its numbers say little
MOST_VALUES = 50  # of one field; a field with more is an id, or a text


@dataclass(frozen=True)
class SliceComparison:
    """One metric on the samples of which a field has one value. `few` marks fewer than 20 questions.

    `questions` counts a sample once that was asked several times, `pairs` each time.
    """

    field: str
    value: str
    metric: str
    unit: str
    pairs: int
    baseline: float
    candidate: float
    difference: float
    gain: float  # the difference, positive where the candidate is better
    interval: tuple[float, float] | None
    p_value: float
    p_adjusted: float
    verdict: Verdict
    few: bool
    questions: int


def slice_comparisons(
    every: Sequence[Pairs],
    fields: Sequence[str],
    samples: Iterable[EvaluationSample],
    *,
    alpha: float,
    seed: int,
    resamples: int,
) -> tuple[list[SliceComparison], list[str]]:
    """Every metric in every slice, the worst first, p-values corrected by Benjamini-Hochberg; and notes."""
    if not fields:
        return [], []
    values, notes = _values(samples, fields)
    tested: list[tuple[str, str, Tested]] = []
    for field, members in values.items():
        for value, ids in members.items():
            places: list[int] = []
            questions: Sequence[str] = ()
            for pairs in every:
                if pairs.questions is not questions:  # most metrics have the same samples
                    questions = pairs.questions
                    places = [place for place, name in enumerate(questions) if name in ids]
                if (part := pairs.at(places)).scored:
                    tested.append((field, value, tested_pairs(part, seed=seed, resamples=resamples)))
    settled, adjusted = corrected([one for _, _, one in tested], alpha, benjamini_hochberg)
    compared = []
    for (field, value, _), one, p in zip(tested, settled, adjusted, strict=True):
        low, high = one.pairs.known.bounds
        # Losses of metrics with different units are compared as shares of their ranges. Seconds have no
        # upper bound: the loss is measured against the larger value.
        span = high - low
        if not math.isfinite(span) or span <= 0:
            span = max(abs(one.value_a), abs(one.value_b)) or 1.0
        compared.append((_slice(field, value, one, p, alpha), span))
    return [one for one, _ in sorted(compared, key=lambda each: _worst_first(*each))], notes


def field_values(sample: EvaluationSample, name: str) -> list[str]:
    """What a sample has under "query_type", "labels.query_type" or "metadata.source"; each of a list."""
    where, _, rest = name.partition(".")
    homes: list[Mapping[str, Any]] = [sample.labels, sample.metadata]
    if rest and where in ("labels", "metadata"):
        homes, name = [getattr(sample, where)], rest
    for home in homes:
        if (value := given(home, name)) is not None:
            members = value if isinstance(value, list) else [value]
            return [str(one) for one in members if isinstance(one, str | int | float | bool)]
    return []


def _values(
    samples: Iterable[EvaluationSample], fields: Sequence[str]
) -> tuple[dict[str, dict[str, set[str]]], list[str]]:
    """The sample ids of each value of each field; those of rare values of a field with very many are left."""
    ids_by_value: dict[str, dict[str, set[str]]] = {name: {} for name in fields}
    for sample in samples:
        for name in fields:
            for value in field_values(sample, name):
                ids_by_value[name].setdefault(value, set()).add(sample.sample_id)
    notes = []
    for name, members in ids_by_value.items():
        if not members:
            raise PlanError(f"no sample has a label or metadata field {name!r} to slice by. Check its name.")
        if len(members) > MOST_VALUES:
            kept = Counter({value: len(ids) for value, ids in members.items()}).most_common(MOST_VALUES)
            notes.append(f"{name} has {len(members)} values; the {MOST_VALUES} most frequent are compared")
            ids_by_value[name] = {value: members[value] for value, _ in kept}
    return ids_by_value, notes


def _slice(name: str, value: str, tested: Tested, p_adjusted: float | None, alpha: float) -> SliceComparison:
    metric, both = tested.pairs.known, tested.pairs.both.tolist()
    questions = len(set(compress(tested.pairs.questions, both)))
    interval = tested.interval
    return SliceComparison(
        name,
        value,
        tested.pairs.name,
        metric.unit,
        sum(both),
        tested.value_a,
        tested.value_b,
        tested.difference,
        tested.gain,
        None if interval is None else (interval.low, interval.high),
        tested.test.p_value,
        1.0 if p_adjusted is None else p_adjusted,
        tested.verdict(p_adjusted, alpha),
        questions < FEW,
        questions,
    )


def _worst_first(one: SliceComparison, span: float) -> tuple[int, bool, float, float]:
    """Order: significantly worse, apparently worse, the same, apparently better, significantly better.

    Significant slices are sorted by the size of the loss, as a share of the metric's range, the others by
    their p-values. Slices of few questions come after the others of their kind.
    """
    looks = 2
    if math.isnan(one.gain):
        return looks, one.few, 0.0, 0.0
    if one.verdict is not Verdict.SAME and one.gain:
        looks = 1 if one.gain < 0 else 3
    kind = {Verdict.WORSE: 0, Verdict.BETTER: 4}.get(one.verdict, looks)
    # Among apparent gains the most significant comes last: the list runs from the worst to the best.
    chance = {1: one.p_adjusted, 3: -one.p_adjusted}.get(kind, 0.0)
    return kind, one.few, chance, one.gain / span
