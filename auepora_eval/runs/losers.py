"""The samples that the candidate lost most on, with what was asked and what both systems said."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ..core.types import EvaluationRun, EvaluationSample, TargetCategory
from .compare import Comparison, MetricComparison
from .repeats import single_id
from .storage import chosen_samples, stored_predictions

_FINDING = (TargetCategory.RETRIEVAL_RELEVANCE, TargetCategory.RETRIEVAL_ACCURACY)
_NO_QUALITY = (TargetCategory.LATENCY, TargetCategory.DIVERSITY)


class _Targeted(Protocol):
    @property
    def target(self) -> TargetCategory: ...


One = TypeVar("One", bound=_Targeted)


@dataclass(frozen=True)
class Text:
    """What was asked, the answer (None where there was none), the documents found, and the right ones.

    `error` is why there is no answer, where the call failed.
    """

    query: str
    answer: str | None
    documents: tuple[str, ...] | None = None
    right: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True)
class LostSample:
    """One sample with both answers and both scores; a text that is not known is None.

    `of_documents` tells that the metric is about the documents found, by their ids, the first first;
    `right` are those that should have been. An `error` is why there is neither. `lost_in_all` counts the
    samples that lost on this metric, shown or not.
    """

    metric: str
    unit: str
    sample_id: str
    query: str | None
    baseline_answer: str | None
    candidate_answer: str | None
    baseline: float
    candidate: float
    of_documents: bool = False
    baseline_documents: tuple[str, ...] | None = None
    candidate_documents: tuple[str, ...] | None = None
    right: tuple[str, ...] = ()
    baseline_error: str | None = None
    candidate_error: str | None = None
    lost_in_all: int = 0


def quality_first(metrics: Sequence[One]) -> list[One]:
    """Metrics of how good answers and documents are, in their order; times and variety after them."""
    return sorted(metrics, key=lambda metric: metric.target in _NO_QUALITY)


def lost_most(comparison: Comparison) -> MetricComparison | None:
    """The metric to look at first: of quality, one that is surely worse, or else the first that lost any."""
    losing = [one for one in comparison.metrics if one.losers and one.target not in _NO_QUALITY]
    worse = [metric for metric in losing if metric.verdict == "worse"]
    return next(iter([*worse, *losing]), None)


def lost_samples(
    metric: MetricComparison, baseline: Mapping[str, Text], candidate: Mapping[str, Text], count: int
) -> list[LostSample]:
    """The first `count` losers of a metric with their texts, as far as these are known."""
    found = []
    for loser in metric.losers[:count]:
        ours, theirs = baseline.get(loser.sample_id), candidate.get(loser.sample_id)
        asked = ours or theirs
        found.append(
            LostSample(
                metric.name,
                metric.unit,
                loser.sample_id,
                asked.query if asked else None,
                ours.answer if ours else None,
                theirs.answer if theirs else None,
                loser.baseline,
                loser.candidate,
                metric.target in _FINDING,
                ours.documents if ours else None,
                theirs.documents if theirs else None,
                asked.right if asked else (),
                ours.error if ours else None,
                theirs.error if theirs else None,
                metric.questions_lost,
            )
        )
    return found


def texts_of(run: EvaluationRun, ids: Container[str]) -> dict[str, Text]:
    """The texts of some samples of a run in memory."""
    return {
        sample.sample_id: Text(
            sample.query,
            None if output.error else output.response.text,
            None if output.error else tuple(hit.doc.doc_id for hit in output.retrieved),
            _right(sample),
            f"{output.error.type}: {output.error.message}" if output.error else None,
        )
        for sample, output in zip(run.samples, run.outputs, strict=False)
        if sample.sample_id in ids
    }


def stored_texts(results_file: Path, ids: Iterable[str]) -> dict[str, Text]:
    """The texts of some samples of a stored run, by its results file; the others are passed over."""
    wanted = set(ids)
    given: dict[str, _Given] = {}
    for _, record in stored_predictions(results_file):
        sample_id = record.get("sample_id")
        if isinstance(sample_id, str) and sample_id in wanted:
            given[sample_id] = _given(record)
    found = {}
    for sample in chosen_samples(results_file, wanted):
        answer, documents, error = given.get(sample.sample_id, (None, None, None))
        found[sample.sample_id] = Text(sample.query, answer, documents, _right(sample), error)
    return found


def stored_texts_of_repeats(results_files: Sequence[Path], ids: Iterable[str]) -> dict[str, Text]:
    """The same of the repeats of a system, by the ids that the samples have in the pooled run."""
    pooled = list(ids)
    found: dict[str, Text] = {}
    for number, results_file in enumerate(results_files):
        names = {single: name for name in pooled if (single := single_id(name, number)) is not None}
        found |= {names[single]: text for single, text in stored_texts(results_file, names).items()}
    return found


_Given = tuple[str | None, tuple[str, ...] | None, str | None]  # the answer, the documents, the error


def _given(record: Mapping[str, Any]) -> _Given:
    """What a system gave, of a stored prediction."""
    response, error = record.get("response"), record.get("error")
    if error:
        told = f"{error.get('type')}: {error.get('message')}" if isinstance(error, dict) else str(error)
        return None, None, told
    text = response.get("text") if isinstance(response, dict) else None
    return text if isinstance(text, str) else None, _documents(record.get("retrieved")), None


def _documents(retrieved: Any) -> tuple[str, ...] | None:
    if not isinstance(retrieved, list):
        return None
    return tuple(str(hit["doc_id"]) for hit in retrieved if isinstance(hit, dict) and "doc_id" in hit)


def _right(sample: EvaluationSample) -> tuple[str, ...]:
    return tuple(doc.doc_id for doc in sample.relevant_docs or ())
