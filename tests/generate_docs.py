"""Writes the two pages that are made from the code: docs/metrics.md and docs/commands.md (`make docs`)."""

from __future__ import annotations

import contextlib
import io
import json
import os
from pathlib import Path

from auepora_eval.cli.main import COMMANDS, main
from auepora_eval.core.targets import QUESTIONS
from auepora_eval.core.types import TargetCategory

DOCS = Path(__file__).parents[1] / "docs"


def printed(*words: str) -> str:
    """What a command prints."""
    os.environ["COLUMNS"] = "100"  # argparse wraps its help to the terminal
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        main(list(words))
    return out.getvalue()


def metrics_page() -> str:
    """Every metric, by target."""
    lines = [
        "# Metrics",
        "",
        "Made from the code by `make docs`. A name is `base@number[option]`; what stands in",
        "brackets may be left out. *Equals* names the tool whose numbers ours are tested against.",
    ]
    described = json.loads(printed("metrics", "--json"))
    for target in TargetCategory:
        metrics = [metric for metric in described if metric["target"] == target.name]
        if not metrics:
            continue
        lines += ["", f"## {target.name}", "", QUESTIONS[target]]
        for metric in metrics:
            low, high = metric["bounds"]
            direction = "higher" if metric["higher_is_better"] else "lower"
            lines += ["", f"### `{metric['name']}`", "", metric["description"], ""]
            lines.append(
                f"- needs: {', '.join(f'`{name}`' for name in metric['requires']) or 'only the outputs'}"
            )
            ends = ("-∞" if low is None else f"{low:g}", "∞" if high is None else f"{high:g}")
            lines.append(f"- range: {' to '.join(ends)}, {direction} is better")
            if metric["oracle"]:
                lines.append(f"- equals: {metric['oracle']}")
    return "\n".join(lines) + "\n"


def commands_page() -> str:
    """Every command's help."""
    lines = ["# Commands", "", "Made from the code by `make docs`."]
    for command in COMMANDS:
        lines += ["", f"## auepora {command}", "", "```text", printed(command, "--help").rstrip(), "```"]
    lines += ["", "## Exit codes", "", "| code | meaning |", "|---|---|"]
    lines += [f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items()]
    return "\n".join(lines) + "\n"


EXIT_CODES = {
    "0": "done",
    "1": "the check says no: more failures than `--max-failures` allows; a budget or the breaker ended it",
    "2": "it could not be done: usage, unreadable or malformed input, a missing extra",
    "3": "incomplete: so many samples failed that the values do not stand for all (`--min-coverage`)",
    "4": "storage: the disk is full or read-only, the run exists already",
    "130, 143": "interrupted, terminated; finished outputs are kept",
}

PAGES = {"metrics.md": metrics_page, "commands.md": commands_page}


if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
