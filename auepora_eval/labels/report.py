"""The tables of `labels score` and `labels sweep`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..core.display import bounds_text, interval_text, value_text
from ..core.table import Table
from ..text.label_terms import LABELS
from .scoring import OF_A_CLASS, OVERALL, Record
from .sweep import EVERYTHING, LEAST_RECALL, Figures, Sweep, SweepPart

_IN_SLICES = ("accuracy", "macro_f1", "macro_f1_supported")
_IN_SWEEPS = ("accuracy", "macro_f1", "hall_recall", "accurate_recall", "contr_recall")


def score_tables(report: Record) -> Iterator[Table]:
    """Yield the tables of a report: slices, by label, the confusion table, pairs and scenarios, overall."""
    for name, parts in report["slices"].items():
        yield _slice(name, parts)
    metrics = report["metrics"]
    rows = [
        [label, *(_cell(report, label, figure) for figure in OF_A_CLASS), str(metrics[label]["support"])]
        for label in LABELS
    ]
    yield Table(("Label", "Precision", "Recall", "F1", "Samples"), rows, numeric=range(1, 5))
    rows = [[true, *map(str, row.values())] for true, row in report["confusion_matrix"].items()]
    yield Table(("True \\ predicted", *LABELS), rows, numeric=range(1, 4))
    shares = list(_shares(report))
    if shares:
        yield Table(("Also measured", "Accuracy", "95% interval", "Right", ""), shares, numeric=(1, 2))
    # Last: it is what a terminal still shows when the rest has scrolled away.
    yield _overall(report)


def _overall(report: Record) -> Table:
    overall = report["metrics"]["overall"]
    total = overall["total_samples"]
    title = "1 sample" if total == 1 else f"{total} samples"
    headings = ["Overall", "Value", "95% interval"]
    rows = [
        [name, value_text(overall[name]), interval_text(report["intervals"]["overall"][name])]
        for name in OVERALL
    ]
    if overall["failed_samples"]:
        title += f", {overall['failed_samples']} without a prediction"
        headings.append("If failed")
        for row in rows:
            row.append(bounds_text(report["bounds_if_failed"]["overall"][row[0]]))
    base = report["baseline_always_accurate"]
    note = f"Always accurate: accuracy {base['accuracy']:.4f}, macro-F1 {base['macro_f1']:.4f}"
    return Table(headings, rows, title, [note], numeric=range(1, 4))


def _shares(report: Record) -> Iterator[list[str]]:
    pairs, scenarios = report["pair_accuracy"], report["scenario_accuracy"]
    if pairs is not None:
        remark = f"{pairs['contradictions_found']} of {pairs['contradictions']} contradictions found"
        yield _share("pairs", pairs, pairs["pairs"], remark)
    if scenarios is not None:
        remark = f"{scenarios['expected_without_id']} expect a scenario that has no id"
        if overridden := scenarios["left_out_as_overridden"]:
            remark += f"; {overridden} left out: their scenario is set, not detected"
        yield _share("scenarios", scenarios, scenarios["total"], remark)


def _share(name: str, share: Record, total: int, remark: str) -> list[str]:
    limits = interval_text(share["confidence_interval"])
    return [name, value_text(share["accuracy"]), limits, f"{share['right']} of {total}", remark]


def _slice(name: str, tables: Mapping[str, Record]) -> Table:
    rows = [
        [
            value,
            str(part["metrics"]["overall"]["total_samples"]),
            *(_cell(part, "overall", figure) for figure in _IN_SLICES),
        ]
        for value, part in tables.items()
    ]
    title = name.replace("_", " ").capitalize()
    headings = (title, "Samples", "Accuracy", "Macro-F1", "of occurring labels")
    return Table(headings, rows, numeric=range(1, 5))


def _cell(part: Record, group: str, figure: str) -> str:
    return f"{value_text(part['metrics'][group][figure])} {interval_text(part['intervals'][group][figure])}"


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
