"""The nouns: what a dataset holds, what a system returns, what a metric says about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from ..errors import ScoringError
from .stopping import Stopping


class TargetCategory(Enum):
    """What an evaluation can be about: Auepora's targets."""

    RETRIEVAL_RELEVANCE = auto()
    RETRIEVAL_ACCURACY = auto()
    GENERATION_RELEVANCE = auto()
    GENERATION_FAITHFULNESS = auto()
    GENERATION_CORRECTNESS = auto()
    LATENCY = auto()
    DIVERSITY = auto()
    NOISE_ROBUSTNESS = auto()
    NEGATIVE_REJECTION = auto()
    COUNTERFACTUAL_ROBUSTNESS = auto()


@dataclass(slots=True)
class Document:
    """A text with an id. `metadata["relevance"]` grades a gold document (1 when absent)."""

    doc_id: str
    text: str
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class RetrievedDocument:
    """A document that a system found, at its place in the list; rank 1 is the best."""

    doc: Document
    score: float
    rank: int


def known_score(hit: RetrievedDocument) -> float | None:
    """The score that a system gave; None where it gave none, and `score` is 1/rank to keep the order."""
    return None if hit.doc.metadata and hit.doc.metadata.get("score_missing") is True else hit.score


def unscored(doc: Document, rank: int) -> RetrievedDocument:
    """A document of which nobody told a score: a mark in its metadata says so (`known_score`)."""
    marked = Document(doc.doc_id, doc.text, {**doc.metadata, "score_missing": True})
    return RetrievedDocument(marked, 1 / rank, rank)


@dataclass
class Response:
    """An answer. `metadata["alternatives"]` of a reference lists further right answers."""

    text: str
    structured: dict[str, Any] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass
class EvaluationSample:
    """One row of a dataset: a query and whatever is known to be true about it."""

    sample_id: str
    query: str

    relevant_docs: list[Document] | None = None
    candidate_docs: list[Document] | None = None
    reference_answer: Response | None = None

    labels: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Failure:
    """Why there is no answer to a sample: the exception's type and message, and how long it took to fail."""

    type: str
    message: str
    seconds: float | None = None


@dataclass
class SystemOutputs:
    """What a system returned for one sample; `error` is set when the call failed."""

    retrieved: list[RetrievedDocument]
    response: Response

    timings: dict[str, float] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)
    error: Failure | None = None


DOCUMENTS_MISSING = "documents_missing"
END_TO_END = "end_to_end"
TIMES_LEFT_OUT = "times_left_out"  # in `extra`: what a system told as times and is none, by its name
LONGEST_TIME = 1e9  # seconds; what is said to take more than thirty years was not measured


def is_time(seconds: float) -> bool:
    """Whether a number can be how long something took: sums of such numbers stay numbers."""
    return 0 <= seconds <= LONGEST_TIME


def times_told(told: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, Any]]:
    """What was told as times: those that can be some, and for `extra` a note of those that cannot."""
    times = {name: float(seconds) for name, seconds in told.items() if is_time(seconds)}
    odd = {name: _shown(seconds) for name, seconds in told.items() if name not in times}
    return times, {TIMES_LEFT_OUT: odd} if odd else {}


def _shown(number: Any) -> str:
    try:
        return f"{float(number):.3g}"
    except OverflowError:
        return "beyond every clock"


def seconds_of(output: SystemOutputs, name: str) -> float | None:
    """A time of an output; None where it tells none, ScoringError where what it tells is no time."""
    seconds: Any = output.timings.get(name)
    if seconds is not None and is_time(seconds):
        return float(seconds)
    left_out = output.extra.get(TIMES_LEFT_OUT)
    told = left_out.get(name) if seconds is None and isinstance(left_out, dict) else seconds
    if told is None:
        return None
    raise ScoringError(f"the timing {name!r} is no time: {told!s:.40}")


def names_documents(output: SystemOutputs) -> bool:
    """Whether a system said which documents it found, be it none: a mark in `extra` tells that it did not."""
    return output.extra.get(DOCUMENTS_MISSING) is not True


@dataclass(frozen=True, slots=True)
class SampleScore:
    """A metric's verdict on one sample.

    `value` is None where nothing was measured and `reason` says why: the sample does not call for
    this metric (skipped), or the system or the scoring failed (`failed`). `parts` are the sample's
    sufficient statistics for metrics that are more than a mean.
    """

    value: float | None
    reason: str = ""
    parts: tuple[float, ...] = ()
    sample_id: str = ""
    failed: bool = False


@dataclass
class MetricResult:
    """A metric's value on a dataset: NaN when nothing was scored. Coverage stands in `details`."""

    name: str
    target: TargetCategory
    value: float
    details: dict[str, Any] = field(default_factory=dict)
    scores: Sequence[SampleScore] = field(default_factory=list, repr=False)


@dataclass
class EvaluationRun:
    """A finished evaluation: everything needed to report it, compare it and score it again."""

    evaluation_id: str
    system_name: str
    dataset_name: str
    dataset_fingerprint: str
    results: list[MetricResult]
    samples: list[EvaluationSample] = field(repr=False)
    outputs: list[SystemOutputs] = field(repr=False)
    top_k: int = 5
    seed: int = 0
    started_at: str = ""
    seconds: float = 0.0
    environment: dict[str, Any] = field(default_factory=dict)
    configuration: dict[str, Any] = field(default_factory=dict)
    resource_usage: dict[str, Any] | None = None  # of the system's calls; None if it was not called
    snapshot: dict[str, Any] = field(default_factory=dict)  # version and manifest of the dataset, if known
    stopping: Stopping | None = None  # of a run that was to stop as soon as its verdict is clear

    def result(self, name: str) -> MetricResult:
        """The result of one metric, by its name."""
        for result in self.results:
            if result.name == name:
                return result
        raise KeyError(f"no metric {name!r} in run {self.evaluation_id}: {[r.name for r in self.results]}")
