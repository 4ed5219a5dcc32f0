"""Audit a judge against human labels: a model, a support function, a metric, or scores given before.

A score of at least the threshold means "supported". Accuracy and kappa compare that with people's labels;
AUROC measures whether supported claims score higher, at any threshold. An audit also has the calibration of
the scores, the agreement of people with each other (the human ceiling), and the judge's mean corrected by
the labels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..core.display import interval_text, value_text
from ..core.metrics_base import SampleMetric
from ..core.types import NOT_ESTIMABLE, Document, EvaluationSample, Response, RetrievedDocument, SystemOutputs
from ..errors import DataError, ScoringError, UnknownNameError
from ..judges.asking import verdicts_on
from ..judges.judge import Asker, Judge, Judging
from ..judges.metrics.texts import chunk_spans
from ..judges.question import Question, kind_named
from ..judges.trust.calibration import JudgeCalibration, calibrate
from ..metrics.entailment import SUPPORTS, checked_support, support_function, support_identity
from ..metrics.parse import parse_metric
from ..stats.agreement import Statistic, agreement
from ..stats.arrays import Array
from ..stats.calibration import BINS, calibration, prediction_powered_mean, true_rate, true_rate_interval
from ..stats.classification import (
    accuracy,
    area_interval,
    area_under_curve,
    cohen_kappa,
    confusion_table,
    table_interval,
)
from ..stats.correlation import KINDS, Kind, correlation
from ..stats.intervals import Interval, mean_change_interval, mean_interval
from .judge_labels import TIE_DIGITS, Columns, Labelled, clusters_of, labelled_claims, unlabelled_claims

Flags = NDArray[np.bool_]

__all__ = [
    "Audit",
    "Columns",
    "Labelled",
    "audit",
    "judge_calibration",
    "judge_scores",
    "labelled_claims",
    "unlabelled_claims",
]

Audited = str | Judge | Judging | None  # a name, a judge, or None for stored scores
Scored = tuple[float, Labelled]  # the judge's score of a claim, and the claim
Clusters = tuple[Sequence[Hashable], Sequence[Hashable]]  # of the labelled claims and of the others

SPLITS = 2_000
_LEAST = 2  # labelled claims, and others: a variance needs two


@dataclass(frozen=True)
class Audit:
    """The settings of an audit: thresholds of judge and people, bins, numbers of labels to plan for."""

    threshold: float = 0.7
    people_threshold: float = 0.5
    bins: int = BINS
    budget: Sequence[int] = ()
    seed: int = 0
    # The score of a claim that the judge cannot score; None leaves the claim out.
    unscored_as: float | None = None


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number with its 95% interval and the method of that; None if the claims do not give it."""

    value: float | None
    confidence_interval: tuple[float, float] | None
    interval_method: str

    def cells(self, *, signed: bool = False) -> tuple[str, str]:
        """Return the value and the interval for two columns of a table."""
        return value_text(self.value, signed=signed), interval_text(self.confidence_interval, signed=signed)


@dataclass(frozen=True, kw_only=True)
class Alpha(Estimate):
    """Krippendorff's alpha, for nominal or ordinal ratings."""

    statistic: Statistic


@dataclass(frozen=True, kw_only=True)
class TrueRate(Estimate):
    """The share of yes, corrected by the judge's error rates; without a value, `reason` says why."""

    reported: float
    sensitivity: float | None
    specificity: float | None
    reason: str | None = None


@dataclass
class Agreement:
    """How far a judge agrees with people's labels, on all claims or on a group of them."""

    claims: int
    scored: int
    supported: int
    accuracy: Estimate
    auroc: Estimate
    kappa: Estimate
    confusion: dict[str, dict[str, int]]


class CalibrationBin(msgspec.Struct, frozen=True, rename={"low": "from", "high": "to"}):
    """The claims with scores from `low` to `high`: their mean score and people's mean label."""

    low: float
    high: float
    claims: int
    judge: float | None
    people: Estimate


