"""Run an A/B experiment and report which variant is better.

The file is a plan with a block `ab_testing`: variants, a primary metric, guardrails.
Every variant answers every sample; its answers are stored as a run. The variants are
compared as `compare` does, and guardrails are rules of `gate`. The verdict is stored
as ab_test_ID.results.json.

  auepora experiment demo
"""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..comparison.tables import ranking_in_words
from ..core.plan import EvaluationPlan
from ..core.runner import evaluate
from ..core.settings import RunSettings, out_flag
from ..decide.experiment import (
    analyse_experiment,
    experiment_in_words,
    experiment_metrics,
    experiment_results,
    read_experiment,
    results_path,
    run_id,
    save_experiment,
    variant_configuration,
)
from ..decide.gate_report import gate_table, title
from ..demo.world import DATA
from ..errors import DataError, PlanError
from ..io.config.plan import located
from ..store.predictions import PredictionRecord, predictions_at, score_predictions
from ..store.record import StoredRecord
from ..store.storage import EvaluationResultsStorage
from . import echo
from .common import evaluated_dataset, say_stored
from .compare import say_ranking
from .flags import add_flag, add_json, add_settings, without_judged
from .judge import judge_stored, named_judge
from .run import RunCommand, check_present, prepared

if TYPE_CHECKING:
    from ..io.config.experiment import Experiment, Variant


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="*.config.yaml with an experiment, or `demo`")
    add_flag(parser, "--experiment", "experiment to run, if the file has several", "ID")
    add_flag(parser, "--check", "check the file and load the systems; call none")
    either = parser.add_mutually_exclusive_group()
    add_flag(either, "--resume", "resume the experiment and recompute the verdict")
    add_flag(either, "--force", "start again and overwrite stored results")
    add_flag(parser, "--retry-failed", "with --resume: retry all failed samples")
    add_settings(parser, "out")
    add_json(parser)


class _Work(NamedTuple):
    """A variant whose dataset, system and metrics were found, so that it can be run."""

    variant: Variant
    settings: RunSettings
    record: StoredRecord | PredictionRecord


def run(args: Namespace) -> int:
    if args.retry_failed and not args.resume:
        raise PlanError("--retry-failed works only on a resumed experiment: add --resume.")
    path = DATA / "experiment.config.yaml" if args.file == "demo" else Path(args.file)
    experiment = read_experiment(path, args.experiment)
    if experiment.unread:
        unread = ", ".join(experiment.unread)
        echo.note(f"note: {unread}: not used, because every variant answers everything.")
    # All of them before the first is called: the last one's misspelt name must not cost the others' calls.
    works = [_prepared(experiment, variant, path, args) for variant in experiment.variants]
    settings = works[0].settings
    if args.check:
        name = works[0].record.dataset.name
        echo.say(f"{experiment.experiment_id}: {len(works)} variants on {name}, nothing was run")
        return 0
    storage = EvaluationResultsStorage(settings.out)
    results = results_path(storage, experiment.experiment_id)
    if results.exists() and not args.force and not args.resume:
        fix = "Choose another experiment_id, repeat the verdict with --resume, or start again with --force."
        raise DataError(str(results), "exists already.", fix=fix)
    for work in works:
        if code := _run(work, experiment, storage, args):
            return code
        echo.note(f"{work.variant.variant_id}: stored as {work.record.evaluation_id}")
    if settings.judge:
        judge = named_judge(settings)
        for work in works:
            judge_stored(judge, work.settings, storage, work.record.evaluation_id)
    return _decide(experiment, storage, args, settings.seed)


def _prepared(experiment: Experiment, variant: Variant, path: Path, args: Namespace) -> _Work:
    """Return a variant as the run that it is: whatever is wrong with it is an error before any call."""
    metrics = experiment_metrics(experiment)
    flags = {name: getattr(args, name) for name in ("out", "force", "retry_failed", "json")}
    own = {"id": run_id(experiment, variant), "metrics": [metric.name for metric in metrics]}
    plan = located({**experiment.plan, **variant.settings}, path)
    settings = RunSettings.merged(plan, flags, own, {"arguments": variant.arguments})
    judged = [metric.name for metric in metrics if getattr(metric, "needs_judge", False)]
    if judged and settings.judge is None:
        raise DataError(path.name, f"{judged[0]} needs a judge.", fix="Add a line 'judge: URL#model'.")
    settings.judge = settings.judge if judged else None
    if "outputs" in variant.settings:
        settings.system = settings.outputs  # not the one of the plan
    check_present(settings, f"{variant.variant_id} needs it: name it in {path.name}.")
    storage = EvaluationResultsStorage(settings.out)
    state = storage.state(settings.id or "")
    if "outputs" not in variant.settings:
        settings.resume = "" if args.resume and state.header is not None else None
        about = variant_configuration(experiment, variant)
        return _Work(variant, settings, prepared(settings, storage, configuration=about)[1])
    scored = PredictionRecord(
        state,
        evaluated_dataset(settings),
        predictions_at(settings.outputs or ""),
        without_judged(EvaluationPlan(metrics), settings) or EvaluationPlan(),
        system_name=variant.variant_id,
        limit=settings.limit,
        force=args.force or args.resume,
    )
    return _Work(variant, settings, scored)


def _run(work: _Work, experiment: Experiment, storage: EvaluationResultsStorage, args: Namespace) -> int:
    """Run or resume a variant; return the exit code, 0 unless it was interrupted."""
    record, settings = work.record, work.settings
    if isinstance(record, PredictionRecord):
        score_predictions(record, configuration=variant_configuration(experiment, work.variant))
        return 0
    if args.resume and record.state.is_complete(retry_failed=args.retry_failed):
        record.check_same_run()
        return 0
    which = ["--experiment", args.experiment] if args.experiment else []
    resume = f"auepora experiment {shlex.join([args.file, *which])} --resume{out_flag(settings.out)}"
    command = RunCommand(settings, storage, record, resume=resume)
    finished, code = command.called(lambda: evaluate(record.evaluator, record))
    return code if finished is None else 0


def _decide(experiment: Experiment, storage: EvaluationResultsStorage, args: Namespace, seed: int) -> int:
    report = analyse_experiment(experiment, storage, seed=seed)
    path = save_experiment(report, storage, force=args.force or args.resume)
    results = experiment_results(report)
    if args.json:
        echo.say_json(results)
    else:
        for ranking in (report.primary, report.secondary):
            if ranking.metrics:
                say_ranking(ranking, full=True)
                echo.say_words(ranking_in_words(ranking))
        for gate in report.gates.values():
            echo.say(title(gate))
            echo.show(gate_table(gate))
        echo.say_words(experiment_in_words(results))
    say_stored(path)
    return 0 if report.primary.metrics else 1
