"""Record latency, memory and throughput; report regressions.

Measurements are added to the baselines, unless they are worse (exit code 1). A significantly better one
starts a new baseline. On the bundled data:

  auepora run --dataset demo --system auepora_eval.demo.systems:bm25 --metrics recall@5 --id monday
  auepora bench-record monday

A source is a stored run, or a file of benchmark data (.benchmark.json). A measurement is worse if
one of these rules applies:

  sigma     the duration is more than 2 standard deviations above the mean of the last 7 days
  relative  the duration or throughput is more than 10% worse (25%: high, 50%: critical)
  factor    more than 1.5 times the duration or 1.2 times the memory of the baseline
  failures  more than 5% of the calls failed (10%: high, 50%: critical)

A change that may be due to chance is shown, but does not fail the command.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..errors import PlanError
from . import echo
from .common import add_flag, add_json, add_out, say_stored
from .flags import add_alpha

if TYPE_CHECKING:
    from ..history.bench import Baseline, Measurement
    from ..history.bench_rules import Change

_SEVERITIES = ("medium", "high", "critical")
_NAMES_SHOWN = 5


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("sources", metavar="SOURCE", nargs="+", help="a run, or a benchmark file")
    add_flag(
        parser,
        "--baselines",
        "file of baselines (default: data/benchmarks/performance/baselines.benchmark.json)",
        "FILE",
    )
    add_flag(parser, "--fail-on", "lowest severity that fails", choices=_SEVERITIES, default="medium")
    add_alpha(parser)
    add_flag(parser, "--ignore-chance", "let the limits decide without a significance test")
    add_flag(parser, "--check", "compare only, without changing the baselines")
    add_flag(parser, "--accept", "record the run as a new baseline even if it is worse")
    add_flag(
        parser, "--report", "write the measurements to benchmark_*.results.json or *.benchmark.json", "FILE"
    )
    add_flag(parser, "--force", "overwrite the report if it exists")
    add_out(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    from ..history import bench as kept
    from ..history.bench import measurements
    from ..history.bench_report import check_report_name
    from ..runs.store.storage import EvaluationResultsStorage

    if args.check and args.accept:
        raise PlanError("--check leaves the baselines as they are, --accept changes them: choose one.")
    if args.report:
        check_report_name(args.report)
    file = args.baselines or kept.DEFAULT_FILE
    storage = EvaluationResultsStorage(args.out)
    measured = [one for source in args.sources for one in measurements(source, storage)]
    if args.check:
        return _judge(measured, file, args)
    kept.read_baselines(file)  # a file that is none gets no lock beside it
    # Read, judge and write under one lock: two jobs that record at once would lose one recording.
    with kept.locked(file):
        return _judge(measured, file, args)


def _judge(measured: Sequence[Measurement], file: str, args: Namespace) -> int:
    from ..history import bench as kept
    from ..history.bench_report import recording, save_recording
    from ..history.bench_rules import baseline_restarts, improvements, is_at_least, regressions

    before = kept.read_baselines(file)
    alpha = None if args.ignore_chance else args.alpha
    worse, better = regressions(measured, before, alpha=alpha), improvements(measured, before, alpha=alpha)
    failing = {one.operation for one in worse if is_at_least(one.severity, args.fail_on)}
    document = recording(measured, before, worse, better)
    if args.report:
        say_stored(save_recording(document, args.report, force=args.force))
    restarts = baseline_restarts(measured, before, alpha=alpha, accept=args.accept)
    planned = kept.with_recordings(before, measured, restarts=restarts)
    started = [
        name for name, one in planned.items() if name in before and one.history != before[name].history
    ]
    refused = bool(args.check or (failing and not args.accept))
    after = before if refused else planned
    recorded = [name for name, one in after.items() if name not in before or one != before[name]]
    if recorded:
        kept.write_baselines(after, file)
    if args.json:
        more = {"recorded": bool(recorded), "new_baselines": [] if refused else started}
        echo.say_json({**document, "baselines_file": str(file), **more})
    else:
        _say(measured, before, [*worse, *better])
    if args.check or not refused:
        _say_started([planned[name] for name in started], would=args.check)
    _say_recorded(measured, before, recorded, file, refused=refused)
    return int(bool(failing.difference(recorded) if args.accept else failing))


def _say_started(baselines: Sequence[Baseline], *, would: bool) -> None:
    for one in baselines:
        verb = "would begin" if would else "begins"
        name, source = echo.one_line(one.operation, 60), echo.one_line(one.recordings[0].source, 80)
        echo.note(f"note: {name}: a new baseline {verb} with {source or 'this one'}.")


def _say_recorded(
    measured: Sequence[Measurement],
    before: Mapping[str, Baseline],
    recorded: Sequence[str],
    file: str,
    *,
    refused: bool,
) -> None:
    operations = dict.fromkeys(one.operation for one in measured)
    lost = [name for name in before if name not in operations]
    if lost:
        more = f" and {len(lost) - _NAMES_SHOWN} more" if len(lost) > _NAMES_SHOWN else ""
        names = ", ".join(echo.one_line(name, 60) for name in lost[:_NAMES_SHOWN])
        echo.note(f"note: in the baselines, but not measured this time: {names}{more}.")
    for name in operations:
        if not any(one.count for one in measured if one.operation == name):
            echo.note(f"note: {echo.one_line(name, 60)}: all calls failed; there is nothing to record of it.")
    if recorded:
        part = (
            "" if len(recorded) == len(operations) else f" ({len(recorded)} of {len(operations)} operations)"
        )
        echo.note(f"recorded in {file}{part}")
    elif refused or not any(one.count for one in measured):
        echo.note(f"not recorded: {file} is as it was")
    else:
        echo.note(f"nothing to record: {file} has these measurements already")


def _say(
    measured: Sequence[Measurement], baselines: Mapping[str, Baseline], changes: Sequence[Change]
) -> None:
    from ..history.bench_report import measurement_table

    echo.show(measurement_table(measured, baselines, changes))
    for change in changes:
        chance = "" if change.p_value is None else f", p = {change.p_value:.2g}"
        kind = change.severity or change.verdict
        echo.say_words(f"{kind}: {change.message} Rules: {', '.join(change.rules)}{chance}.")