@dataclass(frozen=True)
class AuditCalibration:
    """Scores compared with shares of supported claims; 95% of calibrated judges stay below `by_chance`."""

    bins: int
    expected_calibration_error: float
    by_chance: float | None
    brier: Estimate
    brier_of_the_mean: float
    table: list[CalibrationBin]


@dataclass(frozen=True)
class AgainstOthers:
    """The share of the same yes or no as the other people, and the rank correlation with them."""

    agreement: Estimate
    spearman: Estimate


@dataclass(frozen=True)
class LeftOut:
    """The agreement of one person, and of the judge, with the others on the claims that the person rated."""

    items: int
    person: float
    judge: float


@dataclass(frozen=True)
class HumanCeiling:
    """People's agreement with each other, and the judge's agreement on the same pairs."""

    annotators: int
    items: int
    alpha: Alpha
    one_person: AgainstOthers
    judge: AgainstOthers
    judge_less_person: Estimate
    each: dict[str, LeftOut]


@dataclass(frozen=True)
class CorrectedMean:
    """The mean of people's labels: by labels alone, by the judge alone, and by both (PPI++)."""

    labels: int
    unlabelled: int
    people_alone: Estimate
    judge_alone: float
    corrected: Estimate
    weight: float
    worth_labels: float | None  # labels that alone would give an interval of the same width


@dataclass(frozen=True)
class CorrectedRates:
    """What people would say of all claims: their mean label, and their share of yes in two ways."""

    mean: CorrectedMean
    share_of_yes: CorrectedMean
    share_of_yes_by_errors: TrueRate


@dataclass(frozen=True)
class BudgetRow:
    """The width of the 95% interval of the mean with this number of labels, the rest being only judged."""

    labels: int
    people_alone: float
    judge_at_weight_1: float
    judge_tuned: float


@dataclass
class AuditReport(Agreement):
    """An audit. The parts that need scores are None if the judge could not score any claim."""

    judge: str | None
    threshold: float
    people_threshold: float
    seed: int
    people_evenly_split: int | None = None
    people: Estimate | None = None
    judge_mean: float | None = None
    bias: Estimate | None = None
    correlation: dict[Kind, Estimate] | None = None  # for labels on a scale
    calibration: AuditCalibration | None = None  # for scores from 0 to 1
    human_ceiling: HumanCeiling | None = None  # if several people rated a claim
    budget: list[BudgetRow] | None = None
    estimate: CorrectedRates | None = None  # with unlabelled claims
    unlabelled_not_scored: int = 0
    by: dict[str, Agreement] = field(default_factory=dict)


def audit(
    labelled: Sequence[Labelled],
    judge: Audited,
    how: Audit | None = None,
    *,
    unlabelled: Sequence[Labelled] = (),
    ask: Asker | None = None,
) -> AuditReport:
    """Return the audit of a judge: agreement, confusion, calibration, the human ceiling, corrected means.

    `judge` is a judge, with the verdicts that are known already or without; or the name of a support function
    or a metric; with None the scores in the claims are used. `ask` asks a judge for what is not known.
    """
    how = how or Audit()
    scored, others = _scored(labelled, judge, how, ask), _scored(unlabelled, judge, how, ask)
    overall = _agreement(len(labelled), scored, how)
    report = AuditReport(
        **vars(overall),
        judge=_name_of(judge),
        threshold=how.threshold,
        people_threshold=how.people_threshold,
        seed=how.seed,
        unlabelled_not_scored=len(unlabelled) - len(others),
    )
    if scored:
        _add_numbers(report, scored, how)
    if unlabelled:
        report.estimate = _estimate(scored, others, how)
    for group in sorted({one.group for one in labelled} - {""}):
        claims = sum(one.group == group for one in labelled)
        report.by[group] = _agreement(claims, [pair for pair in scored if pair[1].group == group], how)
    return report


def _name_of(judge: Audited) -> str | None:
    if judge is None:
        return None
    if isinstance(judge, str):
        return support_identity(judge) if judge in SUPPORTS else judge
    return (judge.judge if isinstance(judge, Judging) else judge).identity(kind_named("support"))


