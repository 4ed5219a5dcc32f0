"""is the candidate run better than the baseline, and can the data tell?

Samples are matched by id; a failed answer counts as the worst one. Three runs or more are ranked, all pairs
tested; their slices and losers are those of the best against the first. Runs joined by a comma are repeats of
one system, as many for each: A1,A2 B1,B2. Example:

  auepora demo
  auepora compare demo-bm25 demo-hybrid
  auepora compare demo-bm25 demo-hybrid --margin 0.02 --by scenario
"""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Any

from . import echo
from .common import add_out
from .compare_words import calm, say_comparison, say_lost, say_more, say_ranking, say_slices
from .named_runs import load_named_runs, named_ids, refuse_the_same_run_twice
from .numbers import at_least, share

if TYPE_CHECKING:
    from ..core.types import EvaluationRun
    from ..runs.compare import Comparison
    from ..runs.losers import LostSample
    from ..runs.ranking import Ranking
    from ..runs.slices import SliceComparison
    from ..runs.storage import EvaluationResultsStorage


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("baseline", metavar="BASELINE", help="id or path of a stored run")
    parser.add_argument(
        "candidates",
        metavar="CANDIDATE",
        nargs="+",
        help="id or path of the run, or runs, to compare with it",
    )
    parser.add_argument(
        "--alpha", type=share, default=0.05, help="chance of a false alarm, over all metrics (0.05)"
    )
    parser.add_argument(
        "--margin",
        action="append",
        type=margin,
        metavar="[METRIC=]SIZE",
        help="how much worse would not matter: 0.02 for all but times, or recall@5=0.02",
    )
    parser.add_argument(
        "--by", action="append", default=[], metavar="FIELD", help="compare within each value of a label too"
    )
    parser.add_argument(
        "--losers",
        type=at_least(0),
        default=3,
        metavar="N",
        help="show this many of the biggest losers (3; 1,000 at most)",
    )
    parser.add_argument(
        "--losers-of",
        metavar="METRIC",
        help="by which metric (default: the first of quality that lost any, a sure loss first)",
    )
    parser.add_argument(
        "--allow-mismatch", action="store_true", help="compare other data or settings too, and say so"
    )
    parser.add_argument("--seed", type=at_least(0), default=0, metavar="N", help="seed of all draws (0)")
    parser.add_argument("--resamples", type=at_least(100), default=10_000, metavar="N", help="draws (10,000)")
    add_out(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="print Markdown instead of a table")
    form.add_argument("--latex", action="store_true", help="print a LaTeX table")
    form.add_argument("--json", action="store_true", help="print one JSON document instead of a table")


def margin(text: str) -> tuple[str | None, float]:
    """An argparse type: "0.02", or "recall@5=0.02"."""
    name, equals, size = text.rpartition("=")
    try:
        value = float(size)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is neither a number nor METRIC=NUMBER") from None
    if not 0 < value < float("inf") or (equals and not name):
        raise ArgumentTypeError(f"{text!r} is not a positive margin")
    return name or None, value


def run(args: Namespace) -> int:
    from ..errors import PlanError
    from ..runs.storage import EvaluationResultsStorage

    storage = EvaluationResultsStorage(args.out)
    how: dict[str, Any] = {
        "alpha": args.alpha,
        "seed": args.seed,
        "margin": _margins(args),
        "resamples": args.resamples,
        "allow_mismatch": args.allow_mismatch,
    }
    groups = [load_named_runs(storage, name) for name in (args.baseline, *args.candidates)]
    if len(groups) > 2 and any(len(group) > 1 for group in groups):
        raise PlanError("repeats are for two systems. Name a baseline and one candidate.")
    refuse_the_same_run_twice(storage, (args.baseline, *args.candidates))
    if len(groups) > 2:
        return _rank(storage, [group[0] for group in groups], args, how)
    return _compare(storage, groups, args, how)


def _compare(
    storage: EvaluationResultsStorage, groups: list[list[EvaluationRun]], args: Namespace, how: dict[str, Any]
) -> int:
    from ..reporting.comparison_latex import comparison_to_latex
    from ..reporting.comparison_tables import comparison_report
    from ..reporting.tables import comparison_to_dict
    from ..runs.compare import compare_runs
    from ..runs.storage import stored_samples

    samples = stored_samples(storage.find(named_ids(storage, args.baseline)[0])) if args.by else None
    comparison = compare_runs(*groups, by=args.by, samples=samples, **how)
    lost = _lost(storage, comparison, args, args.candidates[0])
    if args.json:
        from dataclasses import asdict

        losers = [asdict(one) for one in lost]
        echo.say_json({**comparison_to_dict(comparison), "biggest_losers": losers})
    elif args.latex:
        echo.say(comparison_to_latex(comparison))
    elif args.markdown:
        echo.say(calm(comparison_report(comparison, lost)))
    else:
        say_comparison(comparison)
        say_more(comparison, lost)
        _say_that_none_lost(lost, args)
    return 0


