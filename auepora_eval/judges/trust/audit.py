"""Audit a judge against human labels: a model, a support function, a metric, or scores given before.

A score of at least the threshold means "supported". Accuracy and kappa compare that with people's labels;
AUROC measures whether supported claims score higher, at any threshold. An audit also has the calibration of
the scores, the agreement of people with each other (the human ceiling), and the judge's mean corrected by
the labels.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

import msgspec
import numpy as np

from ...core.metrics_base import SampleMetric
from ...core.types import Document, EvaluationSample, Response, RetrievedDocument, SystemOutputs
from ...errors import DataError, StorageError, UnknownNameError
from ...io.files import write_bytes
from ...metrics.entailment import SUPPORTS
from ...metrics.parse import parse_metric
from ...stats.agreement import each_and_others
from ...stats.arrays import Array
from ...stats.calibration import BINS, calibration
from ...stats.correlation import KINDS, correlation
from ...stats.correlation import Kind as Correlation
from ...stats.intervals import mean_change_interval, mean_interval
from ..ask import Asking
from ..judge import SupportJudge
from ..question import Question, claim_material, kind_named
from .calibration import Agreement, Alpha, Estimate, Flags, JudgeCalibration, agreement_of, people_alpha
from .correction import by_error_rates, by_labels, powered_mean
from .labels import TIE_DIGITS, Labelled, clusters_of
from .probes import ProbeReport

GROUNDING = "grounding"  # the kind of the questions of judged_faithfulness
Audited = str | Asking | None  # the name of a support function or a metric, a judge, or stored scores
Scored = tuple[float, Labelled]  # the judge's score of a claim, and the claim


@dataclass(frozen=True)
class Audit:
    """The settings of an audit: thresholds of judge and people, bins, seed."""

    threshold: float = 0.7
    people_threshold: float = 0.5
    bins: int = BINS
    seed: int = 0
    # The score of a claim that the judge cannot score; None leaves the claim out.
    unscored_as: float | None = None


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
class HumanCeiling:
    """People's agreement with each other, and the judge's agreement on the same pairs."""

    annotators: int
    items: int
    alpha: Alpha
    one_person: AgainstOthers
    judge: AgainstOthers
    judge_less_person: Estimate


class CorrectedMean(msgspec.Struct, frozen=True):
    """The mean of people's labels: by labels alone, by the judge alone, and by both (PPI++)."""

    people_alone: Estimate
    judge_alone: float
    corrected: Estimate
    weight: float
    worth_labels: float | None  # labels that alone would give an interval of the same width


@dataclass(frozen=True)
class CorrectedRates:
    """What people would say of all claims: their mean label, and their share of yes in two ways."""

    labels: int
    unlabelled: int
    mean: CorrectedMean
    share_of_yes: CorrectedMean
    share_of_yes_by_errors: Estimate
    no_correction_by_errors: str  # the reason; "" if there is one


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
    correlation: dict[Correlation, Estimate] | None = None  # for labels on a scale
    calibration: AuditCalibration | None = None  # for scores from 0 to 1
    human_ceiling: HumanCeiling | None = None  # if several people rated a claim
    estimate: CorrectedRates | None = None  # with unlabelled claims
    unlabelled_not_scored: int = 0
    by: dict[str, Agreement] = field(default_factory=dict)


def audit(
    labelled: Sequence[Labelled],
    judge: Audited,
    how: Audit | None = None,
    *,
    unlabelled: Sequence[Labelled] = (),
) -> AuditReport:
    """Return the audit of a judge: agreement, confusion, calibration, the human ceiling, corrected means.

    `judge` is a judge that is asked for what is not known yet; or the name of a support function or a metric;
    with None the scores in the claims are used.
    """
    how = how or Audit()
    scored, others = _scored(labelled, judge, how), _scored(unlabelled, judge, how)
    report = AuditReport(
        **vars(_agreement(len(labelled), scored, how)),
        judge=judge.judge.identity(kind_named(GROUNDING)) if isinstance(judge, Asking) else judge,
        threshold=how.threshold,
        people_threshold=how.people_threshold,
        seed=how.seed,
        unlabelled_not_scored=len(unlabelled) - len(others),
    )
    if scored:
        _add_numbers(report, scored, how)
    if unlabelled:
        report.estimate = _estimate(report, scored, others, how)
    for group in sorted({one.group for one in labelled} - {""}):
        claims = sum(one.group == group for one in labelled)
        report.by[group] = _agreement(claims, [pair for pair in scored if pair[1].group == group], how)
    return report


