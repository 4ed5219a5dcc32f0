"""Compare two or more runs and test whether they differ.

Samples are matched by id. A failed call counts as the worst value of a metric.
p-values are corrected for the number of metrics (Holm). Three or more runs are
ranked, with a test for each pair. Runs joined by a comma are repeats of one
system: A1,A2 B1,B2.

  auepora demo
  auepora compare demo-bm25 demo-hybrid --margin 0.02 --by scenario
"""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from ..comparison import tables
from ..comparison.compare import compare_runs
from ..comparison.ranking import best_of_the_others, rank_runs
from ..comparison.regressions import lost_most, lost_samples, stored_texts
from ..comparison.tables import (
    comparison_table,
    comparison_to_dict,
    lost_to_dict,
    ranked_names,
    ranking_to_dict,
)
from ..comparison.words import compared_names, comparison_in_plain_words, interval_notes, shortened
from ..core.settings import out_flag
from ..core.types import EvaluationRun
from ..core.verdict import Verdict
from ..errors import PlanError, UnknownNameError
from ..store.storage import EvaluationResultsStorage, stored_samples
from . import echo
from .common import (
    add_report_flags,
    check_distinct_runs,
    load_named_runs,
    named_ids,
    say_next,
    write_comment,
    write_page,
)
from .flags import (
    add_alpha,
    add_flag,
    add_json,
    add_out,
    add_resamples,
    add_settings,
    at_least,
    limit,
    settings_of,
)

if TYPE_CHECKING:
    from ..comparison.compare import Comparison
    from ..comparison.ranking import Ranking
    from ..comparison.regressions import LostSample
    from ..comparison.slices import SliceComparison


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("baseline", metavar="BASELINE", help="id or path of a stored run")
    parser.add_argument("candidates", metavar="CANDIDATE", nargs="+", help="the runs to compare with it")
    about = "largest acceptable loss: 0.02, or recall@5=0.02"
    add_flag(parser, "--margin", about, "[METRIC=]SIZE", type=limit(for_all=True), action="append")
    about = "also compare by the values of this label or field"
    add_flag(parser, "--by", about, "FIELD", default=[], action="append")
    add_flag(parser, "--regressions", "regressions to show (3 with --full)", "N", type=at_least(0))
    about = "metric that ranks them (default: one that lost)"
    add_flag(parser, "--regressions-of", about, "METRIC")
    add_flag(parser, "--full", "also print the tables that the verdict is based on")
    add_flag(parser, "--judge", "also ask this judge which answers are better", "NAME")
    add_settings(parser, "config")
    add_flag(parser, "--allow-mismatch", "compare although data or settings differ")
    add_alpha(parser)
    add_resamples(parser)
    add_out(parser)
    form = parser.add_mutually_exclusive_group()
    add_report_flags(parser, form)
    add_json(form)
    add_flag(parser, "--force", "overwrite a file that exists")


def run(args: Namespace) -> int:
    storage = EvaluationResultsStorage(args.out)
    if args.regressions is None:
        asked = args.full or args.regressions_of or args.json or args.markdown
        args.regressions = _REGRESSIONS if asked else 0
    how: dict[str, Any] = {
        "alpha": args.alpha,
        "seed": settings_of(args).seed,
        "margin": _margins(args),
        "resamples": args.resamples,
        "allow_mismatch": args.allow_mismatch,
    }
    groups = _groups(storage, args)
    runs = [group[0] for group in groups]
    ranking = rank_runs(runs, **how) if len(groups) > 2 else None
    workspace = None
    if args.html:
        from ..pages.workspace import Workspace

        workspace = Workspace.named(args.out, (args.baseline, *args.candidates))
        if ranking is None:
            args.by = args.by or list(workspace.index(list(workspace.only)[1]).fields)
    best, shown = (1, "") if ranking is None else _shown_pair(ranking, args)
    comparison = _compared(storage, [groups[0], groups[best]], args, how, ranking)
    lost = _lost(storage, comparison, args, args.candidates[best - 1])
    if workspace is not None:
        write_page(args, workspace, comparison if ranking is None else None, ranking)
    if args.json:
        _say_json(comparison, ranking, lost)
    elif args.markdown:
        from ..pages.markdown import report_markdown

        pair, slices = comparison if ranking is None else None, comparison.slices
        comment = report_markdown(runs, pair, ranking=ranking, lost=lost, slices=slices, shown=shown)
        write_comment(args, comment)
    elif workspace is None:
        if ranking is None:
            say_comparison(comparison, lost, full=args.full, stages=_stage_lines(storage, args, runs[0]))
        else:
            _say_ranked(ranking, comparison, lost, shown, full=args.full)
        if args.regressions_of is not None and args.regressions and not lost:
            echo.say_words(f"No sample got worse on {args.regressions_of}.")
        _say_next(args)
    return 0


