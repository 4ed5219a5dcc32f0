"""Which judged documents stand where: read from a batch in one pass, then numbers for every metric.

The plain way, one sample at a time, is `gold_grades` and `ranked_gains`; the fast way, the whole batch at
once, is `judged_hits`. They agree, and tests/metrics/test_retrieval_hits.py holds them to it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ..core.batch import Batch
from ..core.scores import Note
from ..core.types import Document, EvaluationSample, SystemOutputs
from ..errors import ScoringError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.intp]


def grade_of(doc: Document) -> float:
    """The relevance that a judged document has: 1 where none is written."""
    grade = doc.metadata.get("relevance", 1)
    try:
        if isinstance(grade, bool) or not isinstance(grade, int | float) or not math.isfinite(grade):
            raise ScoringError(f"the relevance of document {doc.doc_id!r} is {grade!r}, not a number")
    except OverflowError:
        raise ScoringError(f"the relevance of document {doc.doc_id!r} is beyond all measure") from None
    return float(grade)


def gold_grades(sample: EvaluationSample) -> dict[str, float]:
    """The grade of each document in `relevant_docs`, the highest where one is listed twice."""
    grades: dict[str, float] = {}
    for doc in sample.relevant_docs or ():
        grades[doc.doc_id] = max(grade_of(doc), grades.get(doc.doc_id, -math.inf))
    return grades


def judgements(sample: EvaluationSample) -> dict[str, float]:
    """The grades of `relevant_docs` and, beside them, of the candidates that carry one."""
    candidates = {
        doc.doc_id: grade_of(doc) for doc in sample.candidate_docs or () if "relevance" in doc.metadata
    }
    return candidates | gold_grades(sample)


def is_relevant(grade: float, level: float | None) -> bool:
    """Whether a grade counts: above 0 it always does, unless a level asks for more."""
    return grade > 0 and (level is None or grade >= level)


def in_order(output: SystemOutputs) -> list[str]:
    """The ids of the retrieved documents by their rank, whatever their order in the list."""
    return [hit.doc.doc_id for hit in sorted(output.retrieved, key=lambda hit: hit.rank)]


def ranked_gains(grades: Mapping[str, float], output: SystemOutputs) -> list[float]:
    """The grade of the document at each rank: 0 for a miss and for a document that was there before."""
    left = dict(grades)
    return [left.pop(doc_id, 0.0) for doc_id in in_order(output)]


@dataclass(frozen=True)
class Hits:
    """The judged documents that were retrieved, one a row, in order of sample and then of rank.

    A document stands at its first place. `gold_grade` lists every judged document, found or not, in the
    order of `gold_sample`; `notes` names the samples whose grades cannot be used.
    """

    samples: int
    sample: Integers
    place: Integers
    grade: Floats
    gold_sample: Integers
    gold_grade: Floats
    notes: dict[int, Note]


def judged_hits(batch: Batch) -> Hits:
    """The documents of `relevant_docs` that each list holds: the pass that all metrics share."""
    import numpy as np

    found = _read(batch, careful=False)
    gold = _numbers(found.gold)
    if gold is None:
        found = _read(batch, careful=True)  # which says whose grade it is
        gold = np.array(found.gold)
    places = np.fromiter(found.ranks, np.intp, len(found.ranks)) - 1
    grades = np.fromiter(found.grades, np.float64, len(found.grades))
    numbers = np.arange(len(batch))
    return Hits(
        len(batch),
        np.repeat(numbers, np.diff(found.hits_until)),
        places,
        grades,
        np.repeat(numbers, np.diff(found.gold_until)),
        gold,
        found.notes,
    )


class _Found(NamedTuple):
    """The columns of Hits while they grow; what belongs to a sample ends at its `until`."""

    ranks: list[int]
    grades: list[float]
    gold: list[float]
    hits_until: list[int]
    gold_until: list[int]
    notes: dict[int, Note]


def _read(batch: Batch, *, careful: bool) -> _Found:
    """One look at each document; without care, grades are taken as they are."""
    found = _Found([], [], [], [0], [0], {})
    ranks, grades, gold, hits_until, gold_until, notes = found
    for number, (sample, output) in enumerate(zip(batch.samples, batch.outputs, strict=True)):
        docs = sample.relevant_docs or ()
        left = {doc.doc_id: doc.metadata.get("relevance", 1) for doc in docs}
        gold += left.values()
        usual = not careful and len(left) == len(docs)
        if usual:
            rank = 0  # counted by hand: this loop is where the time goes, and enumerate is slower
            for hit in output.retrieved:
                rank += 1  # noqa: SIM113
                if hit.rank != rank:
                    usual = False
                    break
                if hit.doc.doc_id in left:
                    ranks.append(rank)
                    grades.append(left.pop(hit.doc.doc_id))
        if not usual:
            del gold[gold_until[-1] :], ranks[hits_until[-1] :], grades[hits_until[-1] :]
            try:
                _find_carefully(found, sample, output)
            except ScoringError as error:
                notes[number] = Note(str(error), failed=True)
        hits_until.append(len(ranks))
        gold_until.append(len(gold))
    return found


def _find_carefully(found: _Found, sample: EvaluationSample, output: SystemOutputs) -> None:
    """Append a sample's numbers, whatever the order of its list and however often a document is in it."""
    left = gold_grades(sample)
    found.gold.extend(left.values())
    for rank, doc_id in enumerate(in_order(output), start=1):
        if doc_id in left:
            found.ranks.append(rank)
            found.grades.append(left.pop(doc_id))