def _scored(claims: Sequence[Labelled], judge: Audited, how: Audit) -> list[Scored]:
    scores = [how.unscored_as if score is None else score for score in judge_scores(judge, claims)]
    return [(score, one) for score, one in zip(scores, claims, strict=True) if score is not None]


def judge_scores(judge: Audited, labelled: Sequence[Labelled], kind: str = GROUNDING) -> list[float | None]:
    """Return a score from 0 to 1 for each claim, higher is better; None if the judge cannot score it.

    A judge is asked about each claim with all of its evidence, as judged_faithfulness asks. It cannot score a
    claim without evidence, or by a verdict that failed.
    """
    if judge is None:
        return [one.score for one in labelled]
    if isinstance(judge, str):
        if judge not in SUPPORTS:
            metric = _metric(judge)
            return [_metric_score(metric, one) for one in labelled]
        judge = Asking(SupportJudge(judge))
    evidence = [[text for text in one.evidence if text.strip()] for one in labelled]
    asked = kind_named(kind)
    questions = [
        Question(asked, claim_material(asked, one.claim, texts), {"labelled": True})
        for one, texts in zip(labelled, evidence, strict=True)
        if texts
    ]
    verdicts = iter(judge.verdicts(questions))
    return [next(verdicts).score if texts else None for texts in evidence]


def _metric(name: str) -> SampleMetric:
    try:
        metric = parse_metric(name)
    except UnknownNameError as error:
        names = ", ".join(SUPPORTS)
        what = f"there is no judge {name!r}: the support functions are {names}; as for metrics, {error}"
        raise UnknownNameError(what) from None
    metric.ready()
    return metric


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


def _agreement(claims: int, scored: Sequence[Scored], how: Audit) -> Agreement:
    scores = np.array([score for score, _ in scored], dtype=np.float64)
    yes = np.array([one.is_supported for _, one in scored], dtype=bool)
    return agreement_of(claims, scores, yes, how.threshold, clusters_of(one for _, one in scored))


def _add_numbers(report: AuditReport, scored: Sequence[Scored], how: Audit) -> None:
    """Add the bias, correlation and calibration of the scores, and the human ceiling."""
    judge, people = _columns(scored)
    claims = [one for _, one in scored]
    clusters = clusters_of(claims)
    bias = judge - people
    report.people_evenly_split = sum(
        len(one.ratings) > 1 and one.people == how.people_threshold for one in claims
    )
    report.people = Estimate.of(
        float(people.mean()), mean_interval(people, clusters=clusters, bounds=(0.0, 1.0))
    )
    report.judge_mean = float(judge.mean())
    report.bias = Estimate.of(float(bias.mean()), mean_change_interval(bias, clusters=clusters))
    # Between yes and no there is nothing to rank: only labels on a scale have a correlation, be it 0 to 1.
    if any(one.is_on_scale for one in claims) or not np.isin(people, (0.0, 1.0)).all():
        pairs = {kind: correlation(judge, people, kind, clusters=clusters) for kind in KINDS}
        report.correlation = {kind: Estimate.of(each.value, each.interval) for kind, each in pairs.items()}
    if ((judge >= 0) & (judge <= 1)).all():
        report.calibration = _calibration(judge, people, clusters, how)
    report.human_ceiling = ceiling(claims, judge.tolist(), how)


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
            people=Estimate.of(each.label, each.interval),
        )
        for each in measured.bins
    ]
    brier = Estimate.of(measured.brier, measured.brier_interval)
    return AuditCalibration(
        how.bins, measured.error, measured.by_chance, brier, measured.brier_of_mean, table
    )