def _scored(claims: Sequence[Labelled], judge: Audited, how: Audit, ask: Asker | None) -> list[Scored]:
    scores = [how.unscored_as if score is None else score for score in judge_scores(judge, claims, ask)]
    return [(score, one) for score, one in zip(scores, claims, strict=True) if score is not None]


def judge_scores(
    judge: Audited, labelled: Sequence[Labelled], ask: Asker | None = None
) -> list[float | None]:
    """Return a score from 0 to 1 for each claim, higher is better; None if the judge cannot score it."""
    if judge is None:
        return [one.score for one in labelled]
    if isinstance(judge, Judge | Judging):
        return _verdict_scores(judge if isinstance(judge, Judging) else Judging(judge), labelled, ask)
    if judge in SUPPORTS:
        support = support_function(judge)
        return [_support_score(support, one) for one in labelled]
    try:
        metric = parse_metric(judge)
    except UnknownNameError as error:
        names = ", ".join(SUPPORTS)
        what = f"there is no judge {judge!r}: the support functions are {names}; as for metrics, {error}"
        raise UnknownNameError(what) from None
    metric.ready()
    return [_metric_score(metric, one) for one in labelled]


def _verdict_scores(judging: Judging, labelled: Sequence[Labelled], ask: Asker | None) -> list[float | None]:
    """Return the highest score that a part of the evidence gives a claim, as judged_faithfulness does.

    None if a verdict failed, or if there is no evidence to ask about.
    """
    kind = kind_named("support")
    questions = [
        [
            Question(kind, {"passage": text[start:end], "claim": one.claim}, {"labelled": True})
            for text in one.evidence
            for start, end in chunk_spans(text)
        ]
        for one in labelled
    ]
    verdicts = iter(verdicts_on(judging, [each for group in questions for each in group], ask))
    found: list[float | None] = []
    for group in questions:
        scores = [next(verdicts).score for _ in group]
        known = [score for score in scores if score is not None]
        found.append(max(known) if known and len(known) == len(scores) else None)
    return found


def judge_calibration(
    labelled: Sequence[Labelled],
    judging: Judging,
    *,
    date: str,
    threshold: float = 0.5,
    ask: Asker | None = None,
) -> JudgeCalibration:
    """Return how good a judge is on labelled claims, to be stored with the values that it produces.

    The threshold is the one of the metrics that are corrected by it.
    """
    return calibrate(
        judging.judge.identity(kind_named("support")),
        judge_scores(judging, labelled, ask),
        [one.people for one in labelled],
        date=date,
        threshold=threshold,
        ratings=[one.ratings for one in labelled],
        clusters=clusters_of(labelled),
    )


def _support_score(support: Callable[[str, str], float], one: Labelled) -> float | None:
    try:
        return checked_support(support, "\n".join(one.evidence), one.claim)
    except ScoringError:
        return None


def _metric_score(metric: SampleMetric, one: Labelled) -> float | None:
    documents = [Document(str(rank), text) for rank, text in enumerate(one.evidence, start=1)]
    hits = [RetrievedDocument(doc, 1 / rank, rank) for rank, doc in enumerate(documents, start=1)]
    sample = EvaluationSample("claim", one.claim, relevant_docs=documents)
    score = metric.compute([sample], [SystemOutputs(hits, Response(one.claim))]).scores[0].value
    if score is None or metric.higher_is_better:
        return score
    # Turn the scale round: 0 becomes the best score of an error rate.
    low, high = metric.bounds
    return low + high - score


def estimate_of(value: float, interval: Interval | None) -> Estimate:
    """Return a number with its interval, NaN as None."""
    return Estimate(
        value=value if math.isfinite(value) else None,
        confidence_interval=None if interval is None else (interval.low, interval.high),
        interval_method=NOT_ESTIMABLE if interval is None else interval.method,
    )


