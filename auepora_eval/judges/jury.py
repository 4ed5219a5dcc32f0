"""Judges made of judges: a jury, whose members all vote, and a cascade, which asks the dear one less often.

The verdicts of the members are stored, not those of the jury. So weights and thresholds can change without a
new call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import combinations
from typing import NamedTuple

import msgspec
import numpy as np

from ..core.display import listed
from ..core.table import Table
from ..errors import DataError, PlanError
from ..stats.arrays import Array
from ..stats.calibration import Platt, fit_platt
from ..stats.classification import area_under_curve
from ..stats.intervals import mean_change_interval
from .judge import Asked, Judge, VerdictBook, nearest_label
from .question import Kind, Question, Verdict

_CERTAIN = 0.01  # scores of 0 and 1 have infinite log-odds: one member would outvote all others
_RIDGE = 1.0  # how strongly weights are drawn to equal ones, in units of one label
ALIKE = 0.7  # correlation of errors from which two members count as one


class JuryWeights(msgspec.Struct, frozen=True):
    """How the scores of a jury's members are combined, fitted on labels.

    The score of a member becomes a chance by its slope and intercept; the log-odds of the chances are added
    up by the weights, with `offset`.
    """

    slopes: list[float]
    intercepts: list[float]
    weights: list[float]
    offset: float = 0.0

    def chance(self, scores: Sequence[float]) -> float:
        """Return the chance of a yes by the scores of all members."""
        odds = [
            _log_odds(float(Platt(slope, intercept).chances([score])[0]))
            for slope, intercept, score in zip(self.slopes, self.intercepts, scores, strict=True)
        ]
        return _chance(self.offset + math.fsum(w * x for w, x in zip(self.weights, odds, strict=True)))

    @property
    def version(self) -> str:
        """A hash of the weights: two juries with other weights are other judges."""
        return blake2b(msgspec.json.encode(self), digest_size=4).hexdigest()


def fit_jury(scores: Sequence[Sequence[float]], labels: Sequence[float]) -> JuryWeights:
    """Return the weights of a jury: one list of scores per member, all on the claims that have the labels.

    Each member is calibrated by itself. Then the weights are fitted by logistic regression, none below 0, and
    drawn to equal ones by a ridge: with few labels the jury is nearly a plain average.
    """
    from scipy.optimize import minimize

    y = np.asarray(labels, dtype=np.float64)
    if not scores or any(len(each) != len(y) for each in scores) or len(y) < 2:
        raise DataError("the labels of a jury", "every member needs a score of each labelled claim.")
    fits = [fit_platt(each, y) for each in scores]
    chances = np.column_stack([fit.chances(each) for fit, each in zip(fits, scores, strict=True)])
    # As in `chance`: weights must be fitted on the same log-odds that they are later applied to.
    chances = np.clip(chances, _CERTAIN, 1 - _CERTAIN)
    odds = np.log(chances / (1 - chances))
    equal = 1 / len(scores)

    def loss(at: Array) -> tuple[float, Array]:
        total = odds @ at[:-1] + at[-1]
        away = at[:-1] - equal
        value = float((np.logaddexp(0.0, total) - y * total).sum() + _RIDGE / 2 * (away**2).sum())
        # The logistic function by tanh, which does not overflow.
        error = (1 + np.tanh(total / 2)) / 2 - y
        gradient = np.append(odds.T @ error + _RIDGE * away, error.sum())
        return value, gradient

    start = np.append(np.full(len(scores), equal), 0.0)
    # A negative weight would trust a member to be wrong. Few labels suggest that by chance.
    limits = [*[(0.0, None)] * len(scores), (None, None)]
    found = minimize(loss, start, jac=True, bounds=limits, method="L-BFGS-B").x.tolist()
    return JuryWeights([fit.slope for fit in fits], [fit.intercept for fit in fits], found[:-1], found[-1])


def cross_fitted(scores: Sequence[Sequence[float]], labels: Sequence[float], folds: int = 5) -> list[float]:
    """Return the scores of a jury on labelled claims, each by weights that were fitted without that claim.

    Scores by weights that have seen the labels would make the jury look better than it is.
    """
    found = [0.0] * len(labels)
    for fold in range(folds):
        inside = [place for place in range(len(labels)) if place % folds != fold]
        weights = fit_jury([[each[n] for n in inside] for each in scores], [labels[n] for n in inside])
        for place in range(fold, len(labels), folds):
            found[place] = weights.chance([each[place] for each in scores])
    return found


class Jury(Judge):
    """Several judges that all answer every question.

    With weights (`fit_jury`) the chance of a yes is combined from calibrated log-odds. Without them,
    members that give probabilities are averaged in log-odds, and members that only choose an option vote.
    A verdict of the jury fails if one of its members failed: the rest would be another jury.
    """

    def __init__(self, members: Sequence[Judge], weights: JuryWeights | None = None) -> None:
        if len(members) < 2:
            raise PlanError("A jury has at least two members: jury:[support:trained,URL#model].")
        if weights is not None and len(weights.weights) != len(members):
            raise PlanError(f"{len(weights.weights)} weights do not fit a jury of {len(members)} members.")
        self.members = tuple(members)
        self.weights = weights

    def identity(self, kind: Kind) -> str:
        inside = ", ".join(member.identity(kind) for member in self.members)
        version = "" if self.weights is None else f"@{self.weights.version}"
        return f"{kind.name}/jury{version}:[{inside}]"

    def judge(self, question: Question) -> Verdict:
        return self.combined(question.kind, [member.judge(question) for member in self.members])

    def missing(self, question: Question, book: VerdictBook) -> list[Asked]:
        return [each for member in self.members for each in member.missing(question, book)]

    def verdict(self, question: Question, book: VerdictBook) -> Verdict:
        return self.combined(question.kind, [member.verdict(question, book) for member in self.members])

    def close(self) -> None:
        for member in self.members:
            member.close()

    def combined(self, kind: Kind, verdicts: Sequence[Verdict]) -> Verdict:
        """Return the verdict of the jury from those of its members."""
        failed = [verdict.failed for verdict in verdicts if verdict.failed or verdict.score is None]
        flags = sorted({flag for verdict in verdicts for flag in verdict.flags})
        if failed:
            why = f"{len(failed)} of {len(verdicts)} members of the jury failed: {failed[0]}"
            return Verdict(failed=why, flags=flags, may_pass=any(each.may_pass for each in verdicts))
        if not kind.options:
            return verdicts[0]  # lists of texts cannot be averaged
        scores = [verdict.score for verdict in verdicts if verdict.score is not None]
        score = self._score(kind, verdicts, scores)
        agreeing = [verdict for verdict in verdicts if verdict.label == nearest_label(score, kind.scores)]
        # The quote of a member that was outvoted would contradict the verdict.
        quoted = next((verdict for verdict in agreeing if verdict.quote), Verdict())
        return Verdict(
            score=score,
            label=nearest_label(score, kind.scores),
            quote=quoted.quote,
            quote_at=quoted.quote_at,
            flags=flags,
        )

    def _score(self, kind: Kind, verdicts: Sequence[Verdict], scores: Sequence[float]) -> float:
        # Log-odds are those of a yes; grades and three options have none.
        if set(kind.scores.values()) != {0.0, 1.0} or len(kind.scores) > 2:
            return math.fsum(scores) / len(scores)
        if self.weights is not None:
            return self.weights.chance(scores)
        if any(verdict.probabilities or verdict.score not in (0.0, 1.0) for verdict in verdicts):
            return _chance(math.fsum(map(_log_odds, scores)) / len(scores))
        return math.fsum(scores) / len(scores)  # the share of yes: its label is that of the majority


class Cascade(Judge):
    """A cheap judge first; the other one only where the cheap score lies between the limits of `unsure`."""

    def __init__(self, cheap: Judge, judge: Judge, unsure: tuple[float, float] = (0.2, 0.8)) -> None:
        low, high = unsure
        if not 0 <= low < high <= 1:
            raise PlanError(f"A cascade is unsure between two scores from 0 to 1, not {low:g} and {high:g}.")
        self.members = (cheap, judge)
        self.unsure = unsure

    def identity(self, kind: Kind) -> str:
        low, high = self.unsure
        cheap, judge = (member.identity(kind) for member in self.members)
        return f"{kind.name}/cascade:[{cheap}, {judge}]/unsure={low:g}-{high:g}"

    def judge(self, question: Question) -> Verdict:
        cheap = self.members[0].judge(question)
        return self.members[1].judge(question) if self.is_unsure(cheap) else cheap

    def missing(self, question: Question, book: VerdictBook) -> list[Asked]:
        first, second = self.members
        missing = first.missing(question, book)
        # Whether the dear judge is needed is known only once the cheap verdict is stored.
        if missing or not self.is_unsure(first.verdict(question, book)):
            return missing
        return second.missing(question, book)

    def verdict(self, question: Question, book: VerdictBook) -> Verdict:
        first = self.members[0].verdict(question, book)
        return self.members[1].verdict(question, book) if self.is_unsure(first) else first

    def is_unsure(self, cheap: Verdict) -> bool:
        """Return whether the other judge has to be asked: the cheap one has failed, or is not sure."""
        low, high = self.unsure
        return cheap.score is None or low <= cheap.score <= high

    def close(self) -> None:
        for member in self.members:
            member.close()


def _log_odds(score: float) -> float:
    score = min(1 - _CERTAIN, max(_CERTAIN, score))
    return math.log(score / (1 - score))


def _chance(odds: float) -> float:
    # By tanh: exp of a large number overflows.
    return (1 + math.tanh(odds / 2)) / 2


# What a jury and a cascade are worth, measured on labels.


class ErrorPair(NamedTuple):
    """How often two members are wrong on the same claims: 1 if always together, 0 if by chance."""

    first: str
    second: str
    correlation: float


@dataclass(frozen=True)
class JuryReport:
    """The members of a jury and the jury itself on labelled claims."""

    names: Sequence[str]
    labels: int
    auroc: Sequence[float]  # of each member, then of the jury
    accuracy: Sequence[float]
    pairs: Sequence[ErrorPair]

    @property
    def effective_members(self) -> float:
        """How many independent members would err as little together."""
        known = [pair.correlation for pair in self.pairs if not math.isnan(pair.correlation)]
        # A negative correlation is noise of few labels: no jury counts for more than its members.
        mean = max(0.0, sum(known) / len(known)) if known else 0.0
        return len(self.names) / (1 + (len(self.names) - 1) * mean)

    def table(self) -> Table:
        """Return the members and the jury, with how far their errors go together."""
        names = [*self.names, "the jury"]
        rows = [
            (name, f"{area:.3f}", f"{share:.3f}")
            for name, area, share in zip(names, self.auroc, self.accuracy, strict=True)
        ]
        pairs = [f"{pair.first} and {pair.second} {pair.correlation:+.2f}" for pair in self.pairs]
        notes = [f"Correlation of errors: {'; '.join(pairs)}."]
        notes.append(f"The {len(self.names)} members count as {self.effective_members:.1f} independent ones.")
        alike = [pair for pair in self.pairs if pair.correlation >= ALIKE]
        if alike:
            words = listed([f"{pair.first} and {pair.second}" for pair in alike])
            notes.append(f"{words} err on the same claims: judges that err together count as one judge.")
        return Table(
            ("Member", "AUROC", "Accuracy"), rows, f"The jury on {self.labels} labels", notes, (1, 2)
        )


def jury_report(
    names: Sequence[str],
    scores: Sequence[Sequence[float]],
    labels: Sequence[float],
    weights: JuryWeights | None = None,
) -> JuryReport:
    """Return how good each member and the jury are, and how correlated their errors are.

    `scores` has one list per member. The jury is the one with these weights; without them, equal ones.
    """
    yes = np.asarray(labels, dtype=np.float64) >= 0.5
    rows = [np.asarray(each, dtype=np.float64) for each in scores]
    if weights is None:
        together = [_chance(sum(map(_log_odds, each)) / len(rows)) for each in np.column_stack(rows).tolist()]
    else:
        together = [weights.chance(each) for each in np.column_stack(rows).tolist()]
    everyone = [*rows, np.array(together)]
    errors = [(each >= 0.5) != yes for each in rows]
    pairs = [
        ErrorPair(names[a], names[b], _correlation(errors[a], errors[b]))
        for a, b in combinations(range(len(rows)), 2)
    ]
    return JuryReport(
        names,
        len(yes),
        [area_under_curve(each, yes) for each in everyone],
        [float(((each >= 0.5) == yes).mean()) for each in everyone],
        pairs,
    )


def _correlation(first: Array, second: Array) -> float:
    """Pearson's correlation of two lists of errors; NaN if a member is never or always wrong."""
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.std() == 0 or b.std() == 0:
        return math.nan
    return float(np.corrcoef(a, b)[0, 1])


