"""Estimate how many samples it takes to detect a change.

Before a run, describe the variation with flags. Afterwards, name one run, or two
runs on the same samples. Runs joined by a comma are repeats of one system.

  auepora power --effect 0.03 --rate 0.8
  auepora demo
  auepora power demo-bm25 demo-hybrid --metric recall@5
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from ..comparison.power import power_from_numbers, power_from_runs, power_in_words, power_table, power_to_dict
from ..errors import PlanError, UnknownNameError
from ..metrics.parse import parse_metric
from ..store.storage import EvaluationResultsStorage
from . import echo
from .common import load_named_runs
from .flags import add_alpha, add_flag, add_json, add_out, at_least, correlation, positive, share

if TYPE_CHECKING:
    from ..comparison.power import PowerReport


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN", nargs="*", help="one or two stored runs")
    add_flag(parser, "--effect", "change to detect; gives the number of samples", "SIZE", type=positive)
    add_flag(parser, "--n", "samples; gives the smallest detectable change", "N", type=at_least(2))
    add_flag(parser, "--metric", "metrics to include (default: all)", "NAMES", action="append")
    about = "standard deviation of the difference per sample"
    add_flag(parser, "--sd", about, "X", type=positive)
    add_flag(parser, "--rate", "for 0/1 scores: share of correct answers", "P", type=share)
    about = "of the two systems' scores"
    add_flag(parser, "--correlation", about, "R", type=correlation, default=0.5)
    add_alpha(parser)
    about = "probability of detecting the change"
    add_flag(parser, "--power", about, "POWER", type=share, default=0.8)
    add_out(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    report = _report(args)
    if args.json:
        echo.say_json(power_to_dict(report))
        return 0
    for sentence in power_in_words(report):
        echo.say_words(sentence)
    echo.say()
    echo.show(power_table(report))
    return 0


def _report(args: Namespace) -> PowerReport:
    if len(args.runs) > 2:
        raise PlanError("power looks at one run, or at two. Repeats of one system are joined by a comma.")
    options = {"effect": args.effect, "n": args.n, "alpha": args.alpha, "power": args.power}
    options |= {"correlation": args.correlation}
    if args.runs:
        if args.sd is not None or args.rate is not None:
            raise PlanError("--sd and --rate cannot be combined with a run: the run's own scores are used.")
        storage = EvaluationResultsStorage(args.out)
        groups = [load_named_runs(storage, name) for name in args.runs]
        return power_from_runs(*groups, metrics=_metrics(args), **options)
    if args.effect is None and args.n is None:
        raise PlanError("Nothing to estimate: give --effect (the change to detect), --n (samples), or a run.")
    name = ", ".join(args.metric) if args.metric else "the score"
    return power_from_numbers(sd=args.sd, rate=args.rate, name=name, **options)


def _metrics(args: Namespace) -> list[str] | None:
    if not args.metric:
        return None
    names = []
    for text in (part.strip() for names_text in args.metric for part in names_text.split(",")):
        try:
            names.append(parse_metric(text).name)
        except UnknownNameError:
            names.append(text)  # a metric of the user's own is known to its run only
    return names
