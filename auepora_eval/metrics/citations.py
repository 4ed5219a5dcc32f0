"""Judge the citations of one answer, without a dataset or a run: spans, support, consistency, hallucination.

    evaluator = CitationEvaluator({"span_tolerance": 10, "support": "lexical"})
    evaluator.evaluate_answer_citations(answer, citations, {"ferries": "The Annet carries 22 cars."}, query)

The same as metrics, for runs: `citation_accuracy`, `citation_span_accuracy`, `citation_correctness`, ...
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from ..core.types import Document
from ..errors import DataError
from ..judges.entailment import Support, support_function
from . import citation_alce, citation_claims, citation_places, citation_support
from .citation_answer import CitedAnswer, ClaimSplitter, JudgedAnswer
from .citation_base import THRESHOLD
from .citation_legacy import legacy_assessed
from .citation_overall import CONSISTENT, WEIGHTS, Assessed, Weights, assessed
from .citation_sources import Sources
from .citation_spans import GOOD, TOLERANCE

# Imported for their registration; naming them keeps the imports from looking unused.
FAMILIES = (citation_alce, citation_claims, citation_places, citation_support)

_DOCUMENTS = "Give {document_id: content}, or a list of documents with document_id and content."


@dataclass(frozen=True)
class CitationConfig:
    """What can be set.

    `support` is the name of a support function or a function (premise, hypothesis) -> score from 0 to 1,
    `claims` a function that splits an answer into its claims. `legacy` gives the numbers that a tool of old
    gives: see `metrics.citation_legacy`; what it does not know (support, claims) it ignores.
    """

    span_tolerance: int = TOLERANCE
    good_match_threshold: float = GOOD
    support_threshold: float = THRESHOLD
    consistency_threshold: float = CONSISTENT
    weights: Mapping[str, float] = field(default_factory=WEIGHTS._asdict)
    support: str | Support = "lexical"
    claims: ClaimSplitter | None = None
    legacy: bool = False

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> CitationConfig:
        """From a dict; ValueError for a key or a value that means nothing."""
        if not isinstance(config, Mapping):
            raise ValueError(f"the citation config must be a dict, not {config!r:.60}")
        known = [one.name for one in fields(cls)]
        for key in config:
            if key not in known:
                raise ValueError(f"the citation config has no {key!r}; it has {', '.join(known)}")
        found = cls(**config)
        for name in ("good_match_threshold", "support_threshold", "consistency_threshold"):
            limit = getattr(found, name)
            if type(limit) not in (int, float) or not 0 < limit <= 1:
                raise ValueError(f"{name} must be above 0 and at most 1, not {limit!r:.60}")
        tolerance = found.span_tolerance
        if isinstance(tolerance, bool) or not isinstance(tolerance, int) or tolerance < 0:
            raise ValueError(f"span_tolerance must be a whole number, 0 or more, not {tolerance!r}")
        if not isinstance(found.weights, Mapping):
            raise ValueError(f"weights must be a dict, not {found.weights!r:.60}")
        for name in found.weights:
            if name not in Weights._fields:
                raise ValueError(f"there is no weight {name!r:.60}; they are {', '.join(Weights._fields)}")
        if not isinstance(found.support, str) and not callable(found.support):
            raise ValueError(f"support must be a name or a function, not {found.support!r:.60}")
        if found.claims is not None and not callable(found.claims):
            raise ValueError(f"claims must be a function, not {found.claims!r:.60}")
        if not isinstance(found.legacy, bool):
            raise ValueError(f"legacy must be true or false, not {found.legacy!r:.60}")
        found.weighting.check()
        return found

    @property
    def weighting(self) -> Weights:
        """The weights; one that is not named keeps its default."""
        return WEIGHTS._replace(**self.weights)


class CitationEvaluator:
    """Judges answers with citations, one at a time; it keeps nothing between them."""

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        self.config = CitationConfig.of(config or {})
        support = self.config.support
        self._support = support_function(support) if isinstance(support, str) else support

    def evaluate_answer_citations(
        self,
        answer: str,
        citations: Sequence[Any] | None,
        source_documents: Mapping[str, Any] | Iterable[Any],
        ground_truth: Mapping[str, Any] | Sequence[Any] | None = None,
    ) -> dict[str, Any]:
        """Everything about one answer's citations; overall_scores.overall_citation_accuracy is one figure.

        `citations` are records with file_name, page_number, start_char and end_char; without any, the marks
        in the answer count. Numbers in the answer count the citations, or else the documents.
        `source_documents` is {document_id: content}, or documents with their file_path and title, by which
        file names are found as well. `ground_truth` has the right ones, as `citations` or `citation_spans`.

        A part that cannot be measured is None, and `measured` says why; the overall figure is then the
        weighted mean of the other parts (NaN where there are none).
        """
        sources = Sources((), _documents(source_documents))
        gold = _gold(ground_truth)
        cited = CitedAnswer(answer, citations, sources, gold, split=self.config.claims)
        overall: float | None
        if self.config.legacy:
            found = legacy_assessed(cited, tolerance=self.config.span_tolerance, has_gold=gold is not None)
            overall, used = self.config.weighting.of_all(found.scores)
        else:
            found = assessed(
                JudgedAnswer(cited, self._support),
                tolerance=self.config.span_tolerance,
                good=self.config.good_match_threshold,
                valid=self.config.support_threshold,
                consistent=self.config.consistency_threshold,
            )
            overall, used = self.config.weighting.of(found.scores)
        return _result(found, math.nan if overall is None else overall, used, legacy=self.config.legacy)


def _result(found: Assessed, overall: float, used: Mapping[str, float], *, legacy: bool) -> dict[str, Any]:
    return {
        "span_accuracy": found.span_accuracy,
        "citation_quality": found.citation_quality,
        "answer_consistency": found.answer_consistency,
        "hallucination_detection": found.hallucination_detection,
        "overall_scores": {
            "span_accuracy_score": found.scores.span,
            "citation_quality_score": found.scores.quality,
            "answer_consistency_score": found.scores.consistency,
            "hallucination_score": found.scores.hallucination,
            "overall_citation_accuracy": overall,
        },
        "measured": {"weights": dict(used), "not_measured": dict(found.not_measured), "legacy": legacy},
    }


def _gold(ground_truth: Mapping[str, Any] | Sequence[Any] | None) -> Any:
    if not isinstance(ground_truth, Mapping):
        return ground_truth
    return next((ground_truth[key] for key in ("citations", "citation_spans") if ground_truth.get(key)), None)


def _documents(given: Mapping[str, Any] | Iterable[Any]) -> list[Document]:
    if isinstance(given, Mapping):
        return [_document(content, str(doc_id)) for doc_id, content in given.items()]
    if isinstance(given, str | bytes):
        raise DataError("source_documents", "a text is no collection of documents.", fix=_DOCUMENTS)
    return [_document(one, "") for one in given]


def _document(given: Any, doc_id: str) -> Document:
    if isinstance(given, Document):
        return given
    if isinstance(given, str) and doc_id:
        return Document(doc_id, given)
    if isinstance(given, Mapping):
        doc_id = str(given.get("document_id") or given.get("doc_id") or doc_id)
        text = given.get("content", given.get("text")) or ""
        if doc_id and isinstance(text, str):
            metadata = {key: given[key] for key in ("file_path", "title") if given.get(key)}
            return Document(doc_id, text, metadata)
    raise DataError("source_documents", f"{given!r:.80} is no document.", fix=_DOCUMENTS)
