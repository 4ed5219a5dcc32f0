"""Answers and their references, as the text metrics compare them.

A sample may have several right answers: `reference_answer.text` and the list in
`reference_answer.metadata["alternatives"]`. Each answer is scored against all of them, and the best counts.
Citation marks such as [2] are left out of both: whether they are right is for the citation metrics.
"""

from __future__ import annotations

from ...core.types import EvaluationSample, SystemOutputs
from ...errors import BadOutputError, ScoringError
from ...text.content_words import without_citations

_MOST_CHARACTERS = 2_000_000  # of an answer and its longest reference: beyond this, n-grams take minutes


def references(sample: EvaluationSample) -> list[str]:
    """Return the right answers of a sample, without citation marks: the reference, then its alternatives."""
    if sample.reference_answer is None:
        raise ScoringError("the sample has no reference_answer")
    text = sample.reference_answer.text
    if not isinstance(text, str):
        raise ScoringError(f"the reference must be a text, not {text!r:.80}")
    alternatives = sample.reference_answer.metadata.get("alternatives")
    if not alternatives:
        return [without_citations(text)]
    if not isinstance(alternatives, list | tuple) or not all(
        isinstance(other, str) for other in alternatives
    ):
        raise ScoringError(
            f"the alternatives of the reference must be a list of texts, not {alternatives!r:.80}"
        )
    return [without_citations(each) for each in (text, *alternatives)]


def answer_text(output: SystemOutputs) -> str:
    """Return the text of the answer without citation marks; ScoringError for anything but a text."""
    text = output.response.text
    if not isinstance(text, str):
        raise BadOutputError(f"the answer must be a text, not {text!r:.80}")
    return without_citations(text)


def compared_texts(sample: EvaluationSample, output: SystemOutputs) -> tuple[str, list[str]]:
    """Return the answer and its references; ScoringError if they are too long to compare."""
    answer, golds = answer_text(output), references(sample)
    if len(answer) + max(map(len, golds)) > _MOST_CHARACTERS:
        raise BadOutputError(f"answer and reference have more than {_MOST_CHARACTERS:,} characters")
    return answer, golds
