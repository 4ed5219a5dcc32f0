"""Retrieval metrics against gold documents, as trec_eval defines them.

A document is relevant if it is in `relevant_docs` with a grade above 0 (`metadata["relevance"]`, 1 when
absent), or of at least `level` where one is given: recall@5[level=2] is trec_eval's `-l 2`. Retrieved
documents are taken in the order of their rank; a document that is retrieved twice counts at its first
place, and its second place is a miss. Finding documents (recall, precision, f1, hit) is filed under
RETRIEVAL_RELEVANCE, ranking them (MRR, MAP, nDCG) under RETRIEVAL_ACCURACY; the survey that coined the
targets files all of these under accuracy.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from operator import attrgetter
from typing import ClassVar, NamedTuple

import numpy as np

from ..core.matching import MATCHES, grade_of, matched
from ..core.metrics_base import BatchMetric, SampleMetric, metric, skip
from ..core.scores import Batch, Note, Scores
from ..core.types import (
    Document,
    EvaluationSample,
    RankedIds,
    SampleScore,
    SystemOutputs,
    TargetCategory,
    in_single,
    known_score,
    retrieved_ids,
)
from ..errors import ScoringError
from ..stats.arrays import Array, Indices

# The lists of a batch, read in one pass that all metrics share.


def gold_grades(sample: EvaluationSample) -> dict[str, float]:
    """Return the grade of each document in `relevant_docs`, the highest where one is listed twice."""
    grades: dict[str, float] = {}
    for doc in sample.relevant_docs or ():
        grades[doc.doc_id] = max(grade_of(doc), grades.get(doc.doc_id, -math.inf))
    return grades


def is_relevant(grade: float, level: float | None) -> bool:
    """Say whether a grade counts: above 0 it does, unless a level asks for more."""
    return grade > 0 and (level is None or grade >= level)


def in_order(output: SystemOutputs) -> list[str]:
    """Return the ids of the retrieved documents by their rank, whatever their order in the list."""
    hits = output.retrieved
    if isinstance(hits, RankedIds):
        return hits.doc_ids
    return [hit.doc.doc_id for hit in sorted(hits, key=lambda hit: hit.rank)]


def no_relevant(level: float | None) -> str:
    """Return the reason why a sample without relevant documents is skipped."""
    return f"no document of the sample has a grade {'above 0' if level is None else f'of {level:g} or more'}"


class JudgedHits(NamedTuple):
    """The judged documents that were retrieved, one per row, in order of sample and then of rank.

    A document is at its first place, counted from 0. `gold_grade` lists every judged document, retrieved
    or not, in the order of `gold_sample`; `notes` names the samples whose grades cannot be used.
    """

    samples: int
    sample: Indices
    place: Indices
    grade: Array
    gold_sample: Indices
    gold_grade: Array
    notes: dict[int, Note]


class _Columns(NamedTuple):
    """The columns of JudgedHits while they grow; the rows of a sample end at its entry in `*_until`."""

    ranks: list[int]
    grades: list[float]
    gold: list[float]
    hits_until: list[int]
    gold_until: list[int]
    notes: dict[int, Note]


Judgements = Callable[[EvaluationSample], dict[str, float]]


def judged_hits(batch: Batch) -> JudgedHits:
    """Find the documents of `relevant_docs` in each retrieved list; for batch.once."""
    columns = _read_quickly(batch)
    if are_numbers(columns.gold):
        return _as_hits(columns)
    return careful_hits(batch, gold_grades)  # which says whose grade is not a number


def careful_hits(batch: Batch, judgements: Judgements) -> JudgedHits:
    """Find the judged documents in each retrieved list; a sample whose judgements raise gets a note."""
    columns = _Columns([], [], [], [0], [0], {})
    for number, (sample, output) in enumerate(zip(batch.samples, batch.outputs, strict=True)):
        try:
            _append(columns, judgements(sample), in_order(output))
        except ScoringError as error:
            columns.notes[number] = Note(str(error), failed=True)
        columns.hits_until.append(len(columns.ranks))
        columns.gold_until.append(len(columns.gold))
    return _as_hits(columns)


def _read_quickly(batch: Batch) -> _Columns:
    """Read the lists with one look at each document; grades are taken as they are."""
    columns = _Columns([], [], [], [0], [0], {})
    ranks, grades, gold, hits_until, gold_until, notes = columns
    for number, (sample, output) in enumerate(zip(batch.samples, batch.outputs, strict=True)):
        docs = sample.relevant_docs or ()
        # `pop` below makes a repeated document count at its first place only. A grade that is null or not a
        # number is noticed at the end, by `are_numbers`.
        left = {doc.doc_id: doc.metadata.get("relevance", 1) for doc in docs}
        usual, hits = len(left) == len(docs), output.retrieved
        if usual and isinstance(hits, RankedIds):
            _append(columns, left, hits.doc_ids)
        elif usual:
            gold += left.values()
            rank = 0  # counted by hand: this loop takes most of the time, and enumerate is slower
            for hit in hits:
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
                _append(columns, gold_grades(sample), in_order(output))
            except ScoringError as error:
                notes[number] = Note(str(error), failed=True)
        hits_until.append(len(ranks))
        gold_until.append(len(gold))
    return columns


def _append(columns: _Columns, judgements: dict[str, float], doc_ids: Sequence[str]) -> None:
    """Append the rows of a sample whose documents have these ids, however often a document is in the list."""
    columns.gold.extend(judgements.values())
    # Few documents are judged: one quick look at each, and the rest for those few.
    for rank in [rank for rank, doc_id in enumerate(doc_ids, start=1) if doc_id in judgements]:
        if (grade := judgements.pop(doc_ids[rank - 1], None)) is not None:
            columns.ranks.append(rank)
            columns.grades.append(grade)


def are_numbers(grades: list[float]) -> bool:
    """Return whether all grades are finite numbers."""
    if not {int, float}.issuperset(map(type, grades)):
        return False
    try:
        return bool(np.isfinite(np.fromiter(grades, np.float64, len(grades))).all())
    except OverflowError:  # a whole number beyond 1e308
        return False


def _as_hits(columns: _Columns) -> JudgedHits:
    numbers = np.arange(len(columns.hits_until) - 1)
    return JudgedHits(
        len(numbers),
        np.repeat(numbers, np.diff(columns.hits_until)),
        np.fromiter(columns.ranks, np.intp, len(columns.ranks)) - 1,
        np.fromiter(columns.grades, np.float64, len(columns.grades)),
        np.repeat(numbers, np.diff(columns.gold_until)),
        np.fromiter(columns.gold, np.float64, len(columns.gold)),
        columns.notes,
    )


class RelevantHits:
    """The hits of a batch that count at a relevance level, one per row, and how many could be found."""

    def __init__(self, judged: JudgedHits, level: float | None) -> None:
        # A level never admits a grade of 0: not relevant stays not relevant.
        least = 0.0 if level is None else level
        counts = (judged.grade > 0) & (judged.grade >= least)
        gold_counts = (judged.gold_grade > 0) & (judged.gold_grade >= least)
        self.judged = judged
        self.counts, self.gold_counts = counts, gold_counts
        self.samples = judged.samples
        self.sample, self.place, self.grade = (
            judged.sample[counts],
            judged.place[counts],
            judged.grade[counts],
        )
        # The rows are in the order of samples: a search finds where each sample starts.
        first = np.searchsorted(self.sample, np.arange(self.samples))
        self.nth = np.arange(len(self.sample)) - first[self.sample]  # 0 for the first hit of its sample
        total = np.bincount(judged.gold_sample[gold_counts], minlength=self.samples)
        self.total = total.astype(np.float64)  # relevant documents of each sample
        without = dict.fromkeys(np.flatnonzero(total == 0).tolist(), Note(no_relevant(level)))
        self.notes = without | judged.notes
        self._within: dict[int, Array] = {}

    def within(self, k: int) -> Array:
        """Count the relevant documents among the first k of each sample."""
        if k not in self._within:
            counts = np.bincount(self.sample[self.place < k], minlength=self.samples)
            self._within[k] = counts.astype(np.float64)
        return self._within[k]

    def sums(self, weights: Array, k: int | None = None) -> Array:
        """Sum the weights of each sample's hits, of those in the first k places where k is given."""
        sample = self.sample
        if k is not None:
            within = self.place < k
            sample, weights = sample[within], weights[within]
        return np.asarray(np.bincount(sample, weights, minlength=self.samples), dtype=np.float64)

    @cached_property
    def best_order(self) -> tuple[Indices, Indices, Array]:
        """Sample, place and grade of the relevant documents in the best order that a list could have."""
        sample, grade = self.judged.gold_sample[self.gold_counts], self.judged.gold_grade[self.gold_counts]
        # Few grades are different: their numbers fit into one key with the sample, which sorts fast. The
        # samples are in order already, so sorting does not change their column.
        ordered = np.sort(-grade)
        # np.unique gives the same, but its first call imports masked arrays: 10% of a small evaluation.
        levels = ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]
        key = np.sort(sample * len(levels) + np.searchsorted(levels, -grade))
        first = np.searchsorted(sample, np.arange(self.samples))
        return sample, np.arange(len(sample)) - first[sample], -levels[key - sample * len(levels)]

    def normalised_gain(self, k: int | None, gain: Callable[[Array], Array]) -> Array:
        """Return the nDCG of each sample, with gains as a function of the grades."""
        sample, place, grade = self.best_order
        places = 1 + max(int(self.place.max(initial=0)), int(place.max(initial=0)))
        # math.log2, not numpy's: its last bit does not depend on how numpy was compiled.
        discounts = np.array([math.log2(rank + 1) for rank in range(1, places + 1)])
        if k is not None:
            within = place < k
            sample, place, grade = sample[within], place[within], grade[within]
        ideal = np.bincount(sample, gain(grade) / discounts[place], minlength=self.samples)
        return np.asarray(self.sums(gain(self.grade) / discounts[self.place], k) / ideal)


