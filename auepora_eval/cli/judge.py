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
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..calls.executors import ThreadExecutor
from ..calls.streams import stdout_for_results
from ..core.settings import ENDPOINT_RETRIES, RunSettings
from ..demo.world import demo_claims
from ..errors import AccessRefusedError, DataError, InterruptedRunError, PlanError, RunStoppedError
from ..io.jsonl import read_records
from ..judges.asking import cost_of
from ..judges.judge import Judging
from ..judges.judging import RunJudging
from ..judges.llm import mode_of, settle_modes, settle_modes_by
from ..judges.metric import JudgedMetric
from ..judges.names import JudgeOptions, judge_named
from ..judges.question import numbered_texts
from ..judges.trust.audit import judge_calibration
from ..judges.trust.labels import Columns, labelled_claims
from ..judges.trust.probes import probe, probed_kinds
from ..judges.verdicts import JudgeRecord, read_judge_record, verdict_book, write_audit
from ..metrics.parse import parse_metrics
from ..store.cache import CallCache
from ..store.storage import EvaluationResultsStorage, database_of
from . import echo
from .common import exit_code, progress_bar, say_results, say_stored
from .flags import (
    JUDGED_METRIC,
    add_flag,
    add_json,
    add_out,
    add_settings,
    cache_path,
    out_flag,
    settings_of,
)
from .interrupts import StopNow, finishing_first

if TYPE_CHECKING:
    from ..calls.executors import Executor
    from ..calls.policy import CallPolicy
    from ..core.types import MetricResult
    from ..judges.judge import Asker, Judge
    from ..judges.question import Judgement, Question
    from ..judges.trust.labels import Labelled


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
    add_flag(parser, "--retry-failed", "repeat the questions whose verdict failed")
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
    stored = None
    if settings.judge is None:
        stored = _recorded(storage, args.run_id, Path(args.replay))
        settings.judge, settings.judge_mode = stored.judge, stored.mode
    is_offline = args.replay is not None or args.dry_run
    judge = named_judge(settings, metrics, offline=is_offline)
    if is_offline:
        _settle_offline(judge, metrics, storage, args)
    work = RunJudging(
        storage,
        args.run_id,
        metrics,
        judge,
        record=stored or JudgeRecord(judge=settings.judge, mode=mode_of(judge)),
        cache=None if (cache := cache_path(args.cache)) is None else CallCache(cache),
        replay=None if args.replay is None else Path(args.replay),
        repeats=settings.judge_repeats or 1,
        retry_failed=args.retry_failed,
    )
    work.prepare = partial(_prepare, work, args)
    if args.dry_run:
        return _say_plan(work, settings.for_judge())
    results = ask(work, settings.for_judge())
    if args.json:
        echo.say_json(storage.load_results(str(work.path)))
    else:
        _say_judged(work, results)
    say_stored(work.path)
    return exit_code(replace(work.run, results=results), storage.load_tally(work.path), settings.min_coverage)


def _recorded(storage: EvaluationResultsStorage, name: str, replay: Path) -> JudgeRecord:
    """Return the judge whose verdicts are replayed, by the record beside them or that of the run."""

    record = read_judge_record(replay) or read_judge_record(database_of(storage.find(name)))
    if record is None:
        raise PlanError("It is not recorded which judge gave these verdicts: name it with --judge.")
    return record


def replayed(
    storage: EvaluationResultsStorage, name: str, metrics: list[JudgedMetric], settings: RunSettings
) -> list[MetricResult]:
    """Return judged metrics of a stored run by its stored verdicts: other thresholds need no call."""

    path = database_of(storage.find(name))
    record = read_judge_record(path)
    command = f"auepora judge {shlex.quote(name)} --judge {shlex.quote(record.judge) if record else 'NAME'}"
    command += (
        f" --metrics {shlex.quote(','.join(metric.name for metric in metrics))}{out_flag(settings.out)}"
    )
    if record is None:
        raise PlanError(f"{metrics[0].name} needs a judge, and the run was not judged: {command}")
    asked = RunSettings.merged(vars(settings), {"judge": record.judge, "judge_mode": record.mode})
    judge = named_judge(asked, offline=True)
    identities = {verdict.identity for verdict in verdict_book(path).values()}
    settle_modes_by(judge, [kind for metric in metrics for kind in metric.question_kinds()], identities)
    for metric in metrics:
        if any(judge.asked_identities(kind).isdisjoint(identities) for kind in metric.question_kinds()):
            raise PlanError(f"The run has no verdicts for {metric.name}. Ask for them: {command}")
    return RunJudging(storage, name, metrics, judge).replayed(path)