def _agreement(claims: int, scored: Sequence[Scored], how: Audit) -> Agreement:
    rows = np.array([(score, one.is_supported) for score, one in scored], dtype=np.float64).reshape(-1, 2)
    true, predicted = rows[:, 1] > 0, rows[:, 0] >= how.threshold
    table = confusion_table(true, predicted, 2)
    of_accuracy = of_kappa = None
    clusters = clusters_of(one for _, one in scored)
    if scored:
        # One column per cell of the confusion table, so that its sums can be resampled.
        cells = np.eye(4)[true.astype(int) * 2 + predicted.astype(int)]
        of_accuracy = mean_interval(
            (true == predicted).astype(np.float64), clusters=clusters, bounds=(0.0, 1.0)
        )
        of_kappa = table_interval(cells, cohen_kappa, clusters=clusters, bounds=(-1.0, 1.0))
    of_area = area_interval(rows[:, 0], true, clusters=clusters)
    return Agreement(
        claims=claims,
        scored=len(scored),
        supported=int(true.sum()),
        accuracy=estimate_of(float(accuracy(table)), of_accuracy),
        auroc=estimate_of(area_under_curve(rows[:, 0], true), of_area),
        kappa=estimate_of(float(cohen_kappa(table)), of_kappa),
        confusion={
            "supported": {"judged supported": int(table[1, 1]), "judged not": int(table[1, 0])},
            "not supported": {"judged supported": int(table[0, 1]), "judged not": int(table[0, 0])},
        },
    )


def _add_numbers(report: AuditReport, scored: Sequence[Scored], how: Audit) -> None:
    """Add the bias, correlation and calibration of the scores, the human ceiling and the budget."""
    judge, people = _columns(scored)
    claims = [one for _, one in scored]
    clusters, seed = clusters_of(claims), how.seed
    split = [one for one in claims if len(one.ratings) > 1 and one.people == how.people_threshold]
    of_people = mean_interval(people, clusters=clusters, bounds=(0.0, 1.0))
    bias = judge - people
    report.people_evenly_split = len(split)
    report.people = estimate_of(float(people.mean()), of_people)
    report.judge_mean = float(judge.mean())
    report.bias = estimate_of(float(bias.mean()), mean_change_interval(bias, clusters=clusters))
    # Between yes and no there is nothing to rank: only labels on a scale have a correlation, be it 0 to 1.
    if any(one.is_on_scale for one in claims) or not np.isin(people, (0.0, 1.0)).all():
        pairs = {kind: correlation(judge, people, kind, clusters=clusters) for kind in KINDS}
        report.correlation = {kind: estimate_of(each.value, each.interval) for kind, each in pairs.items()}
    if ((judge >= 0) & (judge <= 1)).all():
        report.calibration = _calibration(judge, people, clusters, how)
    report.human_ceiling = ceiling(claims, judge.tolist(), how)
    if how.budget:
        report.budget = label_budget(people, judge, how.budget, seed=seed)


def _columns(scored: Sequence[Scored]) -> tuple[Array, Array]:
    rows = np.array([(score, one.people) for score, one in scored], dtype=np.float64).reshape(-1, 2)
    return rows[:, 0], rows[:, 1]


def _calibration(judge: Array, people: Array, clusters: list[str] | None, how: Audit) -> AuditCalibration:
    measured = calibration(judge, people, bins=how.bins, clusters=clusters, seed=how.seed)
    table = [
        CalibrationBin(
            low=each.low,
            high=each.high,
            claims=each.samples,
            judge=each.score if each.samples else None,
            people=estimate_of(each.label, each.interval),
        )
        for each in measured.bins
    ]
    brier = estimate_of(measured.brier, measured.brier_interval)
    return AuditCalibration(
        how.bins, measured.error, measured.by_chance, brier, measured.brier_of_mean, table
    )


# The mean of people's labels over all claims, from a few labels and a judge that scored every claim.
#
# The mean of a judge is biased by its errors, which the labels show. The correction assumes that the labelled
# claims are a random sample of all claims.