def _groups(storage: EvaluationResultsStorage, args: Namespace) -> list[list[EvaluationRun]]:
    """Return the runs that were named: of each system one, or its repeats."""
    names = (args.baseline, *args.candidates)
    groups = [load_named_runs(storage, name) for name in names]
    has_repeats = any(len(group) > 1 for group in groups)
    if len(groups) > 2 and has_repeats:
        raise PlanError("repeats are for two systems. Name a baseline and one candidate.")
    check_distinct_runs(storage, names)
    if args.html and (args.allow_mismatch or has_repeats):
        what = "--html shows answers side by side: one run of each system, all on the same data."
        raise PlanError(f"{what} Leave out --allow-mismatch and repeats, or use --markdown FILE.")
    return groups if args.judge is None else [[run] for run in _preferred(storage, groups, args)]


def _preferred(
    storage: EvaluationResultsStorage, groups: list[list[EvaluationRun]], args: Namespace
) -> tuple[EvaluationRun, EvaluationRun]:
    """Ask a judge which answers are better, and return the two runs with what it said among the results."""
    from ..judges.runs import judged_preference
    from .judge import judge_calls, named_judge

    if [len(group) for group in groups] != [1, 1]:
        raise PlanError("--judge compares the answers of two runs. Name a baseline and one candidate.")
    settings = settings_of(args)
    judge = named_judge(settings)
    settings = settings.for_judge()
    first, second = (storage.find(name) for name in (args.baseline, args.candidates[0]))
    executor, policy = judge_calls(settings)
    *runs, notes = judged_preference(storage, first, second, judge, executor, policy)
    for note in notes:
        echo.note(note)
    return runs[0], runs[1]


def _compared(
    storage: EvaluationResultsStorage,
    pair: Sequence[list[EvaluationRun]],
    args: Namespace,
    how: Mapping[str, Any],
    ranking: Ranking | None,
) -> Comparison:
    """Return the comparison of two runs with its slices; those of a ranking were compared in it."""
    # Only slices need the samples, whose texts are the larger part of a stored run.
    samples = stored_samples(storage.find(named_ids(args.baseline)[0])) if args.by else None
    if ranking is None:
        return compare_runs(*pair, by=args.by, samples=samples, **how)
    ids = (pair[0][0].evaluation_id, pair[1][0].evaluation_id)
    [comparison] = [one for one in ranking.pairs if (one.baseline_id, one.candidate_id) == ids]
    if not args.by:
        return comparison
    # Slices of the metrics that are ranked.
    names = {one.name for one in ranking.metrics}
    kept = [replace(run, results=[one for one in run.results if one.name in names]) for (run,) in pair]
    return replace(comparison, slices=compare_runs(*kept, by=args.by, samples=samples, **how).slices)


def _say_json(comparison: Comparison, ranking: Ranking | None, lost: Sequence[LostSample]) -> None:
    regressions = {"largest_regressions": [lost_to_dict(one) for one in lost]}
    if ranking is None:
        echo.say_json({**comparison_to_dict(comparison), **regressions})
        return
    about = {
        "baseline": comparison.baseline_id,
        "candidate": comparison.candidate_id,
        "slices": [asdict(one) for one in comparison.slices],
        **regressions,
    }
    echo.say_json({**ranking_to_dict(ranking), "shown_pair": about})


