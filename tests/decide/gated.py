"""Runs made of scores, for tests of the gate: {"recall@5": [1.0, 0.5, None]}, None for a failed answer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from auepora_eval.core.scores import Note, Scores
from auepora_eval.core.types import EvaluationRun
from auepora_eval.metrics.parse import parse_metric
from tests.builders import a_failure, a_sample, an_output


def a_run(
    name: str,
    scores: Mapping[str, Sequence[float | None]],
    *,
    failed: int = 0,
    clusters: Sequence[str] | None = None,
    **fields: Any,
) -> EvaluationRun:
    """A run with these scores; the outputs of its first `failed` samples are failures."""
    size = len(next(iter(scores.values())))
    ids = [f"s{number}" for number in range(size)]
    results = []
    for metric_name, values in scores.items():
        metric = parse_metric(metric_name)
        notes = {place: Note("no luck", failed=True) for place, one in enumerate(values) if one is None}
        columns = Scores(ids, [math.nan if one is None else one for one in values], notes=notes)
        if notes:
            sample = a_sample()
            bounds = (metric.score_if_failed(sample, high=high) for high in (False, True))
            low, high = (Scores.of([one] * len(notes)).rows() for one in bounds)
            columns.if_failed = (low, high)
        columns.clusters = None if clusters is None else list(clusters)
        results.append(metric.summarise(columns))
    outputs = [a_failure() if place < failed else an_output() for place in range(size)]
    samples = [a_sample(each, relevant="a") for each in ids]
    return EvaluationRun(name, f"{name} system", "made", "same data", results, samples, outputs, **fields)


def declining(name: str, *declined: int) -> EvaluationRun:
    """A run of 40 questions, every second without an answer, that declines some."""
    samples = [a_sample(f"s{n}", labels={"answerable": n % 2 == 0}) for n in range(40)]
    outputs = [an_output(answer="I don't know." if n in declined else "at noon") for n in range(40)]
    results = [parse_metric("abstention_precision").compute(samples, outputs)]
    return EvaluationRun(name, name, "made", "same", results, samples, outputs)