def _numbers(grades: list[float]) -> Floats | None:
    """The grades as an array, or None if one of them is not a number."""
    import numpy as np

    if not {int, float}.issuperset(map(type, grades)):
        return None
    try:
        numbers = np.fromiter(grades, np.float64, len(grades))
    except OverflowError:  # a whole number beyond 1e308
        return None
    return numbers if np.isfinite(numbers).all() else None


@dataclass(frozen=True)
class RelevantHits:
    """The hits that count at a relevance level; `nth` is 0 for the first of its sample.

    `total` says how many documents of each sample are relevant, and `notes` where there are none.
    """

    samples: int
    sample: Integers
    place: Integers
    grade: Floats
    nth: Integers
    total: Floats
    notes: dict[int, Note]

    def sums(self, weights: Floats, k: int | None = None) -> Floats:
        """The sum of the weights of each sample's hits, of those in the first k places where k is given."""
        import numpy as np

        sample = self.sample
        if k is not None:
            within = self.place < k
            sample, weights = sample[within], weights[within]
        return np.asarray(np.bincount(sample, weights, minlength=self.samples), dtype=np.float64)


def relevant_hits(batch: Batch, level: float | None) -> RelevantHits:
    """The hits of a batch whose grade counts at that level."""
    import numpy as np

    hits = batch.once(judged_hits)
    least = 0.0 if level is None else level
    counts = (hits.grade > 0) & (hits.grade >= least)
    gold_counts = (hits.gold_grade > 0) & (hits.gold_grade >= least)
    sample = hits.sample[counts]
    total = np.bincount(hits.gold_sample[gold_counts], minlength=hits.samples)
    first = np.searchsorted(sample, np.arange(hits.samples))
    nothing = Note(no_relevant(level))
    return RelevantHits(
        hits.samples,
        sample,
        hits.place[counts],
        hits.grade[counts],
        np.arange(len(sample)) - first[sample],
        total.astype(np.float64),
        dict.fromkeys(np.flatnonzero(total == 0).tolist(), nothing) | hits.notes,
    )


def found_within(batch: Batch, level: float | None, k: int) -> Floats:
    """How many relevant documents of each sample are among its first k."""
    import numpy as np

    hits: RelevantHits = batch.once(relevant_hits, level)  # type: ignore[arg-type]
    counts: Floats = np.bincount(hits.sample[hits.place < k], minlength=hits.samples).astype(np.float64)
    return counts


def best_first(batch: Batch) -> tuple[Integers, Integers, Floats]:
    """Sample, place and grade of the relevant documents in the best order that a list could have."""
    import numpy as np

    hits = batch.once(judged_hits)
    counts = hits.gold_grade > 0
    sample, grade = hits.gold_sample[counts], hits.gold_grade[counts]
    # Few grades are different: their numbers fit into one key with the sample, which sorts fast. The
    # samples are in order as they are, so that sorting does not change their column.
    ordered = np.sort(-grade)
    # What np.unique would give; its first call imports masked arrays, a tenth of a small evaluation's time.
    levels = ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]
    key = np.sort(sample * len(levels) + np.searchsorted(levels, -grade))
    first = np.searchsorted(sample, np.arange(hits.samples))
    return sample, np.arange(len(sample)) - first[sample], -levels[key - sample * len(levels)]


def no_relevant(level: float | None) -> str:
    """Why a sample is skipped."""
    return f"no document of the sample has a grade {'above 0' if level is None else f'of {level:g} or more'}"


def discounts(places: int) -> Floats:
    """log2(rank + 1) of the first places."""
    import numpy as np

    # math.log2, not numpy's: the plain way and the fast one should agree to the last bit.
    return np.array([math.log2(rank + 1) for rank in range(1, places + 1)])


def discounted_gain(gains: Sequence[float]) -> float:
    """Sum of the gains, each divided by log2(rank + 1).

    >>> discounted_gain([3, 0, 1])
    3.5
    """
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))
