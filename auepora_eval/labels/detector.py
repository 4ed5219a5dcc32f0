"""Score answers by a metric, to be labelled by thresholds, and find those that contradict an earlier answer.

It reads the question, the answer, the passages and the pair of a sample: no true label, no notes, no rubric
and no hint.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..core.scores import Batch
from ..core.types import STORED_OUTPUT, EvaluationSample, Failure, Response, SystemOutputs
from ..errors import PlanError
from ..io.label_set import ScoredSample
from ..metrics.answers.contradiction import lexical_contradiction
from ..metrics.parse import parse_metric
from ..read.outputs import to_output
from .scoring import nearest_earlier, pairs_of

CONTRADICTS = 0.15  # from this score on, in either direction, two answers of a pair contradict each other


def stored_output(sample: EvaluationSample) -> SystemOutputs:
    """Return the answer that the label describes as an output; a failure where there is none."""
    stored = sample.metadata.get(STORED_OUTPUT)
    stored = stored if isinstance(stored, dict) else {}
    if not str(stored.get("answer") or "").strip():
        failure = Failure("NoStoredAnswer", "the label set has no answer for this sample")
        return SystemOutputs([], Response(""), error=failure)
    output = to_output({"answer": stored["answer"], "retrieved_passages": stored.get("passages") or []})
    # The last turn is the answer that is judged; the others come before it.
    turns = [turn for turn in _list_of(stored, "turns")[:-1] if isinstance(turn, dict)]
    extra = {"earlier_answers": [str(turn.get("answer", "")) for turn in turns]} if turns else {}
    return replace(output, extra=extra)


def _list_of(record: Mapping[str, Any], name: str) -> list[Any]:
    """Return the list of that name, or an empty one: metadata may have any type."""
    value = record.get(name)
    return value if isinstance(value, list) else []


def scored_by_metric(
    name: str,
    samples: Sequence[EvaluationSample],
    outputs: Sequence[SystemOutputs],
    *,
    contradiction: Callable[[str, str], float] = lexical_contradiction,
) -> list[ScoredSample]:
    """Return the score of each answer by a metric, and whether it contradicts an earlier one of its pair.

    `contradiction` scores a premise and a hypothesis from 0 to 1, such as an entailment model of your own.
    """
    metric = parse_metric(name)
    if metric.bounds != (0.0, 1.0) or not metric.higher_is_better:
        raise PlanError(
            f"{name} is not a score from 0 to 1 of which higher is better. Try grounding_overlap."
        )
    scores = metric.score_batch(Batch(samples, outputs)).values.tolist()
    earlier = nearest_earlier(pairs_of(samples), [output.error is None for output in outputs])
    found = []
    for output, score, place in zip(outputs, scores, earlier, strict=True):
        premises = [str(text) for text in _list_of(output.extra, "earlier_answers")]
        premises += [] if place is None else [outputs[place].response.text]
        answer = output.response.text
        both_ways = [pair for premise in premises for pair in ((premise, answer), (answer, premise))]
        contradicts = output.error is None and any(contradiction(*pair) >= CONTRADICTS for pair in both_ways)
        found.append(ScoredSample(score if math.isfinite(score) else None, contradicts))
    return found
