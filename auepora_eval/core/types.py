"""The data types: what a dataset contains, what a system returns, what a metric reports about it."""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import Enum, auto
from heapq import nsmallest
from numbers import Integral
from operator import gt
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from ..errors import Failure as Failure  # noqa: PLC0414 - a part of an output
from ..errors import ScoringError, StorageError, check_type, wrong_type
from .display import bounds_text, failures_text, interval_text, value_text
from .hooks import RUN_ACTIONS
from .table import Table, frame_of

if TYPE_CHECKING:
    from .verdict import Stopping

# The keys under which a sample of a label set keeps what a system must not see.
TRUE_LABEL, PAIR, STORED_OUTPUT = "ground_truth_label", "contradiction_pair_id", "stored_output"


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


# The targets of metrics about which documents were retrieved, and about the answer itself.
RETRIEVAL = (TargetCategory.RETRIEVAL_RELEVANCE, TargetCategory.RETRIEVAL_ACCURACY)
GENERATION = (
    TargetCategory.GENERATION_RELEVANCE,
    TargetCategory.GENERATION_FAITHFULNESS,
    TargetCategory.GENERATION_CORRECTNESS,
)


@dataclass(frozen=True)
class NamedTarget:
    """A target that a user named, beside Auepora's ten."""

    name: str


Target = TargetCategory | NamedTarget


@dataclass(slots=True)
class Document:
    """A text with an id. `metadata["relevance"]` grades a gold document (1 when absent)."""

    doc_id: str
    text: str
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class RetrievedDocument:
    """A retrieved document at its place in the list; rank 1 is the best."""

    doc: Document
    score: float
    rank: int


def known_score(hit: RetrievedDocument) -> float | None:
    """Return the score of the system; None if it gave none and `score` is 1/rank to keep the order."""
    return None if hit.doc.metadata and hit.doc.metadata.get("score_missing") is True else hit.score


def in_single(scores: Iterable[float]) -> array[float]:
    """Return scores in 32 bits, as trec_eval holds them: a difference beyond those is a tie."""
    return array("f", scores)


def falls(scores: Iterable[float]) -> bool:
    """Return whether each score is lower than the one before it, as trec_eval compares them."""
    singles = in_single(scores).tolist()
    return all(map(gt, singles, singles[1:]))