def _estimate(scored: Sequence[Scored], others: Sequence[Scored], how: Audit) -> CorrectedRates:
    judge, people = _columns(scored)
    rest = np.array([score for score, _ in others], dtype=np.float64)
    is_yes = np.array([one.is_supported for _, one in scored], dtype=bool)
    own, of_rest = (clusters_of(one for _, one in claims) for claims in (scored, others))
    clusters = None if own is None or of_rest is None else (own, of_rest)
    return CorrectedRates(
        mean=corrected(people, judge, rest, clusters=clusters),
        share_of_yes=corrected(
            is_yes.astype(np.float64), judge, rest, clusters=clusters, yes_from=how.threshold
        ),
        share_of_yes_by_errors=rate_by_errors(
            is_yes, judge >= how.threshold, rest >= how.threshold, independent=clusters is None
        ),
    )


def corrected(
    people: Array,
    scores: Array,
    rest: Array,
    *,
    clusters: Clusters | None = None,
    yes_from: float | None = None,
) -> CorrectedMean:
    """Return the mean of people's labels, estimated from the labels and the judge's scores of all claims.

    For labels of yes and no, a score of at least `yes_from` is the judge's yes. The correction uses the
    scores themselves, which have more information than yes and no.
    """
    if len(people) < _LEAST or len(rest) < _LEAST:
        what = f"{len(people)} labelled and {len(rest)} other claims have a score."
        raise DataError("--unlabelled", what, fix="A correction needs at least two of each, better hundreds.")
    try:
        both = prediction_powered_mean(people, scores, rest, clusters=clusters)
    except ValueError as error:
        raise DataError("--unlabelled", f"{error}.", fix="Add claims of more than one cluster.") from error
    alone = prediction_powered_mean(people, scores, rest, weight=0.0, clusters=clusters)
    groups = None if clusters is None else clusters[0]
    interval = mean_interval(people, clusters=groups, bounds=(0.0, 1.0))
    # The judge alone is judged by all claims that it scored, labelled or not.
    everything = np.concatenate([scores, rest])
    return CorrectedMean(
        labels=len(people),
        unlabelled=len(rest),
        people_alone=estimate_of(float(people.mean()), interval),
        judge_alone=float((everything if yes_from is None else everything >= yes_from).mean()),
        corrected=estimate_of(both.value, both.interval),
        weight=both.weight,
        worth_labels=None if both.error == 0 else len(people) * (alone.error / both.error) ** 2,
    )


def rate_by_errors(
    is_yes: Flags, judged_yes: Flags, rest_yes: Flags, *, independent: bool = True
) -> TrueRate:
    """Return the true share of yes, from the judge's share and its error rates (Rogan & Gladen).

    It has no value if the judge is not better than chance. The interval is for independent claims; claims in
    clusters have none.
    """
    right_yes, all_yes = int((judged_yes & is_yes).sum()), int(is_yes.sum())
    right_no, all_no = int((~judged_yes & ~is_yes).sum()), int((~is_yes).sum())
    shares = (int(rest_yes.sum()), len(rest_yes)), (right_yes, all_yes), (right_no, all_no)
    # Rogan and Gladen: (reported + specificity - 1) / (sensitivity + specificity - 1).
    value, interval, reason = math.nan, None, None
    if all_yes and all_no:
        try:
            value = true_rate(*(yes / n for yes, n in shares))
            interval = true_rate_interval(*shares) if independent else None
        except ValueError as error:
            value, reason = math.nan, str(error)
    else:
        reason = "the labels are all yes or all no"
    return TrueRate(
        **vars(estimate_of(value, interval)),
        reported=float(rest_yes.mean()),
        sensitivity=right_yes / all_yes if all_yes else None,
        specificity=right_no / all_no if all_no else None,
        reason=reason,
    )