def relevant_hits(batch: Batch, level: float | None) -> RelevantHits:
    """Return the hits of a batch whose grade counts at that level; for batch.once."""
    return RelevantHits(batch.once(judged_hits), level)


_RANK, _SCORE = attrgetter("rank"), attrgetter("score")


class RankedLists:
    """Watches retrieved lists: does an id ever equal a relevant one, and do scores fall with the rank?"""

    def __init__(self) -> None:
        self.lists = self.judged = self.out_of_order = 0
        self.has_match = False
        self.other_matches: Counter[str] = Counter()  # samples that would match in another way
        self.ids = ("", "")  # a retrieved and a relevant one
        self.example = ""  # of scores that contradict the ranks

    def look(self, batch: Batch) -> None:
        for sample, output in zip(batch.samples, batch.outputs, strict=True):
            if output.error is not None or not output.retrieved:
                continue
            self.lists += 1
            if not self.has_match and sample.relevant_docs:
                self._compare_ids(sample, sample.relevant_docs, output)
            self._compare_scores(sample, output)

    def _compare_ids(
        self, sample: EvaluationSample, relevant: Sequence[Document], output: SystemOutputs
    ) -> None:
        self.judged += 1
        self.has_match = _have_equal_ids(sample, output)
        example = (output.retrieved[0].doc.doc_id, relevant[0].doc_id)  # both of one sample
        if self.judged == 1:
            self.ids = example
        # Texts are compared only on the first samples: most runs have a match on one of these.
        if not self.has_match and self.judged <= _LOOKED_AT:
            batch = Batch([sample], [replace(output, retrieved=output.retrieved[:_HITS_LOOKED_AT])])
            matches = [match for match in MATCHES[1:] if _have_equal_ids(*_only_pair(matched(batch, match)))]
            if matches and not self.other_matches:
                self.ids = example  # the first that the advice is about
            self.other_matches.update(matches)

    def _compare_scores(self, sample: EvaluationSample, output: SystemOutputs) -> None:
        hits = output.retrieved
        ranked = hits if isinstance(hits, RankedIds) else sorted(hits, key=_RANK)
        scores = in_single(ranked.scores if isinstance(ranked, RankedIds) else map(_SCORE, ranked)).tolist()
        if scores == sorted(scores, reverse=True):  # nearly all lists; the rest is looked at one by one
            return
        for (before, hit), (single_before, single) in zip(pairwise(ranked), pairwise(scores), strict=True):
            higher, lower = known_score(hit), known_score(before)
            if higher is not None and lower is not None and single > single_before:
                self.out_of_order += 1
                where = f"sample {sample.sample_id!r:.60}"
                scores_text = f"rank {before.rank} has {lower:g} and rank {hit.rank} has {higher:g}"
                self.example = self.example or f"{where}: {scores_text}"
                return

    @property
    def needed_match(self) -> str | None:
        """Return the way to match that finds relevant documents where ids find none; None if none does."""
        return None if self.has_match or not self.other_matches else self.other_matches.most_common(1)[0][0]

    def _advice(self) -> str:
        """Return the option that would match, or else what to check."""
        match = self.needed_match
        if match is None:
            return "Check that both sides name documents in the same way."
        count = self.other_matches[match]
        option = f"--match {match} (in Python match={match!r})"
        return f"With {option}, {count} of the first {min(self.judged, _LOOKED_AT)} would match."

    def notes(self) -> list[str]:
        notes = []
        if self.judged and not self.has_match:
            retrieved, relevant = self.ids
            samples = "1 sample" if self.judged == 1 else f"{self.judged} samples"
            notes.append(
                f"No retrieved document id equals a relevant one in {samples}, so every metric of relevant "
                f"documents is 0. Retrieved, for example: {retrieved!r:.80}. Relevant: {relevant!r:.80}. "
                f"{self._advice()}"
            )
        if self.out_of_order:
            lists = "1 list" if self.lists == 1 else f"{self.lists} lists"
            notes.append(
                f"In {self.out_of_order} of {lists} of documents the scores contradict the order "
                f"({self.example}). The rank counts, not the score: the order in the list, unless ranks are "
                "given. If the scores are distances, ignore this note."
            )
        return notes


