"""How relevant are the retrieved passages? Grades from 0 to 3 in the wording of TREC, by a judge.

The judge is shown the question and the passages, in one call: no answer, no reference, no rank.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...core.metrics_base import metric, skip
from ...core.scores import Scores
from ...core.types import (
    Document,
    EvaluationSample,
    MetricResult,
    SampleScore,
    SystemOutputs,
    TargetCategory,
    gold_documents,
)
from ..metric import JudgedMetric
from ..question import Part, Question, kind_named, numbered
from ..texts import cut_around

HIGHEST_GRADE = 3
_NOT_RELEVANT = 0.5  # an expected grade below rounds to 0

Placed = Sequence[tuple[int, float]]  # a place, counted from 0, and the grade of the document there


@dataclass
class GradedPassages(JudgedMetric):
    """A metric of the grades that a judge gives to the first k documents.

    A document that is retrieved twice counts at its first place. One without a text cannot be judged: it
    counts as not relevant, as in TREC, and the result says so.
    """

    k: int
    target = TargetCategory.RETRIEVAL_RELEVANCE
    kinds = ("grading",)

    def judged(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        if not sample.query.strip():
            return skip("the question is empty")
        places = first_places(output, self.k)
        # Not skipped: a system must not gain by retrieving nothing.
        if not places:
            return 0.0
        verdicts = self.verdicts(sample, places.values())
        if not verdicts:
            return skip("the documents have no text")
        grades = {doc_id: (part.score or 0.0) * HIGHEST_GRADE for doc_id, part in verdicts.items()}
        placed = [(place, grades[doc.doc_id]) for place, doc in places.items() if doc.doc_id in grades]
        value = self.of_grades(placed, list(grades.values()))
        return SampleScore(value, parts=(float(len(placed)), float(len(places))))

    def verdicts(self, sample: EvaluationSample, retrieved: Iterable[Document]) -> dict[str, Part]:
        """Return the verdict on each document that has a text."""
        # The retrieved documents come last and win: a gold document that was retrieved is judged once, by the
        # text that the system retrieved.
        pool = {doc.doc_id: doc for doc in [*self.more_to_judge(sample), *retrieved] if doc.text.strip()}
        if not pool:
            return {}
        shown = [cut_around(doc.text, sample.query) for doc in pool.values()]
        material = {"question": sample.query, **numbered("passage", shown)}
        question = Question(kind_named("grading"), material, {"passages": list(pool)})
        return dict(zip(pool, self.ask_all([question])[0].parts, strict=True))

    def more_to_judge(self, sample: EvaluationSample) -> list[Document]:
        """Return the documents to judge besides the retrieved ones."""
        return []

    def of_grades(self, placed: Placed, all_grades: Sequence[float]) -> float:
        """Return the score from the documents in the first k places, and the grades of all documents."""
        raise NotImplementedError

    def notes_on(self, scores: Scores, result: MetricResult) -> list[str]:
        rows = scores.rows()
        judged, retrieved = rows[:, 1:].sum(axis=0).tolist() if rows.shape[1] > 1 else (0.0, 0.0)
        if not retrieved:
            return []
        share = result.details["judged_share"] = judged / retrieved
        unknown = "" if share == 1 else " Documents without a text count as not relevant."
        return [f"Judged@{self.k} of {self.name} is {share:.2f}.{unknown}"]


@metric("judged_relevance@{k}")
class JudgedRelevance(GradedPassages):
    """How relevant the first k retrieved documents are to the question, as a judge grades them.

    Σ grade / 3 over the first k places, / k, as in precision@k. The grades are 0 (nothing to do with the
    question), 1 (on the subject, no answer), 2 (some answer, but vague or hidden) and 3 (the exact answer). A
    sample fails if a document cannot be graded.
    """

    def of_grades(self, placed: Placed, all_grades: Sequence[float]) -> float:
        return sum(grade for _, grade in placed) / HIGHEST_GRADE / self.k


@metric("umbrela_ndcg@{k}")
class UmbrelaNDCG(GradedPassages):
    """How well the first k documents are ranked, by the grades from 0 to 3 of a judge (UMBRELA).

    DCG / the DCG of the best order, with grade / log2(rank + 1) as the gain; an expected grade below 0.5
    counts as 0. The best order is that of the k highest grades among the first k documents and the relevant
    ones of the dataset, which are judged as well. A sample without a document of grade 1 or more scores 0. To
    compare systems by the judgements of all of them, write qrels and use ndcg@k.
    """

    def more_to_judge(self, sample: EvaluationSample) -> list[Document]:
        return gold_documents(sample)

    def of_grades(self, placed: Placed, all_grades: Sequence[float]) -> float:
        best = sorted(all_grades, reverse=True)[: self.k]
        ideal = _discounted(list(enumerate(best)))
        return _discounted(placed) / ideal if ideal else 0.0


def _discounted(placed: Placed) -> float:
    return math.fsum(grade / math.log2(place + 2) for place, grade in placed if grade >= _NOT_RELEVANT)


def first_places(output: SystemOutputs, k: int) -> dict[int, Document]:
    """Return the documents in the first k places, by their place from 0; each document once."""
    # Cut before duplicates are dropped: a document that is retrieved twice uses up two places.
    ranked = sorted(output.retrieved, key=lambda hit: hit.rank)[:k]
    firsts: dict[str, int] = {}
    for place, hit in enumerate(ranked):
        firsts.setdefault(hit.doc.doc_id, place)
    return {place: ranked[place].doc for place in firsts.values()}