def _stage_lines(storage: EvaluationResultsStorage, args: Namespace, run: EvaluationRun) -> list[str]:
    """Return in lines which stage got better or worse, if both runs were diagnosed."""
    ids = (named_ids(args.baseline)[0], named_ids(args.candidates[0])[0])
    found = [storage.load_fact(name, "diagnosis") for name in ids]
    if not all(found):
        return []
    from ..interventions.diagnosis import stage_changes
    from ..interventions.report import Diagnosis

    return list(stage_changes(Diagnosis.of(found[0]), Diagnosis.of(found[1]), run))


def _shown_pair(ranking: Ranking, args: Namespace) -> tuple[int, str]:
    """Return the place of the run whose slices and regressions are shown, and a sentence about it."""
    best, metric = best_of_the_others(ranking, args.regressions_of)
    names = ranked_names(ranking)
    why = "" if metric is None else f", the best of the others on {metric}"
    return best, f"Slices and regressions are those of {names[best]}{why}, against {names[0]}."


def _lost(
    storage: EvaluationResultsStorage, comparison: Comparison, args: Namespace, candidate: str
) -> list[LostSample]:
    metric = lost_most(comparison)
    if args.regressions_of is not None:
        metric = next((one for one in comparison.metrics if one.name == args.regressions_of), None)
        if metric is None:
            names = ", ".join(one.name for one in comparison.metrics)
            raise UnknownNameError(f"{args.regressions_of!r} is not compared. There are {names}.")
    if metric is None or not metric.regressions or not args.regressions:
        return []
    # Only the texts of the regressions that are shown are kept in memory.
    ids = {regression.sample_id for regression in metric.regressions[: args.regressions]}
    before, now = (
        stored_texts([storage.find(part) for part in named_ids(name)], ids)
        for name in (args.baseline, candidate)
    )
    return lost_samples(metric, before, now, args.regressions)


def _margins(args: Namespace) -> float | dict[str, float] | None:
    if not args.margin:
        return None
    named = {name: size for name, size in args.margin if name}
    for_all = [size for name, size in args.margin if not name]
    if named and for_all:
        raise PlanError("give one margin for all metrics, or one for each by name, not both.")
    return named or float(for_all[-1])


# What `auepora compare` prints: the verdict last, where it stays on the screen.

_REGRESSIONS = 3
_SLICES_SHOWN = 15
_PAIRS_SHOWN = 60
_WIDTHS = (100, 120)  # columns of a terminal from which names in headings may be longer
_NAME = 8  # letters of a system in a heading, on a narrow screen


def say_comparison(
    comparison: Comparison, lost: Sequence[LostSample] = (), *, full: bool, stages: Sequence[str] = ()
) -> None:
    """Print a comparison: what it is based on if that is asked for, then what it means in plain words."""
    a, b = compared_names(comparison)
    echo.say(f"{b} compared with {a}, sample by sample")
    if full:
        letters = _NAME * (1 + sum(echo.screen_width() >= width for width in _WIDTHS))
        _say_tables(comparison, shortened([a, b], letters))
    say_slices(comparison.slices)
    say_lost(lost)
    left_out = [f"{name} is not compared: {reason}" for name, reason in comparison.not_compared.items()]
    _note_all((*comparison.mismatches, *comparison.notes, *left_out))
    if stages:
        echo.say()
        echo.say("\n".join(stages))
    echo.say()
    for sentence in comparison_in_plain_words(comparison):
        echo.say_words(sentence)
    say_verdict(comparison)


def say_verdict(comparison: Comparison) -> None:
    """Print how many metrics are better, worse and so on, in one line."""
    better, worse = (comparison.counts.get(each, 0) for each in (Verdict.BETTER, Verdict.WORSE))
    style = "green" if better > worse else "red" if worse else "yellow"  # as the page of the comparison
    if comparison.metrics:
        echo.say(f"Verdict: {comparison.counts_in_words()}", f"bold {style}")


