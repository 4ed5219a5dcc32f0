"""Does a metric see what people see? The metrics of a run against the scores that people gave its answers.

The human ceiling stands beside it: how well one person's score goes with the mean of the others'. A metric
cannot be shown to be better than the people it is measured by.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import fmean

from ..core.batch import cluster_names, shared_or_none
from ..core.scores import as_columns
from ..core.types import EvaluationRun
from ..errors import DataError
from ..io.ground_truth import Annotation
from ..stats.correlation import KINDS, Correlation, Kind, correlation

OVERALL = "overall_score"
Correlations = dict[Kind, Correlation]


@dataclass
class HumanComparison:
    """How the metrics of a run go with people's scores, and people with each other."""

    score: str
    answers: int  # answers of the run that people scored
    annotators: list[str]
    metrics: dict[str, Correlations] = field(default_factory=dict)
    ceiling: Correlations | None = None  # None if no answer was scored by two people
    other_answers: int = 0  # annotations of an answer that is not the run's
    not_in_run: int = 0  # annotations of a query that the run does not have


def compare_with_people(
    run: EvaluationRun, annotations: Iterable[Annotation], *, score: str = OVERALL, seed: int = 0
) -> HumanComparison:
    """Correlate each metric of a run, answer by answer, with the mean of people's scores.

    `score` is `overall_score` (the mean of the parts where it is not stated) or the name of a quality score.
    Only annotations of the very answer that the run gave count.
    """
    found = HumanComparison(score, 0, [])
    given = _scores_by_sample(run, annotations, found)
    found.answers = len(given)
    if not given:
        raise DataError(
            run.evaluation_id,
            f"none of its answers has a {score!r:.80} by a person: {found.other_answers} annotations are of "
            f"other answers, {found.not_in_run} of other queries.",
            fix="Annotate the answers of this run, or choose another score.",
        )
    clusters = cluster_names(run.samples)
    cluster_of = dict(zip((sample.sample_id for sample in run.samples), clusters or (), strict=False))
    people = {sample_id: fmean(said.values()) for sample_id, said in given.items()}
    for result in run.results:
        scores = as_columns(result.scores)
        places = [place for place, sample_id in enumerate(scores.sample_ids) if sample_id in people]
        if not places:
            continue
        ids = [scores.sample_ids[place] for place in places]
        theirs, ours = [people[sample_id] for sample_id in ids], scores.values[places]
        units = shared_or_none([cluster_of[sample_id] for sample_id in ids]) if cluster_of else None
        found.metrics[result.name] = {
            kind: correlation(ours, theirs, kind, clusters=units, seed=seed) for kind in KINDS
        }
    found.ceiling = human_ceiling([list(said.values()) for said in given.values()], seed=seed)
    return found


def human_ceiling(ratings: Iterable[list[float]], *, seed: int = 0) -> Correlations | None:
    """One person against the mean of the others, over all people and items; None without two on an item.

    The scores of one item are not independent: they are resampled together.
    """
    one, others, items = [], [], []
    for item, given in enumerate(ratings):
        total = math.fsum(given)
        for value in given if len(given) > 1 else ():
            one.append(value)
            others.append((total - value) / (len(given) - 1))
            items.append(item)
    if not one:
        return None
    return {kind: correlation(one, others, kind, clusters=items, seed=seed) for kind in KINDS}


def human_score(annotation: Annotation, score: str) -> float | None:
    """The score that a person gave; None if they did not."""
    parts = annotation.get("quality_scores") or {}
    if score == OVERALL:
        stated = annotation.get(OVERALL)
        if stated is not None:
            return float(stated)
        return fmean(parts.values()) if parts else None
    value = parts.get(score.removeprefix("quality_scores."))
    return None if value is None else float(value)


def _scores_by_sample(
    run: EvaluationRun, annotations: Iterable[Annotation], found: HumanComparison
) -> dict[str, dict[str, float]]:
    answers = {
        sample.sample_id: _plain(output.response.text)
        for sample, output in zip(run.samples, run.outputs, strict=True)
        if output.error is None
    }
    given: dict[str, dict[str, float]] = {}
    for number, annotation in enumerate(annotations):
        value = human_score(annotation, score=found.score) if "answer_text" in annotation else None
        if value is None:
            continue
        query_id = annotation["query_id"]
        if query_id not in answers:
            found.not_in_run += 1
        elif answers[query_id] != _plain(annotation["answer_text"]):
            found.other_answers += 1
        else:
            name = str(annotation.get("annotator_id") or f"annotation {number}")
            given.setdefault(query_id, {})[name] = value
            if name not in found.annotators:
                found.annotators.append(name)
    return given


def _plain(text: str) -> str:
    """Line breaks and spaces are no part of an answer."""
    return " ".join(text.split())