def _settle_offline(
    judge: Judge, metrics: list[JudgedMetric], storage: EvaluationResultsStorage, args: Namespace
) -> None:
    """Decide modes that are `auto` by the stored verdicts; refuse a replay of the verdicts of others."""

    path = Path(args.replay) if args.replay else database_of(storage.find(args.run_id))
    identities = {verdict.identity for verdict in verdict_book(path).values()}
    kinds = [kind for metric in metrics for kind in metric.question_kinds()]
    settle_modes_by(judge, kinds, identities)
    asked = {identity for kind in kinds for identity in judge.asked_identities(kind)}
    # Every question would fail, and the failures would replace the results of the run.
    if args.replay and identities and identities.isdisjoint(asked):
        known = ", ".join(sorted(identities)[:5])
        raise PlanError(f"{path} has no verdicts of this judge. It has those of {known}.")


def _prepare(work: RunJudging, args: Namespace, ask: Asker) -> None:
    """Measure the judge, if that was asked for: by probes and by labels of people."""
    if not (args.probe or args.calibrate):
        return
    if args.calibrate:
        claims, work.labels = read_labels(args.calibrate, {one.sample_id for one in work.run.samples})
        if claims:
            judging = Judging(work.judge, work.book)
            work.audit.calibration = judge_calibration(
                claims, judging, date=today(), ask=ask, kind=work.audited
            )
    if args.probe:
        judging = Judging(work.judge, work.book)
        kinds = probed_kinds(kind.name for metric in work.metrics for kind in metric.question_kinds())
        reports = [probe(work.judge, ask, judging=judging, kind=kind) for kind in kinds]
        work.audit.probes = [each for each in work.audit.probes if each.kind not in kinds] + reports
        if not args.json:
            echo.show_all([report.table() for report in reports])
    write_audit(work.storage.results_directory, work.audit)


def read_labels(path: str, sample_ids: set[str]) -> tuple[list[Labelled], dict[str, float]]:
    """Return labelled claims, or the labels of samples by their ids."""
    records = list(demo_claims() if path == "demo" else read_records(path))
    if not records:
        raise DataError(path, "there are no labels in it.")
    if not all("sample_id" in record for _, record in records):
        return labelled_claims(records, Columns()), {}
    labels: dict[str, float] = {}
    for where, record in records:
        label = record.get("label")
        if isinstance(label, dict):  # by person
            given = [one for one in label.values() if isinstance(one, int | float)]
            label = sum(given) / len(given) if given and len(given) == len(label) else label
        if not isinstance(label, int | float) or not 0 <= label <= 1:
            raise DataError(where, f"the label {label!r:.40} is not a number from 0 to 1.")
        if record["sample_id"] not in sample_ids:
            raise DataError(where, f"the run has no sample {record['sample_id']!r:.80}.")
        labels[record["sample_id"]] = float(label)
    return [], labels


def today() -> str:
    """Return the date that is stored with what is measured of a judge."""
    return datetime.now(UTC).date().isoformat()


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


def named_judge(
    settings: RunSettings, metrics: Iterable[JudgedMetric] | None = None, *, offline: bool = False
) -> Judge:
    """Return the judge of the settings, ready to be asked; with `offline` nothing is sent, not even a key.

    A mode that is `auto` is decided if questions of the metrics need one, or always if they are not known.
    """
    options = JudgeOptions(
        mode=settings.judge_mode or "auto",
        api_key_env=None if offline else settings.judge_api_key_env,
        plain_http=bool(settings.plain_http),
        timeout=settings.judge_timeout or 60.0,
    )
    with stdout_for_results():  # a module of the user's own may print while it is imported
        judge = judge_named(settings.judge or "", options)
    if not offline:
        asked = None if metrics is None else [kind for each in metrics for kind in each.question_kinds()]
        for sentence in settle_modes(judge, asked):
            echo.note(sentence)
    return judge


def ask(work: RunJudging, settings: RunSettings) -> list[MetricResult]:
    """Ask what is missing and write the results; show the progress, the cost and what was kept."""
    policy = work.policy = judge_policy(settings)
    work.executor = judge_executor(settings)
    cost = 0.0
    total = len(work.open_questions())
    with progress_bar(total, "judge") as advance, finishing_first(work.stop) as signalled:

        def on_verdict(verdict: Judgement) -> None:
            nonlocal cost
            cost += cost_of(verdict, policy)
            advance(bool(verdict.failed), f"{cost:.4f} USD" if cost else "")

        work.on_verdict = on_verdict
        try:
            results = work.results()
        except (InterruptedRunError, StopNow, RunStoppedError) as error:
            signalled.is_heeded = True
            kept = 0 if work.asking is None else len(work.asking.asked)
            if kept or not isinstance(error, AccessRefusedError):
                echo.note(f"kept: {kept} new verdicts; the same command asks only what is missing")
            raise
    _note_failures(work)
    return results


