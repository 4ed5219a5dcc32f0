"""What a metric's value does not show: ids that never match, scores against the order, empty answers.

Every batch of a run is looked at. Notes are warnings, and are stored with the results that they are about.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from operator import attrgetter

from .matching import BY_ID, MATCHES, gold_found, matched
from .metrics_base import Metric, SampleMetric, fields_needed
from .scores import Batch
from .types import (
    CONTEXTS_AS_RETRIEVED,
    DOCUMENTS_GIVEN,
    Document,
    EvaluationSample,
    MetricResult,
    RankedIds,
    SystemOutputs,
    TargetCategory,
    as_target,
    in_single,
    known_score,
    retrieved_ids,
)

_RANK, _SCORE = attrgetter("rank"), attrgetter("score")
_GENERATION = (
    TargetCategory.GENERATION_RELEVANCE,
    TargetCategory.GENERATION_FAITHFULNESS,
    TargetCategory.GENERATION_CORRECTNESS,
)
_OF_DOCUMENTS = (
    TargetCategory.RETRIEVAL_RELEVANCE,
    TargetCategory.RETRIEVAL_ACCURACY,
    TargetCategory.DIVERSITY,
)
# Samples without a match whose sources and texts are compared too, and documents of each.
_LOOKED_AT, _HITS_LOOKED_AT = 100, 20


class SuspectValueWarning(UserWarning):
    """A value is likely not what it seems: ids that never match, scores that contradict the ranks."""


class Watches:
    """What is watched for the metrics of a plan."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._of_answers = [
            metric.name
            for metric in metrics
            if as_target(metric.target) in _GENERATION and not getattr(metric, "not_measured", "")
        ]
        with_gold = [metric for metric in metrics if "relevant_docs" in fields_needed(metric)]
        self._of_documents = [one.name for one in with_gold if as_target(one.target) in _OF_DOCUMENTS]
        # Metrics that compare documents in another way see other ids.
        self._lists: dict[str, RankedLists] = {}
        for metric in with_gold:
            if isinstance(metric, SampleMetric) and metric.matches_documents:
                self._lists.setdefault(metric.match, RankedLists(metric.match)).names.append(metric.name)
        self._have_text: set[bool] = set()  # of the answers so far
        self._are_contexts = False

    def look(self, batch: Batch) -> None:
        """Look at the next batch of a run."""
        for lists in self._lists.values():
            lists.look(batch)
        for output in batch.outputs:
            if output.error is None:
                self._have_text.add(bool(output.response.text.strip()))
                self._are_contexts = self._are_contexts or bool(output.extra.get(CONTEXTS_AS_RETRIEVED))

    def noted(self, results: list[MetricResult]) -> list[MetricResult]:
        """Warn of what was noted, and add it to the results that it concerns."""
        found = [(lists.names, note) for lists in self._lists.values() for note in lists.notes()]
        if self._of_answers and self._have_text == {False}:
            listed = ", ".join(self._of_answers[:3]) + (", ..." if len(self._of_answers) > 3 else "")
            fix = "If the system only retrieves, leave them out."
            found.append(
                ([], f"No output has an answer, so these metrics score empty texts: {listed}. {fix}")
            )
        if self._of_documents and self._are_contexts:
            about = (
                "The retrieved documents are the contexts of the dataset (contexts_as_retrieved), and its "
            )
            about += "relevant documents were chosen from these. Any system has these values, by construction"
            found.append((self._of_documents, f"{about}: {', '.join(self._of_documents)}."))
        for names, note in found:
            warnings.warn(note, SuspectValueWarning, stacklevel=5)
            for result in results:
                if result.name in names:
                    result.details["notes"] = [*result.notes, note]
        return results


class RankedLists:
    """Watches retrieved lists: does an id ever equal a relevant one, and do scores fall with the rank?"""

    def __init__(self, match: str = BY_ID) -> None:
        self.names: list[str] = []  # of the metrics that it concerns
        self._match = match
        self.lists = self.judged = self.out_of_order = 0
        self.has_match = False
        self.other_matches: Counter[str] = Counter()  # samples that would match in another way
        self.ids = ("", "")  # a retrieved and a relevant one
        self.example = ""  # of scores that contradict the ranks

    def look(self, batch: Batch) -> None:
        batch = batch if self._match == BY_ID else batch.once(matched, self._match)
        for sample, output in zip(batch.samples, batch.outputs, strict=True):
            # Documents that the sample itself gave to the system have the ids of the dataset.
            if output.error is not None or not output.retrieved or output.extra.get(DOCUMENTS_GIVEN) is True:
                continue
            self.lists += 1
            if not self.has_match and sample.relevant_docs:
                self._compare_ids(sample, sample.relevant_docs, output)
            self._compare_scores(sample, output)

    def _compare_ids(
        self, sample: EvaluationSample, relevant: Sequence[Document], output: SystemOutputs
    ) -> None:
        self.judged += 1
        self.has_match = not {doc.doc_id for doc in relevant}.isdisjoint(retrieved_ids(output.retrieved))
        example = (output.retrieved[0].doc.doc_id, relevant[0].doc_id)  # both of one sample
        if self.judged == 1:
            self.ids = example
        # Texts are compared only on the first samples: most runs have a match on one of these.
        if not self.has_match and self.judged <= _LOOKED_AT:
            first = replace(output, retrieved=output.retrieved[:_HITS_LOOKED_AT])
            matches = [match for match in MATCHES[1:] if any(gold_found(sample, first, match)[0])]
            if matches and not self.other_matches:
                self.ids = example  # the first that the advice is about
            self.other_matches.update(matches)

    def _compare_scores(self, sample: EvaluationSample, output: SystemOutputs) -> None:
        hits = output.retrieved
        ranked = hits if isinstance(hits, RankedIds) else sorted(hits, key=_RANK)
        scores = ranked.scores if isinstance(ranked, RankedIds) else list(map(_SCORE, ranked))
        if scores == sorted(scores, reverse=True):  # nearly all lists; the rest is looked at one by one
            return
        singles = pairwise(in_single(scores))
        for (before, hit), (single_before, single) in zip(pairwise(ranked), singles, strict=True):
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