class RankedIds(Sequence[RetrievedDocument]):
    """Retrieved documents that are only ids with scores, in the order of their ranks.

    A run of TREC has millions of them: the documents are made when they are asked for.

    >>> RankedIds(["d7", "d2"], [3.5, 1.0])[1]
    RetrievedDocument(doc=Document(doc_id='d2', text='', metadata={}), score=1.0, rank=2)
    """

    __slots__ = ("doc_ids", "scores")

    def __init__(self, doc_ids: list[str], scores: list[float]) -> None:
        self.doc_ids, self.scores = doc_ids, scores

    @classmethod
    def by_score(cls, doc_ids: list[str], scores: list[float]) -> RankedIds:
        """Order documents as trec_eval: by score, and by id in descending order where scores are equal."""
        # As nearly always. NaN is never greater, so that only the last may be one.
        if falls(scores) and not (scores and math.isnan(scores[-1])):
            return cls(doc_ids, scores)
        known = [-sys.float_info.max if math.isnan(score) else score for score in scores]
        hits = sorted(zip(in_single(known), doc_ids, known, strict=True), reverse=True)
        return cls([doc_id for _, doc_id, _ in hits], [score for _, _, score in hits])

    def __len__(self) -> int:
        return len(self.doc_ids)

    @overload
    def __getitem__(self, place: int) -> RetrievedDocument: ...
    @overload
    def __getitem__(self, place: slice) -> list[RetrievedDocument]: ...
    def __getitem__(self, place: int | slice) -> RetrievedDocument | list[RetrievedDocument]:
        if isinstance(place, slice):
            return [self[n] for n in range(*place.indices(len(self)))]
        place = range(len(self))[place]
        return RetrievedDocument(Document(self.doc_ids[place], ""), self.scores[place], place + 1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # equal by content, as a list is

    def __repr__(self) -> str:
        return repr(list(self))


def retrieved_ids(hits: Sequence[RetrievedDocument]) -> list[str]:
    """Return the ids of retrieved documents, in the order of the list."""
    return hits.doc_ids if isinstance(hits, RankedIds) else [hit.doc.doc_id for hit in hits]


def known_scores(hits: Sequence[RetrievedDocument]) -> list[float | None]:
    """Return the `known_score` of each hit. Most have no metadata, where a mark could be."""
    if isinstance(hits, RankedIds):
        return list(hits.scores)
    return [known_score(hit) if hit.doc.metadata else hit.score for hit in hits]


def gold_documents(sample: EvaluationSample) -> list[Document]:
    """Return the relevant documents of a sample; one with the grade 0 was judged not to be relevant."""
    return [
        doc
        for doc in sample.relevant_docs or ()
        # A grade that is not given, or NaN, is not 0.
        if not (isinstance(grade := doc.metadata.get("relevance"), (int, float)) and grade <= 0)
    ]


def unscored(doc: Document, rank: int) -> RetrievedDocument:
    """Return a hit without a score of the system: a mark in its metadata says so (`known_score`)."""
    marked = Document(doc.doc_id, doc.text, {**doc.metadata, "score_missing": True})
    return RetrievedDocument(marked, 1 / max(rank, 1), rank)  # some tools count ranks from 0


@dataclass
class Response:
    """An answer. `metadata["alternatives"]` of a reference lists further correct answers."""

    text: str
    structured: dict[str, Any] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


DocumentForm = Document | str | Mapping[str, Any]
ResponseForm = Response | str | Mapping[str, Any]


@dataclass(init=False)
class EvaluationSample:
    """One row of a dataset: a query, and what is known to be true about it.

    Documents may be given as ids or dicts, the reference answer as a string or a dict.

    >>> EvaluationSample("1", "How many?", relevant_docs=["d1"], reference_answer="22").reference_answer
    Response(text='22', structured=None, metadata={})
    """

    sample_id: str
    query: str

    relevant_docs: list[Document] | None = None
    candidate_docs: list[Document] | None = None
    reference_answer: Response | None = None

    labels: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)

    # Written out, so that editors and type checkers know the forms that are accepted.
    def __init__(
        self,
        sample_id: str | int,
        query: str,
        relevant_docs: Iterable[DocumentForm] | None = None,
        candidate_docs: Iterable[DocumentForm] | None = None,
        reference_answer: ResponseForm | None = None,
        labels: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        self.sample_id = _as_id(sample_id)
        check_type("query", query, "a string", str)
        self.query = query
        self.relevant_docs = _as_documents(relevant_docs, "relevant_docs")
        self.candidate_docs = _as_documents(candidate_docs, "candidate_docs")
        self.reference_answer = None
        if reference_answer is not None:
            self.reference_answer = as_response(reference_answer, "reference_answer")
        self.labels = {} if labels is None else labels
        self.metadata = {} if metadata is None else metadata


def as_response(value: object, argument: str = "answer") -> Response:
    """Return a Response from one, from a string, or from a dict with a "text"."""
    if isinstance(value, Response):
        return value
    if isinstance(value, str):
        return Response(value)
    if isinstance(value, Mapping) and isinstance(value.get("text"), str):
        others = {str(k): part for k, part in value.items() if k not in ("text", "structured", "metadata")}
        return Response(value["text"], value.get("structured"), {**others, **(value.get("metadata") or {})})
    raise wrong_type(argument, "a string, a Response or a dict with 'text'", value)


def as_document(value: object, argument: str = "document") -> Document:
    """Return a Document from one, from an id, or from a dict with a "doc_id"."""
    if isinstance(value, Document):
        return value
    if isinstance(value, str):
        return Document(value, "")
    if isinstance(value, Mapping) and isinstance(value.get("doc_id"), str | Integral):
        return Document(str(value["doc_id"]), str(value.get("text") or ""), dict(value.get("metadata") or {}))
    raise wrong_type(argument, "an id, a Document or a dict with 'doc_id'", value)


def _as_documents(documents: object, argument: str) -> list[Document] | None:
    if documents is None:
        return None
    # The same list is returned where it needs no change, as a caller may still add to it.
    if type(documents) is list and {Document}.issuperset(map(type, documents)):
        return documents
    if isinstance(documents, str | bytes | Mapping) or not hasattr(documents, "__iter__"):
        raise wrong_type(argument, "a list of ids, Documents or dicts with 'doc_id'", documents)
    return [as_document(document, f"{argument}[{n}]") for n, document in enumerate(documents)]


def _as_id(value: object) -> str:
    # Numbers of rows are common ids; True is also an Integral, and is a mistake.
    if isinstance(value, str) or (isinstance(value, Integral) and not isinstance(value, bool)):
        return str(value)
    raise wrong_type("sample_id", "a string or a whole number", value)


@dataclass
class SystemOutputs:
    """What a system returned for one sample; `error` is set if the call failed."""

    retrieved: Sequence[RetrievedDocument]
    response: Response

    timings: dict[str, float] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)
    error: Failure | None = None