# Samples without a match whose sources and texts are compared too, and documents of each.
_LOOKED_AT, _HITS_LOOKED_AT = 100, 20


def _have_equal_ids(sample: EvaluationSample, output: SystemOutputs) -> bool:
    ids = {doc.doc_id for doc in sample.relevant_docs or ()}
    return not ids.isdisjoint(retrieved_ids(output.retrieved))


def _only_pair(batch: Batch) -> tuple[EvaluationSample, SystemOutputs]:
    return batch.samples[0], batch.outputs[0]


# The metrics: each is one formula over the hits of a whole batch. One sample is a batch of one.


class RetrievalMetric(BatchMetric):
    """A metric of the relevant documents by rank."""

    level: float | None = None
    requires = ("relevant_docs",)
    matches_documents = True
    watch = RankedLists

    def score_all(self, batch: Batch) -> Scores:
        hits = self.hits(batch)
        # A sample without relevant documents divides by zero, and is noted as skipped.
        with np.errstate(all="ignore"):
            values = self.of_hits(hits)
        values[list(hits.notes)] = math.nan
        return Scores(batch.sample_ids(), values, notes=hits.notes)

    def hits(self, batch: Batch) -> RelevantHits:
        """Return the hits that the metric is about."""
        return batch.once(relevant_hits, self.level)

    @abstractmethod
    def of_hits(self, hits: RelevantHits) -> Array:
        """Return the score of each sample."""


