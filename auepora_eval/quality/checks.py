"""Check the content of a dataset: duplicates, references, citations, labels.

`io.schema.validate` checks its format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ..core.dataset import EvaluationDataset
from ..errors import DataError
from ..io.json.text import kind_of
from .answers import MIN_SUPPORT, check_answer_in_question, check_reference_support
from .citations import (
    check_citation_validity,
    check_document_references,
    check_documents,
    check_ground_truth_consistency,
)
from .samples import (
    check_declared,
    check_empty_queries,
    check_label_values,
    check_labels,
    check_near_duplicates,
    check_prompts,
    check_query_uniqueness,
)
from .view import SEVERITIES, DatasetView, QualityIssue, view_of

Dataset = Mapping[str, Any] | EvaluationDataset
Check = Callable[[Any], Sequence[str]]
ViewCheck = Callable[[DatasetView], Iterator[QualityIssue]]


def check_form(view: DatasetView) -> Iterator[QualityIssue]:
    """Parts of a document that were left out because of their form."""
    for where, what in view.left_out:
        fix = "`auepora dataset validate` lists all that is malformed."
        yield QualityIssue("error", "form", what, where=where, fix=fix)


class DataQualityChecker:
    """Runs quality checks on a dataset: a `.eval.json` document as a dict, or an EvaluationDataset.

    `checks` may be added to or taken from. A check takes the dataset and returns texts, or QualityIssues;
    an exception in a check is a bug of the check and is raised.
    """

    def __init__(self, *, min_support: float = MIN_SUPPORT) -> None:
        # The four checks of seed 003 come first; a user may take any of them out.
        further: tuple[ViewCheck, ...] = (
            check_form,
            check_empty_queries,
            check_prompts,
            check_documents,
            check_answer_in_question,
            partial(check_reference_support, min_support=min_support),
            check_near_duplicates,
            check_labels,
            check_label_values,
            check_declared,
        )
        self.checks: list[Check] = [
            self._check_query_uniqueness,
            self._check_document_references,
            self._check_citation_validity,
            self._check_ground_truth_consistency,
            *(partial(self._run, check) for check in further),
        ]
        self._last_view: tuple[Dataset, DatasetView] | None = None

    def run_quality_checks(self, dataset: Dataset) -> list[str]:
        """Return the findings of all checks, worst first, as texts with place, message and fix."""
        return [str(issue) for issue in self.issues(dataset)]

    def issues(self, dataset: Dataset) -> list[QualityIssue]:
        """Return the findings with severity, check, sample id, place, message and fix."""
        if not isinstance(dataset, Mapping | EvaluationDataset):
            what = f"a .eval.json document or an EvaluationDataset was expected, not {kind_of(dataset)}."
            raise DataError("dataset", what, fix="Read it with load_dataset, or put a list in one.")
        self._last_view = (dataset, view_of(dataset))
        try:
            findings = [_as_issue(text, check) for check in self.checks for text in check(dataset)]
        finally:
            self._last_view = None  # the dataset may change before the next call
        return sorted(findings, key=lambda issue: SEVERITIES.index(issue.severity))

    def _check_query_uniqueness(self, dataset: Dataset) -> list[QualityIssue]:
        return self._run(check_query_uniqueness, dataset)

    def _check_document_references(self, dataset: Dataset) -> list[QualityIssue]:
        return self._run(check_document_references, dataset)

    def _check_citation_validity(self, dataset: Dataset) -> list[QualityIssue]:
        return self._run(check_citation_validity, dataset)

    def _check_ground_truth_consistency(self, dataset: Dataset) -> list[QualityIssue]:
        return self._run(check_ground_truth_consistency, dataset)

    def _run(self, check: ViewCheck, dataset: Dataset) -> list[QualityIssue]:
        """Run a check on the view of a dataset; the checks of one call of `issues` share the view."""
        if self._last_view is not None and self._last_view[0] is dataset:
            return list(check(self._last_view[1]))
        return list(check(view_of(dataset)))


def _as_issue(text: str, check: Check) -> QualityIssue:
    """Return a finding as an issue; the text of a user's own check counts as a warning."""
    if isinstance(text, QualityIssue):
        return text
    name = str(getattr(check, "__name__", "check")).strip("_")
    return QualityIssue("warning", name, text, where="dataset")