def _note_failures(work: RunJudging) -> None:
    """Say why verdicts failed: the table only counts the samples."""
    failures = Counter(echo.one_line(verdict.failed, 120) for verdict in work.verdicts() if verdict.failed)
    if failures:
        most = "; ".join(f"{count:,} × {reason}" for reason, count in failures.most_common(3))
        more = "; ..." if len(failures) > 3 else ""
        echo.note(f"{failures.total():,} verdicts failed: {most}{more}")


def judge_executor(settings: RunSettings) -> Executor:
    """Return what makes the calls of a judge: threads, which wait for a server."""
    return ThreadExecutor(concurrency=settings.concurrency)


def judge_policy(settings: RunSettings) -> CallPolicy:
    """Return how calls of a judge that fail are handled: retried, as those of any endpoint."""
    retries = ENDPOINT_RETRIES if settings.retries is None else settings.retries
    return replace(settings.call_policy(), retries=retries)


def _say_plan(work: RunJudging, settings: RunSettings) -> int:
    """Print what would be asked, and what it would cost."""
    asked = [(judge.calls_for(question), judge, question) for judge, question in work.open_questions()]
    calls = sum(count for count, _, _ in asked)
    tokens = sum(count * _prompt_tokens(question) for count, _, question in asked)
    echo.say(f"Calls: {calls:,} (each verdict that is stored already saves one)")
    echo.say(f"Prompt tokens: about {tokens:,} (characters / 4)")
    if settings.price_input is not None or settings.price_output is not None:
        # A quote and a verdict, for each text that has one.
        reply = sum(40 * count * _verdicts_in(question) for count, _, question in asked)
        cost = (tokens * (settings.price_input or 0) + reply * (settings.price_output or 0)) / 1000
        echo.say(f"Cost: about {cost:.4f} US dollars")
    else:
        echo.say("Cost: unknown; give judge_price_input and judge_price_output in a plan (--config)")
    at_once = settings.concurrency
    names = {judge.identity(question.kind) for _, judge, question in asked}
    known = [
        one.seconds / max(1, one.attempts)
        for one in work.book.values()
        if one.seconds and one.identity in names
    ]
    each = sum(known) / len(known) if known else 1.0
    basis = f"{each:.2f} s a call, as measured before" if known else "if a call takes 1 s"
    echo.say(f"Time: about {calls * each / at_once:,.0f} s with {at_once} calls at once, {basis}")
    return 0


def _verdicts_in(question: Question) -> int:
    return len(numbered_texts(question, question.kind.each)) if question.kind.each else 1


def _prompt_tokens(question: Question) -> int:
    prompt = question.kind.prompt
    letters = len(prompt.system) + len(prompt.user) + sum(map(len, question.material.values()))
    return letters // 4


def _say_judged(work: RunJudging, results: list[MetricResult]) -> None:
    asked = [] if work.asking is None else work.asking.asked
    tokens = sum(sum(verdict.usage.values()) for verdict in asked)
    cost = 0.0 if work.policy is None else sum(cost_of(verdict, work.policy) for verdict in asked)
    price = f", {cost:.4f} US dollars" if cost else ""
    echo.say(f"{work.run.evaluation_id}: {len(asked):,} verdicts asked, {tokens:,} tokens{price}")
    say_results(results)
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
    record = JudgeRecord(judge=settings.judge or "", mode=mode_of(judge))
    metrics = judged_metrics(",".join(settings.judge_metrics or [JUDGED_METRIC]))
    try:
        repeats = settings.judge_repeats or 1
        work = RunJudging(storage, name, metrics, judge, record=record, repeats=repeats)
        return ask(work, settings.for_judge())
    except BaseException:
        names = shlex.quote(",".join(metric.name for metric in metrics))
        command = f"auepora judge {shlex.quote(name)} --judge {shlex.quote(settings.judge or '')}"
        if mode := mode_of(judge):  # in another mode, all would be asked again
            command += f" --mode {mode}"
        echo.note(f"The run is stored. Judge it later: {command} --metrics {names}{out_flag(settings.out)}")
        raise