def _rank(
    storage: EvaluationResultsStorage, runs: list[EvaluationRun], args: Namespace, how: dict[str, Any]
) -> int:
    from ..reporting.comparison_json import ranking_to_dict
    from ..reporting.comparison_latex import ranking_to_latex
    from ..reporting.ranking_tables import ranking_report
    from ..runs.ranking import rank_runs

    ranking = rank_runs(runs, **how)
    if args.latex:
        echo.say(ranking_to_latex(ranking))
        return 0
    best, shown = _shown_pair(ranking, args)
    lost = _lost(storage, ranking.pairs[best - 1], args, args.candidates[best - 1])
    compared = {one.name for one in ranking.metrics}
    slices = _slices(storage, [_only(runs[place], compared) for place in (0, best)], args, how)
    if args.json:
        from dataclasses import asdict

        pair = {
            "baseline": ranking.run_ids[0],
            "candidate": ranking.run_ids[best],
            "slices": [asdict(one) for one in slices],
            "biggest_losers": [asdict(one) for one in lost],
        }
        echo.say_json({**ranking_to_dict(ranking), "shown_pair": pair})
    elif args.markdown:
        echo.say(calm(ranking_report(ranking, shown, slices, lost)))
    else:
        say_ranking(ranking)
        if slices or lost:
            echo.say()
            echo.say_words(calm(shown))
        say_slices(slices)
        say_lost(lost)
        _say_that_none_lost(lost, args)
    return 0


def _shown_pair(ranking: Ranking, args: Namespace) -> tuple[int, str]:
    """The place of the run whose slices and losers are shown, against the first; and the words for it."""
    from ..reporting.ranking_tables import ranked_names
    from ..runs.ranking import best_of_the_others

    best, metric = best_of_the_others(ranking, args.losers_of)
    names = ranked_names(ranking)
    why = "" if metric is None else f", the best of the others on {metric}"
    return best, f"Slices and losers are those of {names[best]}{why}, against {names[0]}."


def _only(run: EvaluationRun, names: Container[str]) -> EvaluationRun:
    """A run without the metrics that are not compared."""
    from dataclasses import replace

    return replace(run, results=[result for result in run.results if result.name in names])


def _slices(
    storage: EvaluationResultsStorage, pair: list[EvaluationRun], args: Namespace, how: dict[str, Any]
) -> list[SliceComparison]:
    from ..runs.compare import compare_runs
    from ..runs.storage import stored_samples

    if not args.by:
        return []
    samples = stored_samples(storage.find(args.baseline))
    return compare_runs(*pair, by=args.by, samples=samples, **how).slices


def _lost(
    storage: EvaluationResultsStorage, comparison: Comparison, args: Namespace, candidate: str
) -> list[LostSample]:
    from ..errors import UnknownNameError
    from ..runs.losers import lost_most, lost_samples, stored_texts_of_repeats

    metric = lost_most(comparison)
    if args.losers_of is not None:
        metric = next((one for one in comparison.metrics if one.name == args.losers_of), None)
        if metric is None:
            names = ", ".join(one.name for one in comparison.metrics)
            raise UnknownNameError(f"{args.losers_of!r} is not compared. There are {names}.")
    if metric is None or not metric.losers or not args.losers:
        return []
    ids = {loser.sample_id for loser in metric.losers[: args.losers]}
    before, now = (
        stored_texts_of_repeats([storage.find(part) for part in named_ids(storage, name)], ids)
        for name in (args.baseline, candidate)
    )
    return lost_samples(metric, before, now, args.losers)


def _say_that_none_lost(lost: Sequence[LostSample], args: Namespace) -> None:
    if args.losers_of is not None and args.losers and not lost:
        echo.say()
        echo.say_words(calm(f"No sample lost on {args.losers_of}."))


def _margins(args: Namespace) -> float | dict[str, float] | None:
    from ..errors import PlanError

    if not args.margin:
        return None
    named = {name: size for name, size in args.margin if name is not None}
    for_all = [size for name, size in args.margin if name is None]
    if named and for_all:
        raise PlanError("give one margin for all metrics, or one for each by name, not both.")
    return named or float(for_all[-1])
