"""The report of an audit, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...core.display import interval_text, value_text
from ...core.table import Table
from ...stats.intervals import TOO_NARROW
from .audit import AuditCalibration, AuditReport, CorrectedMean, CorrectedRates, HumanCeiling
from .calibration import Agreement, Estimate

_ESTIMATE = ("Value", "95% interval")


def audit_tables(report: AuditReport) -> Iterator[Table]:
    """Yield the tables of an audit: agreement, confusion, calibration, and those that the claims allow."""
    yield _agreement(report)
    judged = ("judged supported", "judged not")
    cells = [
        [f"labelled {label}", *(str(row[name]) for name in judged)] for label, row in report.confusion.items()
    ]
    yield Table(("", *judged), cells, numeric=(1, 2))
    if report.calibration is not None:
        yield _calibration(report.calibration, is_graded=report.correlation is not None)
    if report.human_ceiling is not None:
        yield _ceiling(report.human_ceiling)
    if report.estimate is not None:
        yield _corrected(report.estimate, report)
    if report.by:
        yield _groups(report.by)


def _agreement(report: AuditReport) -> Table:
    estimates: list[tuple[str, Estimate]] = [
        (f"accuracy at {report.threshold:g}", report.accuracy),
        ("AUROC (0.5 is chance)", report.auroc),
        (f"Cohen's kappa at {report.threshold:g}", report.kappa),
    ]
    for kind, each in (report.correlation or {}).items():
        estimates.append((f"{kind.capitalize()} with people's mean", each))
    # The bias has a sign, so it is not one of the estimates that are shown without.
    rows = [(title, *each.cells()) for title, each in estimates]
    if report.people is not None and report.bias is not None:
        rows.append(("mean of people", *report.people.cells()))
        rows.append(("mean of the judge minus that", *report.bias.cells(signed=True)))
    title = (
        f"{report.judge} compared with {report.claims} labelled claims, "
        f"{report.supported} of the scored ones supported"
    )
    notes = list(_agreement_notes(report, [each for _, each in estimates]))
    return Table(("Agreement with people", *_ESTIMATE), rows, title, notes, numeric=(1, 2))


def _agreement_notes(report: AuditReport, estimates: list[Estimate]) -> Iterator[str]:
    if any(TOO_NARROW in each.interval_method for each in estimates):
        yield "Fewer than 50 claims: if a label is rare, the interval of kappa is too narrow."
    if report.scored < report.claims:
        yield f"{report.claims - report.scored} claims could not be scored; they are left out."
    if report.people_evenly_split:
        yield f"On {report.people_evenly_split} claims people are evenly split, which counts as yes."
    if report.scored and report.auroc.value is None:
        kind = "supported" if report.supported else "not supported"
        yield f"No AUROC: it needs claims of both kinds, but all claims are labelled {kind}."
    if report.scored and report.calibration is None:
        yield "Some scores are not between 0 and 1, so their calibration is not measured."


def _calibration(calibration: AuditCalibration, *, is_graded: bool) -> Table:
    rows = [
        (f"{each.low:.2f} to {each.high:.2f}", str(each.claims), value_text(each.judge), *each.people.cells())
        for each in calibration.table
        if each.claims
    ]
    if calibration.by_chance is not None:
        chance = f"a calibrated judge has at most {calibration.by_chance:.3f} in 95 of 100 audits"
    elif is_graded:
        chance = "the value by chance alone is known only for labels of yes and no"
    else:
        chance = "the value by chance alone is not known for claims in clusters"
    brier, interval = calibration.brier.cells()
    notes = (
        f"Expected calibration error {calibration.expected_calibration_error:.3f} ({chance}).",
        f"Brier score {brier} {interval}. Always predicting the mean would give "
        f"{calibration.brier_of_the_mean:.3f}.",
    )
    title = f"Calibration: scores and shares of supported claims ({calibration.bins} bins of equal width)"
    return Table(("Score", "Claims", "Judge", "People", "95% interval"), rows, title, notes, range(1, 5))


def _ceiling(ceiling: HumanCeiling) -> Table:
    level = ceiling.alpha.statistic.removeprefix("krippendorff_alpha_")
    rows = [(f"Krippendorff's alpha, {level}", *ceiling.alpha.cells())]
    sides = (("one person", ceiling.one_person), ("the judge", ceiling.judge))
    rows += [(f"{who} and the others: same yes or no", *side.agreement.cells()) for who, side in sides]
    rows += [(f"{who} and the others: Spearman", *side.spearman.cells()) for who, side in sides]
    rows.append(("judge minus person, same yes or no", *ceiling.judge_less_person.cells(signed=True)))
    title = f"The human ceiling: {ceiling.annotators} people, {ceiling.items} claims rated by several"
    return Table(("Agreement among people", *_ESTIMATE), rows, title, numeric=(1, 2))


def _corrected(estimate: CorrectedRates, report: AuditReport) -> Table:
    # Labels of yes and no have a share only; those on a scale have a mean too.
    is_graded = report.correlation is not None
    mean, share, by_errors = estimate.mean, estimate.share_of_yes, estimate.share_of_yes_by_errors
    rows = _corrected_rows("mean", mean) if is_graded else []
    rows += _corrected_rows("share of yes", share)
    notes = []
    if estimate.no_correction_by_errors:
        notes.append(f"No correction by the judge's errors: {estimate.no_correction_by_errors}.")
    else:
        rates = f"sensitivity {report.sensitivity}, specificity {report.specificity}"
        rows.append((f"  corrected by its errors ({rates})", *by_errors.cells()))
    if report.unlabelled_not_scored:
        notes.append(f"{report.unlabelled_not_scored} unlabelled claims could not be scored.")
    worth = (mean if is_graded else share).worth_labels
    if worth is not None:
        notes.append(
            f"With the judge, {estimate.labels} labels are worth about {worth:.0f}. "
            "This assumes that the labelled claims were chosen at random."
        )
    title = f"Estimate for all claims: {estimate.labels} with a label, {estimate.unlabelled} without"
    return Table(("Estimate", *_ESTIMATE), rows, title, notes, numeric=(1, 2))


def _corrected_rows(title: str, mean: CorrectedMean) -> list[tuple[str, ...]]:
    return [
        (title,),
        ("  people's labels alone", *mean.people_alone.cells()),
        ("  the judge alone", value_text(mean.judge_alone), "biased"),
        (f"  both (PPI++, weight {mean.weight:.2f})", *mean.corrected.cells()),
    ]


def _groups(groups: Mapping[str, Agreement]) -> Table:
    rows = []
    for name, part in groups.items():
        values = [value_text(each.value) for each in (part.accuracy, part.auroc, part.kappa)]
        rows.append((name, str(part.scored), *values, interval_text(part.auroc.confidence_interval)))
    headings = ("Part", "Claims", "Accuracy", "AUROC", "Kappa", "95% interval of AUROC")
    return Table(headings, rows, numeric=range(1, 6))
