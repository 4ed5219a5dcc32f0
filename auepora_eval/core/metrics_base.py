"""What a metric is, how one is written, and how one is found by its name.

`Metric` is the interface. `SampleMetric` is the normal way to implement it: the author writes how one
sample is scored; the base class skips samples that lack a required field, bounds failed outputs, keeps
every sample's score, aggregates, and adds coverage and an interval. `metric` makes a name of the fields.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import math
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import FrozenInstanceError, dataclass, field, fields, is_dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeVar, dataclass_transform, overload

import numpy as np

from ..errors import BadOutputError, ScoringError, UnknownNameError, did_you_mean
from ..stats.intervals import Interval, Share, Units, mean_units, share_units, shares_interval
from .hooks import METRIC_MODULES
from .matching import BY_ID, matched
from .metric_names import (
    NameTemplate,
    WrittenName,
    arguments_of,
    check_numbers,
    metric_hint,
    split_name,
    split_outside_brackets,
)
from .registry import Registry
from .scores import (
    Batch,
    Note,
    Rows,
    Scores,
    as_columns,
    equally_wide,
    failed_or_given,
    is_score,
    lacking_or_failed,
    raise_fault,
    shared_or_none,
)
from .types import (
    DOCUMENTS_GIVEN,
    GENERATION,
    NOT_ESTIMABLE,
    RETRIEVAL,
    EvaluationSample,
    MetricResult,
    Response,
    SampleScore,
    SystemOutputs,
    Target,
    TargetCategory,
    as_target,
    names_answer,
    names_documents,
)


class Metric(ABC):
    """Anything that turns samples and outputs into a MetricResult."""

    name: str
    target: Target

    @abstractmethod
    def required_fields(self) -> list[str]:
        """Names of EvaluationSample fields that the metric needs, such as ["relevant_docs"]."""

    @abstractmethod
    def compute(self, samples: list[EvaluationSample], outputs: list[SystemOutputs]) -> MetricResult: ...


_LAST_BITS = 1e-9  # far above the rounding of a score, far below what one is read to
_OF_ANSWERS = (
    *GENERATION,
    TargetCategory.NEGATIVE_REJECTION,
    TargetCategory.COUNTERFACTUAL_ROBUSTNESS,
)


class OutputNeed(NamedTuple):
    """What a metric needs of at least one output of a run, and why else nothing is measured."""

    is_met: Callable[[SystemOutputs], bool]
    reason: str


ANSWERS = OutputNeed(names_answer, "the system returns documents without answers")
DOCUMENTS = OutputNeed(names_documents, "no output names documents")


class SampleMetric(Metric):
    """A metric that scores each sample by itself and then aggregates the scores."""

    target: Target
    requires: ClassVar[tuple[str, ...]] = ()
    higher_is_better: ClassVar[bool] = True
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    unit: ClassVar[str] = ""  # "s" for seconds; shares, counts and rates have none
    oracle: ClassVar[str] = ""
    listed: ClassVar[bool] = True  # False: known by its name, but in no list and no default table
    whole_batch: ClassVar[bool] = False  # a sample's score depends on other samples: no scoring in chunks
    of_sums: ClassVar[bool] = False  # the aggregate needs no more than the sum of each column of the rows
    scores_failures: ClassVar[bool] = False  # a failed call is a score (failure_rate), not a sample lost
    scored_by_others: ClassVar[bool] = False  # an answer that fails changes the scores of the other answers
    scores_blank: ClassVar[bool] = False  # a blank output has a score, unless none could (`not_about`)
    reads_documents: ClassVar[bool] = False  # not measured if no output of a run names documents
    matches_documents: ClassVar[bool] = False  # compares retrieved with judged documents (`matched_by`)
    match: str = BY_ID  # by what: id, source or text
    not_measured: str = ""  # why no sample of a run can be scored (`unmeasured`)
    name_template: ClassVar[NameTemplate]  # of a class that `metric` decorated
    ranges: ClassVar[Mapping[str, str]] = {}  # the limits of numeric fields: {"p": "(0, 1)"}

    @property
    def is_of_retrieval(self) -> bool:
        """Return whether it is about which documents were retrieved."""
        return as_target(self.target) in RETRIEVAL

    @property
    def output_needs(self) -> tuple[OutputNeed, ...]:
        """Return what at least one output must have; here by the target, and by `reads_documents`."""
        needs = (ANSWERS,) if as_target(self.target) in _OF_ANSWERS else ()
        is_of_documents = self.reads_documents or as_target(self.target) in RETRIEVAL
        return (*needs, DOCUMENTS) if is_of_documents else needs

    @property
    def needs_judge(self) -> bool:
        """Return whether it is scored from verdicts (`judges.metric.JudgedMetric`)."""
        return False

    @abstractmethod
    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        """Score one sample. Raise ScoringError, or return skip("why"), where that cannot be done."""

    @property
    def is_mean(self) -> bool:
        """Whether the value is the mean of the scores, and not a corpus statistic or a quantile."""
        return type(self).aggregate is SampleMetric.aggregate

    def aggregate(self, rows: Rows) -> Rows:
        """Reduce the second-last axis of (..., samples, 1 + parts); here to the mean of the values."""
        mean: Rows = rows[..., 0].mean(axis=-1)
        return mean

    def score_if_failed(self, sample: EvaluationSample, *, high: bool) -> SampleScore:
        """Return the highest or the lowest score that a failed sample could have had."""
        return SampleScore(self.bounds[high])

    def counted_if_failed(self, sample: EvaluationSample, usual: Sequence[float]) -> SampleScore:
        """Return the score of a failed sample in a comparison: the worst, with the weight of one answer.

        `usual` holds the parts of another system's answer to it, or where there is none the mean of all
        answers' parts; it is empty where neither exists.
        """
        return self.score_if_failed(sample, high=not self.higher_is_better)

    def interval(self, rows: Rows, clusters: Sequence[Hashable] | None) -> Interval | None:
        """Return the 95% interval of the aggregate, or None where the data cannot give one."""
        if not math.isfinite(self.aggregate(rows)):
            return None
        return shares_interval(self.value_units(rows, clusters), self.bounds)

    def value_shares(self, rows: Rows) -> list[Share]:
        """Return what the value is the weighted sum of, and the rows that take part in each; here the whole.

        Override it where some rows cannot change the value (the F1 of a label that they neither have nor
        were given): such rows must not make an interval narrower. The number of shares is always the same.
        """
        return [Share(self.aggregate, np.ones(len(rows), dtype=bool))]

    def whole_value(self, *sides: Rows) -> Share:
        """Return the value as one share, with the rows that take part in it on any side."""
        chosen = np.any([share.takes_part for rows in sides for share in self.value_shares(rows)], axis=0)
        return Share(self.aggregate, chosen if chosen.any() else ~chosen)

    def value_units(
        self, rows: Rows, clusters: Sequence[Hashable] | None, shares: Sequence[Share] | None = None
    ) -> list[Units]:
        """Return the independent units of each share of the value; a share without any is left out."""
        if self.is_mean:
            return [mean_units(rows[:, 0], clusters)]
        return [
            share_units(rows, share, clusters=clusters, of_sums=self.of_sums)
            for share in shares or self.value_shares(rows)
            if share.takes_part.any()
        ]

    def signature(self) -> Mapping[str, object]:
        """Return what besides the name decides whether two values may be compared."""
        return {} if self.match == BY_ID else {"match": self.match}

    def matched_by(self, match: str) -> Self:
        """Return the metric with documents compared by id, source or text; itself if it compares none."""
        return self._copied(match=match) if self.matches_documents and match != self.match else self

    def unmeasured(self, reason: str) -> Self:
        """Return the metric for a run without anything to measure: every sample is skipped."""
        return self._copied(not_measured=reason)

    def _copied(self, **attributes: str) -> Self:
        metric = copy(self)
        vars(metric).update(attributes)  # most metrics are frozen
        return metric

    def ready(self) -> None:
        """Raise MissingDependencyError if scoring would; called before the first system call."""

    @classmethod
    def usage(cls) -> str:
        """Return how the metric is named: recall@k, mrr[@k]. Without `metric` it has one name."""
        template = getattr(cls, "name_template", None)
        return cls.name if template is None else template.usage(cls)

    def required_fields(self) -> list[str]:
        return list(self.requires)

    def unscorable(self, batch: Batch) -> dict[int, Note]:
        """Return the places that lack a required field, do not concern the metric, or failed."""
        notes = dict(batch.once(lacking_or_failed, self.requires, self.scores_failures))
        is_usual = type(self).not_about is SampleMetric.not_about
        for place in batch.once(failed_or_given) if is_usual else range(len(batch)):
            note = notes.get(place)
            if note is None or note.failed:
                reason = self.not_about(batch.samples[place], batch.outputs[place])
                notes |= {place: Note(reason)} if reason else {}
        return notes

    def not_about(self, sample: EvaluationSample, output: SystemOutputs) -> str:
        """Return why no answer to a sample could be scored, or this one by no fault of its own; "" if not.

        A call that failed on such a sample is skipped, not a failure of the metric.
        """
        if self.is_of_retrieval and output.extra.get(DOCUMENTS_GIVEN) is True:
            return "the system was given this sample's documents, and did not retrieve"
        if output.error is None or not self.scores_blank:
            return ""
        try:
            score = self.score(sample, SystemOutputs([], Response("")))
        except ScoringError:
            return ""
        if not isinstance(score, SampleScore) or score.value is not None or score.failed:
            return ""
        return score.reason

    def score_all(self, batch: Batch) -> Scores:
        """Score a whole batch; override for a faster way to the same scores.

        Scores at the places that `unscorable` names are ignored.
        """
        return self.score_each(batch, self.score, zip(batch.samples, batch.outputs, strict=True))

    def score_each(
        self, batch: Batch, score: Callable[..., float | SampleScore], arguments: Iterable[tuple[Any, ...]]
    ) -> Scores:
        """Return the score of each place of a batch by its arguments; a ScoringError is a failed score."""
        unscorable = self.unscorable(batch)
        scores: list[float | SampleScore] = []
        for place, each in enumerate(arguments):
            if place in unscorable:
                scores.append(SampleScore(None))
                continue
            try:
                scores.append(score(*each))
            except ScoringError as error:
                from ..calls.keys import without_secrets  # few metrics fail

                of_metric = not isinstance(error, BadOutputError)
                reason = without_secrets(str(error))
                scores.append(SampleScore(None, reason, failed=True, of_metric=of_metric))
            except Exception as error:  # noqa: BLE001 - named, and raised again
                raise_fault(self, error, batch.sample_ids[place])
        try:
            return Scores.of(scores)
        except (TypeError, ValueError) as error:
            place = next(place for place, one in enumerate(scores) if not is_score(one))
            what = f"it returned {scores[place]!r:.80}, which is not a number"
            raise_fault(self, error, batch.sample_ids[place], what)

    def compute(self, samples: list[EvaluationSample], outputs: list[SystemOutputs]) -> MetricResult:
        return self.summarise(self.score_batch(Batch(samples, outputs)))

    def score_batch(self, batch: Batch) -> Scores:
        """Return a score for each sample, in order: a value, or the reason why there is none."""
        batch = self.seen(batch)
        none = [skip(self.not_measured)] * len(batch)
        scores = Scores.of(none) if self.not_measured else self.score_all(batch)
        scores.sample_ids = batch.sample_ids
        scores.clusters = batch.clusters
        scores.notes |= self.unscorable(batch)
        # What cannot be scored is NaN in the columns, never 0.
        scores.values[list(scores.notes)] = math.nan
        low, high = self.bounds
        least, most = low - _LAST_BITS * (1 + abs(low)), high + _LAST_BITS * (1 + abs(high))
        is_usable = np.isfinite(scores.values) & (scores.values >= least) & (scores.values <= most)
        for place in np.flatnonzero(~is_usable).tolist():
            if place not in scores.notes:
                value, scale = float(scores.values[place]), scale_text(self.bounds, self.unit)
                why = f"{value:g}, outside its bounds ({scale}): declare the bounds that it has"
                if not math.isfinite(value):
                    why = f"{value}, which is not a number to average"
                scores.notes[place] = Note(f"the metric returned {why}", failed=True, of_metric=True)
                scores.values[place] = math.nan
        failed = [batch.samples[place] for place, note in scores.notes.items() if note.failed]
        if failed:
            worst, best = (
                Scores.of(self.score_if_failed(sample, high=high) for sample in failed).rows()
                for high in (False, True)
            )
            scores.if_failed = (worst, best)
        return scores

    def seen(self, batch: Batch) -> Batch:
        """Return the batch as the metric compares its documents."""
        return batch if self.match == BY_ID else batch.once(matched, self.match)

    def summarise(self, scores: Scores) -> MetricResult:
        """Aggregate scores, with their coverage and interval."""
        coverage = scores.coverage()
        details: dict[str, Any] = {**coverage.as_details()}
        details["higher_is_better"] = self.higher_is_better
        details["unit"] = self.unit
        if self.not_measured:
            details["not_measured"] = self.not_measured
        # JSON has no infinity: an unbounded side is null.
        details["bounds"] = [bound if math.isfinite(bound) else None for bound in self.bounds]
        value = math.nan
        interval: Interval | None = None
        if coverage.scored:
            rows = scores.rows()
            value = float(self.aggregate(rows))
            interval = self.interval(rows, shared_or_none(scores.clusters_of_scored()))
        elif scores.notes and not self.not_measured:
            details["notes"] = [f"{self.name}: {_why_no_score(scores.notes.values(), coverage.total)}."]
        details["confidence_interval"] = None if interval is None else [interval.low, interval.high]
        details["interval_method"] = NOT_ESTIMABLE if interval is None else interval.method
        details["bounds_if_failed"] = self.bounds_if_failed(scores)
        if of_metric := sum(note.of_metric for note in scores.notes.values()):
            details["num_failed_by_metric"] = of_metric
        details["signature"] = {"metric": self.name, **self.signature()}
        return MetricResult(self.name, self.target, value, details, scores)

    def bounds_if_failed(self, scores: Scores) -> list[float | None] | None:
        """Return the value if every failure had scored lowest, and highest: no system gains by crashing."""
        if scores.if_failed is None:
            return None
        scored = scores.rows()
        filled = [
            np.concatenate(equally_wide(scored, rows)) if len(scored) else rows for rows in scores.if_failed
        ]
        if not all(map(len, filled)):  # no failed sample could have been scored
            return None
        values = [float(self.aggregate(rows)) for rows in filled]
        # An unbounded metric (seconds) has no worst value, and JSON has no infinity.
        return [value if math.isfinite(value) else None for value in values]


class BatchMetric(SampleMetric):
    """A metric that is written over a whole batch; one sample is a batch of one."""

    @abstractmethod
    def score_all(self, batch: Batch) -> Scores: ...

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> SampleScore:
        return self.score_batch(Batch([sample], [output]))[0]


class StoredMetric(SampleMetric):
    """A metric whose class is not known here, by what is stored with its result: a mean of the scores."""

    def __init__(self, result: MetricResult) -> None:
        self.name, self.target = result.name, result.target
        low, high = result.bounds or (None, None)
        limits = (-math.inf if low is None else low, math.inf if high is None else high)
        # Of this object: other stored metrics have other bounds and directions.
        vars(self).update(bounds=limits, unit=result.unit, higher_is_better=result.higher_is_better)
        self._signature = {name: value for name, value in result.signature.items() if name != "metric"}

    @classmethod
    def of(cls, result: MetricResult) -> StoredMetric | None:
        """Return the metric of a result; None if its value is not the mean of its scores."""
        scores = as_columns(result.scores)
        if not scores.coverage().scored or scores.parts is not None:
            return None
        is_mean = math.isclose(float(scores.rows().mean()), result.value, rel_tol=1e-9, abs_tol=1e-12)
        return cls(result) if is_mean else None

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float:
        raise ScoringError(f"the metric {self.name!r} is not known here")

    def signature(self) -> Mapping[str, object]:
        return self._signature


def scale_text(bounds: Sequence[float | None], unit: str) -> str:
    """Write the values that a metric can have: "0 to 1", "0 to 100", "0 to ∞ s"."""
    ends = [
        infinity if bound is None or math.isinf(bound) else f"{bound:g}"
        for bound, infinity in zip(bounds, ("-∞", "∞"), strict=True)
    ]
    return " to ".join(ends) + (unit and f" {unit}")


METRICS: Registry[type[SampleMetric]] = Registry("metric", search=METRIC_MODULES, base=SampleMetric)


def listed_metrics() -> list[type[SampleMetric]]:
    """Return the classes of the metrics that lists show, by name."""
    return [made for made in map(METRICS.get, METRICS) if made.listed]


def skip(reason: str) -> SampleScore:
    """Return the score of a sample that a metric does not apply to."""
    return SampleScore(None, reason)


M = TypeVar("M", bound=SampleMetric)
ScoreFunction = Callable[..., float | SampleScore]


class _MetricDecorator(Protocol):
    @overload
    def __call__(self, thing: type[M]) -> type[M]: ...
    @overload
    def __call__(self, thing: ScoreFunction) -> Callable[..., SampleMetric]: ...


@overload
def metric(template: type[M], /) -> type[M]: ...
@overload
def metric(template: ScoreFunction, /) -> Callable[..., SampleMetric]: ...
@overload
@dataclass_transform(field_specifiers=(field,))
def metric(
    template: str | None = None,
    *,
    target: Target | Enum | str | None = None,
    requires: Sequence[str] | None = None,
    higher_is_better: bool | None = None,
    bounds: tuple[float, float] | None = None,
    unit: str | None = None,
    ranges: Mapping[str, str] | None = None,
) -> _MetricDecorator: ...
def metric(
    template: str | type | ScoreFunction | None = None,
    *,
    target: Target | Enum | str | None = None,
    requires: Sequence[str] | None = None,
    higher_is_better: bool | None = None,
    bounds: tuple[float, float] | None = None,
    unit: str | None = None,
    ranges: Mapping[str, str] | None = None,
) -> Any:
    """Make a class or a function a metric, named by a template of its fields, and register it.

    Without a template it has the name of the class or function: `@metric`, `@metric(higher_is_better=False)`.

    The class becomes a dataclass that cannot be changed after `__init__`. Its whole numbers must be at
    least 1; `ranges` gives other limits: {"p": "(0, 1)"}. A function gets a sample and an output, and
    its keyword-only parameters are the fields.

    >>> @metric("brevity@{words}", target="generation_relevance")
    ... def brevity(sample, output, *, words: int = 10) -> float:
    ...     return float(len(output.response.text.split()) <= words)
    >>> brevity(words=12).name
    'brevity@12'
    """
    if not (template is None or isinstance(template, str)):
        return metric()(template)
    attributes: dict[str, Any] = {
        "target": None if target is None else as_target(target),
        "requires": None if requires is None else tuple(requires),
        "higher_is_better": higher_is_better,
        "bounds": bounds,
        "unit": unit,
    }

    def decorate(thing: Any) -> Any:
        if isinstance(thing, type) and not issubclass(thing, SampleMetric):
            what = f"@metric takes a function or a SampleMetric, and the class {thing.__name__} is neither."
            raise TypeError(f"{what} Leave the decorator out: --metrics my_file.py:{thing.__name__}")
        if missing := sorted(getattr(thing, "__abstractmethods__", ())):
            raise TypeError(f"the class {thing.__name__} lacks {', '.join(missing)}")
        names = NameTemplate.parse(template or thing.__name__)
        made: Any = thing if isinstance(thing, type) else _class_of(thing)
        for name, value in attributes.items():
            if value is not None:
                setattr(made, name, value)
        made.name_template = names
        made.ranges = {**made.ranges, **(ranges or {})}
        # Hashable though not frozen: `__setattr__` below freezes it after `__init__`.
        made = dataclass(unsafe_hash=True)(made)
        made.__init__ = _named_init(made)
        made.__setattr__ = _set_before_it_is_named
        return METRICS.add(names.base)(made)

    return decorate


def _class_of(function: ScoreFunction) -> type[SampleMetric]:
    """Make a class whose `score` calls the function with the class's fields."""
    parameters = list(inspect.signature(function).parameters.values())
    options = [one for one in parameters if one.kind is one.KEYWORD_ONLY]
    if len(parameters) - len(options) != 2:
        raise TypeError(f"{function.__name__} must take a sample, an output and keyword-only parameters")
    names = [one.name for one in options]

    def score(self: SampleMetric, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        return function(sample, output, **{name: getattr(self, name) for name in names})

    members: dict[str, Any] = {"score": score, "__doc__": function.__doc__, "__module__": function.__module__}
    members["__qualname__"] = function.__qualname__  # pickle looks a class up by its module and name
    members["target"] = as_target(function.__name__)  # unless `metric` is given another one
    # Fields without a default come first, as in any dataclass.
    options.sort(key=lambda one: one.default is not one.empty)
    members["__annotations__"] = {one.name: _annotation(one) for one in options}
    members |= {one.name: one.default for one in options if one.default is not one.empty}
    return type(function.__name__, (SampleMetric,), members)


def _annotation(parameter: inspect.Parameter) -> Any:
    if parameter.annotation is not parameter.empty:
        return parameter.annotation
    return type(parameter.default).__name__ if parameter.default is not parameter.empty else "str"


def _named_init(made: Any) -> Any:
    """Wrap the `__init__` of a dataclass: check its numbers, then write its name."""
    init, names = made.__init__, made.name_template

    @functools.wraps(init)
    def init_and_name(self: Any, *arguments: Any, **options: Any) -> None:
        init(self, *arguments, **options)
        check_numbers(self, made.ranges)
        if "name" not in vars(self):  # a __post_init__ may have given it a name of its own
            vars(self)["name"] = names.name_of(self)
        vars(self)["_is_named"] = True

    return init_and_name


def _set_before_it_is_named(self: Any, name: str, value: object) -> None:
    """Let `__post_init__` set attributes, and nobody later: one object serves all threads."""
    if "_is_named" in vars(self):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


# Each short name represents one full name.
SHORT_NAMES = {f"p{percent}_latency": f"latency@{percent / 100:g}" for percent in (50, 90, 95, 99)}
SHORT_NAMES["rougeL"] = "rougeL_answer"


def parse_metric(name: str) -> SampleMetric:
    """Return the metric of that name, from the registry or from a file: my_metrics.py:brevity@12.

    >>> parse_metric("recall@5").name
    'recall@5'
    """
    made = metric_class(name)
    # A class that was registered without `metric` need not be a dataclass. It has no parameters in its name.
    parameters = fields(made) if is_dataclass(made) else ()
    arguments = arguments_of(name, _written(name), parameters)
    try:
        return made(**arguments)
    except ValueError as error:
        raise UnknownNameError(f"the metric {name!r}: {error}") from error


def _why_no_score(notes: Iterable[Note], total: int) -> str:
    """Return why no sample has a score: the first failure, unless more samples were skipped than failed."""
    failed: list[str] = []
    skipped: list[str] = []
    for note in notes:
        (failed if note.failed else skipped).append(note.reason)
    if len(failed) >= len(skipped):
        return f"no sample was scored. The first one: {failed[0].rstrip('.')}"
    [(reason, count)] = Counter(skipped).most_common(1)
    share = "" if count == total else f" ({count} of {total} samples)"
    return f"not measured, {reason}{share}"


def metric_class(name: str) -> type[SampleMetric]:
    """Return the class of the metric of that name; UnknownNameError with the nearest names."""
    file = metric_file(name)
    own = {} if file is None else import_metrics(file)
    try:
        base = _written(name).base
        return METRICS.get(base)
    except UnknownNameError as error:
        if file is not None:
            near = did_you_mean(base, own, f"It has {', '.join(own) or 'none'}.")
            raise UnknownNameError(f"{file} has no metric {base!r:.80}. {near}") from error
        if (hint := metric_hint(name)) is None:
            raise
        raise UnknownNameError(f"there is no metric {name!r:.80}. {hint}") from error


def _written(name: str) -> WrittenName:
    """Cut a name into its parts, without its file and with short names written out."""
    bare = name.strip()
    written = split_name(bare if metric_file(bare) is None else bare.partition(".py:")[2])
    short = SHORT_NAMES.get(written.base)
    if short is None or written.number is not None:
        return written
    base, _, number = short.partition("@")
    return WrittenName(base, number or None, written.options)


PRESETS: dict[str, Sequence[str]] = {}  # names that stand for several metrics, such as "seed003"


def parse_metrics(names: str | Iterable[str]) -> list[Metric]:
    """Return several metrics, from a list or from one string with commas between the names."""
    if isinstance(names, str):
        names = split_outside_brackets(names)
    single = [one for name in names for one in PRESETS.get(name.strip(), (name,)) if one.strip()]
    return [_of_a_class(name) or parse_metric(name) for name in single]


# The classes of metrics in users' files, by their names and by the names that a run is resumed with.
_CLASSES: dict[str, type[Metric]] = {}


def _of_a_class(name: str) -> Metric | None:
    """Return the metric of a class in a file, my_metrics.py:Mine; None for a name in the registry."""
    if (file := metric_file(name)) is not None:
        import_metrics(file)
    class_name = name.strip().rpartition(":")[2]
    made = _CLASSES.get(class_name)  # asked first: a look into METRICS imports every module of metrics
    if made is None or class_name in METRICS:
        return None
    try:
        found = made()
    except TypeError as error:
        raise UnknownNameError(f"the metric {name!r} cannot be made without arguments: {error}") from error
    if not isinstance(called := getattr(found, "name", None), str) or not called:
        raise UnknownNameError(f"the metric {name!r} has no name: set `name` in the class.")
    needs = found.required_fields
    if not callable(needs) or not isinstance(needs(), list | tuple):
        raise UnknownNameError(
            f"the metric {name!r}: required_fields must be a method that returns a list of names, "
            'such as ["reference_answer"], or [].'
        )
    return found


def metric_file(name: str) -> Path | None:
    """Return the file that a name such as my_metrics.py:brevity@12 takes its metric from."""
    file, in_file, _ = name.strip().partition(".py:")
    # In brackets it is an option: citation_correctness[my_nli.py:entails].
    return Path(f"{file}.py") if in_file and "[" not in file else None


def import_metrics(path: Path) -> dict[str, type[Metric]]:
    """Import a user's file and return its classes of metrics; UnknownNameError where it cannot be done."""
    if not path.is_file():
        raise UnknownNameError(f"there is no file {str(path)!r} to take metrics from.")
    folder = str(path.parent.resolve())
    if folder not in sys.path:
        sys.path.append(folder)  # at the end, so that the folder hides no installed module
    spec = importlib.util.find_spec(path.stem)
    if spec is None or spec.origin is None or Path(spec.origin) != path.resolve():
        raise UnknownNameError(f"the module {path.stem!r} exists already: give {path} another name.")
    try:
        # Under its own name, which is how worker processes find its classes.
        module = import_module(path.stem)
    except Exception as error:
        raise UnknownNameError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    own = {
        name: made
        for name, made in vars(module).items()
        if isinstance(made, type) and issubclass(made, Metric) and made.__module__ == module.__name__
    }
    stored = {made.name: made for made in own.values() if isinstance(getattr(made, "name", None), str)}
    _CLASSES.update(own | stored)
    return own
