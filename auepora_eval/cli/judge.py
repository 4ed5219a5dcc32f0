"""Ask a judge about the answers of a stored run and store the judged metrics.

The judge is a model behind an OpenAI-compatible endpoint (URL#model), a support function (support:NAME), or
your own function (my_judge.py:judge). Several judges can form a jury (jury:[support:trained,URL#model]).
Example:

  auepora judge first --judge http://127.0.0.1:8000/v1#small-model --metrics judged_faithfulness

A function takes one question. It returns one of question.kind.options, or a score from 0 to 1:

  def judge(question):
      return "yes" if question.material["claim"] in question.material["passage"] else "no"

Every verdict is stored in the folder of the run. If you stop the command, run it again: it asks only the
questions that have no verdict yet. --replay computes the scores from stored verdicts and makes no calls.
"""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ..cli import echo
from ..core.settings import SETTINGS
from .common import add_json, add_out, exit_code, out_flag, progress_bar, say_results, say_stored
from .flags import add_judge_flags, add_settings, count, settings_of

if TYPE_CHECKING:
    from pathlib import Path

    from ..calls.executors import Executor
    from ..calls.policy import CallPolicy
    from ..core.plan import EvaluationPlan
    from ..core.settings import RunSettings
    from ..core.types import MetricResult
    from ..judges.judge import Asker, Judge
    from ..judges.metric import JudgedMetric
    from ..judges.question import Judgement, Question
    from ..judges.trust.labels import Labelled
    from ..runs.judging import RunJudging
    from ..runs.store.storage import EvaluationResultsStorage
    from ..runs.verdicts import JudgeRecord

