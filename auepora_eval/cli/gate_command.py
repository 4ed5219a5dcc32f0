"""may this run go out? pass or fail it by rules, alone or against a baseline

Exit code 0 if it passes, 1 if it fails, 3 if that cannot be judged. With --baseline and no rule that uses
it, no metric may be surely worse. Example:

  auepora demo
  auepora gate demo-hybrid --min recall@5=0.7 --max latency_stats.p95=2000 --max-failed 0.01
  auepora gate demo-hybrid --baseline demo-bm25 --no-regression recall@5,mrr --margin token_f1=0.05

Rules can be a file (--rules gate.yaml) with the same names as keys. In GitHub Actions the verdicts are also
annotations and a part of the job's summary.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import echo
from .common import add_json, add_out, out_flag
from .named_runs import refuse_repeats, refuse_the_same_run_twice
from .numbers import at_least, covered, share

if TYPE_CHECKING:
    from ..runs.gate import GateReport
    from ..runs.gate_rules import GateRules

_NAMED = ("min", "max", "margin", "max_loss")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("candidate", metavar="RUN", help="id or path of the stored run to judge")
    parser.add_argument("--baseline", metavar="RUN", help="id or path of the run to hold it against")
    parser.add_argument("--rules", metavar="FILE", help="rules as YAML or JSON; flags add to them")
    _add_rules(parser)
    parser.add_argument("--alpha", type=share, help="chance of a false alarm, over all rules (0.05)")
    parser.add_argument(
        "--if-unclear",
        choices=("stop", "pass", "fail"),
        help="what to make of a rule that the data cannot decide: exit code 3 (stop), 0 or 1",
    )
    parser.add_argument(
        "--allow-mismatch", action="store_true", help="judge other data or settings too, and say so"
    )
    parser.add_argument("--seed", type=at_least(0), default=0, metavar="N", help="seed of all draws (0)")
    parser.add_argument("--resamples", type=at_least(100), default=10_000, metavar="N", help="draws (10,000)")
    parser.add_argument(
        "--junit",
        metavar="FILE",
        help="write the verdicts as JUnit XML too; a file that a gate wrote is replaced",
    )
    parser.add_argument("--force", action="store_true", help="replace any other file at --junit too")
    parser.add_argument("--markdown", action="store_true", help="print Markdown, for a pull request")
    add_out(parser)
    add_json(parser)


def _add_rules(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("rules, each as often as you like")
    about = {
        "--min": "the least that it must reach, such as recall@5=0.8",
        "--max": "the most that it may take, such as latency_stats.p95=2000 or memory_mb.peak=4096",
        "--max-loss": "share of the baseline's value that may be lost, such as memory_mb.peak=0.2",
    }
    for flag, text in about.items():
        group.add_argument(flag, action="append", type=limit(), metavar="NAME=X", help=text, default=[])
    group.add_argument(
        "--margin",
        action="append",
        default=[],
        type=limit(for_all=True),
        metavar="[NAME=]X",
        help="a loss of this much must be ruled out: recall@5=0.02, or 0.02 for all but times",
    )
    group.add_argument(
        "--no-regression",
        action="append",
        default=[],
        metavar="NAMES",
        help="metrics that may not be surely worse than the baseline's: recall@5,mrr or all",
    )
    group.add_argument(
        "--on",
        choices=("value", "bound"),
        default="value",
        help="what --min, --max and --max-loss look at: the value, or the worse end of its 95%% interval",
    )
    group.add_argument(
        "--max-count-drop", type=covered, metavar="X", help="share of scores that may be gone (0.1)"
    )
    group.add_argument(
        "--max-failed", type=covered, metavar="X", help="share of samples that may fail, such as 0.01"
    )
    group.add_argument(
        "--min-samples", type=at_least(1), metavar="N", help="samples that each metric must stand on"
    )


def limit(*, for_all: bool = False) -> Callable[[str], tuple[str, float]]:
    """An argparse type: "recall@5=0.8"; for a rule that can be for all, also "0.8"."""

    def parse(text: str) -> tuple[str, float]:
        name, equals, number = text.rpartition("=")
        if not (name.strip() if equals else for_all):
            raise ArgumentTypeError(f"{text!r} is not NAME=NUMBER")
        try:
            value = float(number)
        except ValueError:
            raise ArgumentTypeError(f"{number!r} is not a number") from None
        if not abs(value) < float("inf"):
            raise ArgumentTypeError(f"{number!r} is not a number")
        return name.strip() or "all", value

    return parse


def run(args: Namespace) -> int:
    from ..io.atomic import write_bytes
    from ..reporting.gate_junit import gate_to_junit, is_junit_of_a_gate
    from ..runs.gate import gate_run
    from ..runs.gate_figures import GatedRun
    from ..runs.storage import EvaluationResultsStorage

    rules = _rules(args)
    storage, flags = EvaluationResultsStorage(args.out), out_flag(args.out)
    named = [name for name in (args.baseline, args.candidate) if name is not None]
    refuse_repeats(storage, named)
    if len(named) > 1:
        refuse_the_same_run_twice(storage, named)
    report = gate_run(
        GatedRun.stored(storage, args.candidate, flags),
        rules,
        baseline=None if args.baseline is None else GatedRun.stored(storage, args.baseline, flags),
        seed=args.seed,
        resamples=args.resamples,
        allow_mismatch=args.allow_mismatch,
    )
    if args.junit:
        path = Path(args.junit)
        write_bytes(path, gate_to_junit(report).encode(), force=args.force or is_junit_of_a_gate(path))
    _tell_github(report)  # before the table: what prints may fail
    _say(report, args)
    return report.exit_code


def _rules(args: Namespace) -> GateRules:
    """Those of the file, with those of the flags on top."""
    from dataclasses import replace

    from ..runs.gate_rules import GateRules, read_rules, rules_of

    record: dict[str, Any] = {kind: dict(getattr(args, kind)) for kind in _NAMED if getattr(args, kind)}
    names = [name.strip() for each in args.no_regression for name in each.split(",") if name.strip()]
    record |= {"no_regression": names} if names else {}
    for kind in ("max_count_drop", "max_failed", "min_samples"):
        if getattr(args, kind) is not None:
            record[kind] = getattr(args, kind)
    flags = rules_of({**record, "on": args.on}, "the flags")
    file = read_rules(args.rules) if args.rules else GateRules()
    return replace(
        flags.over(file),
        alpha=file.alpha if args.alpha is None else args.alpha,
        if_unclear=args.if_unclear or file.if_unclear,
    )


def _say(report: GateReport, args: Namespace) -> None:
    from ..reporting import gate_tables as tables
    from ..reporting.gate_github import defused

    calm = defused if os.environ.get("GITHUB_ACTIONS") else str
    if args.json:
        echo.say_json(tables.gate_to_dict(report))
        return
    if args.markdown:
        echo.say(calm(tables.gate_to_markdown(report)))
        return
    echo.say(calm(tables.title(report)))
    rows = [[calm(echo.one_line(cell)) for cell in row] for row in tables.gate_rows(report)]
    if echo.fits(tables.HEADINGS, rows):
        echo.say_table(tables.HEADINGS, rows, numeric=(1, 2))
    else:
        _say_in_two_lines(rows)
    words = [*map(tables.problem_words, report.problems), *tables.pass_words(report)]
    if words:
        echo.say()
    for text in words:
        echo.say_words(calm(text))
    for text in (*report.mismatches, *report.notes):
        echo.note(calm(f"note: {text}."))


def _say_in_two_lines(rows: Sequence[Sequence[str]]) -> None:
    """The table on a screen that is too narrow for its columns."""
    for rule, found, interval, asked, verdict in rows:
        echo.say_words(f"{verdict}: {rule}")
        limits = "" if interval == "-" else f" {interval}"
        echo.say_words(f"  found {found}{limits}, asked {asked}")


def _tell_github(report: GateReport) -> None:
    """Annotations to the log, and the table to the summary of the job, where there is one."""
    from ..reporting.gate_github import annotation_lines, job_summary

    if os.environ.get("GITHUB_ACTIONS"):
        for line in annotation_lines(report):
            echo.note(line)
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if path:
        try:
            with Path(path).open("a", encoding="utf-8", errors="replace") as file:
                file.write(job_summary(report))
        except (OSError, ValueError) as error:  # the verdict stands, seen or not
            echo.note(f"note: the job's summary cannot be written: {error}.")
