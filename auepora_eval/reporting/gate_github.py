"""What a gate says to GitHub Actions: annotations, and lines that cannot be taken for commands."""

from __future__ import annotations

import re

from ..runs.gate_verdict import PASSED, GateReport, Verdict
from .gate_tables import gate_to_markdown, problem_words, verdict_word

_SHOWN = 10  # GitHub shows no more of a kind from one step
_LONGEST = 1_000
SUMMARY_BYTES = 1_000_000  # a step may write a mebibyte; a summary that is longer is not shown at all


def annotation_lines(report: GateReport) -> list[str]:
    """A line for each rule that is no pass: `::error title=...::...`, `::warning ...` or `::notice ...`."""
    lines: dict[str, list[str]] = {"error": [], "warning": [], "notice": []}
    for one in report.problems:
        level = _level(one, report)
        title = f"auepora gate: {one.rule.title} ({verdict_word(one)})"
        lines[level].append(f"::{level} title={_property(title)}::{_data(problem_words(one))}")
    return [line for each in lines.values() for line in each[:_SHOWN]]


def defused(text: str) -> str:
    """Text for the log of a job: GitHub acts on lines that begin with `::`, and on `##[` anywhere.

    A line can begin anywhere: tables and sentences are folded to the width of the screen.
    """
    return re.sub(":(?=:)", ": ", text).replace("##[", "## [")


def job_summary(report: GateReport) -> str:
    """Markdown to append to the summary of a job."""
    text = gate_to_markdown(report) + "\n\n"
    if len(text.encode()) <= SUMMARY_BYTES:
        return text
    return f"### gate: {report.outcome}\n\nThere are too many rules to show: see the log of the job.\n\n"


def _level(one: Verdict, report: GateReport) -> str:
    if report.effect(one) != PASSED:
        return "error"
    return "notice" if one.severity == "info" else "warning"


def _data(text: str) -> str:
    """The message of a command: its line ends here and nowhere else."""
    calm = (
        text[:_LONGEST].replace("##[", "## [").replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    )
    return "".join(letter for letter in calm if letter.isprintable())


def _property(text: str) -> str:
    """The same in front of the message, where : and , have a meaning."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
