"""keep baselines of latency, memory and throughput, and say what became slower

What is measured is taken into the baselines, unless it is worse (exit code 1). On the bundled data:

  auepora run --dataset demo --system auepora_eval.demo.systems:bm25 --metrics recall@5 --id monday
  auepora bench-record monday

A source is a stored run, or a file of benchmark data (.benchmark.json). Rules: over 2 standard deviations of
the last 7 days; worse by over 10, 25 or 50%; over 1.5 times the duration or 1.2 times the memory. A change
that may be chance is shown, and does not fail.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from . import echo
from .common import add_json, add_out, at_least, say_stored, share

if TYPE_CHECKING:
    from ..runs.benchmark_baselines import Baseline
    from ..runs.benchmark_measurements import Measurement
    from ..runs.benchmark_rules import Regression

_SEVERITIES = ("medium", "high", "critical")


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
    parser.add_argument("--accept", action="store_true", help="record it even if it is worse: the new normal")
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
    from ..runs.benchmark_report import recording, save_recording
    from ..runs.benchmark_rules import is_at_least, regressions
    from ..runs.storage import EvaluationResultsStorage

    if args.check and args.accept:
        raise PlanError("--check leaves the baselines as they are, --accept changes them: choose one.")
    file = args.baselines or kept.DEFAULT_FILE
    storage = EvaluationResultsStorage(args.out)
    found = [one for source in args.sources for one in measurements(source, storage)]
    before = kept.with_min_samples(kept.read_baselines(file), args.min_samples)
    worse = regressions(found, before, alpha=None if args.ignore_chance else args.alpha)
    failed = any(is_at_least(one.severity, args.fail_on) for one in worse)
    recorded = not args.check and (args.accept or not failed)
    document = recording(found, before, worse)
    if args.report:
        say_stored(save_recording(document, args.report, force=args.force))
    if recorded:
        after = kept.with_recordings(before, found)
        kept.write_baselines(kept.with_min_samples(after, args.min_samples), file)
    if args.json:
        echo.say_json({**document, "baselines_file": str(file), "recorded": recorded})
    else:
        _say(found, before, worse)
    echo.note(f"recorded in {file}" if recorded else f"not recorded: {file} is as it was")
    return int(failed)


def _say(
    found: Sequence[Measurement], baselines: Mapping[str, Baseline], worse: Sequence[Regression]
) -> None:
    from ..reporting.tables import value_text
    from ..runs.benchmark_rules import lacking_samples

    rows = []
    for one in found:
        baseline = baselines.get(one.operation)
        expected = baseline.expected if baseline is not None and baseline.recordings else None
        lacking = 0 if baseline is None else lacking_samples(baseline)
        grave = next((each.severity for each in worse if each.operation == one.operation), "ok")
        if lacking:
            grave = f"baseline lacks {lacking}"
        rows.append(
            [
                one.operation,
                f"{one.count:,}",
                value_text(one.mean_duration, "s"),
                "-" if expected is None else value_text(expected.mean_duration, "s"),
                "-" if expected is None else _change(one.mean_duration, expected.mean_duration),
                "-" if one.mean_memory is None else f"{one.mean_memory:,.0f} MB",
                "-" if one.throughput is None else f"{one.throughput:.3g}/s",
                "new" if expected is None else grave,
            ]
        )
    headings = ("Operation", "Samples", "Mean", "Baseline", "Change", "Memory", "Throughput", "State")
    echo.say_table(headings, rows, numeric=range(1, 7))
    for each in worse:
        chance = "" if each.p_value is None else f", p = {each.p_value:.2g}"
        echo.say_words(f"{each.severity}: {each.message} Rules: {', '.join(each.rules)}{chance}.")


def _change(now: float, before: float) -> str:
    return f"{now / before - 1:+.0%}" if before else "-"
