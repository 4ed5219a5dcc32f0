"""An experiment in tables: what each variant scored, which differ, and what the guard rails say."""

from __future__ import annotations

from ..metrics.parse import parse_metric
from ..runs.experiment import Outcome
from ..runs.experiment_tests import PairTest
from ..runs.experiment_verdict import NOBODY
from .tables import interval_text, unit_of, value_text

TEST_HEADINGS = ("Metric", "Pair", "Difference", "95% interval", "p (Holm)", "d", "Better")
RAIL_HEADINGS = ("Guard rail", "Variant", "Holds", "Found")


def variant_headings(outcome: Outcome) -> list[str]:
    """The first row of the table of values."""
    return ["Metric", *outcome.runs]


def variant_rows(outcome: Outcome) -> list[list[str]]:
    """Each metric's value in each variant, with its interval; the primary metric first, marked."""
    rows = []
    names = [result.name for result in next(iter(outcome.runs.values())).results]
    for name in sorted(names, key=lambda name: name != outcome.primary):
        mark = " (primary)" if name == outcome.primary else ""
        arrow = "" if parse_metric(name).higher_is_better else " ↓"
        cells = [f"{name}{arrow}{mark}"]
        for run in outcome.runs.values():
            result = run.result(name)
            unit = unit_of(result)
            interval = interval_text(result.details.get("confidence_interval"), unit)
            cells.append(f"{value_text(result.value, unit)} {interval}")
        rows.append(cells)
    rows.append(["samples", *(f"{len(side.rows):,}" for side in outcome.sides.values())])
    return rows


def test_rows(outcome: Outcome) -> list[list[str]]:
    """Every pair on every metric; those of the primary metric first."""
    return [_test_row(test) for test in outcome.tests]


def _test_row(test: PairTest) -> list[str]:
    unit = parse_metric(test.metric).unit
    return [
        test.metric,
        f"{test.second} - {test.first}",
        value_text(test.difference, unit, signed=True),
        interval_text(test.interval, unit, signed=True),
        "<0.001" if test.p_adjusted < 0.001 else f"{test.p_adjusted:.3f}",
        "-" if test.effect_size is None else f"{test.effect_size:+.2f}",
        test.better or ("cannot tell" if test.difference else "no difference"),
    ]


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


def outcome_in_words(outcome: Outcome) -> str:
    """Who won, or why nobody did."""
    found = outcome.verdict
    if found.winner == NOBODY:
        return f"Winner: none. Reason: {found.reason}"
    return f"Winner: {found.winner}. {found.reason}"