def _say_tables(comparison: Comparison, names: Sequence[str]) -> None:
    """Print values, changes and effect sizes of each metric, and how much repeats differ."""
    echo.say()
    echo.show(comparison_table(comparison, names))
    for text in interval_notes(comparison):
        echo.say_words(text)
    echo.say()
    echo.say_words(
        "Effect sizes (Cohen's d). Detectable: the smallest difference this sample size can detect with 80% "
        "power."
    )
    sizes = tables.size_table(comparison)
    # The last column, the range with everything missing scored, is empty unless something is missing.
    last = len(sizes.headings) - (not any(metric.effect.bounds for metric in comparison.metrics))
    echo.show(sizes.only(range(last)))
    if comparison.repeats > 1:
        echo.say(f"Run to run, over {comparison.repeats} repeats of each (standard deviation)")
        echo.show(tables.repeat_table(comparison))


def say_ranking(ranking: Ranking, *, full: bool) -> None:
    """Print the ranks of several runs, with `full` also the difference of each pair."""
    echo.say(f"{len(ranking.systems)} systems, each pair compared sample by sample")
    echo.show(tables.ranking_table(ranking))
    echo.say_words(tables.RANKING_LEGEND)
    pairs = tables.pair_table(ranking)
    if full and pairs.rows:
        echo.say()
        echo.say("Pairs that differ significantly (b - a is b less a)")
        echo.show(replace(pairs, rows=pairs.rows[:_PAIRS_SHOWN]))
        if len(pairs.rows) > _PAIRS_SHOWN:
            echo.say(f"... and {len(pairs.rows) - _PAIRS_SHOWN} more: --json has all")
    _note_all((*ranking.mismatches, *ranking.notes))


def _say_ranked(
    ranking: Ranking, comparison: Comparison, lost: Sequence[LostSample], shown: str, *, full: bool
) -> None:
    """Print a ranking, with the slices and regressions of one of its pairs, and what it means."""
    say_ranking(ranking, full=full)
    if comparison.slices or lost:
        echo.say()
        echo.say_words(shown)
    say_slices(comparison.slices)
    say_lost(lost)
    echo.say()
    echo.say_words(tables.ranking_in_words(ranking), "bold")


def _say_next(args: Namespace) -> None:
    names = [*named_ids(args.baseline), *(part for name in args.candidates for part in named_ids(name))]
    runs = " ".join(shlex.quote(name) for name in (args.baseline, *args.candidates))
    commands = {} if args.full else {f"auepora compare {runs} --full": "with the tables"}
    if not args.allow_mismatch and len(names) == 1 + len(args.candidates):
        commands[f"auepora view {runs}"] = "in a browser"
    say_next(commands, out_flag(args.out))


def say_slices(slices: Sequence[SliceComparison]) -> None:
    """Print the worst slices."""
    if not slices:
        return
    echo.say()
    echo.say(f"Slices, the worst first ({min(_SLICES_SHOWN, len(slices))} of {len(slices)} rows shown)")
    echo.show(tables.slice_table(slices[:_SLICES_SHOWN]))
    echo.say_words(tables.slices_in_words(slices))


def say_lost(lost: Sequence[LostSample]) -> None:
    """Print the largest regressions with what both systems gave."""
    if not lost:
        return
    echo.say()
    echo.say(echo.one_line(tables.lost_title(lost)))
    for one in tables.regression_table(lost).rows:
        echo.say_words(f"{echo.one_line(one[0])}: {one[1]} → {one[2]}. {one[3]}")
        echo.say_words(f"  baseline: {one[4]}")
        echo.say_words(f"  candidate: {one[5]}")


def _note_all(texts: Iterable[str]) -> None:
    for text in texts:
        echo.note(f"note: {echo.one_line(text)}.")
