"""What a metric's value does not show: ids that never match, empty answers, values by construction.

Every batch of a run is looked at. Notes are warnings, and are stored with the results that they are about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ..errors import warn_user
from .matching import BY_ID, MATCHES, gold_found, matched
from .metrics_base import Metric, SampleMetric
from .scores import Batch
from .types import (
    CONTEXTS_AS_RETRIEVED,
    DOCUMENTS_GIVEN,
    GENERATION,
    RETRIEVAL,
    MetricResult,
    TargetCategory,
    as_target,
    retrieved_ids,
)

# Samples without a match whose sources and texts are compared too, and documents of each.
_LOOKED_AT, _HITS_LOOKED_AT = 100, 20


class SuspectValueWarning(UserWarning):
    """A value is likely not what it seems: ids that never match, answers that are all empty."""


class Watches:
    """What is watched for the metrics of a plan."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._of_answers = [
            metric.name
            for metric in metrics
            if as_target(metric.target) in GENERATION and not getattr(metric, "not_measured", "")
        ]
        with_gold = [metric for metric in metrics if "relevant_docs" in metric.required_fields()]
        of_documents = (*RETRIEVAL, TargetCategory.DIVERSITY)
        self._of_documents = [one.name for one in with_gold if as_target(one.target) in of_documents]
        # Metrics that compare documents in another way see other ids.
        self._lists: dict[str, UnmatchedIds] = {}
        for metric in with_gold:
            if isinstance(metric, SampleMetric) and metric.matches_documents:
                self._lists.setdefault(metric.match, UnmatchedIds(metric.match)).names.append(metric.name)
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
        found = [(lists.names, note) for lists in self._lists.values() if (note := lists.note())]
        if self._of_answers and self._have_text == {False}:
            listed = ", ".join(self._of_answers[:3]) + (", ..." if len(self._of_answers) > 3 else "")
            fix = "If the system only retrieves, leave them out."
            about = f"No output has an answer, so these metrics score empty texts: {listed}. {fix}"
            found.append(([], about))
        if self._of_documents and self._are_contexts:
            about = "The retrieved documents are contexts of the dataset (contexts_as_retrieved), and its "
            about += "relevant documents were chosen from these. Any system has these values, by construction"
            found.append((self._of_documents, f"{about}: {', '.join(self._of_documents)}."))
        for names, note in found:
            warn_user(note, SuspectValueWarning)
            for result in results:
                if result.name in names:
                    result.details["notes"] = [*result.notes, note]
        return results


class UnmatchedIds:
    """Watches retrieved lists until an id equals a relevant one; if none ever does, every score is 0."""

    def __init__(self, match: str = BY_ID) -> None:
        self.names: list[str] = []  # of the metrics that it concerns
        self._match = match
        self._judged = 0
        self._has_match = False
        self._other_matches: Counter[str] = Counter()  # samples that would match in another way
        self._ids = ("", "")  # a retrieved and a relevant one

    def look(self, batch: Batch) -> None:
        """Look at the documents of a batch."""
        if self._has_match:  # as nearly always, after the first batch
            return
        batch = batch if self._match == BY_ID else batch.once(matched, self._match)
        for sample, output in zip(batch.samples, batch.outputs, strict=True):
            relevant = sample.relevant_docs
            # Documents that the sample itself gave to the system have the ids of the dataset.
            if not relevant or not output.retrieved or output.extra.get(DOCUMENTS_GIVEN) is True:
                continue
            self._judged += 1
            retrieved = retrieved_ids(output.retrieved)
            if not {doc.doc_id for doc in relevant}.isdisjoint(retrieved):
                self._has_match = True
                return
            matches = []
            if self._judged <= _LOOKED_AT:
                first = replace(output, retrieved=output.retrieved[:_HITS_LOOKED_AT])
                matches = [match for match in MATCHES[1:] if any(gold_found(sample, first, match)[0])]
            # Both ids of one sample, the first that the advice is about.
            if self._judged == 1 or (matches and not self._other_matches):
                self._ids = (retrieved[0], relevant[0].doc_id)
            self._other_matches.update(matches)

    @property
    def needed_match(self) -> str | None:
        """Return the way to match that finds relevant documents where ids find none; None if none does."""
        if self._has_match or not self._other_matches:
            return None
        return self._other_matches.most_common(1)[0][0]

    def note(self) -> str:
        """Return that no id matched, and what to do; "" if one did, or if there was nothing to compare."""
        if not self._judged or self._has_match:
            return ""
        none = "No retrieved document id equals a relevant one"
        if self._match != BY_ID:
            none = f"No retrieved document has the {self._match} of a relevant one"
        advice = "Check that both sides have the same documents, and name them in the same way."
        if match := self.needed_match:
            option, count = f"--match {match} (in Python match={match!r})", self._other_matches[match]
            advice = f"With {option}, {count} of the first {min(self._judged, _LOOKED_AT)} would match."
        samples = "1 sample" if self._judged == 1 else f"{self._judged} samples"
        return (
            f"{none} in {samples}, so every metric of relevant documents is 0. "
            f"Retrieved, for example: {self._ids[0]!r:.80}. Relevant: {self._ids[1]!r:.80}. {advice}"
        )
