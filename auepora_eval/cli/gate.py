"""Check a run against rules and set the exit code.

The exit code is 0 if the run passes, 1 if it fails, 3 if the result is inconclusive. If no rule uses the
--baseline, every metric is checked: none of them may be significantly worse than in the baseline. Example:

  auepora demo
  auepora gate demo-hybrid --min recall@5=0.7 --max latency_stats.p95=2000 --max-failed 0.01
  auepora gate demo-hybrid --baseline demo-bm25 --no-regression recall@5,mrr --margin token_f1=0.05

Rules can also be in a file (--rules gate.yaml) with the same names as keys. In GitHub Actions the results are
also shown as annotations and in the job summary.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..cli import echo
from .common import add_flag, add_json, add_out, check_distinct_runs, check_no_repeats, out_flag
from .flags import add_alpha, add_resampling, at_least, covered, limit

if TYPE_CHECKING:
    from ..decide.gate import GateReport
    from ..decide.rules import GateRules

_NAMED = ("min", "max", "margin", "max_loss")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("candidate", metavar="RUN", help="id or path of the stored run to check")
    add_flag(parser, "--baseline", "id or path of the run to compare with", "RUN")
    add_flag(parser, "--rules", "file of rules (YAML or JSON); a flag overrides the same rule in it", "FILE")
    _add_rules(parser)
    add_alpha(parser, None)  # a file of rules may have one
    add_flag(
        parser,
        "--if-inconclusive",
        "outcome of inconclusive rules: stop (exit code 3), pass or fail (default: stop)",
        choices=("stop", "pass", "fail"),
    )
    add_flag(
        parser,
        "--allow-mismatch",
        "check the run even if its data or settings differ from the baseline's; the result notes it",
    )
    parser.add_argument(
        "--allow-uncalibrated",
        action="store_true",
        help="allow --min and --max on values of a judge that was never compared with human labels",
    )
    add_resampling(parser)
    add_flag(parser, "--junit", "also write JUnit XML; replaces a file that gate wrote earlier", "FILE")
    add_flag(parser, "--force", "let --junit overwrite a file that gate did not write")
    add_flag(parser, "--markdown", "print Markdown, for a pull request")
    add_out(parser)
    add_json(parser)


def _add_rules(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("rules (flags with NAME can be repeated)")
    about = {
        "--min": "minimum value, such as recall@5=0.8",
        "--max": "maximum value, such as latency_stats.p95=2000 or memory_mb.peak=4096",
        "--max-loss": "largest allowed relative loss against the baseline, such as memory_mb.peak=0.2",
    }
    for flag, text in about.items():
        group.add_argument(flag, action="append", type=limit(), metavar="NAME=X", help=text, default=[])
    add_flag(
        group,
        "--margin",
        "loss against the baseline to rule out: recall@5=0.02, or 0.02 for all metrics but latency",
        "[NAME=]X",
        type=limit(for_all=True),
        default=[],
        action="append",
    )
    add_flag(
        group,
        "--no-regression",
        "metrics that must not be significantly worse than in the baseline: recall@5,mrr or all",
        "NAMES",
        default=[],
        action="append",
    )
    add_flag(
        group,
        "--on",
        "what --min, --max and --max-loss check: the value, or the worse end of its interval",
        choices=("value", "bound"),
        default="value",
    )
    add_flag(
        group,
        "--max-count-drop",
        "share of the baseline's samples, answers or scores that may be missing (default: 0.1)",
        "X",
        type=covered,
    )
    add_flag(
        group, "--max-failed", "largest allowed share of failed samples, such as 0.01", "X", type=covered
    )
    add_flag(group, "--min-samples", "minimum number of samples per metric", "N", type=at_least(1))


def run(args: Namespace) -> int:
    from ..decide.figures import GatedRun
    from ..decide.gate import gate_run
    from ..decide.gate_report import gate_to_junit, is_junit_of_a_gate
    from ..io.files import write_bytes
    from ..runs.store.storage import EvaluationResultsStorage

    rules = _rules(args)
    storage, flags = EvaluationResultsStorage(args.out), out_flag(args.out)
    named = [name for name in (args.baseline, args.candidate) if name is not None]
    check_no_repeats(named)
    if len(named) > 1:
        check_distinct_runs(storage, named)
    report = gate_run(
        GatedRun.stored(storage, args.candidate, flags, with_scores=args.baseline is not None),
        rules,
        baseline=None if args.baseline is None else GatedRun.stored(storage, args.baseline, flags),
        seed=args.seed,
        resamples=args.resamples,
        allow_mismatch=args.allow_mismatch,
    )
    if args.junit:
        path = Path(args.junit)
        # A CI job writes the same file at each run. Only a file of another kind needs --force.
        write_bytes(path, gate_to_junit(report).encode(), force=args.force or is_junit_of_a_gate(path))
    _tell_github(report)  # before the table: what prints may fail
    _say(report, args)
    return report.exit_code


def _rules(args: Namespace) -> GateRules:
    """Those of the file, with those of the flags on top."""

    from ..decide.rules import GateRules, read_rules, rules_of

    record: dict[str, Any] = {}
    for kind in _NAMED:
        if getattr(args, kind):
            record[kind] = {name or "all": number for name, number in getattr(args, kind)}
    names = [name.strip() for each in args.no_regression for name in each.split(",") if name.strip()]
    record |= {"no_regression": names} if names else {}
    for kind in ("max_count_drop", "max_failed", "min_samples"):
        if getattr(args, kind) is not None:
            record[kind] = getattr(args, kind)
    record |= {"on": args.on, "allow_uncalibrated": args.allow_uncalibrated}
    flags = rules_of(record, "the flags")
    file = read_rules(args.rules) if args.rules else GateRules()
    return replace(
        flags.over(file),
        alpha=file.alpha if args.alpha is None else args.alpha,
        if_inconclusive=args.if_inconclusive or file.if_inconclusive,
    )


def _say(report: GateReport, args: Namespace) -> None:
    from ..decide import gate_report as tables

    if args.json:
        echo.say_json(tables.gate_to_dict(report))
        return
    if args.markdown:
        echo.say(tables.gate_to_markdown(report))
        return
    echo.say(tables.title(report))
    echo.show(tables.gate_table(report))
    words = [*map(tables.problem_words, report.problems), *tables.pass_words(report)]
    if words:
        echo.say()
    for text in words:
        echo.say_words(text)
    for text in (*report.mismatches, *report.notes):
        echo.note(f"note: {text}.")


def _tell_github(report: GateReport) -> None:
    """Annotations to the log, and the table to the summary of the job, where there is one."""
    from ..decide.gate_report import annotation_lines, job_summary

    if os.environ.get("GITHUB_ACTIONS"):
        for line in annotation_lines(report):
            echo.annotate(line)
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if path:
        try:
            with Path(path).open("a", encoding="utf-8", errors="replace") as file:
                file.write(job_summary(report))
        except (OSError, ValueError) as error:  # the verdict stands, seen or not
            echo.note(f"note: the job's summary cannot be written: {error}.")
