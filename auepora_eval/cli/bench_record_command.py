"""keep baselines of latency, memory and throughput, and say what became slower

What is measured is taken into the baselines, unless it is worse (exit code 1); what is surely better begins
a new baseline. On the bundled data:

  auepora run --dataset demo --system auepora_eval.demo.systems:bm25 --metrics recall@5 --id monday
  auepora bench-record monday

A source is a stored run, or a file of benchmark data (.benchmark.json). Rules: over 2 standard deviations of
the last 7 days; worse by over 10, 25 or 50%; over 1.5 times the duration or 1.2 times the memory; over 5, 10
or 50% of the calls failed. A change that may be chance is shown, and does not fail.
"""

from __future__ import annotations

import math
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from . import echo
from .common import add_json, add_out, say_stored
from .numbers import at_least, share

if TYPE_CHECKING:
    from ..runs.benchmark_baselines import Baseline
    from ..runs.benchmark_measurements import Measurement
    from ..runs.benchmark_rules import Improvement, Regression

_SEVERITIES = ("medium", "high", "critical")
_NAMES_SHOWN = 5


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("sources", metavar="SOURCE", nargs="+", help="a run, or a benchmark file")
    parser.add_argument(
        "--baselines",
        metavar="FILE",
        help="where baselines are kept (data/benchmarks/performance/baselines.benchmark.json)",
    )
    parser.add_argument(
        "--fail-on", choices=_SEVERITIES, default="medium", help="what is grave enough to fail (medium)"
    )
    parser.add_argument(
        "--alpha", type=share, default=0.05, metavar="P", help="what chance does more often is low (0.05)"
    )
    parser.add_argument("--ignore-chance", action="store_true", help="let the rules alone decide")
    parser.add_argument(
        "--min-samples", type=at_least(1), metavar="N", help="samples that a baseline needs first (5)"
    )
    parser.add_argument("--check", action="store_true", help="compare only; the baselines stay as they are")
    parser.add_argument("--accept", action="store_true", help="record it though it is worse: a new baseline")
    parser.add_argument(
        "--report", metavar="FILE", help="write what was found: benchmark_*.results.json or *.benchmark.json"
    )
    parser.add_argument("--force", action="store_true", help="replace a report of the same name")
    add_out(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    from ..errors import PlanError
    from ..runs import benchmark_baselines as kept
    from ..runs.benchmark_measurements import measurements
    from ..runs.benchmark_report import refuse_report_name
    from ..runs.storage import EvaluationResultsStorage

    if args.check and args.accept:
        raise PlanError("--check leaves the baselines as they are, --accept changes them: choose one.")
    if args.report:
        refuse_report_name(args.report)
    file = args.baselines or kept.DEFAULT_FILE
    storage = EvaluationResultsStorage(args.out)
    found = [one for source in args.sources for one in measurements(source, storage)]
    if args.check:
        return _judge(found, file, args)
    kept.read_baselines(file)  # a file that is none gets no lock beside it
    with kept.held(file):
        return _judge(found, file, args)


def _judge(found: Sequence[Measurement], file: str, args: Namespace) -> int:
    from ..runs import benchmark_baselines as kept
    from ..runs.benchmark_report import recording, save_recording
    from ..runs.benchmark_rules import improvements, is_at_least, new_beginnings, regressions

    stored = kept.read_baselines(file)
    before = kept.with_min_samples(stored, args.min_samples)
    alpha = None if args.ignore_chance else args.alpha
    worse, better = regressions(found, before, alpha=alpha), improvements(found, before, alpha=alpha)
    failing = {one.operation for one in worse if is_at_least(one.severity, args.fail_on)}
    document = recording(found, before, worse, better)
    if args.report:
        say_stored(save_recording(document, args.report, force=args.force))
    anew = new_beginnings(found, before, alpha=alpha, accept=args.accept)
    planned = kept.with_recordings(before, found, anew=anew)
    planned = kept.with_min_samples(planned, args.min_samples)
    begun = [name for name, one in planned.items() if name in stored and one.history != stored[name].history]
    refused = bool(args.check or (failing and not args.accept))
    after = stored if refused else planned
    recorded = [name for name, one in after.items() if name not in stored or one != stored[name]]
    if after != stored:
        kept.write_baselines(after, file)
    if args.json:
        more = {"recorded": bool(recorded), "new_baselines": [] if refused else begun}
        echo.say_json({**document, "baselines_file": str(file), **more})
    else:
        _say(found, before, worse, better)
    if args.check or not refused:
        _say_begun([planned[name] for name in begun], would=args.check)
    if failing and refused:
        _say_beginnings([before[name] for name in failing if name in before])
    _say_recorded(found, before, recorded, file, refused=refused)
    return int(bool(failing.difference(recorded) if args.accept else failing))


def _say_begun(baselines: Sequence[Baseline], *, would: bool) -> None:
    for one in baselines:
        verb = "would begin" if would else "begins"
        name, source = echo.one_line(one.operation, 60), echo.one_line(one.recordings[0].source, 80)
        echo.note(f"note: {name}: a new baseline {verb} with {source or 'this one'}.")


def _say_beginnings(baselines: Sequence[Baseline]) -> None:
    """Where the baseline comes from that something fails against, if it has not been so for ever."""
    for one in baselines:
        if one.history and one.recordings:
            first = one.recordings[0]
            source, stamp = echo.one_line(first.source, 80), echo.one_line(first.timestamp, 40)
            what = f"its baseline began with {source or 'a recording'} ({stamp or 'at no stated time'})"
            name = echo.one_line(one.operation, 60)
            echo.note(f"note: {name}: {what}. If that was the exception, --accept takes this for the rule.")


def _say_recorded(
    found: Sequence[Measurement],
    before: Mapping[str, Baseline],
    recorded: Sequence[str],
    file: str,
    *,
    refused: bool,
) -> None:
    measured = dict.fromkeys(one.operation for one in found)
    lost = [name for name in before if name not in measured]
    if lost:
        more = f" and {len(lost) - _NAMES_SHOWN} more" if len(lost) > _NAMES_SHOWN else ""
        names = ", ".join(echo.one_line(name, 60) for name in lost[:_NAMES_SHOWN])
        echo.note(f"note: in the baselines, but not measured this time: {names}{more}.")
    for name in measured:
        if not any(one.count for one in found if one.operation == name):
            echo.note(f"note: {echo.one_line(name, 60)}: all calls failed; there is nothing to record of it.")
    for name, count in Counter(one.operation for one in found if one.count).items():
        if count > 1 and (name not in before or not before[name].recordings) and name in recorded:
            what = f"{count} measurements make its first baseline together; none is held against another"
            echo.note(f"note: {echo.one_line(name, 60)}: {what}. To have that, record one at a time.")
    if recorded:
        part = "" if len(recorded) == len(measured) else f" ({len(recorded)} of {len(measured)} operations)"
        echo.note(f"recorded in {file}{part}")
    elif refused or not any(one.count for one in found):
        echo.note(f"not recorded: {file} is as it was")
    else:
        echo.note(f"nothing to record: {file} has these measurements already")


def _say(
    found: Sequence[Measurement],
    baselines: Mapping[str, Baseline],
    worse: Sequence[Regression],
    better: Sequence[Improvement],
) -> None:
    from ..reporting.number_texts import value_text
    from ..runs.benchmark_rules import lacking_samples

    rows = []
    for one in found:
        baseline = baselines.get(one.operation)
        expected = baseline.expected if baseline is not None and baseline.recordings else None
        lacking = 0 if baseline is None else lacking_samples(baseline)
        state = "new" if expected is None else f"baseline lacks {lacking}" if lacking else "ok"
        state = "better" if any(each.operation == one.operation for each in better) else state
        state = next((each.severity for each in worse if each.operation == one.operation), state)
        rows.append(
            [
                one.operation,
                f"{one.count:,}",
                f"{one.failed:,}",
                value_text(one.mean_duration, "s"),
                "-" if expected is None else value_text(expected.mean_duration, "s"),
                "-" if expected is None else _change(one.mean_duration, expected.mean_duration),
                "-" if one.mean_memory is None else f"{one.mean_memory:,.0f} MB",
                "-" if one.throughput is None else f"{one.throughput:.3g}/s",
                state,
            ]
        )
    headings = (
        "Operation",
        "Answered",
        "Failed",
        "Mean",
        "Baseline",
        "Change",
        "Memory",
        "Throughput",
        "State",
    )
    echo.say_table(headings, rows, numeric=range(1, 8))
    told = [(each.severity, each) for each in worse] + [("better", each) for each in better]
    for kind, each in told:
        chance = "" if each.p_value is None else f", p = {each.p_value:.2g}"
        echo.say_words(f"{kind}: {each.message} Rules: {', '.join(each.rules)}{chance}.")


def _change(now: float, before: float) -> str:
    return f"{now / before - 1:+.0%}" if before and math.isfinite(now) else "-"
