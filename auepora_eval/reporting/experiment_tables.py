"""An experiment in tables: what each variant scored, which differ, and what the guard rails say."""

from __future__ import annotations

from ..metrics.parse import parse_metric
from ..runs.experiment import Outcome
from ..runs.experiment_tests import PairTest
from ..runs.experiment_verdict import NOBODY
from .number_texts import interval_text, p_cell, value_text

TEST_HEADINGS = ("Metric", "Pair", "Difference", "95% interval", "p (Holm)", "d", "Better")
RAIL_HEADINGS = ("Guard rail", "Variant", "Holds", "Found")


def variant_headings(outcome: Outcome) -> list[str]:
    """The first row of the table of values."""
    return ["Metric", *outcome.runs]


def variant_rows(outcome: Outcome) -> list[list[str]]:
    """Each metric's value in each variant, with its interval; the primary metric first, marked.

    Failed answers are in the values as the worst, as they are in the tests.
    """
    rows = []
    names = [result.name for result in next(iter(outcome.runs.values())).results]
    for name in sorted(names, key=lambda name: name != outcome.primary):
        mark = " (primary)" if name == outcome.primary else ""
        arrow = "" if parse_metric(name).higher_is_better else " ↓"
        cells = [f"{name}{arrow}{mark}"]
        for variant, side in outcome.every_side[name].items():
            unit = side.metric.unit
            interval = interval_text(outcome.interval(name, variant), unit)
            cells.append(f"{value_text(outcome.value(name, variant), unit)} {interval}")
        rows.append(cells)
    rows.append(["samples", *(f"{len(side.rows):,}" for side in outcome.sides.values())])
    if any(tally.failed for tally in outcome.tallies.values()):
        rows.append(["failed", *(f"{tally.failed:,}" for tally in outcome.tallies.values())])
    return rows


def test_rows(outcome: Outcome) -> list[list[str]]:
    """Every pair on every metric that measured anything; those of the primary metric first."""
    return [_test_row(test) for test in outcome.tests if outcome.is_measured(test.metric)]


def _test_row(test: PairTest) -> list[str]:
    unit = parse_metric(test.metric).unit
    return [
        test.metric,
        f"{test.second} - {test.first}",
        value_text(test.difference + 0.0, unit, signed=True),  # no -0
        interval_text(test.interval, unit, signed=True),
        p_cell(test.p_adjusted),
        "-" if test.effect_size is None else f"{test.effect_size + 0.0:+.2f}",
        test.better or _why_neither(test),
    ]


def _why_neither(test: PairTest) -> str:
    if test.of_times:
        return "one run each: cannot tell"
    return "cannot tell" if test.difference else "no difference"


def rail_rows(outcome: Outcome) -> list[list[str]]:
    """What was found of each guard rail in each variant that it is for."""
    words = {
        "min": "at least",
        "max": "at most",
        "max_increase": "increase of at most",
        "margin": "loss under",
    }
    return [
        [
            f"{check.rail.metric}: {words[check.rail.kind]} {check.rail.limit:g}",
            check.variant,
            "yes" if check.holds else "NO",
            check.reason,
        ]
        for check in outcome.verdict.rails
    ]


def outcome_notes(outcome: Outcome) -> list[str]:
    """What the tables do not say of themselves: how failures are counted, and what was lost."""
    notes = []
    if any(tally.failed for tally in outcome.tallies.values()):
        timed = any(test.of_times for test in outcome.tests)
        times = "; on times as the slowest call of all variants" if timed else ""
        notes.append(f"Failed answers count as the worst of a metric{times}.")
    for name, tally in outcome.tallies.items():
        lost = outcome.unpredicted(name)
        if lost:
            lack = f"{lost:,} of its {tally.total:,} samples"
            notes.append(f"{name}: the predictions have no line for {lack}. They count as failed.")
    return notes


def outcome_in_words(outcome: Outcome) -> str:
    """Who won, or why nobody did."""
    found = outcome.verdict
    if found.winner == NOBODY:
        return f"Winner: none. Reason: {found.reason}"
    return f"Winner: {found.winner}. {found.reason}"
