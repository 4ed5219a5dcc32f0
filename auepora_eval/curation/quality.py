"""Is a dataset good? Checks of its meaning; its form is checked by io.validation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..core.dataset import EvaluationDataset
from ..errors import DataError
from ..io.json_text import kind_of
from . import quality_answers, quality_citations, quality_documents, quality_labels, quality_questions
from .quality_issue import SEVERITIES, QualityIssue
from .quality_view import DatasetView, view_of

Dataset = Mapping[str, Any] | EvaluationDataset
Check = Callable[[Any], Sequence[str]]


class DataQualityChecker:
    """Runs quality checks on a dataset: a `.eval.json` document as a dict, or an EvaluationDataset.

    `checks` may be added to or taken from. A check takes the dataset and returns texts, or QualityIssues;
    an exception in a check is a bug of the check and is raised.
    """

    def __init__(self, *, min_support: float = quality_answers.MIN_SUPPORT) -> None:
        self.min_support = min_support
        self.checks: list[Check] = [
            self._check_query_uniqueness,
            self._check_document_references,
            self._check_citation_validity,
            self._check_ground_truth_consistency,
            self._check_form,
            self._check_empty_queries,
            self._check_documents,
            self._check_answer_in_question,
            self._check_reference_support,
            self._check_near_duplicates,
            self._check_labels,
            self._check_label_values,
            self._check_declared,
        ]
        self._under_way: tuple[Dataset, DatasetView] | None = None

    def run_quality_checks(self, dataset: Dataset) -> list[str]:
        """What all checks found, worst first, as texts that say where, what and what to do."""
        return [str(issue) for issue in self.issues(dataset)]

    def issues(self, dataset: Dataset, on_check: Callable[[str], None] | None = None) -> list[QualityIssue]:
        """The same with severity, check, sample id, place, message and fix.

        `on_check` is told what each check is called before it begins: a large dataset takes a while.
        """
        if not isinstance(dataset, Mapping | EvaluationDataset):
            what = f"a .eval.json document or an EvaluationDataset was expected, not {kind_of(dataset)}."
            raise DataError("dataset", what, fix="Read it with load_dataset, or put a list in one.")
        self._under_way, found = (dataset, view_of(dataset)), list[QualityIssue]()
        try:
            for check in self.checks:
                if on_check is not None:
                    on_check(_name_of(check))
                found += [_as_issue(text, check) for text in check(dataset)]
        finally:
            self._under_way = None
        return sorted(found, key=lambda issue: SEVERITIES.index(issue.severity))

    def _check_query_uniqueness(self, dataset: Dataset) -> list[QualityIssue]:
        return self._found(quality_questions.check_query_uniqueness, dataset)

    def _check_document_references(self, dataset: Dataset) -> list[QualityIssue]:
        return self._found(quality_documents.check_document_references, dataset)

    def _check_citation_validity(self, dataset: Dataset) -> list[QualityIssue]:
        return self._found(quality_citations.check_citation_validity, dataset)

    def _check_ground_truth_consistency(self, dataset: Dataset) -> list[QualityIssue]:
        return self._found(quality_citations.check_ground_truth_consistency, dataset)

    def _check_form(self, dataset: Dataset) -> list[QualityIssue]:
        return self._found(_left_out, dataset)

    def _check_empty_queries(self, dataset: Dataset) -> list[QualityIssue]:
        return self._found(quality_questions.check_empty_queries, dataset)

    def _check_documents(self, dataset: Dataset) -> list[QualityIssue]:
        return self._found(quality_documents.check_documents, dataset)

    def _check_answer_in_question(self, dataset: Dataset) -> list[QualityIssue]:
        return self._found(quality_answers.check_answer_in_question, dataset)

    def _check_reference_support(self, dataset: Dataset) -> list[QualityIssue]:
        return list(quality_answers.check_reference_support(self._view(dataset), self.min_support))

    def _check_near_duplicates(self, dataset: Dataset) -> list[QualityIssue]:
        return self._found(quality_questions.check_near_duplicates, dataset)

    def _check_labels(self, dataset: Dataset) -> list[QualityIssue]:
        return self._found(quality_labels.check_labels, dataset)

    def _check_label_values(self, dataset: Dataset) -> list[QualityIssue]:
        return self._found(quality_labels.check_label_values, dataset)

    def _check_declared(self, dataset: Dataset) -> list[QualityIssue]:
        return self._found(quality_questions.check_declared, dataset)

    def _found(
        self, check: Callable[[DatasetView], Iterator[QualityIssue]], dataset: Dataset
    ) -> list[QualityIssue]:
        return list(check(self._view(dataset)))

    def _view(self, dataset: Dataset) -> DatasetView:
        """The view of the dataset; while all checks run, they share one."""
        if self._under_way is not None and self._under_way[0] is dataset:
            return self._under_way[1]
        return view_of(dataset)


def _left_out(view: DatasetView) -> Iterator[QualityIssue]:
    for where, what in view.left_out:
        yield QualityIssue(
            "error", "form", what, where=where, fix="`auepora dataset validate` lists all that is malformed."
        )


def _as_issue(text: str, check: Check) -> QualityIssue:
    """A finding of a check of the user's own is a text; it counts as a warning."""
    if isinstance(text, QualityIssue):
        return text
    return QualityIssue("warning", _name_of(check), text, where="dataset")


def _name_of(check: Check) -> str:
    return str(getattr(check, "__name__", "check")).strip("_")
