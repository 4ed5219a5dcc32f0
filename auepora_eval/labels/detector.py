"""Score answers by a metric, to be labelled by thresholds, and find those that contradict an earlier answer.

It reads the question, the answer, the passages and the pair of a sample: no true label, no notes, no rubric
and no hint.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ..core.scores import Batch
from ..core.types import EvaluationSample, Failure, Response, SystemOutputs
from ..errors import PlanError
from ..io.label_set import ScoredSample, stored_output
from ..metrics.answers.contradiction import lexical_contradiction
from ..metrics.parse import parse_metric
from .scoring import nearest_earlier, pairs_of

CONTRADICTS = 0.15  # from this score on, in either direction, two answers of a pair contradict each other
_NO_ANSWER = SystemOutputs(
    [], Response(""), error=Failure("NoStoredAnswer", "the label set has no answer for this sample")
)


def scored_by_metric(
    name: str,
    samples: Sequence[EvaluationSample],
    *,
    contradiction: Callable[[str, str], float] = lexical_contradiction,
) -> list[ScoredSample]:
    """Return the score of each stored answer, and whether it contradicts an earlier one of its pair.

    `contradiction` scores a premise and a hypothesis from 0 to 1, such as an entailment model of your own.
    """
    metric = parse_metric(name)
    if metric.bounds != (0.0, 1.0) or not metric.higher_is_better:
        raise PlanError(
            f"{name} is not a score from 0 to 1 of which higher is better. Try grounding_overlap."
        )
    outputs = [stored_output(sample) or _NO_ANSWER for sample in samples]
    scores = metric.score_batch(Batch(samples, outputs)).values.tolist()
    earlier = nearest_earlier(pairs_of(samples), [output.error is None for output in outputs])
    found = []
    for output, score, place in zip(outputs, scores, earlier, strict=True):
        premises = list(output.extra.get("earlier_answers", ()))
        premises += [] if place is None else [outputs[place].response.text]
        answer = output.response.text
        both_ways = [pair for premise in premises for pair in ((premise, answer), (answer, premise))]
        contradicts = output.error is None and any(contradiction(*pair) >= CONTRADICTS for pair in both_ways)
        found.append(ScoredSample(score if math.isfinite(score) else None, contradicts))
    return found
