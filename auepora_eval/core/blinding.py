"""What a system may see of a labelled sample: its question, never its label or what gives it away.

The true label, the notes, the rubric and the hint are there for the score and for people. A detector that is
shown them measures nothing but that it can read.
"""

from __future__ import annotations

from dataclasses import replace

from .label_terms import PAIR, STORED_OUTPUT, TRUE_LABEL
from .types import EvaluationSample

_HARMLESS_LABELS = ("scenario", "risk_tier", PAIR)


def without_answers(
    sample: EvaluationSample, *, stored: bool = True, sample_id: str | None = None
) -> EvaluationSample:
    """A copy without the true label, notes, rubric, hint, or reference; with another id if one is given.

    The stored answer stays, unless `stored` is False: it is what a detector judges.
    """
    answer = sample.metadata.get(STORED_OUTPUT) if stored else None
    return replace(
        sample,
        sample_id=sample.sample_id if sample_id is None else sample_id,
        labels={name: sample.labels[name] for name in _HARMLESS_LABELS if name in sample.labels},
        metadata={} if answer is None else {STORED_OUTPUT: answer},
        reference_answer=None,
    )


def as_shown(sample: EvaluationSample) -> EvaluationSample:
    """The sample as a system gets it: as it is, but blind if it carries a true label."""
    return without_answers(sample) if TRUE_LABEL in sample.labels else sample