@dataclass(frozen=True)
class CascadeReport:
    """What a cascade saves, and what that costs in agreement with people."""

    claims: int
    saved: int
    agreement: float  # of the cascade with people's labels
    judge_agreement: float  # of the judge alone
    loss_interval: tuple[float, float] | None
    same: float  # share of claims on which the cascade says what the judge alone would say

    @property
    def loss(self) -> float:
        return self.judge_agreement - self.agreement

    def __str__(self) -> str:
        return "; ".join(self.sentences())

    def sentences(self) -> list[str]:
        """Return what is saved, what is lost, and how often the two say the same."""
        limits = ""
        if self.loss_interval is not None:
            limits = f" [{self.loss_interval[0]:+.3f}, {self.loss_interval[1]:+.3f}]"
        return [
            f"The cascade saves {self.saved} of {self.claims} calls ({self.saved / self.claims:.0%})",
            f"Agreement with people: {self.agreement:.3f}, that of the judge alone "
            f"{self.judge_agreement:.3f} (loss {self.loss:+.3f}{limits})",
            f"Both say the same on {self.same:.0%} of the claims",
        ]


def cascade_report(
    cheap: Sequence[float],
    judge: Sequence[float],
    labels: Sequence[float],
    unsure: tuple[float, float] = (0.2, 0.8),
) -> CascadeReport:
    """Return what a cascade of two judges saves and loses, by their scores of the same labelled claims."""
    x, z, yes = np.asarray(cheap), np.asarray(judge), np.asarray(labels) >= 0.5
    if not len(yes):
        raise DataError("the labels of a cascade", "there is no labelled claim.")
    asks = (x >= unsure[0]) & (x <= unsure[1])
    says, alone = np.where(asks, z, x) >= 0.5, z >= 0.5
    losses = (alone == yes).astype(np.float64) - (says == yes).astype(np.float64)
    interval = mean_change_interval(losses)
    return CascadeReport(
        len(yes),
        int((~asks).sum()),
        float((says == yes).mean()),
        float((alone == yes).mean()),
        None if interval is None else (interval.low, interval.high),
        float((says == alone).mean()),
    )


def saved_calls(cascade: Cascade, questions: Sequence[Question], book: VerdictBook) -> tuple[int, int]:
    """Return how many of the questions the cheap judge decided, and how many there are."""
    first = cascade.members[0]
    return sum(not cascade.is_unsure(first.verdict(each, book)) for each in questions), len(questions)
