"""A report as a comment for a pull request: the verdict first, a table, everything else folded.

Names and texts come from files and models. Each of them is escaped where it is put in, so that nothing
mentions anybody, links anywhere or leaves its cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..comparison.compare import Comparison
from ..comparison.ranking import Ranking
from ..comparison.regressions import LostSample
from ..comparison.slices import SliceComparison
from ..comparison.tables import (
    RANKING_LEGEND,
    comparison_table,
    lost_title,
    pair_table,
    ranking_in_words,
    ranking_table,
    regression_table,
    repeat_table,
    size_table,
    slice_table,
    slices_in_words,
)
from ..comparison.words import compared_names, comparison_in_plain_words, interval_notes, names_of_runs
from ..core.display import markdown_text
from ..core.scoring import Tally
from ..core.table import Table
from ..core.types import EvaluationRun, results_table
from ..reporting.tables import results_to_markdown
from ..store.stopping import stopping_in_words

# GitHub refuses comments of more than 65,536 characters. Bytes are at least as many.
MOST_BYTES = 65_536
_MOST_ROWS = 100  # of the table that is not folded
_LONGEST_NAME = 80
_ROLES = ("the baseline", "the candidate")


def report_markdown(
    runs: Sequence[EvaluationRun],
    comparison: Comparison | None = None,
    *,
    ranking: Ranking | None = None,
    lost: Sequence[LostSample] = (),
    slices: Sequence[SliceComparison] = (),
    shown: str = "",
    tally: Tally | None = None,
) -> str:
    """Return a comment about one run or several. Two runs have a `comparison`, more a `ranking`.

    Of a ranking, `lost` and `slices` are those of one pair, which `shown` names. One run without its outputs
    has a `tally` of them.
    """
    names = [name[:_LONGEST_NAME] for name in names_of_runs(runs)]
    if comparison is None and ranking is None:
        return _fitted(_run_parts(runs[0], names[0], tally or Tally().add(runs[0].outputs)), [])
    details: list[tuple[str, str]] = []
    if comparison is not None:
        parts, slices = _comparison_parts(comparison), comparison.slices
        details.append(("How large the differences are", size_table(comparison).to_markdown()))
        if comparison.repeats > 1:
            details.append(("How much repeats differ", repeat_table(comparison).to_markdown()))
    elif ranking is not None:
        parts = _ranking_parts(ranking)
        details.append(("Pairs that differ significantly", pair_table(ranking).to_markdown()))
    if slices:
        words = [shown, slices_in_words(slices)]
        details.append(("Slices, the worst first", _with_words(words, slice_table(slices))))
    if lost:
        details.append(
            ("Samples that got worse", _with_words([shown, lost_title(lost)], regression_table(lost)))
        )
    if comparison is not None and comparison.repeats > 1:
        return _fitted(parts, details)  # the values of one repeat are not those of the system
    roles = _ROLES if comparison is not None else [f"run {number}" for number in range(1, len(runs) + 1)]
    for role, name, run in zip(roles, names, runs, strict=True):
        values = f"{markdown_text(name)}\n\n{results_to_markdown(run.results)}"
        details.append((f"All values of {role}", values))
    return _fitted(parts, details)


def _comparison_parts(comparison: Comparison) -> list[str]:
    a, b = (name[:_LONGEST_NAME] for name in compared_names(comparison))
    headline = comparison.counts_in_words() or "no metric in common"
    notes = [*comparison.mismatches, *comparison.notes]
    notes += [f"{name} is not compared: {reason}" for name, reason in comparison.not_compared.items()]
    return [
        f"### {markdown_text(f'{b} compared with {a}: {headline}')}",
        *map(markdown_text, comparison_in_plain_words(comparison)),
        _shortened(comparison_table(comparison)),
        *(f"Note: {markdown_text(note)}" for note in interval_notes(comparison)),
        *(f"Note: {markdown_text(note)}." for note in notes),
    ]


def _ranking_parts(ranking: Ranking) -> list[str]:
    return [
        f"### {len(ranking.systems)} systems compared",
        markdown_text(ranking_in_words(ranking)),
        _shortened(ranking_table(ranking)),
        markdown_text(RANKING_LEGEND),
        *(f"Note: {markdown_text(note)}." for note in [*ranking.mismatches, *ranking.notes]),
    ]


def _run_parts(run: EvaluationRun, name: str, tally: Tally) -> list[str]:
    counts = f"{tally.total:,} samples, {tally.failed:,} failed" if tally.total else ""
    parts = [f"### {markdown_text(f'{name} on {run.dataset_name[:_LONGEST_NAME]}: {counts}'.rstrip(': '))}"]
    parts.append(results_to_markdown(run.results[:_MOST_ROWS]))
    parts += [markdown_text(note) for note in results_table(run.results).notes]
    if run.stopping is not None:
        parts.append(markdown_text(stopping_in_words(run.stopping)))
    return parts


def _with_words(words: Sequence[str], table: Table) -> str:
    return "\n\n".join([*(markdown_text(text) for text in words if text), table.to_markdown()])


def _shortened(table: Table) -> str:
    rows = table.rows[:_MOST_ROWS]
    hidden = len(table.rows) - len(rows)
    notes = [*table.notes, f"Metrics that are not shown: {hidden:,}."] if hidden else table.notes
    return replace(table, rows=rows, notes=notes).to_markdown()


def _fitted(parts: Sequence[str], details: Sequence[tuple[str, str]]) -> str:
    """Return the parts, and as many details as a comment can hold, folded.

    A summary is between tags, where no escape helps: it has no name in it.
    """
    shown: list[str] = []
    left = MOST_BYTES - 100  # for the sentence about what is left out
    left_out = 0
    folds = [f"<details><summary>{title}</summary>\n\n{body}\n\n</details>" for title, body in details]
    for text in (*parts, *folds):
        size = len(text.encode("utf-8", "replace")) + 2
        if size > left:
            left_out += 1
            continue
        left -= size
        shown.append(text)
    if left_out:
        parts = "1 further part does" if left_out == 1 else f"{left_out} further parts do"
        shown.append(f"{parts} not fit into a comment. See the HTML report.")
    return "\n\n".join(shown)
