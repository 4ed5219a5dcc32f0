"""Ask a judge about the answers of a stored run.

The judge is a model behind an OpenAI-compatible endpoint (URL#model), a support
function (support:NAME), your own function (my_judge.py:judge), or a jury of
judges (jury:[support:trained,URL#model]). Every verdict is stored: the same
command again asks only the questions that have no verdict yet.

  auepora demo
  auepora judge demo-bm25 --judge support:lexical --metrics judged_faithfulness
"""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..calls.executors import ThreadExecutor
from ..calls.streams import stdout_for_results
from ..core.settings import ENDPOINT_RETRIES, RunSettings, out_flag
from ..core.types import results_table
from ..demo.world import demo_claims
from ..errors import AccessRefusedError, InterruptedRunError, PlanError, RunStoppedError
from ..io.jsonl import read_records
from ..judges.ask import cost_of, key_of
from ..judges.jury import judge_named
from ..judges.llm import LABEL
from ..judges.metric import JudgedMetric
from ..judges.runs import RunJudging, judge_of_run
from ..metrics.parse import parse_metrics
from ..store.cache import CallCache
from ..store.storage import EvaluationResultsStorage, database_of
from . import echo
from .common import check_has_samples, exit_code, progress_bar, say_stored
from .flags import (
    JUDGED_METRIC,
    add_flag,
    add_json,
    add_out,
    add_settings,
    cache_path,
    settings_of,
)
from .interrupts import StopNow, finishing_first