def label_budget(
    people: Array, scores: Array, counts: Sequence[int], *, splits: int = SPLITS, seed: int = 0
) -> list[BudgetRow]:
    """Return the width of the 95% interval of the mean by number of labels, the rest being only judged.

    The width is the mean over random splits of the labelled samples: by labels alone, by the judge at full
    weight (which can be worse than no judge), and by the judge at its best weight.
    """
    most = len(people) - _LEAST
    for count in counts:
        if not _LEAST <= count <= most:
            what = f"{count} is not from {_LEAST} to {most}: {len(people)} labelled claims have a score."
            raise DataError("--budget", what, fix="Name fewer labels than there are.")
    # The width of a 95% interval is 2 * 1.96 standard errors.
    rng = np.random.default_rng(seed)
    twice_z = 2 * NormalDist().inv_cdf(0.975)
    rows = []
    for count in counts:
        errors = np.empty((splits, 3))
        for split in range(splits):
            order = rng.permutation(len(people))
            some, rest = order[:count], order[count:]
            errors[split, 0] = float(people[some].std(ddof=1)) / math.sqrt(count)
            for place, weight in ((1, 1.0), (2, None)):
                mean = prediction_powered_mean(people[some], scores[some], scores[rest], weight=weight)
                errors[split, place] = mean.error
        rows.append(BudgetRow(count, *(twice_z * errors).mean(axis=0).tolist()))
    return rows


# How well could a judge do? As well as people agree: one of them against the others, and the judge likewise.
#
# For each item and each person who rated it, that person is left out; the mean of the others is the target
# that both the person and the judge are compared with. So both are measured on the same pairs.


def ceiling(labelled: Sequence[Labelled], scores: Sequence[float], how: Audit) -> HumanCeiling | None:
    """Return people's agreement with each other; None if no claim was rated by two people."""
    items: list[int] = []
    units: list[Hashable] = []
    raters: list[str] = []
    rows: list[tuple[float, float, float]] = []
    for item, (one, score) in enumerate(zip(labelled, scores, strict=True)):
        total, count = math.fsum(one.ratings.values()), len(one.ratings)
        for name, rating in one.ratings.items() if count > 1 else ():
            items.append(item)
            units.append(item if one.cluster is None else one.cluster)
            raters.append(name)
            rows.append((rating, round((total - rating) / (count - 1), TIE_DIGITS), score))
    if not rows:
        return None
    person, others, judge = np.array(rows, dtype=np.float64).T
    others_yes = others >= how.people_threshold
    person_same = (person >= how.people_threshold) == others_yes
    judge_same = (judge >= how.threshold) == others_yes
    difference = judge_same.astype(float) - person_same

    def against_others(values: Array, same: Flags) -> AgainstOthers:
        shared = same.astype(np.float64)
        interval = mean_interval(shared, clusters=units, bounds=(0.0, 1.0))
        ranks = correlation(values, others, "spearman", clusters=units)
        return AgainstOthers(
            estimate_of(float(shared.mean()), interval), estimate_of(ranks.value, ranks.interval)
        )

    names = sorted({name for one in labelled for name in one.ratings})
    by_rater = {name: np.array(raters) == name for name in names if name in raters}
    return HumanCeiling(
        annotators=len(names),
        items=len(set(items)),
        alpha=_alpha(labelled, names),
        one_person=against_others(person, person_same),
        judge=against_others(judge, judge_same),
        judge_less_person=estimate_of(
            float(difference.mean()), mean_change_interval(difference, clusters=units)
        ),
        each={
            name: LeftOut(int(own.sum()), float(person_same[own].mean()), float(judge_same[own].mean()))
            for name, own in by_rater.items()
        },
    )


def _alpha(labelled: Sequence[Labelled], names: Sequence[str]) -> Alpha:
    ratings = np.array([[one.ratings.get(name, math.nan) for name in names] for one in labelled])
    is_binary = bool(np.isin(ratings[~np.isnan(ratings)], (0.0, 1.0)).all())
    statistic: Statistic = "krippendorff_alpha_nominal" if is_binary else "krippendorff_alpha_ordinal"
    alpha = agreement(ratings, statistic, clusters=clusters_of(labelled))
    return Alpha(**vars(estimate_of(alpha.value, alpha.interval)), statistic=statistic)
