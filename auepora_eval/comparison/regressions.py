"""The samples that the candidate lost most on, with what was asked and what both systems said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path

from ..core.matching import gold_found, match_of
from ..core.types import RETRIEVAL, EvaluationSample, SystemOutputs, TargetCategory, retrieved_ids
from ..core.verdict import Verdict
from ..store.pages import RunSamples
from ..store.storage import database_of
from .compare import Comparison, MetricComparison
from .pairs import single_id

NO_QUALITY = (TargetCategory.LATENCY, TargetCategory.DIVERSITY)


@dataclass(frozen=True)
class Text:
    """What was asked, the answer (None where there was none), the documents found, the right ones of these.

    `error` is why there is no answer, where the call failed.
    """

    query: str | None = None
    answer: str | None = None
    documents: tuple[str, ...] | None = None
    right: tuple[str, ...] = ()
    error: str | None = None


_NOT_STORED = Text()


@dataclass(frozen=True)
class LostSample:
    """One sample with both answers and both scores; a text that is not known is None.

    `of_documents` marks a metric about the retrieved documents, which are named by id, best first;
    `right` are those of them that are gold. An `error` is why there is neither. `lost_in_all` counts the
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


def lost_most(comparison: Comparison) -> MetricComparison | None:
    """Return the quality metric to look at first: a significantly worse one, or else one that lost any."""
    losing = [one for one in comparison.metrics if one.regressions and one.target not in NO_QUALITY]
    worse = [metric for metric in losing if metric.verdict is Verdict.WORSE]
    return next(iter([*worse, *losing]), None)


def lost_samples(
    metric: MetricComparison, baseline: Mapping[str, Text], candidate: Mapping[str, Text], count: int
) -> list[LostSample]:
    """The first `count` regressions of a metric with their texts, as far as these are known."""
    samples = []
    for lost in metric.regressions[:count]:
        ours, theirs = (texts.get(lost.sample_id, _NOT_STORED) for texts in (baseline, candidate))
        samples.append(
            LostSample(
                metric=metric.name,
                unit=metric.unit,
                sample_id=lost.sample_id,
                query=ours.query or theirs.query,
                baseline_answer=ours.answer,
                candidate_answer=theirs.answer,
                baseline=lost.baseline,
                candidate=lost.candidate,
                of_documents=metric.target in RETRIEVAL,
                baseline_documents=ours.documents,
                candidate_documents=theirs.documents,
                right=(*ours.right, *theirs.right),
                baseline_error=ours.error,
                candidate_error=theirs.error,
                lost_in_all=metric.questions_lost,
            )
        )
    return samples


def stored_texts(results_file: Path, ids: Iterable[str]) -> dict[str, Text]:
    """The texts of some samples of a stored run, by its results file; the others are passed over."""
    if not database_of(results_file).exists():
        return {}  # a document alone, such as a baseline, has no texts
    with RunSamples(results_file) as run:
        match = match_of(run.run)
        return {name: _text(*pair, match) for name, pair in run.named(ids).items()}


def stored_texts_of_repeats(results_files: Sequence[Path], ids: Iterable[str]) -> dict[str, Text]:
    """The same of the repeats of a system, by the ids that the samples have in the pooled run."""
    pooled = list(ids)
    texts: dict[str, Text] = {}
    for number, results_file in enumerate(results_files):
        names = {single: name for name in pooled if (single := single_id(name, number)) is not None}
        texts |= {names[single]: text for single, text in stored_texts(results_file, names).items()}
    return texts


def _text(sample: EvaluationSample, output: SystemOutputs, match: str) -> Text:
    if output.error is not None:
        return Text(sample.query, None, error=f"{output.error.type}: {output.error.message}")
    documents = tuple(retrieved_ids(output.retrieved))
    is_gold, _ = gold_found(sample, output, match)
    return Text(sample.query, output.response.text, documents, tuple(compress(documents, is_gold)))