DEFAULT_METRIC = "judged_faithfulness"
CALL_SETTINGS = (
    "timeout",
    "retries",
    "rpm",
    "tpm",
    "budget_calls",
    "budget_tokens",
    "budget_cost",
    "price_input",
    "price_output",
    "api_key_env",
    "plain_http",
    "min_coverage",
)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("run_id", metavar="RUN", help="id or path of a stored run")
    about = "URL#model, support:NAME, MODULE:ATTR or jury:[A,B]"
    judge = parser.add_mutually_exclusive_group()
    judge.add_argument("--judge", metavar="NAME", help=about)
    judge.add_argument("--jury", metavar="A,B", help="judges that all vote, the same as --judge jury:[A,B]")
    parser.add_argument(
        "--metrics",
        metavar="NAMES",
        default=DEFAULT_METRIC,
        help=f"judged metrics to compute (default: {DEFAULT_METRIC})",
    )
    add_judge_flags(parser)
    parser.add_argument(
        "--replay", metavar="FILE", help="use the verdicts in this file (verdicts.jsonl) and make no calls"
    )
    parser.add_argument("--cache", metavar="DIR", help="folder of verdicts to share between runs")
    parser.add_argument(
        "--qrels",
        metavar="FILE",
        help="write the grades of judged_relevance@k or umbrela_ndcg@k as TREC qrels",
    )
    parser.add_argument(
        "--repeat-judge", metavar="N", type=count, default=1, help="ask each question N times (default: 1)"
    )
    parser.add_argument(
        "--calibrate",
        metavar="FILE",
        help='human labels that correct the values: claims ({"evidence", "claim", "label"}) or samples of '
        'the run ({"sample_id", "label"}); a label is a number, or one per person ({"ada": 1, "ben": 0})',
    )
    parser.add_argument(
        "--probe",
        action="store_true",
        help="first test the judge on questions with known answers (injection, negation, ...): 40 about "
        "support, 16 about each of relevance, answer relevance and correctness, as the metrics need",
    )
    parser.add_argument(
        "--retry-failed", action="store_true", help="repeat the questions whose verdict failed"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="estimate calls, tokens, cost and time; make no calls"
    )
    add_settings(parser, [SETTINGS[name] for name in CALL_SETTINGS])
    add_out(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    from pathlib import Path

    from ..errors import PlanError
    from ..judges.llm import mode_of
    from ..runs.judging import RunJudging
    from ..runs.store.storage import EvaluationResultsStorage
    from ..runs.verdicts import JudgeRecord, VerdictCache

    settings = settings_of(args)
    args.judge = f"jury:[{args.jury}]" if args.jury else args.judge
    if args.judge is None and args.replay is None:
        raise PlanError("No judge was named: give --judge URL#model, or --replay FILE.")
    metrics = judged_metrics(args.metrics)
    storage = EvaluationResultsStorage(args.out)
    stored = None
    if args.judge is None:
        stored = _recorded(storage, args.run_id, Path(args.replay))
        args.judge, args.mode = stored.judge, stored.mode or "auto"
    is_offline = args.replay is not None or args.dry_run
    judge = named_judge(args.judge, args.mode, settings, offline=is_offline)
    if is_offline:
        _settle_offline(judge, metrics, storage, args)
    work = RunJudging(
        storage,
        args.run_id,
        metrics,
        judge,
        record=stored or JudgeRecord(judge=args.judge, mode=mode_of(judge)),
        cache=None if args.cache is None else VerdictCache(args.cache),
        replay=None if args.replay is None else Path(args.replay),
        repeats=args.repeat_judge,
        retry_failed=args.retry_failed,
    )
    work.prepare = partial(_prepare, work, args)
    if args.dry_run:
        return _say_plan(work, settings)
    results = ask(work, settings)
    if args.qrels is not None:
        _write_qrels(work, args.qrels)
    if args.json:
        echo.say_json(storage.load_results(str(work.path)))
    else:
        _say_judged(work, results)
    say_stored(work.path)
    return exit_code(replace(work.run, results=results), storage.load_tally(work.path), settings.min_coverage)


def _recorded(storage: EvaluationResultsStorage, name: str, replay: Path) -> JudgeRecord:
    """Return the judge whose verdicts are replayed, by the record beside them or that of the run."""
    from ..errors import PlanError
    from ..runs.store.storage import run_folder
    from ..runs.verdicts import read_judge_record

    record = read_judge_record(replay.parent) or read_judge_record(run_folder(storage.find(name)))
    if record is None:
        raise PlanError("It is not recorded which judge gave these verdicts: name it with --judge.")
    return record


def replayed(
    storage: EvaluationResultsStorage, name: str, metrics: list[JudgedMetric], settings: RunSettings
) -> list[MetricResult]:
    """Return judged metrics of a stored run by its stored verdicts: other thresholds need no call."""
    from ..errors import PlanError
    from ..judges.llm import settle_modes_by
    from ..runs.judging import RunJudging
    from ..runs.store.storage import run_folder
    from ..runs.verdicts import VERDICTS, VerdictFile, read_judge_record

    folder = run_folder(storage.find(name))
    record = read_judge_record(folder)
    command = f"auepora judge {shlex.quote(name)} --judge {shlex.quote(record.judge) if record else 'NAME'}"
    command += (
        f" --metrics {shlex.quote(','.join(metric.name for metric in metrics))}{out_flag(settings.out)}"
    )
    if record is None or not (folder / VERDICTS).exists():
        raise PlanError(f"{metrics[0].name} needs a judge, and the run was not judged: {command}")
    judge = named_judge(record.judge, record.mode or "auto", settings, offline=True)
    identities = {verdict.identity for verdict in VerdictFile(folder / VERDICTS).book.values()}
    settle_modes_by(judge, [kind for metric in metrics for kind in metric.question_kinds()], identities)
    for metric in metrics:
        if any(judge.asked_identities(kind).isdisjoint(identities) for kind in metric.question_kinds()):
            raise PlanError(f"The run has no verdicts for {metric.name}. Ask for them: {command}")
    return RunJudging(storage, name, metrics, judge).replayed(folder / VERDICTS)


def _settle_offline(
    judge: Judge, metrics: list[JudgedMetric], storage: EvaluationResultsStorage, args: Namespace
) -> None:
    """Decide modes that are `auto` by the stored verdicts; refuse a replay of the verdicts of others."""
    from pathlib import Path

    from ..errors import PlanError
    from ..judges.llm import settle_modes_by
    from ..runs.store.storage import run_folder
    from ..runs.verdicts import VERDICTS, VerdictFile

    path = Path(args.replay) if args.replay else run_folder(storage.find(args.run_id)) / VERDICTS
    if not args.replay and not path.exists():
        return
    identities = {verdict.identity for verdict in VerdictFile(path).book.values()}
    kinds = [kind for metric in metrics for kind in metric.question_kinds()]
    settle_modes_by(judge, kinds, identities)
    asked = {identity for kind in kinds for identity in judge.asked_identities(kind)}
    # Every question would fail, and the failures would replace the results of the run.
    if args.replay and identities and identities.isdisjoint(asked):
        known = ", ".join(sorted(identities)[:5])
        raise PlanError(f"{path} has no verdicts of this judge. It has those of {known}.")


def _prepare(work: RunJudging, args: Namespace, ask: Asker) -> None:
    """Measure the judge, if that was asked for: by probes and by labels of people."""
    from ..judges.judge import Judging
    from ..judges.trust.audit import judge_calibration
    from ..judges.trust.probes import probe, probed_kinds
    from ..runs.verdicts import write_audit

    if not (args.probe or args.calibrate):
        return
    if args.calibrate:
        claims, work.labels = read_labels(args.calibrate, {one.sample_id for one in work.run.samples})
        if claims:
            judging = Judging(work.judge, work.book)
            work.audit.calibration = judge_calibration(claims, judging, date=today(), ask=ask)
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
    from ..demo.world import demo_claims
    from ..errors import DataError
    from ..io.jsonl import read_records
    from ..judges.trust.labels import Columns, labelled_claims

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
    from datetime import UTC, datetime

    return datetime.now(UTC).date().isoformat()


def judged_metrics(names: str) -> list[JudgedMetric]:
    """Return the metrics of these names; PlanError if one of them needs no judge."""
    from ..errors import PlanError
    from ..judges.metric import JudgedMetric
    from ..metrics.parse import parse_metrics

    metrics = []
    for metric in parse_metrics(names):
        if not isinstance(metric, JudgedMetric) or not metric.needs_judge:
            raise PlanError(
                f"{metric.name} needs no judge. Compute it with auepora score --run RUN --metrics."
            )
        metrics.append(metric)
    return metrics


def named_judge(name: str, mode: str, settings: RunSettings, *, offline: bool = False) -> Judge:
    """Return the judge of a name, ready to be asked; with `offline` nothing is sent, not even a key."""
    from ..calls.streams import stdout_for_results
    from ..judges.llm import settle_modes
    from ..judges.names import JudgeOptions, judge_named

    options = JudgeOptions(
        mode=mode,
        api_key_env=None if offline else settings.api_key_env,
        plain_http=bool(settings.plain_http),
        timeout=settings.timeout or 60.0,
    )
    with stdout_for_results():  # a module of the user's own may print while it is imported
        judge = judge_named(name, options)
    if not offline:
        for sentence in settle_modes(judge):
            echo.note(sentence)
    return judge


def ask(work: RunJudging, settings: RunSettings) -> list[MetricResult]:
    """Ask what is missing and write the results; show the progress, the cost and what was kept."""
    from ..errors import AccessRefusedError, InterruptedRunError, RunStoppedError
    from ..judges.asking import cost_of
    from .interrupts import StopNow, finishing_first

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
    from collections import Counter

    failures = Counter(echo.one_line(verdict.failed, 120) for verdict in work.verdicts() if verdict.failed)
    if failures:
        most = "; ".join(f"{count:,} × {reason}" for reason, count in failures.most_common(3))
        more = "; ..." if len(failures) > 3 else ""
        echo.note(f"{failures.total():,} verdicts failed: {most}{more}")


def judge_executor(settings: RunSettings) -> Executor:
    """Return what makes the calls of a judge: threads, which wait for a server."""
    from ..calls.executors import ThreadExecutor

    return ThreadExecutor(concurrency=settings.concurrency)


def judge_policy(settings: RunSettings) -> CallPolicy:
    """Return how calls of a judge that fail are handled: retried, as those of any endpoint."""
    from ..core.settings import ENDPOINT_RETRIES

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
        reply = 40 * calls  # a quote and a verdict
        cost = (tokens * (settings.price_input or 0) + reply * (settings.price_output or 0)) / 1000
        echo.say(f"Cost: about {cost:.4f} US dollars")
    else:
        echo.say("Cost: unknown; give --price-input and --price-output (US dollars per 1,000 tokens)")
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


def _prompt_tokens(question: Question) -> int:
    prompt = question.kind.prompt
    letters = len(prompt.system) + len(prompt.user) + sum(map(len, question.material.values()))
    return letters // 4


def _write_qrels(work: RunJudging, path: str) -> None:
    """Write the grades that the judge gave to documents, for retrieval metrics of any tool."""
    from pathlib import Path

    from ..errors import PlanError
    from ..io.files import write_bytes
    from ..judges.metrics.relevance import GradedPassages, qrels_lines

    graded = [metric for metric in work.bound() if isinstance(metric, GradedPassages)]
    if not graded:
        raise PlanError("--qrels needs a metric that grades documents: --metrics judged_relevance@10.")
    deepest = max(graded, key=lambda metric: metric.k)
    pairs = zip(work.run.samples, work.run.outputs, strict=True)
    lines = "".join(f"{line}\n" for line in qrels_lines(deepest, pairs))
    write_bytes(Path(path), lines.encode(), force=True)
    echo.note(f"qrels: {lines.count(chr(10)):,} grades in {path}")


def _say_judged(work: RunJudging, results: list[MetricResult]) -> None:
    from ..judges.asking import cost_of

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


def without_judged(plan: EvaluationPlan | None, settings: RunSettings) -> EvaluationPlan | None:
    """Return the plan without its judged metrics, whose names the settings keep until the run is stored.

    PlanError if there are some and no judge, before anything is called.
    """
    from ..core.plan import EvaluationPlan

    # By the attribute: judges are imported only where there is one.
    judged = [metric for metric in plan.metrics if getattr(metric, "needs_judge", False)] if plan else []
    if settings.judge is None:
        return plan  # a plan with judged metrics is refused, as all plans are checked
    if judged or not settings.judge_metrics:
        settings.judge_metrics = [metric.name for metric in judged] or [DEFAULT_METRIC]
    if plan is None or not judged:
        return plan
    return EvaluationPlan([metric for metric in plan.metrics if metric not in judged])


def judge_stored(
    judge: Judge, settings: RunSettings, storage: EvaluationResultsStorage, name: str
) -> list[MetricResult]:
    """Judge a run that was just stored; return the judged metrics. A failure leaves the run as it is."""
    from ..judges.llm import mode_of
    from ..runs.judging import RunJudging
    from ..runs.verdicts import JudgeRecord

    record = JudgeRecord(judge=settings.judge or "", mode=mode_of(judge))
    metrics = judged_metrics(",".join(settings.judge_metrics or [DEFAULT_METRIC]))
    try:
        return ask(RunJudging(storage, name, metrics, judge, record=record), settings.for_judge())
    except BaseException:
        names = shlex.quote(",".join(metric.name for metric in metrics))
        command = f"auepora judge {shlex.quote(name)} --judge {shlex.quote(settings.judge or '')}"
        if mode := mode_of(judge):  # in another mode, all would be asked again
            command += f" --mode {mode}"
        echo.note(f"The run is stored. Judge it later: {command} --metrics {names}{out_flag(settings.out)}")
        raise


def prepared_judge(settings: RunSettings) -> Judge | None:
    """Return the judge that the settings name, before the first call of the system; None without one."""
    if settings.judge is None:
        return None
    return named_judge(settings.judge, settings.judge_mode or "auto", settings.for_judge())
