"""The plan: which metrics to run, and whether a dataset has what they need."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..errors import PlanError
from .batch import has_field
from .metrics_base import Metric, SampleMetric
from .types import EvaluationSample, TargetCategory


class PartialCoverageWarning(UserWarning):
    """Some metrics of the plan will score only a part of the dataset."""


@dataclass
class EvaluationPlan:
    """The metrics of an evaluation."""

    metrics: list[Metric] = field(default_factory=list)

    def grouped_by_target(self) -> dict[TargetCategory, list[Metric]]:
        """The metrics under the target that each is about, in the plan's order."""
        groups: dict[TargetCategory, list[Metric]] = {}
        for metric in self.metrics:
            groups.setdefault(metric.target, []).append(metric)
        return groups

    def validate_dataset(self, samples: Sequence[EvaluationSample]) -> None:
        """Refuse a metric that no sample has the fields for; warn where only some have them."""
        needed = {name for metric in self.metrics for name in metric.required_fields()}
        counts = {name: sum(has_field(sample, name) for sample in samples) for name in needed}
        self.validate_counts(counts, len(samples))

    def validate_counts(self, counts: Mapping[str, int], total: int) -> None:
        """The same, from how many of the samples have each field."""
        self._check_names()
        for metric in self.metrics:
            if isinstance(metric, SampleMetric):
                metric.ready()
        if not total:
            return
        users: dict[str, list[str]] = {}
        for metric in self.metrics:
            for field_name in metric.required_fields():
                users.setdefault(field_name, []).append(metric.name)
        for field_name, metrics in users.items():
            present = counts[field_name]
            if present == 0:
                raise PlanError(
                    f"Dataset missing required field '{field_name}' for metric '{metrics[0]}': none of the "
                    f"{total} samples has it. Add the field, or leave out {_listed(metrics)}."
                )
            if present < total:
                warnings.warn(
                    f"{present} of {total} samples have {field_name}: {_listed(metrics)} "
                    "will score only those.",
                    PartialCoverageWarning,
                    stacklevel=3,
                )

    def _check_names(self) -> None:
        repeated = [
            name for name, count in Counter(metric.name for metric in self.metrics).items() if count > 1
        ]
        if repeated:
            raise PlanError(
                f"the plan has {_listed(repeated)} more than once, but results are told apart by name."
            )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