if TYPE_CHECKING:
    from ..calls.executors import Executor
    from ..calls.policy import CallPolicy
    from ..core.types import MetricResult
    from ..judges.judge import Judge
    from ..judges.question import Judgement


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("run_id", metavar="RUN", help="id or path of a stored run")
    add_settings(parser, "judge")
    add_flag(parser, "--metrics", "judged metrics", "NAMES", default=JUDGED_METRIC)
    add_settings(parser, "config")
    add_settings(parser, mode="judge_mode", concurrency="judge_concurrency", api_key_env="judge_api_key_env")
    add_flag(parser, "--replay", "use the verdicts in this file, and make no calls", "FILE")
    add_flag(parser, "--cache", "file of replies to share between runs (default: $AUEPORA_CACHE)", "FILE")
    add_flag(parser, "--calibrate", "human labels of claims or samples; they correct the values", "FILE")
    add_flag(parser, "--probe", "first test the judge on questions with known answers")
    add_flag(parser, "--dry-run", "estimate calls, tokens, cost and time; make no calls")
    add_settings(parser, "min_coverage")
    add_out(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    settings = settings_of(args)
    if settings.judge is None and args.replay is None:
        raise PlanError("No judge was named: give --judge URL#model, or --replay FILE.")
    metrics = judged_metrics(args.metrics)
    storage = EvaluationResultsStorage(settings.out)
    replay = None if args.replay is None else Path(args.replay)
    if settings.judge is None and replay is not None:
        stored = judge_of_run(replay) or judge_of_run(database_of(storage.find(args.run_id)))
        if stored is None:
            raise PlanError("It is not recorded which judge gave these verdicts: name it with --judge.")
        settings.judge, settings.judge_mode = stored
    work = RunJudging(
        storage,
        args.run_id,
        metrics,
        named_judge(settings, offline=replay is not None or args.dry_run),
        mode=settings.judge_mode or LABEL,
        cache=None if (cache := cache_path(args.cache)) is None else CallCache(cache),
        replay=replay,
        repeats=settings.judge_repeats or 1,
        labelled=claim_records(args.calibrate) if args.calibrate else (),
        probes=args.probe,
    )
    if replay is not None and (unjudged := work.without_verdicts()):
        # Every question would fail, and replace the results.
        known = ", ".join(sorted({verdict.identity for verdict in work.asking.stored})[:5])
        what = f"has no verdicts of this judge for {', '.join(unjudged)}"
        raise PlanError(f"{replay} {what}. It has those of {known or 'no judge'}.")
    if args.dry_run:
        return _say_plan(work, settings.for_judge())
    results = ask(work, settings.for_judge())
    if args.json:
        echo.say_json(storage.load_results(str(work.path)))
    else:
        echo.show_all([report.table() for report in work.reports])
        _say_judged(work, results)
    say_stored(work.path)
    return exit_code(replace(work.run, results=results), storage.load_tally(work.path), settings.min_coverage)


def replayed(
    storage: EvaluationResultsStorage, name: str, metrics: list[JudgedMetric], settings: RunSettings
) -> list[MetricResult]:
    """Return judged metrics of a stored run by its stored verdicts: other thresholds need no call."""
    path = database_of(storage.find(name))
    judge, mode = judge_of_run(path) or ("", "")
    asked = _command(name, judge or "NAME", metrics, settings.out)
    if not judge:
        raise PlanError(f"{metrics[0].name} needs a judge, and the run was not judged: {asked}")
    merged = RunSettings.merged(vars(settings), {"judge": judge, "judge_mode": mode})
    work = RunJudging(storage, name, metrics, named_judge(merged, offline=True), replay=path)
    if unjudged := work.without_verdicts():
        raise PlanError(f"The run has no verdicts for {', '.join(unjudged)}. Ask for them: {asked}")
    return work.scored()


def _command(name: str, judge: str, metrics: Iterable[JudgedMetric], out: str, mode: str = "") -> str:
    names = shlex.quote(",".join(metric.name for metric in metrics))
    asked = f"auepora judge {shlex.quote(name)} --judge {shlex.quote(judge)}"
    return f"{asked}{f' --mode {mode}' if mode else ''} --metrics {names}{out_flag(out)}"


def claim_records(path: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the records of a file of labels, each with its place; `demo` names the bundled ones."""
    records = list(demo_claims() if path == "demo" else read_records(path))
    check_has_samples(path, len(records))
    return records


def judged_metrics(names: str) -> list[JudgedMetric]:
    """Return the metrics of these names; PlanError if one of them needs no judge."""
    metrics = []
    for metric in parse_metrics(names):
        if not isinstance(metric, JudgedMetric) or not metric.needs_judge:
            raise PlanError(
                f"{metric.name} needs no judge. Compute it with auepora score --run RUN --metrics."
            )
        metrics.append(metric)
    return metrics


def named_judge(settings: RunSettings, *, offline: bool = False) -> Judge:
    """Return the judge of the settings; with `offline` nothing is sent, not even a key."""
    with stdout_for_results():  # a module of the user's own may print while it is imported
        return judge_named(
            settings.judge or "",
            settings.judge_mode or LABEL,
            api_key_env=None if offline else settings.judge_api_key_env,
            plain_http=bool(settings.plain_http),
            timeout=settings.judge_timeout or 60.0,
        )


def ask(work: RunJudging, settings: RunSettings) -> list[MetricResult]:
    """Ask what is missing and write the results; show the progress, the cost and what was kept."""
    work.executor, policy = judge_calls(settings)
    work.policy = policy
    cost = 0.0
    questions = work.open_questions()
    failed = len(work.asking.failed_before.intersection(map(key_of, questions)))
    if failed:
        echo.note(f"{failed:,} verdicts failed before; they are asked again")
    with progress_bar(len(questions), "judge") as advance, finishing_first(work.stop) as signalled:

        def on_verdict(verdict: Judgement) -> None:
            nonlocal cost
            cost += cost_of(verdict, policy)
            advance(bool(verdict.failed), f"{cost:.4f} USD" if cost else "")

        work.on_verdict = on_verdict
        try:
            results = work.results()
        except (InterruptedRunError, StopNow, RunStoppedError) as error:
            signalled.is_heeded = True
            kept = sum(not verdict.failed for verdict in work.asking.asked)
            if kept or not isinstance(error, AccessRefusedError):
                larger = " with a larger budget" if "budget" in str(error) else ""
                echo.note(f"kept: {kept} new verdicts; the same command{larger} asks only what is missing")
            raise
    # The table only counts the samples.
    failures = Counter(
        echo.one_line(one.failed, 120).rstrip(".") for one in work.asking.of_judge(work.kinds) if one.failed
    )
    if failures:
        most = "; ".join(f"{count:,} × {reason}" for reason, count in failures.most_common(3))
        more = "; ..." if len(failures) > 3 else ""
        again = "" if work.replay else ". The same command asks them again."
        echo.note(f"{failures.total():,} verdicts failed: {most}{more}{again}")
    return results


def judge_calls(settings: RunSettings) -> tuple[Executor, CallPolicy]:
    """Return what makes the calls of a judge, in threads, and how those that fail are retried."""
    retries = ENDPOINT_RETRIES if settings.retries is None else settings.retries
    return ThreadExecutor(concurrency=settings.concurrency), replace(settings.call_policy(), retries=retries)


def _say_plan(work: RunJudging, settings: RunSettings) -> int:
    """Print what would be asked, and what it would cost."""
    asked = work.open_questions()
    calls = len(asked)
    sizes = [judge.tokens(question) for judge, question in asked]
    tokens, reply = (sum(column) for column in zip((0, 0), *sizes, strict=True))
    # How many claims a judge finds is known when it was asked for them.
    more = any(question.kind.name == "claims" for _, question in asked)
    follow = " first, and those about the claims that are found" if more else ""
    echo.say(f"Calls: {calls:,}{follow} (each verdict that is stored already saves one)")
    echo.say(f"Prompt tokens: about {tokens:,} (characters / 4)")
    echo.say(f"Reply tokens: about {reply:,} (40 per verdict, 1 in the mode logprob)")
    if settings.price_input is not None or settings.price_output is not None:
        cost = (tokens * (settings.price_input or 0) + reply * (settings.price_output or 0)) / 1000
        echo.say(f"Cost: about {cost:.4f} US dollars")
    else:
        echo.say("Cost: unknown; give judge_price_input and judge_price_output in a plan (--config)")
    known = [one.seconds / max(1, one.attempts) for one in work.asking.of_judge(work.kinds) if one.seconds]
    each = sum(known) / len(known) if known else 1.0
    basis = f"{each:.2f} s a call, as measured before" if known else "if a call takes 1 s"
    at_once = settings.concurrency
    echo.say(f"Time: about {calls * each / at_once:,.0f} s with {at_once} calls at once, {basis}")
    return 0


def _say_judged(work: RunJudging, results: list[MetricResult]) -> None:
    asked = work.asking.asked
    tokens = sum(sum(verdict.usage.values()) for verdict in asked)
    cost = 0.0 if work.policy is None else sum(cost_of(verdict, work.policy) for verdict in asked)
    price = f", {cost:.4f} US dollars" if cost else ""
    echo.say(f"{work.run.evaluation_id}: {len(asked):,} verdicts asked, {tokens:,} tokens{price}")
    echo.show(results_table(results))
    scored = [score for score in results[0].scores if score.value is not None] if results else []
    if scored:
        worst = min if results[0].higher_is_better else max
        sample = worst(scored, key=lambda score: score.value or 0.0).sample_id
        name, out = shlex.quote(work.run.evaluation_id), out_flag(str(work.storage.results_directory))
        echo.say(f"Next: auepora show {name} --sample {shlex.quote(sample)}{out}")


# --judge on `run` and `score`: the same, after the outputs are on the disk.


def judge_stored(
    judge: Judge, settings: RunSettings, storage: EvaluationResultsStorage, name: str
) -> list[MetricResult]:
    """Judge a run that was just stored; return the judged metrics. A failure leaves the run as it is."""
    metrics = judged_metrics(",".join(settings.judge_metrics or [JUDGED_METRIC]))
    mode, repeats = settings.judge_mode or LABEL, settings.judge_repeats or 1
    try:
        work = RunJudging(storage, name, metrics, judge, mode=mode, repeats=repeats)
        return ask(work, settings.for_judge())
    except BaseException:
        command = _command(name, settings.judge or "", metrics, settings.out, settings.judge_mode or "")
        echo.note(f"The run is stored. Judge it later: {command}")
        raise