@dataclass
class LevelMetric(RetrievalMetric):
    """A metric that takes documents for relevant from a given grade on."""

    level: float | None = field(default=None, kw_only=True)
    ranges = {"level": "(0, inf)"}  # noqa: RUF012


class VariantMetric(RetrievalMetric):
    """A metric that can also be computed as another tool does, to see why a number changed."""

    variant: str | None
    variants: ClassVar[tuple[str, ...]]

    def __post_init__(self) -> None:
        if self.variant is not None and self.variant not in self.variants:
            base, known = self.name_template.base, ", ".join(self.variants)
            raise ValueError(f"the variants of {base} are {known}; not {self.variant!r}")

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> SampleScore:
        if self.variant is None:
            return super().score(sample, output)
        grades = {doc: grade for doc, grade in gold_grades(sample).items() if is_relevant(grade, self.level)}
        if not grades:
            return skip(no_relevant(self.level))
        # The other tools judge each retrieved chunk by itself: a repeated document counts again.
        return SampleScore(self.of_variant([grades.get(doc_id, 0.0) for doc_id in in_order(output)]))

    def score_all(self, batch: Batch) -> Scores:
        return super().score_all(batch) if self.variant is None else SampleMetric.score_all(self, batch)

    @abstractmethod
    def of_variant(self, gains: Sequence[float]) -> float:
        """Return the score as another tool has it, from the grade at each rank (0 for a miss)."""


@metric("recall@{k}[level={level?:.15g}]")
class RecallAtK(LevelMetric):
    """Share of the relevant documents that are among the first k retrieved.

    |relevant ∩ retrieved[:k]| / |relevant|.
    """

    k: int
    target = TargetCategory.RETRIEVAL_RELEVANCE
    oracle = "trec_eval recall_k"

    def of_hits(self, hits: RelevantHits) -> Array:
        return hits.within(self.k) / hits.total


@metric("precision@{k}[level={level?:.15g}]")
class PrecisionAtK(LevelMetric):
    """Share of the first k places that have a relevant document.

    |relevant ∩ retrieved[:k]| / k: a place that the system left empty is a miss. Tools that divide by the
    number of retrieved documents print more for a short list.
    """

    k: int
    target = TargetCategory.RETRIEVAL_RELEVANCE
    oracle = "trec_eval P_k"

    def of_hits(self, hits: RelevantHits) -> Array:
        return hits.within(self.k) / self.k


