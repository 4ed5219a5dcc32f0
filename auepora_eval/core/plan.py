"""The plan of an evaluation: its metrics, and whether a dataset has the fields that they need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from types import FunctionType

from ..errors import ArgumentError, DataError, PlanError, warn_user, wrong_type
from ..read.messages import HISTORY
from ..read.names import COLUMNS, name_like
from .dataset import Fingerprint, rare_collections
from .matching import BY_ID, check_match
from .metrics_base import Metric, SampleMetric, parse_metric, parse_metrics
from .metrics_base import metric as metric_of_function
from .scores import has_field, is_unanswerable
from .types import TRUE_LABEL, EvaluationSample, Target, as_target

# The last: a class, which gets its defaults, or a function of a sample and an output, which returns a score.
MetricForm = str | Metric | Callable[..., Metric | float]
MetricForms = MetricForm | Iterable[MetricForm]
_METRIC_FORMS = "a name such as 'recall@5', a metric, a function of a sample and an output, or a list"


class PartialCoverageWarning(UserWarning):
    """Some metrics of the plan will score only a part of the dataset."""


def as_metrics(metrics: MetricForms) -> list[Metric]:
    """Return metrics from objects, from names, or from one string with commas between the names."""
    if isinstance(metrics, str):
        return parse_metrics(metrics)
    if isinstance(metrics, Metric | type | FunctionType):
        return [_as_metric(metrics)]
    if not isinstance(metrics, Iterable):
        raise wrong_type("metrics", _METRIC_FORMS, metrics)
    # The same list is kept if it needs no change: a caller may still add to it.
    if isinstance(metrics, list) and all(isinstance(one, Metric) for one in metrics):
        return metrics
    return [_as_metric(one) for one in metrics]


def _as_metric(thing: object) -> Metric:
    if isinstance(thing, Metric):
        return thing
    if isinstance(thing, str):
        return parse_metric(thing)
    if isinstance(thing, type) and issubclass(thing, Metric):
        try:
            return thing()
        except TypeError as error:
            message = f"metrics has the class {thing.__name__}, which cannot be made without arguments"
            raise ArgumentError(f"{message}: {error}") from error
    if isinstance(thing, FunctionType):
        if not thing.__name__.isidentifier():
            raise ArgumentError('metrics has a lambda, which has no name: use def, or @metric("name").')
        made: Callable[[], SampleMetric] = metric_of_function(thing)
        return made()
    raise wrong_type("metrics", _METRIC_FORMS, thing)


@dataclass(init=False)
class EvaluationPlan:
    """The metrics of an evaluation: objects, names such as "recall@5", or one string of names.

    `match` says by what retrieved documents are compared with the relevant ones: id, source or text.
    """

    metrics: list[Metric]

    def __init__(self, metrics: MetricForms = (), *, match: str = BY_ID) -> None:
        self.metrics = as_metrics(metrics)
        if check_match(match) != BY_ID:
            self.metrics = [m.matched_by(match) if isinstance(m, SampleMetric) else m for m in self.metrics]

    def grouped_by_target(self) -> dict[Target, list[Metric]]:
        """Return the metrics by target, in the order of the plan."""
        groups: dict[Target, list[Metric]] = {}
        for metric in self.metrics:
            groups.setdefault(as_target(metric.target), []).append(metric)
        return groups

    def validate_dataset(self, samples: Sequence[EvaluationSample]) -> None:
        """Raise PlanError if no sample has a field that a metric needs; warn if only some have it."""
        self.validate_survey(Survey.of(samples, self))

    def validate_survey(self, survey: Survey) -> None:
        """Do the same, by how many of the samples have each field.

        Samples that are unanswerable on purpose need no reference answer and no documents: if there are as
        many of them as samples without the field, nothing is missing.
        """
        self.check_metrics()
        total = survey.size
        if not total:
            return
        users: dict[str, list[str]] = {}
        for metric in self.metrics:
            for field_name in metric.required_fields():
                users.setdefault(field_name, []).append(metric.name)
        for field_name, metrics in users.items():
            present = survey.counts[field_name]
            if present == 0:
                raise PlanError(
                    f"Dataset missing required field '{field_name}' for metric '{metrics[0]}': none of the "
                    f"{total} samples has it. {_maybe_unread(field_name, survey.others)}Add the field, or "
                    f"leave out {', '.join(metrics)}."
                )
            if present < total - survey.unanswerable:
                warn_user(
                    f"{present} of {total} samples have {field_name}: {', '.join(metrics)} "
                    "will score only those.",
                    PartialCoverageWarning,
                )

    def check_metrics(self) -> None:
        """Raise PlanError if two metrics have the same name, MissingDependencyError if one cannot score."""
        counts = Counter(metric.name for metric in self.metrics)
        repeated = [name for name, count in counts.items() if count > 1]
        if repeated:
            raise PlanError(
                f"The plan has {', '.join(repeated)} more than once, but results are identified by name."
            )
        for metric in self.metrics:
            if isinstance(metric, SampleMetric):
                metric.ready()


def _maybe_unread(field_name: str, others: Iterable[str]) -> str:
    """Return which name that was not read may be that of a field; "" if none is like it."""
    name = name_like(field_name, others)
    if name is None:
        return ""
    fix = f"write --columns {field_name}={name}" if field_name in COLUMNS else "rename it"
    return f"{name!r} was not read: if it is this field, {fix}. "


# The fields that decide which standard metrics a dataset supports.
FIELDS = (
    *("query", "relevant_docs", "candidate_docs", "reference_answer", "labels", "metadata"),
    *(f"labels.{TRUE_LABEL}", "metadata.citations"),
)
_LABELS = ("true_answer", "fake_answer", "noise_ratio", "variant_of")


@dataclass
class Survey:
    """What one pass over a dataset finds: enough to choose metrics, check a plan and identify the data."""

    names: frozenset[str] = frozenset()  # the fields that are counted
    ids: set[str] = field(default_factory=set)
    size: int = 0
    repeated: int = 0  # samples with the id of an earlier one
    unanswerable: int = 0  # samples that are labelled so
    conversations: int = 0  # samples with earlier turns
    others: set[str] = field(default_factory=set)  # names in the metadata, which no metric may read
    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, EvaluationSample] = field(default_factory=dict)
    _fingerprint: Fingerprint = field(default_factory=Fingerprint)

    @classmethod
    def new(cls, plan: EvaluationPlan | None = None) -> Survey:
        """Return a survey without samples: of the fields of the plan, or of those to choose a plan by."""
        if plan is None:
            return cls(frozenset((*FIELDS, *(f"labels.{label}" for label in _LABELS))))
        return cls(frozenset(name for metric in plan.metrics for name in metric.required_fields()))

    @classmethod
    def of(cls, dataset: Iterable[EvaluationSample], plan: EvaluationPlan | None = None) -> Survey:
        """Count the samples of a dataset that have each field."""
        survey = cls.new(plan)
        with rare_collections():
            for sample in dataset:
                survey.add(sample)
                survey._fingerprint.add([sample])
        return survey

    def add(self, sample: EvaluationSample) -> None:
        """Count a further sample. It is not part of the fingerprint, which only `of` computes."""
        self.size += 1
        self.repeated += sample.sample_id in self.ids
        self.ids.add(sample.sample_id)
        self.others |= sample.metadata.keys()
        self.conversations += HISTORY in sample.metadata
        if is_unanswerable(sample):
            self.unanswerable += 1
            self.examples.setdefault("unanswerable", sample)
        for name in self.names:
            if has_field(sample, name):
                self.counts[name] += 1
                self.examples.setdefault(name, sample)

    @property
    def sha256(self) -> str:
        """Return the fingerprint of the samples."""
        return self._fingerprint.hexdigest()

    def check_unique(self, name: str) -> None:
        """Raise DataError if two samples of the dataset of that name have the same id."""
        if self.repeated:
            raise DataError(
                name,
                f"{self.repeated} samples have the sample_id of another one.",
                fix="Scores are matched by id: give each sample its own.",
            )

    def forget_ids(self) -> None:
        """Free the ids once they are checked: those of a million samples take 100 MB."""
        self.ids = set()