# Marks in `extra`: what an output does not say, which is not the same as an empty list or an empty answer.
DOCUMENTS_MISSING, ANSWER_MISSING = "documents_missing", "answer_missing"
DOCUMENTS_GIVEN = "documents_given"  # in `extra`, set by the run: the system got its sample's own documents
CONTEXTS_AS_RETRIEVED = "contexts_as_retrieved"  # in `extra`: the documents are the dataset's own
END_TO_END = "end_to_end"
TIMES_LEFT_OUT = "times_left_out"  # in `extra`: reported timings that cannot be times, by name
LONGEST_TIME = 1e9  # seconds; a call that is said to take more than thirty years was not measured


def is_time(seconds: float) -> bool:
    """Whether a number can be a duration: sums of such numbers are finite."""
    return 0 <= seconds <= LONGEST_TIME


def split_timings(reported: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, dict[str, str]]]:
    """Return the reported timings that can be durations, and for `extra` a note of the others."""
    timings = {name: float(seconds) for name, seconds in reported.items() if is_time(seconds)}
    implausible = {name: f"{seconds!s:.12}" for name, seconds in reported.items() if name not in timings}
    return timings, {TIMES_LEFT_OUT: implausible} if implausible else {}


def seconds_of(output: SystemOutputs, name: str) -> float | None:
    """Return a timing of an output, None if it has none; ScoringError if it is not a duration."""
    seconds: Any = output.timings.get(name)
    if seconds is not None and is_time(seconds):
        return float(seconds)
    left_out = output.extra.get(TIMES_LEFT_OUT)
    reported = left_out.get(name) if seconds is None and isinstance(left_out, dict) else seconds
    if reported is None:
        return None
    raise ScoringError(f"the timing {name!r} is not a duration: {reported!s:.40}")


def names_documents(output: SystemOutputs) -> bool:
    """Whether the output lists its documents, even if there are none; `extra` marks those that do not."""
    return output.extra.get(DOCUMENTS_MISSING) is not True


def names_answer(output: SystemOutputs) -> bool:
    """Whether the output has an answer, even an empty one; `extra` marks those that only retrieve."""
    return output.extra.get(ANSWER_MISSING) is not True


@dataclass(frozen=True, slots=True)
class SampleScore:
    """A metric's score of one sample.

    `value` is None if nothing was measured and `reason` says why: the metric does not apply to the sample
    (skipped), or the system failed, or the scoring did (`failed`, `of_metric`). `parts` are the sample's
    sufficient statistics for metrics that are not a mean.
    """

    value: float | None
    reason: str = ""
    parts: tuple[float, ...] = ()
    sample_id: str = ""
    failed: bool = False
    of_metric: bool = False


NOT_ESTIMABLE = "not estimable"  # the method of an interval that the data cannot give

# The counts in the details of a result, in the order of the fields of Coverage.
COUNTS = ("num_total", "num_samples", "num_skipped", "num_failed")


@dataclass(frozen=True)
class Coverage:
    """How many samples a value is based on. Counts that a metric does not report are 0."""

    total: int
    scored: int
    skipped: int
    failed: int

    def as_details(self) -> dict[str, int]:
        """Return the counts as the details of a result have them."""
        return dict(zip(COUNTS, (self.total, self.scored, self.skipped, self.failed), strict=True))

    @property
    def concerned(self) -> int:
        """How many samples the metric is about, failed ones included."""
        return self.scored + self.failed

    @property
    def share(self) -> float:
        """The share of the samples that did not fail; 1 if there are none."""
        return 1 - self.failed / self.total if self.total else 1.0


