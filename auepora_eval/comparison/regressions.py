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


@dataclass(frozen=True)
class LostSample:
    """One sample with both scores, and what the baseline (`before`) and the candidate (`now`) made of it.

    `of_documents` marks a metric about the retrieved documents, which are named by id, best first.
    `lost_in_all` counts the samples that lost on this metric, shown or not.
    """

    metric: str
    unit: str
    sample_id: str
    baseline: float
    candidate: float
    before: Text
    now: Text
    of_documents: bool = False
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
    return [
        LostSample(
            metric=metric.name,
            unit=metric.unit,
            sample_id=lost.sample_id,
            baseline=lost.baseline,
            candidate=lost.candidate,
            before=baseline.get(lost.sample_id, Text()),
            now=candidate.get(lost.sample_id, Text()),
            of_documents=metric.target in RETRIEVAL,
            lost_in_all=metric.questions_lost,
        )
        for lost in metric.regressions[:count]
    ]


def stored_texts(results_files: Sequence[Path], ids: Iterable[str]) -> dict[str, Text]:
    """The texts of some samples of a run, or of its repeats, by its results file; others are passed over.

    A sample of a later repeat has the id that it has among those of all repeats.
    """
    pooled = list(ids)
    texts: dict[str, Text] = {}
    for number, results_file in enumerate(results_files):
        if not database_of(results_file).exists():
            continue  # a document alone, such as a baseline, has no texts
        names = {single: name for name in pooled if (single := single_id(name, number)) is not None}
        with RunSamples(results_file) as run:
            match = match_of(run.run)
            found = run.named(names)
        texts |= {names[single]: _text(*pair, match) for single, pair in found.items()}
    return texts


def _text(sample: EvaluationSample, output: SystemOutputs, match: str) -> Text:
    if output.error is not None:
        return Text(sample.query, None, error=f"{output.error.type}: {output.error.message}")
    documents = tuple(retrieved_ids(output.retrieved))
    is_gold, _ = gold_found(sample, output, match)
    return Text(sample.query, output.response.text, documents, tuple(compress(documents, is_gold)))