@metric("f1@{k}[level={level?:.15g}]")
class F1AtK(LevelMetric):
    """Precision and recall of the first k places in one number: high only if both are.

    Their harmonic mean, 2 P R / (P + R), which is 2 |relevant ∩ retrieved[:k]| / (k + |relevant|).
    """

    k: int
    target = TargetCategory.RETRIEVAL_RELEVANCE
    oracle = "2 P R / (P + R) of trec_eval P_k, recall_k"

    def of_hits(self, hits: RelevantHits) -> Array:
        return 2 * hits.within(self.k) / (self.k + hits.total)


@metric("hit@{k}[level={level?:.15g}]")
class HitAtK(LevelMetric):
    """1 if any of the first k documents is relevant, else 0 (also called success@k)."""

    k: int
    target = TargetCategory.RETRIEVAL_RELEVANCE
    oracle = "trec_eval success_k"

    def of_hits(self, hits: RelevantHits) -> Array:
        return (hits.within(self.k) > 0).astype(float)


@metric("mrr@{k?}[level={level?:.15g}]")
class MRR(LevelMetric):
    """1 / rank of the first relevant document; 0 if none is retrieved (within the first k)."""

    k: int | None = None
    target = TargetCategory.RETRIEVAL_ACCURACY
    oracle = "trec_eval recip_rank"

    def of_hits(self, hits: RelevantHits) -> Array:
        # Only the first hit of a sample has weight, so the sum is its reciprocal rank.
        is_first = (hits.nth == 0).astype(float)
        return hits.sums(is_first / (hits.place + 1), self.k)


@metric("map@{k?}[{variant?},level={level?:.15g}]")
class MeanAveragePrecision(LevelMetric, VariantMetric):
    """Precision at the rank of each relevant document, averaged over all relevant documents.

    Σ precision@i over the ranks i that have a relevant document / |relevant|: one that was not
    retrieved counts 0. Tools that divide by min(k, |relevant|) or by the hits print more.

    map[ragas] is RAGAS's context precision with `relevant_docs` as the judge: it divides by the relevant
    documents that were retrieved, so a missed one costs nothing. LlamaIndex's average precision is map
    itself, as long as no document is retrieved twice; Phoenix has none.
    """

    k: int | None = None
    variant: str | None = None
    target = TargetCategory.RETRIEVAL_ACCURACY
    oracle = "trec_eval map, map_cut_k"
    variants = ("ragas",)

    def of_hits(self, hits: RelevantHits) -> Array:
        return hits.sums((hits.nth + 1) / (hits.place + 1), self.k) / hits.total

    def of_variant(self, gains: Sequence[float]) -> float:
        ranks = [rank for rank, gain in enumerate(gains[: self.k], start=1) if gain > 0]
        precisions = [found / rank for found, rank in enumerate(ranks, start=1)]
        return sum(precisions) / max(len(ranks), 1)


@metric("ndcg@{k?}[{variant?}]")
class NDCGAtK(VariantMetric):
    """Discounted gain of the list, relative to that of the best possible list.

    Σ grade_i / log2(i + 1) over the first k ranks / the same sum for the gold grades in descending
    order. Gains are linear (Järvelin & Kekäläinen 2002); with binary grades it makes no difference.

    ndcg[phoenix] takes the best order of the retrieved documents as the ideal, so a missed document costs
    nothing; ndcg[llama_index] ignores grades and takes a list that is relevant at every place as the
    ideal, so 1 is out of reach with fewer relevant documents than places. RAGAS has none.
    """

    k: int | None = None
    variant: str | None = None
    target = TargetCategory.RETRIEVAL_ACCURACY
    oracle = "trec_eval ndcg, ndcg_cut_k"
    variants = ("phoenix", "llama_index")

    def of_hits(self, hits: RelevantHits) -> Array:
        return hits.normalised_gain(self.k, lambda grade: grade)

    def of_variant(self, gains: Sequence[float]) -> float:
        ideal = sorted(gains, reverse=True)
        if self.variant == "llama_index":
            gains = [float(gain > 0) for gain in gains]
            ideal = [1.0] * len(gains)
        best = discounted_gain(ideal[: self.k])
        return discounted_gain(gains[: self.k]) / best if best > 0 else 0.0


def discounted_gain(gains: Sequence[float]) -> float:
    """Return the sum of the gains, each divided by log2(rank + 1).

    >>> discounted_gain([3, 0, 1])
    3.5
    """
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))
