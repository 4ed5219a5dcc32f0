"""The tables of `labels score` and `labels sweep`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..core.display import bounds_text, interval_text, value_text
from ..core.table import Table
from ..core.types import MetricResult
from ..text.label_terms import LABELS
from .scoring import DetectorComparison, LabelReport, LabelTable
from .sweep import EVERYTHING, LEAST_RECALL, Figures, Sweep, SweepPart

_MOST_PAIRS = 20  # in the table; there may be as many pairs as samples
_IN_SLICES = ("accuracy", "macro_f1", "macro_f1_supported")
_IN_SWEEPS = ("accuracy", "macro_f1", "hall_recall", "accurate_recall", "contr_recall")


def score_tables(report: LabelReport, compared: DetectorComparison | None = None) -> Iterator[Table]:
    """Yield the tables of a report: overall, by label, the confusion table, pairs and scenarios, slices."""
    yield _overall(report)
    table = report.table
    rows = [
        [
            label,
            *(_with_interval(result) for result in table.classes[label].values()),
            str(table.support[label]),
        ]
        for label in LABELS
    ]
    yield Table(("Label", "Precision", "Recall", "F1", "Samples"), rows, numeric=range(1, 5))
    rows = [[true, *(str(table.confusion[true][label]) for label in LABELS)] for true in LABELS]
    yield Table(("True \\ predicted", *LABELS), rows, numeric=range(1, 4))
    shares = list(_shares(report))
    if shares:
        yield Table(("Also measured", "Accuracy", "95% interval", "Right", ""), shares, numeric=(1, 2))
    for name, tables in report.slices.items():
        yield _slice(name, tables)
    if compared is not None:
        yield _compared(compared)


def _overall(report: LabelReport) -> Table:
    results = report.table.overall
    coverage = results["accuracy"].coverage
    title = f"{coverage.total} samples, {report.mode} mode"
    headings = ["Overall", "Value", "95% interval"]
    rows = [[name, value_text(one.value), interval_text(one.interval)] for name, one in results.items()]
    if coverage.failed:
        title += f", {coverage.failed} without a prediction"
        headings.append("If failed")
        for row, result in zip(rows, results.values(), strict=True):
            row.append(bounds_text(result.if_failed))
    base = report.baseline
    note = f"Always accurate: accuracy {base['accuracy']:.4f}, macro-F1 {base['macro_f1']:.4f}"
    return Table(headings, rows, title, [note], numeric=range(1, 4))


def _shares(report: LabelReport) -> Iterator[list[str]]:
    for name, share in (("pairs", report.pairs), ("scenarios", report.scenarios)):
        if share is None:
            continue
        counts = share.counts
        if name == "pairs":
            remark = f"{counts['contradictions_found']} of {counts['contradictions']} contradictions found"
        else:
            remark = f"{counts['expected_without_id']} expect a scenario that has no id"
            if counts["left_out_as_overridden"]:
                remark += (
                    f"; {counts['left_out_as_overridden']} left out: their scenario is set, not detected"
                )
        limits = interval_text(share.interval and share.interval[:2])
        yield [name, value_text(share.accuracy), limits, f"{share.right} of {share.total}", remark]


def _slice(name: str, tables: Mapping[str, LabelTable]) -> Table:
    parts = list(tables.items())
    if name == "pair" and len(parts) > _MOST_PAIRS:
        parts.sort(key=lambda item: max(-1.0, item[1].overall["accuracy"].value))  # NaN comes first
        parts = parts[:_MOST_PAIRS]
    rows = []
    for value, table in parts:
        results = [table.overall[figure] for figure in _IN_SLICES]
        rows.append([value, str(results[0].coverage.total), *map(_with_interval, results)])
    notes = []
    if len(rows) < len(tables):
        notes = [f"The {len(rows)} worst of {len(tables)}; all of them are in --json"]
    title = name.replace("_", " ").capitalize()
    headings = (title, "Samples", "Accuracy", "Macro-F1", "of occurring labels")
    return Table(headings, rows, notes=notes, numeric=range(1, 5))


def _compared(compared: DetectorComparison) -> Table:
    rows = [
        ("both", str(compared.both_right)),
        ("only this one", str(compared.only_first_right)),
        ("only the other", str(compared.only_second_right)),
        ("neither", str(compared.neither_right)),
    ]
    notes = [f"p = {compared.p_value:.4g} ({compared.method})"]
    return Table(("Right, of the two detectors", "Samples"), rows, notes=notes, numeric=(1,))


def _with_interval(result: MetricResult) -> str:
    return f"{value_text(result.value)} {interval_text(result.interval)}"


def sweep_tables(result: Sweep) -> Iterator[Table]:
    """Yield every threshold of a sweep of everything, the chosen thresholds, and what to expect of them."""
    if [part.scenario for part in result.parts] == [EVERYTHING]:
        yield _thresholds(result)
    rows: list[tuple[str, ...]] = [
        (
            part.scenario,
            str(part.samples),
            _chosen(part),
            part.robustness,
            value_text(part.auc_accurate_vs_hallucination),
        )
        for part in result.parts
    ]
    yield Table(("Scenario", "Samples", "Chosen", "Robustness", "AUC"), rows, numeric=(1, 4))
    yield _expected(result)


def _chosen(part: SweepPart) -> str:
    threshold = "n/a" if part.chosen_threshold is None else f"{part.chosen_threshold:.2f}"
    return threshold if part.meets_constraint else f"{threshold} (recall below {LEAST_RECALL:g})"


def _expected(result: Sweep) -> Table:
    """Return the figures at the chosen thresholds; with failures, also what they could be without them."""
    headings = ["At the chosen thresholds", "Macro-F1", "95% interval", "Accuracy", "Hallucination recall"]
    rows = [_figures_row("fitted", result.fitted, None)]
    bounds = result.fitted_bounds_if_failed
    if result.cross_validated is not None:
        name = f"cross-validated ({result.folds} folds)"
        rows.append(_figures_row(name, result.cross_validated, result.cross_validated_macro_f1_interval))
        bounds = result.cross_validated_bounds_if_failed
    notes = []
    if bounds is not None:
        columns = {"Macro-F1": "macro_f1", "Accuracy": "accuracy", "Hallucination recall": "hall_recall"}
        ranges = [f"{title} {bounds_text(bounds[column])}" for title, column in columns.items()]
        missing = result.samples_without_score
        notes.append(f"{missing} samples have no score and are left out. With them: {', '.join(ranges)}.")
    return Table(headings, rows, notes=notes, numeric=range(1, 5))


def _thresholds(result: Sweep) -> Table:
    part = result.parts[0]
    rows = [
        [
            f"{row['threshold']:.2f}{' *' if row['threshold'] == part.chosen_threshold else ''}",
            *(value_text(row[column]) for column in _IN_SWEEPS),
        ]
        for row in part.rows
    ]
    headings = ("Threshold", "Accuracy", "Macro-F1", "Hall. recall", "Acc. recall", "Contr. recall")
    return Table(headings, rows, numeric=range(6))


def _figures_row(name: str, figures: Figures, interval: Sequence[float] | None) -> tuple[str, ...]:
    values = (value_text(figures[column]) for column in ("accuracy", "hall_recall"))
    return name, value_text(figures["macro_f1"]), interval_text(interval), *values
