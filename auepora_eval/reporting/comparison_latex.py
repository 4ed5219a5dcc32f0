"""Comparisons as a LaTeX table: a row a system, superscripts for the systems that it is surely above."""

from __future__ import annotations

import math

from ..runs.compare import Comparison
from ..runs.ranking import Ranking
from .number_texts import value_text
from .ranking_tables import letter, ranked_names
from .run_names import compared_names

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


def latex_text(text: str) -> str:
    """Text that LaTeX sets as it is, on one line.

    >>> latex_text("recall@5_top & more")
    'recall@5\\\\_top \\\\& more'
    """
    flat = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return "".join(_SPECIAL.get(sign, sign) for sign in flat)


def comparison_to_latex(comparison: Comparison) -> str:
    """Two systems: the candidate's values carry an `a` where they are surely better, and the reverse."""
    rows = []
    for place, system in enumerate(compared_names(comparison)):
        cells = []
        for metric in comparison.metrics:
            value = metric.candidate if place else metric.baseline
            wins = metric.verdict == ("better" if place else "worse")
            best = value != (metric.baseline if place else metric.candidate)
            best = best and (metric.difference > 0) == (metric.higher_is_better == bool(place))
            cells.append(_cell(value, metric.unit, best=best, beats=letter(1 - place) if wins else ""))
        rows.append((system, cells))
    names = [(metric.name, metric.higher_is_better) for metric in comparison.metrics]
    return _table(
        names, rows, f"two-sided paired tests, Holm-corrected over metrics, $p < {comparison.alpha:g}$"
    )


def ranking_to_latex(ranking: Ranking) -> str:
    """Several systems, one below the other."""
    rows = []
    for place, system in enumerate(ranked_names(ranking)):
        cells = []
        for metric in ranking.metrics:
            one = metric.standings[place]
            cells.append(
                _cell(one.value, metric.unit, best=one.best, beats="".join(letter(n) for n in one.beats))
            )
        rows.append((system, cells))
    names = [(metric.name, metric.higher_is_better) for metric in ranking.metrics]
    about = "two-sided paired tests, Holm-corrected over all pairs and metrics"
    return _table(names, rows, f"{about}, $p < {ranking.alpha:g}$")


def _table(names: list[tuple[str, bool]], rows: list[tuple[str, list[str]]], about: str) -> str:
    heads = [latex_text(name) + ("" if higher else r" $\downarrow$") for name, higher in names]
    lines = [
        "% needs \\usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\begin{{tabular}}{{l{'r' * len(names)}}}",
        r"\toprule",
        " & ".join(["System", *heads]) + r" \\",
        r"\midrule",
    ]
    for place, (system, cells) in enumerate(rows):
        lines.append(" & ".join([f"$^{{{letter(place)}}}$ {latex_text(system)}", *cells]) + r" \\")
    caption = f"Best values in bold; a superscript names the systems that a value is better than ({about})."
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", rf"\caption{{{caption}}}", r"\end{table}"])


def _cell(value: float, unit: str, *, best: bool, beats: str) -> str:
    if not math.isfinite(value):
        return "--"
    text = latex_text(value_text(value, unit)).replace("µ", r"\textmu{}")
    return (rf"\textbf{{{text}}}" if best else text) + (f"$^{{{beats}}}$" if beats else "")