@dataclass
class MetricResult:
    """A metric's value on a dataset: NaN if nothing was scored.

    The properties read `details`, which is what is stored; a metric of your own may fill it partly.
    """

    name: str
    target: Target  # a name or a member of another Enum is accepted, and becomes a target
    value: float
    details: dict[str, Any] = field(default_factory=dict)
    scores: Sequence[SampleScore] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        self.target = as_target(self.target)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95% interval of the value; None if the data cannot give one."""
        low, high = self._pair("confidence_interval") or (None, None)
        return None if low is None or high is None or low > high else (low, high)

    @property
    def interval_method(self) -> str:
        """How the interval was computed, or why there is none."""
        return str(self.details.get("interval_method", NOT_ESTIMABLE))

    def with_interval(self, limits: tuple[float, float] | None, method: str) -> MetricResult:
        """Return the result with another interval."""
        interval = None if limits is None else list(limits)
        details = {**self.details, "confidence_interval": interval, "interval_method": method}
        return replace(self, details=details)

    @property
    def coverage(self) -> Coverage:
        """How many samples were scored, skipped and failed."""
        total, scored, skipped, failed = map(self._count, COUNTS)
        return Coverage(total or scored + skipped + failed, scored, skipped, failed)

    @property
    def reports_coverage(self) -> bool:
        """Whether the number of scored samples is known; a metric of your own may not report it."""
        return "num_samples" in self.details

    @property
    def if_failed(self) -> tuple[float | None, float | None] | None:
        """The value if all that failed had scored lowest, and highest (None: unbounded); None if none did."""
        return self._pair("bounds_if_failed")

    def worst(self, count: int = 5) -> list[SampleScore]:
        """Return the samples that failed, then the worst scores; equal ones in the order of their ids.

        A sample that has the best value that there is, such as a recall of 1, is not among the worst.
        """
        sign = 1 if self.higher_is_better else -1
        low, high = self.bounds or (None, None)
        best = high if self.higher_is_better else low
        bad = [
            one
            for one in self.scores
            if (one.failed if one.value is None else best is None or not math.isclose(one.value, best))
        ]
        return nsmallest(count, bad, key=lambda one: (not one.failed, sign * (one.value or 0), one.sample_id))

    @property
    def bounds(self) -> tuple[float | None, float | None] | None:
        """The lowest and the highest value that the metric can have; None in it is "unbounded"."""
        return self._pair("bounds")

    @property
    def is_share(self) -> bool:
        """Whether the values of the metric lie between 0 and 1; without bounds its value decides."""
        low, high = self.bounds or (0.0, 1.0)
        in_range = not math.isfinite(self.value) or 0 <= self.value <= 1
        return in_range and not self.unit and low is not None and low >= 0 and high is not None and high <= 1

    @property
    def higher_is_better(self) -> bool:
        """False for times, costs and error rates."""
        return self.details.get("higher_is_better", True) is not False

    @property
    def unit(self) -> str:
        """ "s" for seconds, else ""; the unit of a latency metric is seconds unless it reports another."""
        return str(self.details.get("unit", "s" if self.target is TargetCategory.LATENCY else ""))

    @property
    def signature(self) -> Mapping[str, object]:
        """What besides the name decides whether two values may be compared."""
        signature: Mapping[str, object] = self.details.get("signature") or {}
        return signature

    @property
    def not_measured(self) -> str:
        """Why the metric could not score anything, if that is known of the whole run; else ""."""
        return str(self.details.get("not_measured") or "")

    @property
    def notes(self) -> list[str]:
        """What the value alone does not show: ids that never match, scores that contradict the ranks."""
        notes = self.details.get("notes")
        return [note for note in notes if isinstance(note, str)] if isinstance(notes, list) else []

    def _count(self, key: str) -> int:
        # Stored results can be edited by hand: what is not a count is not reported.
        count = self.details.get(key)
        return count if isinstance(count, int) else 0

    def _pair(self, key: str) -> tuple[float | None, float | None] | None:
        match self.details.get(key):
            case [float() | int() | None as low, float() | int() | None as high]:
                return low, high
        return None


RESULT_HEADINGS = ("Target", "Metric", "Value", "95% interval", "Scored", "Skipped", "Failed", "If failed")


def result_cells(result: MetricResult) -> tuple[str, ...]:
    """Return the cells of one result, in the order of RESULT_HEADINGS; "-" for what is not reported."""
    coverage, details = result.coverage, result.details
    scored = f"{coverage.scored}/{coverage.total}" if "num_total" in details else str(coverage.scored)
    return (
        result.target.name,
        result.name,
        value_text(result.value, result.unit, interval=result.interval),
        interval_text(result.interval, result.unit),
        scored if "num_samples" in details else "-",
        str(coverage.skipped) if "num_skipped" in details else "-",
        str(coverage.failed) if "num_failed" in details else "-",
        bounds_text(result.if_failed, result.unit),
    )


def results_table(results: Sequence[MetricResult], title: str = "") -> Table:
    """Return the table of what was measured, by target; metrics where lower is better have an arrow."""
    # The last column, the range with failures scored, is empty unless something failed.
    width = len(RESULT_HEADINGS) - (not any(result.coverage.failed for result in results))
    rows: list[Sequence[str]] = []
    targets = list(dict.fromkeys(result.target for result in results))
    # Metrics of one target together: a judge may have added some at the end.
    results = sorted(results, key=lambda result: targets.index(result.target))
    shown = [result for result in results if not result.not_measured] or results
    for place, result in enumerate(shown):
        if place == 0 or result.target != shown[place - 1].target:
            rows.append([result.target.name])
        arrow = "" if result.higher_is_better else " ↓"
        rows.append([f"{result.name}{arrow}", *result_cells(result)[2:width]])
    notes = result_notes(results, shown)
    return Table(RESULT_HEADINGS[1:width], rows, title, notes, numeric=range(1, 8), spare=(4, 5))


def result_notes(results: Sequence[MetricResult], shown: Sequence[MetricResult]) -> list[str]:
    """Return what was not measured or is suspect, and what a reader of the shown values has to know."""
    from ..stats.intervals import TOO_NARROW

    reasons: dict[str, list[str]] = {}
    for result in results:
        if result.not_measured:
            reasons.setdefault(result.not_measured, []).append(result.name)
    notes = [f"Not measured ({reason}): {', '.join(names)}" for reason, names in reasons.items()]
    about: dict[str, list[str]] = {}
    for result in results:
        for note in result.notes:
            # A note of one metric starts with its name; what several say is said once.
            text = note.removeprefix(f"{result.name}: ")
            about.setdefault(text, []).extend([result.name] if text != note else [])
    notes += [f"{', '.join(names)}: {text}" if names else text for text, names in about.items()]
    if narrow := [result.name for result in shown if TOO_NARROW in result.interval_method]:
        few = "Fewer than 50 samples: if a label is rare, intervals are too narrow"
        notes.append(f"{few} ({', '.join(narrow)})")
    for result in shown:
        # Most metrics are shares. One that is not, such as BLEU, says so.
        low, high = result.bounds or (None, None)
        if low is not None and high is not None and high != 1:
            notes.append(f"{result.name} has a scale of {low:g} to {high:g}.")
    return notes


@dataclass(repr=False)
class EvaluationRun:
    """A finished evaluation: everything needed to report it, compare it and score it again.

    `print(run)` shows the table of results, `run["recall@5"]` is the result of one metric.
    """

    evaluation_id: str
    system_name: str
    dataset_name: str
    dataset_fingerprint: str
    results: list[MetricResult]
    samples: list[EvaluationSample]
    outputs: list[SystemOutputs]
    top_k: int = 5
    seed: int = 0
    started_at: str = ""
    seconds: float = 0.0
    environment: dict[str, Any] = field(default_factory=dict)
    configuration: dict[str, Any] = field(default_factory=dict)
    resource_usage: dict[str, Any] | None = None  # of the system's calls; None if it was not called
    snapshot: dict[str, str] = field(default_factory=dict)  # version and manifest of the dataset, if known
    stopping: Stopping | None = None  # of a run that stops early once its verdict is clear
    sample_count: int = 0  # this and `failed`, by sample, are also known of a run that is on the disk
    failed: dict[str, Failure] = field(default_factory=dict)

    def result(self, name: str) -> MetricResult:
        """Return the result of one metric, by its name."""
        for result in self.results:
            if result.name == name:
                return result
        raise KeyError(f"no metric {name!r} in run {self.evaluation_id}: {[r.name for r in self.results]}")

    __getitem__ = result

    def __iter__(self) -> Iterator[MetricResult]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __contains__(self, name: object) -> bool:
        return any(result.name == name for result in self.results)

    def worst(self, metric: str, count: int = 5) -> list[SampleScore]:
        """Return the samples that failed, then the worst scores on a metric."""
        return self.result(metric).worst(count)

    def __str__(self) -> str:
        return str(self.table())

    def __repr__(self) -> str:
        size = f"{self._size():,} samples, {len(self.results)} metrics"
        return f"<EvaluationRun {self.evaluation_id}: {self.system_name} on {self.dataset_name}, {size}>"

    def _repr_html_(self) -> str:
        return self.table().to_html()

    def table(self) -> Table:
        """Return the table of results, with what was run as its title."""
        count = self._size()
        samples = "1 sample" if count == 1 else f"{count:,} samples"
        title = f"{self.system_name} on {self.dataset_name}: {samples}, top_k {self.top_k}"
        table = results_table(self.results, title)
        failures = self.failures_in_words()
        return replace(table, notes=[failures, *table.notes]) if failures else table

    def _size(self) -> int:
        totals = (result.coverage.total for result in self.results)
        return len(self.samples) or self.sample_count or max(totals, default=0)

    def failures(self) -> list[dict[str, object]]:
        """Return a dict per call that failed: sample_id, type, message, seconds, traceback (your lines)."""
        return [{"sample_id": name, **asdict(one)} for name, one in self.failed_calls().items()]

    def failed_calls(self) -> dict[str, Failure]:
        """Return why calls failed, by sample."""
        pairs = zip(self.samples, self.outputs, strict=False)
        return {sample.sample_id: out.error for sample, out in pairs if out.error is not None} or self.failed

    def failures_in_words(self) -> str:
        """Return how many calls failed, and the most common reasons; "" if none failed."""
        return failures_text(map(str, self.failed_calls().values()), self._size())

    def to_records(self) -> list[dict[str, object]]:
        """Return one dict per sample: its id, query, answer, error, and its score on each metric.

        A score is None if the metric was skipped or failed on the sample.
        """
        records: dict[str, dict[str, object]] = {}
        for sample, output in zip(self.samples, self.outputs, strict=False):
            error = None if output.error is None else f"{output.error.type}: {output.error.message}"
            about = {"query": sample.query, "answer": output.response.text, "error": error}
            records[sample.sample_id] = {"sample_id": sample.sample_id, **about}
        for result in self.results:
            for score in result.scores:
                # A run that was loaded without its texts has scores only.
                record = records.setdefault(score.sample_id, {"sample_id": score.sample_id})
                record[result.name] = score.value
        return list(records.values())

    def to_frame(self) -> Any:
        """Return `to_records()` as a DataFrame of pandas or, if only that is installed, of polars."""
        return frame_of(self.to_records())

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Store the run and return the path of its results document.

        `path` is a folder of runs, or the document itself: "results/mine.results.json" stores it as "mine".
        """
        check_type("path", path, "the path of a folder or of a .results.json", str, PathLike)
        if any(len(result.scores) > len(self.samples) for result in self.results):
            raise StorageError(
                f"run {self.evaluation_id!r} has its scores in memory but not its samples and outputs. "
                "It is stored already: load it with load_run() to store it elsewhere."
            )
        run, folder = self, Path(path)
        if folder.name.endswith(".results.json"):
            run, folder = replace(self, evaluation_id=folder.name[: -len(".results.json")]), folder.parent
        elif folder.suffix == ".json":
            raise StorageError(f"{folder.name}: the name of a run is {folder.stem}.results.json. Use that.")
        return Path(RUN_ACTIONS["save"](run, folder, force))

    def to_html(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the pages of the run, with its samples, to one file and return its path."""
        RUN_ACTIONS["to_html"](self, Path(path), force)
        return Path(path)

    def view(self, *flags: str) -> None:
        """Show the run in a browser until Ctrl-C, in a notebook until Python ends; `flags`: "--no-open"."""
        RUN_ACTIONS["view"](self, flags)


# The targets that a user names, beside the ten.


def target_of(name: str) -> Target:
    """Return the target of that name, one of the ten or one that a user named: target_of("tone").name."""
    category = name.strip().upper()
    return TargetCategory[category] if category in TargetCategory.__members__ else NamedTarget(name.strip())


def as_target(target: Target | Enum | str) -> Target:
    """Return a target from one, from its name, or from a member of an Enum of the user's own."""
    if isinstance(target, TargetCategory | NamedTarget):
        return target
    if isinstance(target, Enum | str):
        return target_of(target.name if isinstance(target, Enum) else target)
    raise wrong_type("target", "a TargetCategory, a name, or a member of an Enum", target)
