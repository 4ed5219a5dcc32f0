"""What `auepora compare` prints: the meaning first, then the tables that it rests on."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from . import echo

if TYPE_CHECKING:
    from ..runs.compare import Comparison
    from ..runs.losers import LostSample
    from ..runs.ranking import Ranking
    from ..runs.slices import SliceComparison

_SLICES_SHOWN = 15
_PAIRS_SHOWN = 60
_WIDE = 120  # columns; on a narrower screen the table of sizes is two
_ROOM_FOR_P = 100  # columns; on a narrower screen the table goes without p, the verdict says it
_NAME = 8  # letters of a system in a heading, on a narrow screen


def calm(text: str) -> str:
    """Text that GitHub, which acts on some lines of a job's log, only shows."""
    from ..reporting.gate_github import defused

    return defused(text) if os.environ.get("GITHUB_ACTIONS") else text


def say_comparison(comparison: Comparison) -> None:
    """Print a comparison: what it means in plain words, then the table, and what could mislead in it."""
    from ..reporting.interval_notes import interval_notes
    from ..reporting.plain_words import comparison_in_plain_words
    from ..reporting.run_names import compared_names, shortened
    from ..reporting.tables import comparison_rows

    a, b = compared_names(comparison)
    echo.say(calm(f"{b} against {a}, sample by sample\n"))
    for sentence in comparison_in_plain_words(comparison):
        echo.say_words(calm(sentence))
    echo.say()
    width = echo.console().width
    names = shortened([a, b], _NAME * (1 + (width >= _ROOM_FOR_P) + (width >= _WIDE)))
    headings = ["Metric", *names, "Change", "95% interval", "p Holm", "Verdict"]
    rows = [list(row) for row in comparison_rows(comparison)]
    if width < _ROOM_FOR_P:
        del headings[5]
        rows = [[*row[:5], *row[6:]] for row in rows]
    _say_table(headings, rows, range(1, len(headings) - 1))
    for text in interval_notes(comparison):
        echo.say_words(calm(text))
    for text in comparison.notes:
        echo.note(calm(f"note: {echo.one_line(text)}."))
    for name, reason in comparison.not_compared.items():
        echo.note(calm(f"note: {echo.one_line(name)} is not compared: {echo.one_line(reason)}."))


def say_more(comparison: Comparison, lost: Sequence[LostSample]) -> None:
    """Print what stands behind the verdicts: sizes, repeats, slices, losers."""
    from ..reporting import comparison_tables as tables

    echo.say()
    echo.say("How large: intervals are of 95%, d and δ are effect sizes, detectable is what")
    echo.say("so many samples would show")
    rows = tables.size_rows(comparison)
    # The last column, the range with everything missing scored, is empty unless something is missing.
    last = len(tables.SIZE_HEADINGS) - (not any(metric.difference_bounds for metric in comparison.metrics))
    wide = echo.console().width >= _WIDE
    for columns in [range(last)] if wide else [(0, 1, 2), (0, *range(3, last))]:
        headings = [tables.SIZE_HEADINGS[place] for place in columns]
        cells = [[row[place] for place in columns] for row in rows]
        _say_table(headings, cells, range(1, len(headings)))
    if comparison.repeats > 1:
        echo.say(f"Run to run, over {comparison.repeats} repeats of each (standard deviation)")
        _say_table(tables.REPEAT_HEADINGS, tables.repeat_rows(comparison), range(1, 4))
    say_slices(comparison.slices)
    say_lost(lost)
    _note_all(comparison.mismatches)


def say_ranking(ranking: Ranking) -> None:
    """Print the ranks of several runs, then the difference of each pair."""
    from ..reporting import ranking_tables as tables

    echo.say(f"{len(ranking.systems)} systems, each pair compared sample by sample")
    headings = tables.ranking_headings(ranking)
    _say_table(headings, tables.ranking_rows(ranking), range(1, len(headings)))
    echo.say_words(tables.ranking_legend(ranking))
    echo.say_words(calm(tables.ranking_in_words(ranking)))
    rows = tables.pair_rows(ranking)
    if rows:
        echo.say()
        echo.say("Pairs that differ (b - a is b less a)")
        _say_table(tables.PAIR_HEADINGS, rows[:_PAIRS_SHOWN], (2, 3))
    if len(rows) > _PAIRS_SHOWN:
        echo.say(f"... and {len(rows) - _PAIRS_SHOWN} more: --markdown and --json have all")
    _note_all((*ranking.mismatches, *ranking.notes))


def say_slices(slices: Sequence[SliceComparison]) -> None:
    """Print the worst slices."""
    from ..reporting import comparison_tables as tables

    if not slices:
        return
    echo.say()
    echo.say(f"Slices, the worst first ({min(_SLICES_SHOWN, len(slices))} of {len(slices)} rows shown)")
    _say_table(tables.SLICE_HEADINGS, tables.slice_rows(slices[:_SLICES_SHOWN]), range(2, 7))
    echo.say_words(calm(tables.slices_in_words(slices)))


def say_lost(lost: Sequence[LostSample]) -> None:
    """Print the biggest losers with what both systems gave."""
    from ..reporting import comparison_tables as tables

    if not lost:
        return
    echo.say()
    echo.say(calm(echo.one_line(tables.lost_title(lost))))
    for one in tables.lost_rows(lost):
        echo.say_words(calm(f"{echo.one_line(one[0])}: {one[1]} before, {one[2]} now. {one[3]}"))
        echo.say_words(calm(f"  before: {one[4]}"))
        echo.say_words(calm(f"  now:    {one[5]}"))


def _say_table(headings: Sequence[str], rows: Iterable[Sequence[str]], numeric: Sequence[int]) -> None:
    cells = [[calm(cell) for cell in row] for row in rows]
    echo.say_table([calm(heading) for heading in headings], cells, numeric=numeric)


def _note_all(texts: Iterable[str]) -> None:
    for text in texts:
        echo.note(calm(f"note: {echo.one_line(text)}."))
