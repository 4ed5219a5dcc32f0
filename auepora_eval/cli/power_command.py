"""how many samples does it take to see a change, and which changes could a run have missed?

Before a run, from how much scores vary; after it, from its own scores, or from two runs on the same samples.
Runs joined by a comma are repeats of one system: A1,A2 B1,B2. Example:

  auepora power --effect 0.03 --rate 0.8
  auepora power --n 100 --sd 0.3
  auepora demo
  auepora power demo-bm25 demo-hybrid --metric recall@5
  auepora power --effect 0.03 --baseline demo-bm25 --metric recall@5
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from . import echo
from .common import add_json, add_out, say_stored
from .named_runs import load_named_runs
from .numbers import at_least, correlation, positive, share

if TYPE_CHECKING:
    from ..runs.power import PowerReport


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "runs", metavar="RUN", nargs="*", help="a stored run, or two: which changes could they have shown?"
    )
    parser.add_argument("--effect", type=positive, metavar="SIZE", help="the change that should be noticed")
    parser.add_argument("--n", type=at_least(2), metavar="N", help="samples: which change would they show?")
    parser.add_argument(
        "--metric", action="append", metavar="NAMES", help="only these (default: all that the runs have)"
    )
    group = parser.add_argument_group("how much scores vary, if no run tells")
    group.add_argument("--baseline", metavar="RUN", help="as this run's do (the same as naming it)")
    group.add_argument(
        "--sd", type=positive, metavar="X", help="standard deviation of two systems' difference on one sample"
    )
    group.add_argument("--rate", type=share, metavar="P", help="share of right answers, of 0/1 scores")
    group.add_argument(
        "--correlation",
        type=correlation,
        default=0.5,
        metavar="R",
        help="of two systems' scores on the same samples (0.5), with --rate or a single run",
    )
    group.add_argument(
        "--per-question", type=at_least(1), metavar="K", help="answers that each system gives to a question"
    )
    group.add_argument(
        "--within-sd",
        type=positive,
        metavar="X",
        help="standard deviation of a system's scores on one question",
    )
    group.add_argument("--cluster-size", type=at_least(1), metavar="K", help="samples that belong together")
    group.add_argument(
        "--cluster-correlation", type=correlation, metavar="R", help="how alike those are (0 to 1)"
    )
    parser.add_argument("--alpha", type=share, default=0.05, help="chance of a false alarm, over all (0.05)")
    parser.add_argument("--power", type=share, default=0.8, help="chance that the change is noticed (0.8)")
    parser.add_argument("--plot", metavar="FILE", help="draw it over the number of samples (.png, .svg)")
    parser.add_argument("--force", action="store_true", help="replace that file")
    add_out(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    from ..reporting import power_words as words

    report = _report(args)
    if args.plot:
        _plot(report, args)
    if args.json:
        echo.say_json(words.power_to_dict(report))
        return 0
    for sentence in words.power_in_words(report):
        echo.say_words(sentence)
    headings = words.power_headings(report)
    echo.say()
    echo.say_table(headings, words.power_rows(report), numeric=range(1, len(headings)))
    return 0


def _report(args: Namespace) -> PowerReport:
    from ..errors import PlanError
    from ..runs.power import power_from_numbers, power_from_runs
    from ..runs.storage import EvaluationResultsStorage

    named = [*([args.baseline] if args.baseline else []), *args.runs]
    if len(named) > 2:
        raise PlanError("power looks at one run, or at two. Repeats of one system are joined by a comma.")
    asked = {"effect": args.effect, "n": args.n, "alpha": args.alpha, "power": args.power}
    asked |= {"correlation": args.correlation, "per_question": args.per_question}
    if named:
        _refuse_numbers(args)
        storage = EvaluationResultsStorage(args.out)
        groups = [load_named_runs(storage, name) for name in named]
        return power_from_runs(*groups, metrics=_metrics(args), **asked)
    if args.effect is None and args.n is None:
        raise PlanError("what is asked? Give the --effect to be noticed or --n samples, or name a run.")
    name = ", ".join(args.metric) if args.metric else "the score"
    return power_from_numbers(
        sd=args.sd,
        rate=args.rate,
        within_sd=args.within_sd,
        name=name,
        cluster_size=args.cluster_size or 1,
        cluster_correlation=args.cluster_correlation or 0.0,
        **asked,
    )


def _refuse_numbers(args: Namespace) -> None:
    from ..errors import PlanError

    for name in ("sd", "rate", "within_sd", "cluster_size", "cluster_correlation"):
        if getattr(args, name) is not None:
            flag = name.replace("_", "-")
            raise PlanError(f"--{flag} is for when no run tells: leave it out, or name no run.")


def _metrics(args: Namespace) -> list[str] | None:
    from ..errors import UnknownNameError
    from ..metrics.parse import parse_metric

    if not args.metric:
        return None
    names = []
    for text in (part.strip() for given in args.metric for part in given.split(",")):
        try:
            names.append(parse_metric(text).name)
        except UnknownNameError:
            names.append(text)  # a metric of the user's own is known to its run only
    return names


def _plot(report: PowerReport, args: Namespace) -> None:
    from pathlib import Path

    from ..errors import PlanError
    from ..reporting.plots import SUFFIXES, save_figure
    from ..reporting.power_plots import plot_power

    if Path(args.plot).suffix.lower() not in SUFFIXES:
        raise PlanError(f"--plot {args.plot!r:.80}: name a file that ends in {' or '.join(SUFFIXES)}.")
    try:
        say_stored(save_figure(plot_power(report), args.plot, force=args.force))
    except ValueError as error:
        raise PlanError(f"{error}.") from error
