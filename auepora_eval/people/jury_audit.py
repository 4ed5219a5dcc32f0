"""What the members of a jury or a cascade are worth on labelled claims, and whether they err together."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.table import Table
from ..judges.judge import Asker, Judge, Judging
from ..judges.jury import Cascade, Jury, cascade_report, cross_fitted, fit_jury, jury_report
from ..judges.question import kind_named
from ..judges.trust.calibration import JudgeCalibration, calibrate
from .judge_audit import judge_calibration, judge_scores
from .judge_labels import Labelled, clusters_of

_ENOUGH = 20  # labelled claims that all members scored: fewer say little of their errors


def members_table(judging: Judging, labelled: Sequence[Labelled], ask: Asker | None = None) -> Table | None:
    """Return how good each member is, and what they are together; None for a judge without members.

    The dear judge of a cascade is asked about all labelled claims: what the cascade loses is measured so.
    """
    judge = judging.judge
    if not isinstance(judge, Jury | Cascade):
        return None
    scores, kept = _member_scores(judging, judge.members, labelled, ask)
    labels = [one.people for one in kept]
    if len(labels) < _ENOUGH:
        note = f"Only {len(labels)} labelled claims were scored by all members: too few to compare them."
        return Table(("Member",), [(name,) for name in _names(judge)], notes=(note,))
    if isinstance(judge, Jury):
        return jury_report(_names(judge), scores, labels, judge.weights).table()
    report = cascade_report(scores[0], scores[1], labels, judge.unsure)
    notes = (f"{sentence}." for sentence in report.sentences())
    return Table(("Member",), [(name,) for name in _names(judge)], "The cascade", tuple(notes))


def fitted_jury(
    jury: Jury, judging: Judging, labelled: Sequence[Labelled], *, date: str, ask: Asker | None = None
) -> tuple[Jury, JudgeCalibration]:
    """Return the jury with weights that were fitted on labelled claims, and its calibration.

    With few labels the jury stays as it is. The calibration is cross-fitted: each claim is scored by weights
    that have not seen its label.
    """
    scores, kept = _member_scores(judging, jury.members, labelled, ask)
    if len(kept) < _ENOUGH:
        return jury, judge_calibration(labelled, judging, date=date, ask=ask)
    labels = [one.people for one in kept]
    fitted = Jury(jury.members, fit_jury(scores, labels))
    calibration = calibrate(
        fitted.identity(kind_named("support")),
        cross_fitted(scores, labels),
        labels,
        date=date,
        ratings=[one.ratings for one in kept],
        clusters=clusters_of(kept),
    )
    return fitted, calibration


def _member_scores(
    judging: Judging, members: Sequence[Judge], labelled: Sequence[Labelled], ask: Asker | None
) -> tuple[list[list[float]], list[Labelled]]:
    """Return the scores of each member on the claims that all members scored, and those claims."""
    columns = [judge_scores(Judging(member, judging.book), labelled, ask) for member in members]
    rows = [
        ([score for score in row if score is not None], one)
        for row, one in zip(zip(*columns, strict=True), labelled, strict=True)
    ]
    kept = [(row, one) for row, one in rows if len(row) == len(members)]
    return [[row[place] for row, _ in kept] for place in range(len(members))], [one for _, one in kept]


def _names(judge: Jury | Cascade) -> list[str]:
    return [member.identity(kind_named("support")) for member in judge.members]
