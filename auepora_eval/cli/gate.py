"""Check a run against rules and set the exit code.

The exit code is 0 if the run passes, 1 if it fails, 3 if the result is
inconclusive. If no rule uses the --baseline, every metric is checked: none of
them may be significantly worse. A file of rules has the flags as keys, and more:
max_loss, max_count_drop, on, alpha, allow_uncalibrated.

  auepora demo
  auepora gate demo-hybrid --baseline demo-bm25 --no-regression recall@5
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.settings import out_flag
from ..decide import gate_report as tables
from ..decide.figures import GatedRun
from ..decide.gate import gate_run
from ..decide.gate_report import gate_to_junit
from ..decide.rules import GateRules, read_rules, rules_of
from ..errors import PlanError
from ..io.files import write_bytes
from ..store.storage import EvaluationResultsStorage
from . import echo
from .common import check_distinct_runs
from .flags import add_flag, add_json, add_out, add_resamples, covered, limit

if TYPE_CHECKING:
    from ..decide.gate import GateReport

_NAMED = ("min", "max", "margin")
_STYLES = {0: "bold green", 1: "bold red", 3: "bold yellow"}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("candidate", metavar="RUN", help="id or path of the stored run to check")
    add_flag(parser, "--baseline", "id or path of the run to compare with", "RUN")
    add_flag(parser, "--rules", "file of rules (YAML or JSON); flags override it", "FILE")
    about = {
        "--min": "minimum value, such as recall@5=0.8",
        "--max": "maximum value, such as latency_stats.p95=2000",
    }
    for flag, text in about.items():
        parser.add_argument(flag, action="append", type=limit(), metavar="NAME=X", help=text, default=[])
    about_margin = "loss to rule out: recall@5=0.02, or 0.02 for all"
    add_flag(
        parser, "--margin", about_margin, "[NAME=]X", type=limit(for_all=True), default=[], action="append"
    )
    about_names = "metrics that may not be worse: recall@5,mrr or all"
    add_flag(parser, "--no-regression", about_names, "NAMES", default=[], action="append")
    add_flag(parser, "--max-failed", "largest share of failed samples, such as 0.01", "X", type=covered)
    add_flag(
        parser,
        "--if-inconclusive",
        "stop (exit code 3, the default), pass or fail",
        "WHAT",
        choices=("stop", "pass", "fail"),
    )
    add_flag(parser, "--allow-mismatch", "check although the data or settings differ")
    add_resamples(parser)
    add_flag(parser, "--junit", "also write JUnit XML", "FILE")
    add_flag(parser, "--force", "overwrite a file that exists")
    add_flag(parser, "--github-summary", "also append the table to $GITHUB_STEP_SUMMARY")
    add_flag(parser, "--full", "also print the table of all rules")
    add_flag(parser, "--markdown", "print Markdown, for a pull request")
    add_out(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    rules = _rules(args)
    if not rules.rules and args.baseline is None:
        raise PlanError("there is no rule. Give one, such as --min recall@5=0.8, or name a --baseline.")
    storage, flags = EvaluationResultsStorage(args.out), out_flag(args.out)
    named = [name for name in (args.baseline, args.candidate) if name is not None]
    if len(named) > 1:
        check_distinct_runs(storage, named)
    report = gate_run(
        GatedRun.stored(storage, args.candidate, flags, with_scores=args.baseline is not None),
        rules,
        baseline=None if args.baseline is None else GatedRun.stored(storage, args.baseline, flags),
        resamples=args.resamples,
        allow_mismatch=args.allow_mismatch,
    )
    # Before anything is printed: a reader that is gone must not cost the files.
    if args.junit:
        write_bytes(Path(args.junit), gate_to_junit(report), force=args.force)
    if args.github_summary:
        _append_summary(report)
    _say(report, args)
    return report.exit_code


def _rules(args: Namespace) -> GateRules:
    """Those of the file, with those of the flags on top."""
    record: dict[str, Any] = {}
    for kind in _NAMED:
        if getattr(args, kind):
            record[kind] = {name or "all": number for name, number in getattr(args, kind)}
    names = [name.strip() for each in args.no_regression for name in each.split(",") if name.strip()]
    record |= {"no_regression": names} if names else {}
    record |= {} if args.max_failed is None else {"max_failed": args.max_failed}
    flags = rules_of(record, "the flags")
    file = read_rules(args.rules) if args.rules else GateRules()
    return replace(
        flags.over(file), alpha=file.alpha, if_inconclusive=args.if_inconclusive or file.if_inconclusive
    )


def _say(report: GateReport, args: Namespace) -> None:
    if args.json:
        echo.say_json(tables.gate_to_dict(report))
        return
    if args.markdown:
        echo.say(tables.gate_to_markdown(report))
        return
    if args.full:
        echo.show(tables.gate_table(report))
        echo.say()
    for text in (*report.mismatches, *report.notes):
        echo.note(f"note: {text}.")
    problems = report.problems
    for place, one in enumerate(problems, start=1):
        # What to do about several rules is said once, after the last of them.
        is_last = all(one.fix != other.fix for other in problems[place:])
        text = tables.problem_words(one if is_last else replace(one, fix=""))
        echo.say_words(text, "red" if one.outcome == "failed" else "yellow")
    for text in tables.pass_words(report):
        echo.say_words(text)
    # The verdict last: it is what stays on the screen.
    echo.say_words(tables.title(report), _STYLES[report.exit_code])


def _append_summary(report: GateReport) -> None:
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        raise PlanError("--github-summary needs the variable GITHUB_STEP_SUMMARY, which GitHub Actions sets.")
    with Path(path).open("a", encoding="utf-8", errors="replace") as file:
        file.write(tables.gate_to_markdown(report) + "\n\n")
