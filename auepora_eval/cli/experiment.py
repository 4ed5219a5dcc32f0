"""Run an A/B experiment and report which variant is better.

The file is a plan with a block `ab_testing`: variants, their shares, a primary metric, guardrails. All
variants get the same samples, or each gets its share (assignment: split). On the bundled data:

  auepora experiment demo
  auepora experiment demo --check

Each variant is stored as a run. The verdict is stored as ab_test_ID.results.json.
"""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.settings import DEFAULT_OUT, RunSettings, is_endpoint
from ..errors import DataError, RunStoppedError
from ..execution.streams import stdout_for_results
from . import echo
from .common import add_flag, add_json, add_out, check_has_samples, open_samples, progress_bar, say_stored
from .flags import evaluator_of, named_system, output_cache
from .interrupts import StopNow, finishing_first
from .judge import judge_stored, prepared_judge

if TYPE_CHECKING:
    from ..core.dataset import EvaluationDataset
    from ..core.plan import EvaluationPlan
    from ..core.runner import AueporaEvaluator
    from ..experiment.experiment import Outcome, Source
    from ..io.config.experiment import Experiment, Variant
    from ..judges.judge import Judge
    from ..runs.evaluation import OutputCache
    from ..runs.store.storage import EvaluationResultsStorage


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="*.config.yaml with an experiment, or `demo`")
    add_flag(parser, "--experiment", "experiment to run, if the file has several", "ID")
    add_flag(
        parser,
        "--check",
        "dry run: check the file, load the systems and assign the samples, without calling any system",
    )
    add_flag(parser, "--resume", "resume an interrupted experiment and recompute the verdict")
    add_flag(parser, "--retry-failed", "with --resume: retry all failed samples")
    add_flag(parser, "--force", "start again and overwrite stored results")
    add_out(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    from ..demo.world import DATA
    from ..experiment.experiment import read_experiment
    from ..experiment.report import results_path
    from ..io.schema.validate import ErrorsError
    from ..runs.store.storage import EvaluationResultsStorage

    if args.force and args.resume:
        what = "would discard what --resume continues."
        raise DataError("--force", what, fix="Leave one of them out.")
    if args.retry_failed and not args.resume:
        raise DataError("--retry-failed", "works only on a resumed experiment.", fix="Add --resume.")
    try:
        path = DATA / "experiment.config.yaml" if args.file == "demo" else args.file
        experiment = read_experiment(path, args.experiment)
    except ErrorsError as error:
        for line in error.errors:
            echo.note(f"auepora: {echo.one_line(f'{error.where}: {line}', 1000)}")
        return 2
    # A folder that the flag names wins over the file; its default does not.
    if args.out == DEFAULT_OUT and "out" in experiment.plan:
        args.out = experiment.plan["out"]
    _check_judge(experiment)
    dataset = _dataset(experiment, args.file)
    if args.check:
        _say_notes(experiment)
        _try_sources(experiment, args)
        return _say_plan(experiment, dataset, args)
    storage = EvaluationResultsStorage(args.out)
    path = results_path(storage, experiment.experiment_id)
    if path.exists() and not args.force and not args.resume:
        fix = (
            "Choose another experiment_id, print its verdict again with --resume, or restart it with --force."
        )
        raise DataError(str(path), "exists already.", fix=fix)
    _say_notes(experiment)
    return _run(experiment, dataset, storage, args)


def _run(
    experiment: Experiment, dataset: EvaluationDataset, storage: EvaluationResultsStorage, args: Namespace
) -> int:
    from ..experiment.experiment import analyse_experiment, experiment_plan, judged_names
    from ..experiment.report import experiment_results, save_experiment

    plan = experiment_plan(experiment)
    # All of them before the first is called: the last one's misspelt name must not cost the others' calls.
    sources = {one.variant_id: _source(experiment, one, plan, args) for one in experiment.variants}
    # Also before the first call. Without judged metrics a judge is not needed, whatever the file says.
    judge = prepared_judge(_settings(experiment)) if judged_names(experiment) else None
    for variant in experiment.variants:
        code = _run_variant(experiment, variant, sources[variant.variant_id], dataset, storage, args)
        if code:
            return code
    if judge is not None:
        _judge_variants(experiment, judge, storage, args)
    outcome = analyse_experiment(experiment, storage, seed=_settings(experiment).seed)
    path = save_experiment(outcome, storage, force=args.force or args.resume)
    results = experiment_results(outcome)
    if args.json:
        echo.say_json(results)
    else:
        _say(outcome, results)
    say_stored(path)
    if not outcome.is_measured(outcome.primary):
        echo.note("auepora: nothing was measured.")
        return 1
    return 0


def _check_judge(experiment: Experiment) -> None:
    """Raise DataError if a metric needs a judge, and the file names none."""
    from ..experiment.experiment import judged_names

    names = judged_names(experiment)
    if names and _settings(experiment).judge is None:
        what, fix = f"{names[0]} needs a judge.", "Add a line 'judge: URL#model' at the top of the file."
        raise DataError(experiment.experiment_id, what, fix=fix)


def _judge_variants(
    experiment: Experiment, judge: Judge, storage: EvaluationResultsStorage, args: Namespace
) -> None:
    """Ask the judge about the stored answers of every variant; verdicts that are stored are not asked for."""
    from ..experiment.experiment import judged_names, run_id

    settings = _settings(experiment)
    settings.judge_metrics, settings.out = judged_names(experiment), args.out
    try:
        for variant in experiment.variants:
            judge_stored(judge, settings, storage, run_id(experiment, variant))
    except BaseException:
        _say_how_to_resume(args)
        raise


def _run_variant(
    experiment: Experiment,
    variant: Variant,
    source: Source,
    dataset: EvaluationDataset,
    storage: EvaluationResultsStorage,
    args: Namespace,
) -> int:
    from ..core.runner import InterruptedRunError
    from ..experiment.experiment import OtherVariantError, run_id, run_variant, samples_of

    name = run_id(experiment, variant)
    size = len(samples_of(experiment, variant, dataset))
    check_has_samples(f"{dataset.name}, variant {variant.variant_id}", size)
    answered = (storage.state(name).answered or 0) if args.resume else 0
    with ExitStack() as stack:
        evaluator, cache = _calls(experiment, variant, source)
        signalled = stack.enter_context(finishing_first(evaluator.stop))
        if cache is not None:
            stack.enter_context(cache)
        try:
            with progress_bar(size - answered, variant.variant_id) as advance, stdout_for_results():
                called = run_variant(
                    experiment,
                    variant,
                    source,
                    dataset,
                    storage,
                    seed=_settings(experiment).seed,
                    resume=args.resume,
                    retry_failed=args.retry_failed,
                    force=args.force,
                    on_answer=advance,
                    cache=cache,
                    metric_calls=evaluator,
                )
        except (InterruptedRunError, StopNow):
            _say_how_to_resume(args)
            return signalled.exit_code
        except OtherVariantError:  # to resume is what was refused, or would be
            raise
        except BaseException as error:
            if storage.state(name).answered:
                _say_how_to_resume(args)
            if isinstance(error, RunStoppedError) and "budget" in str(error):
                echo.note(
                    "The budget stays used up on --resume: write a larger number into the file, then resume."
                )
            raise
    echo.note(f"{variant.variant_id}: {size} samples{'' if called else ', finished before'} ({name})")
    return 0


def _say_notes(experiment: Experiment) -> None:
    """What a file says that will not have the effect that may be expected of it."""
    from ..experiment.decision import cannot_decide, without_t_test
    from ..io.config.experiment import SPLIT

    for name in experiment.unread:
        echo.note(f"note: {name}: of a service that is live; a run of a dataset does not need it.")
    if experiment.assignment != SPLIT and len({one.share for one in experiment.variants}) > 1:
        echo.note("note: traffic_allocation is for split samples; here every variant is asked all of them.")
    for name in without_t_test(experiment):
        echo.note(f"note: statistical_test: {name} is not a mean, so it has no t-test; resampling tests it.")
    if cannot_decide(experiment):
        echo.note(f"note: there can be no winner: {cannot_decide(experiment)}")


def _calls(
    experiment: Experiment, variant: Variant, source: Source
) -> tuple[AueporaEvaluator, OutputCache | None]:
    """Return what makes the calls of a variant, and their cache: of its system, or only of its metrics."""
    from ..core.runner import AueporaEvaluator, MetricCalls
    from ..experiment.experiment import experiment_plan
    from ..runs.evaluation import score_cache

    settings = _settings(experiment, variant)
    if isinstance(source, AueporaEvaluator):
        # Variants may share a system: what each of them sets is part of the key.
        return source, output_cache(settings, source, variant.arguments)
    evaluator = evaluator_of(settings, MetricCalls(), experiment_plan(experiment))
    return evaluator, score_cache(settings.cache) if settings.cache else None


def _say_how_to_resume(args: Namespace) -> None:
    out = [] if args.out == DEFAULT_OUT else ["--out", str(args.out)]
    which = ["--experiment", args.experiment] if args.experiment else []
    echo.note(f"resume: auepora experiment {shlex.join([args.file, *which, '--resume', *out])}")


def _settings(experiment: Experiment, variant: Variant | None = None) -> RunSettings:
    return RunSettings.merged(experiment.plan, variant.settings if variant else {})


def _try_sources(experiment: Experiment, args: Namespace) -> None:
    """Make each system and open each file, and ask nothing; a server would have to be asked."""
    from ..experiment.experiment import experiment_plan

    plan = experiment_plan(experiment)
    for variant in experiment.variants:
        settings = _settings(experiment, variant)
        if "outputs" in variant.settings or not is_endpoint(settings.system or ""):
            with stdout_for_results():
                _source(experiment, variant, plan, args)


def _source(experiment: Experiment, variant: Variant, plan: EvaluationPlan, args: Namespace) -> Source:
    """What answers for a variant: a system, or a file of predictions."""
    from ..execution.systems import load_system
    from ..runs.evaluation import predictions_at

    settings = _settings(experiment, variant)
    if settings.prompt:
        settings.prompt = str(Path(args.file).parent / settings.prompt)
    if "outputs" in variant.settings or not settings.system:
        # A path in a plan is relative to the plan.
        return predictions_at(Path(args.file).parent / (settings.outputs or ""))
    if variant.arguments:
        system = load_system(settings.system, {"arguments": dict(variant.arguments)})
        return evaluator_of(settings, system, plan)
    return evaluator_of(settings, named_system(settings), plan)


def _dataset(experiment: Experiment, file: str) -> EvaluationDataset:
    from ..core.dataset import first_samples

    name = experiment.plan.get("dataset")
    if not name:
        raise DataError(file, "does not say on what.", fix="Add a line 'dataset: FILE' at the top.")
    path = name if name == "demo" else str(Path(file).parent / name)
    dataset = open_samples(path, experiment.plan.get("format"))
    limit = experiment.plan.get("limit")
    return dataset if limit is None else first_samples(dataset, limit)


def _say_plan(experiment: Experiment, dataset: EvaluationDataset, args: Namespace) -> int:
    """Print how many samples each variant gets, and how many are missing."""
    from ..experiment.experiment import run_id, samples_of

    counts = {one.variant_id: len(samples_of(experiment, one, dataset)) for one in experiment.variants}
    missing = max(0, experiment.min_sample_size - min(counts.values()))
    if args.json:
        echo.say_json(
            {
                "experiment_id": experiment.experiment_id,
                "assignment": experiment.assignment,
                "variant_samples": counts,
                "missing_samples": missing,
            }
        )
        return 0
    echo.say(
        f"{experiment.experiment_id}: {experiment.assignment} samples of {dataset.name}, nothing was run"
    )
    rows = [
        [one.variant_id, f"{one.share:.0%}", f"{counts[one.variant_id]:,}", run_id(experiment, one)]
        for one in experiment.variants
    ]
    echo.say_table(("Variant", "Share", "Samples", "Run"), rows, numeric=(1, 2))
    if missing:
        echo.say_words(f"No variant can win: {missing:,} samples are missing (min_sample_size).")
    return 0


def _say(outcome: Outcome, results: Mapping[str, Any]) -> None:
    from ..experiment.report import experiment_in_words, experiment_tables, outcome_notes

    experiment = outcome.experiment
    name = experiment.name or experiment.experiment_id
    echo.say(f"{name}: {len(outcome.runs)} variants, {experiment.assignment}")
    for table in experiment_tables(results):
        echo.show(table)
    for text in outcome_notes(outcome):
        echo.say_words(text)
    echo.say_words(experiment_in_words(results))
