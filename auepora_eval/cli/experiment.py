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
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from ..calls.streams import stdout_for_results
from ..core.dataset import first_samples
from ..core.runner import AueporaEvaluator
from ..core.settings import DEFAULT_OUT, RunSettings
from ..core.systems.named import load_system
from ..decide.experiment import (
    analyse_experiment,
    experiment_plan,
    judged_names,
    read_experiment,
    run_id,
    run_variant,
)
from ..decide.experiment_report import experiment_in_words, experiment_results, results_path, save_experiment
from ..decide.gate_report import gate_table, title
from ..demo.world import DATA
from ..errors import DataError, InterruptedRunError, PlanError, RunStoppedError
from ..store.record import predictions_at
from ..store.storage import EvaluationResultsStorage
from . import echo
from .common import check_has_samples, open_samples, progress, say_stored
from .compare import say_ranking
from .flags import (
    add_flag,
    add_json,
    add_out,
    call_cache,
    evaluator_of,
    named_system,
    out_flag,
)
from .interrupts import StopNow, finishing_first
from .judge import judge_stored, named_judge

if TYPE_CHECKING:
    from ..core.dataset import EvaluationDataset
    from ..io.config.experiment import Experiment, Variant
    from ..store.record import Predictions


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="*.config.yaml with an experiment, or `demo`")
    add_flag(parser, "--experiment", "experiment to run, if the file has several", "ID")
    add_flag(parser, "--check", "check the file and load the systems; call none")
    add_flag(parser, "--resume", "resume the experiment and recompute the verdict")
    add_flag(parser, "--retry-failed", "with --resume: retry all failed samples")
    add_flag(parser, "--force", "start again and overwrite stored results")
    add_out(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    if args.resume and args.force:
        raise PlanError("--force would discard what --resume resumes: leave one of them out.")
    if args.retry_failed and not args.resume:
        raise PlanError("--retry-failed works only on a resumed experiment: add --resume.")
    path = DATA / "experiment.config.yaml" if args.file == "demo" else Path(args.file)
    experiment = read_experiment(path, args.experiment)
    settings = RunSettings.merged(experiment.plan)
    # A folder that the flag names wins over the file; its default does not.
    args.out = settings.out if args.out == DEFAULT_OUT else args.out
    settings.judge_metrics, settings.out = judged_names(experiment), args.out
    if settings.judge_metrics and settings.judge is None:
        what, fix = f"{settings.judge_metrics[0]} needs a judge.", "Add a line 'judge: URL#model'."
        raise DataError(path.name, what, fix=fix)
    if experiment.unread:
        echo.note(
            f"note: {', '.join(experiment.unread)}: not used, because every variant answers everything."
        )
    dataset = _dataset(settings, path)
    # All of them before the first is called: the last one's misspelt name must not cost the others' calls.
    sources = {one.variant_id: _source(experiment, one, path) for one in experiment.variants}
    if args.check:
        echo.say(f"{experiment.experiment_id}: {len(sources)} variants on {dataset.name}, nothing was run")
        return 0
    return _run(experiment, sources, dataset, settings, args)


def _run(
    experiment: Experiment,
    sources: Mapping[str, AueporaEvaluator | Predictions],
    dataset: EvaluationDataset,
    settings: RunSettings,
    args: Namespace,
) -> int:
    storage = EvaluationResultsStorage(args.out)
    path = results_path(storage, experiment.experiment_id)
    if path.exists() and not args.force and not args.resume:
        fix = "Choose another experiment_id, repeat the verdict with --resume, or start again with --force."
        raise DataError(str(path), "exists already.", fix=fix)
    judge = named_judge(settings) if settings.judge_metrics else None
    for variant in experiment.variants:
        if code := _run_variant(experiment, variant, sources[variant.variant_id], dataset, storage, args):
            return code
    if judge is not None:
        for variant in experiment.variants:
            judge_stored(judge, settings, storage, run_id(experiment, variant))
    return _decide(experiment, storage, args, settings.seed)


def _decide(experiment: Experiment, storage: EvaluationResultsStorage, args: Namespace, seed: int) -> int:
    report = analyse_experiment(experiment, storage, seed=seed)
    path = save_experiment(report, storage, force=args.force or args.resume)
    results = experiment_results(report)
    if args.json:
        echo.say_json(results)
    else:
        for ranking in (report.primary, report.secondary):
            if ranking.metrics:
                say_ranking(ranking)
        for gate in report.gates.values():
            echo.say(title(gate))
            echo.show(gate_table(gate))
        echo.say_words(experiment_in_words(results))
    say_stored(path)
    return 0 if report.primary.metrics else 1


def _run_variant(
    experiment: Experiment,
    variant: Variant,
    source: AueporaEvaluator | Predictions,
    dataset: EvaluationDataset,
    storage: EvaluationResultsStorage,
    args: Namespace,
) -> int:
    """Run or resume a variant; return the exit code, 0 unless it was interrupted."""
    options = {"resume": args.resume, "force": args.force}
    try:
        with ExitStack() as stack:
            if isinstance(source, AueporaEvaluator):
                settings = RunSettings.merged(experiment.plan, variant.settings)
                # Variants may share a system: what each of them sets is part of the key.
                cache = call_cache(settings, variant.arguments)
                options |= {"retry_failed": args.retry_failed, "cache": cache and stack.enter_context(cache)}
                source.on_output = stack.enter_context(progress(len(dataset), variant.variant_id))
                signalled = stack.enter_context(finishing_first(source.stop))
            stack.enter_context(stdout_for_results())
            run_variant(experiment, variant, source, dataset, storage, **options)
    except (RunStoppedError, StopNow, KeyboardInterrupt) as error:
        which = ["--experiment", args.experiment] if args.experiment else []
        echo.note(
            f"resume: auepora experiment {shlex.join([args.file, *which])} --resume{out_flag(args.out)}"
        )
        if isinstance(error, InterruptedRunError | StopNow):
            return signalled.exit_code
        raise
    echo.note(f"{variant.variant_id}: stored as {run_id(experiment, variant)}")
    return 0


def _source(experiment: Experiment, variant: Variant, path: Path) -> AueporaEvaluator | Predictions:
    """Return what answers for a variant: a system, or a file of predictions."""
    settings = RunSettings.merged(experiment.plan, variant.settings)
    if "outputs" in variant.settings or not settings.system:
        return predictions_at(path.parent / (settings.outputs or ""))  # a path in a plan is relative to it
    if settings.prompt:
        settings.prompt = str(path.parent / settings.prompt)
    if variant.arguments:
        with stdout_for_results():
            system = load_system(settings.system, {"arguments": dict(variant.arguments)})
    else:
        system = named_system(settings)
    return evaluator_of(settings, system, experiment_plan(experiment))


def _dataset(settings: RunSettings, path: Path) -> EvaluationDataset:
    if not settings.dataset:
        raise DataError(path.name, "does not say on what.", fix="Add a line 'dataset: FILE' at the top.")
    name = "demo" if settings.dataset == "demo" else str(path.parent / settings.dataset)
    dataset = open_samples(name, settings.format)
    dataset = dataset if settings.limit is None else first_samples(dataset, settings.limit)
    check_has_samples(dataset.name, next(iter(dataset), None) is not None)
    return dataset