def _estimate(
    report: AuditReport, scored: Sequence[Scored], others: Sequence[Scored], how: Audit
) -> CorrectedRates:
    """Estimate what people would say of all claims; the labelled ones must be a random part of them."""
    if min(len(scored), len(others)) < 2:
        what = f"{len(scored)} labelled and {len(others)} other claims have a score."
        raise DataError("--unlabelled", what, fix="A correction needs at least two of each, better hundreds.")
    judge, people = _columns(scored)
    rest = np.array([score for score, _ in others], dtype=np.float64)
    yes = np.array([one.is_supported for _, one in scored], dtype=np.float64)
    groups = [clusters_of(one for _, one in claims) for claims in (scored, others)]
    every = np.concatenate([judge, rest])

    def corrected(labels: Array, judge_alone: Array) -> CorrectedMean:
        # The correction uses the scores themselves, which have more information than yes and no.
        own, of_rest = groups
        clusters = None if own is None or of_rest is None else (own, of_rest)
        try:
            both, alone = (
                powered_mean(labels, judge, rest, weight=weight, clusters=clusters) for weight in (None, 0.0)
            )
            value = by_labels(labels, judge, rest, clusters=clusters)
        except ValueError as error:
            fix = "Add claims of more than one cluster."
            raise DataError("--unlabelled", f"{error}.", fix=fix) from error
        gain = float(alone.estimate.error / both.estimate.error)
        return CorrectedMean(
            people_alone=Estimate.of(
                float(labels.mean()), mean_interval(labels, clusters=own, bounds=(0.0, 1.0))
            ),
            # The judge alone is judged by all claims that it scored, labelled or not.
            judge_alone=float(judge_alone.mean()),
            corrected=Estimate(value.value, value.interval, value.method),
            weight=both.weight,
            worth_labels=len(labels) * gain**2,
        )

    judged = (rest >= how.threshold).astype(np.float64)
    rates, reason = by_error_rates(judged, report.sensitivity, report.specificity, groups[1])
    return CorrectedRates(
        labels=len(people),
        unlabelled=len(rest),
        mean=corrected(people, every),
        share_of_yes=corrected(yes, (every >= how.threshold).astype(np.float64)),
        share_of_yes_by_errors=(
            Estimate() if rates is None else Estimate(rates.value, rates.interval, rates.method)
        ),
        no_correction_by_errors=reason,
    )


# How well could a judge do? As well as people agree: one of them against the others, and the judge likewise.
# For each item and each person who rated it, that person is left out; the mean of the others is the target
# that both the person and the judge are compared with. So both are measured on the same pairs.


def ceiling(labelled: Sequence[Labelled], scores: Sequence[float], how: Audit) -> HumanCeiling | None:
    """Return people's agreement with each other; None if no claim was rated by two people."""
    rows = [
        (item, rating, round(mean, TIE_DIGITS), scores[item])
        for item, rating, mean in each_and_others([list(one.ratings.values()) for one in labelled])
    ]
    if not rows:
        return None
    items = [row[0] for row in rows]
    units: list[Hashable] = [
        item if labelled[item].cluster is None else labelled[item].cluster for item in items
    ]
    person, others, judge = np.array([row[1:] for row in rows], dtype=np.float64).T
    others_yes = others >= how.people_threshold
    person_same = (person >= how.people_threshold) == others_yes
    judge_same = (judge >= how.threshold) == others_yes
    difference = judge_same.astype(float) - person_same

    def against_others(values: Array, same: Flags) -> AgainstOthers:
        shared = same.astype(np.float64)
        interval = mean_interval(shared, clusters=units, bounds=(0.0, 1.0))
        ranks = correlation(values, others, "spearman", clusters=units)
        return AgainstOthers(
            Estimate.of(float(shared.mean()), interval), Estimate.of(ranks.value, ranks.interval)
        )

    less = Estimate.of(float(difference.mean()), mean_change_interval(difference, clusters=units))
    return HumanCeiling(
        annotators=len({name for one in labelled for name in one.ratings}),
        items=len(set(items)),
        alpha=people_alpha([one.ratings for one in labelled], clusters_of(labelled)),
        one_person=against_others(person, person_same),
        judge=against_others(judge, judge_same),
        judge_less_person=less,
    )


# What is known of a judge is stored beside the runs that it judges.

AUDITS = "judges"  # the folder of what is known of judges, beside the runs


class JudgeAudit(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What is known of a judge, whichever run it judges: how it agrees with people, and its probes."""

    identity: str
    calibration: JudgeCalibration | None = None
    probes: list[ProbeReport] = []


def read_audit(runs: Path, identity: str) -> JudgeAudit:
    """Return what is known of a judge in a folder of runs; nothing, if it was never audited there."""
    path = _audit_path(runs, identity)
    if not path.exists():
        return JudgeAudit(identity=identity)
    try:
        return msgspec.json.decode(path.read_bytes(), type=JudgeAudit)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StorageError(f"{path} cannot be read: {error}.") from error


def write_audit(runs: Path, audit: JudgeAudit) -> None:
    """Store what is known of a judge beside the runs that it judges."""
    path = _audit_path(runs, audit.identity)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = msgspec.json.format(msgspec.json.encode(audit, order="sorted")) + b"\n"
    write_bytes(path, content, force=True, private=True)


def _audit_path(runs: Path, identity: str) -> Path:
    # Hashed: an identity has slashes in it and cannot be a file name.
    return runs / AUDITS / f"{blake2b(identity.encode(), digest_size=8).hexdigest()}.json"
