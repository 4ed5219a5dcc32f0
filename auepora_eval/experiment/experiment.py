"""An experiment: variants are ordinary runs, stored as `<experiment>-<variant>`, and then tested together.

systems = {"small": small_chunks, "large": large_chunks}
outcome = run_experiment(load_experiment("chunks.config.yaml"), dataset, systems, storage)
outcome.verdict.winner, outcome.verdict.reason
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from ..comparison.paired_tests import is_of_time
from ..comparison.unpaired import RunScores, scores_by_run
from ..core.dataset import EvaluationDataset, PartOfDataset, canonical_json
from ..core.metrics_base import Metric
from ..core.plan import EvaluationPlan, Survey
from ..core.runner import AueporaEvaluator, name_of
from ..core.scoring import Tally
from ..core.settings import BUDGETS
from ..core.types import EvaluationRun, EvaluationSample
from ..errors import StorageError, UnknownNameError
from ..io.config.experiment import SPLIT, Experiment, Variant, load_experiment
from ..io.datasets.predictions import MISSING_PREDICTION
from ..metrics.parse import parse_metric
from ..runs.evaluation import OutputCache, PredictionRecord, Predictions, predictions_at, score_predictions
from ..runs.journal.journal import read_header, stored_places
from ..runs.store.state import RUN_FILES, read_results, variant_of
from ..runs.store.storage import EvaluationResultsStorage
from .decision import Decision, PairTest, decide, pair_tests

Source = AueporaEvaluator | Predictions
_RESTORE = "Restore those to resume it, or start again with --force."
# Settings that change no answer; the fingerprint of the dataset covers the samples.
_OF_NO_ANSWER = ("cache", "out", "limit")


@dataclass(frozen=True)
class Outcome:
    """What an experiment found. `every_side` has what each metric says of each variant, failures counted."""

    experiment: Experiment
    runs: Mapping[str, EvaluationRun]
    primary: str
    tests: Sequence[PairTest]
    every_side: Mapping[str, Mapping[str, RunScores]]
    tallies: Mapping[str, Tally]
    verdict: Decision

    @property
    def sides(self) -> Mapping[str, RunScores]:
        """What the primary metric says of each variant."""
        return self.every_side[self.primary]

    def is_measured(self, metric: str) -> bool:
        """Whether a metric measured anything at all in some variant."""
        return any(side.measured for side in self.every_side[metric].values())

    def value(self, metric: str, variant: str) -> float | None:
        """A variant's value, failed answers counted as the worst; None where no variant has any."""
        value = self.every_side[metric][variant].value
        return value if self.is_measured(metric) and math.isfinite(value) else None

    def interval(self, metric: str, variant: str) -> tuple[float, float] | None:
        """The 95% interval of a variant's value, failed answers counted as the worst."""
        side, run = self.every_side[metric][variant], self.runs[variant]
        # The stored interval leaves failures out; without any, it is the same.
        interval = side.interval() if side.failed else run.result(metric).interval
        return None if interval is None else (float(interval[0]), float(interval[1]))

    def unpredicted(self, variant: str) -> int:
        """How many samples the variant's file of predictions has no line for."""
        failures = self.tallies[variant].failures.items()
        return sum(count for (kind, _), count in failures if kind == MISSING_PREDICTION)


def read_experiment(path: str | Path, experiment_id: str | None = None) -> Experiment:
    """Read the experiment of a file and check its metrics; all errors are reported together."""
    return load_experiment(path, experiment_id, wrong_metric=_wrong_metric, wrong_rail=_wrong_rail)


def experiment_plan(experiment: Experiment) -> EvaluationPlan:
    """The metrics of an experiment that need no judge: those are computed while a variant runs."""
    return EvaluationPlan([metric for metric in _metrics(experiment) if not _needs_judge(metric)])


def judged_names(experiment: Experiment) -> list[str]:
    """The metrics of an experiment that a judge scores, when the variants are stored."""
    return [metric.name for metric in _metrics(experiment) if _needs_judge(metric)]


def _metrics(experiment: Experiment) -> list[Metric]:
    """The primary metric, the secondary ones, and those of the guardrails, each once."""
    rails = (rail.metric for rail in experiment.guard_rails)
    names = (experiment.primary_metric, *experiment.secondary_metrics, *rails)
    metrics = [parse_metric(name) for name in names]
    return list({metric.name: metric for metric in metrics}.values())


def _needs_judge(metric: Metric) -> bool:
    # By the attribute: judges are imported only where there is one.
    return bool(getattr(metric, "needs_judge", False))


def run_id(experiment: Experiment, variant: Variant) -> str:
    """The id under which the run of a variant is stored."""
    return f"{experiment.experiment_id}-{variant.variant_id}"


def samples_of(experiment: Experiment, variant: Variant, dataset: EvaluationDataset) -> EvaluationDataset:
    """The samples that a variant is asked: all of them, or its share."""
    if experiment.assignment != SPLIT:
        return dataset
    return assigned_samples(dataset, experiment.experiment_id, variant.variant_id, experiment.shares)


def run_experiment(
    experiment: Experiment,
    dataset: EvaluationDataset,
    systems: Mapping[str, Any],
    storage: EvaluationResultsStorage,
    *,
    top_k: int = 5,
    seed: int = 0,
    resume: bool = False,
    force: bool = False,
) -> Outcome:
    """Run every variant, by its id in `systems`, and decide. With `resume`, stored answers are kept."""
    plan = experiment_plan(experiment)
    for variant in experiment.variants:
        source = AueporaEvaluator(systems[variant.variant_id], plan, top_k=top_k, seed=seed)
        run_variant(experiment, variant, source, dataset, storage, resume=resume, force=force)
    return analyse_experiment(experiment, storage, seed=seed)


def run_variant(
    experiment: Experiment,
    variant: Variant,
    source: Source,
    dataset: EvaluationDataset,
    storage: EvaluationResultsStorage,
    *,
    seed: int = 0,
    resume: bool = False,
    retry_failed: bool = False,
    force: bool = False,
    on_answer: Callable[[bool], None] | None = None,
    cache: OutputCache | None = None,
    metric_calls: AueporaEvaluator | None = None,
) -> bool:
    """Run one variant, or resume it; return False if no system had to be called.

    With `resume`, predictions are read once more, and metrics that a finished run lacks are scored on its
    stored outputs; with `retry_failed` its failures are retried. Of predictions, `metric_calls` makes the
    calls of metrics that ask a model, and `cache` has their scores. `on_answer` is called with whether a call
    has failed.
    """
    name, about = run_id(experiment, variant), {"experiment": identity(experiment, variant)}
    samples = samples_of(experiment, variant, dataset)
    plan = experiment_plan(experiment)
    survey = Survey.of(samples, plan)
    state = stored_state(storage, name, about["experiment"], survey.sha256, plan, force=force)
    calls = isinstance(source, AueporaEvaluator)
    if state is not State.NOTHING and not resume and not force:
        what = "exists already. Resume it (--resume), or start again (--force)."
        raise StorageError(f"{storage.run_folder(name)} {what}")
    retries = (
        retry_failed and state is State.FINISHED and not storage.state(name).is_complete(retry_failed=True)
    )
    if resume and state is State.FINISHED and calls and not retries:
        return False
    again = force or (resume and state in (State.FINISHED, State.LACKS_METRICS))
    if isinstance(source, AueporaEvaluator):
        source.configuration = {**source.configuration, **about}
        if on_answer is not None:
            source.on_output = lambda _, output: on_answer(output.error is not None)
        if resume and state is State.LACKS_METRICS:
            score_again(source, samples, plan, storage, name)
            return False
        storage.evaluate(
            source,
            samples,
            evaluation_id=name,
            resume=resume and (state is State.STARTED or retries),
            retry_failed=retry_failed,
            force=again,
            cache=cache,
            survey=survey,
        )
        return True
    record = PredictionRecord(
        storage.state(name),
        samples,
        source,
        system_name=variant.variant_id,
        force=again,
        on_scored=on_answer,
        # Of the whole dataset: a file of predictions may cover the samples of all variants.
        known=Survey.of(dataset).ids,
        score_cache=cache,
        ask_again=force,
    )
    top_k = source.longest or 5
    score_predictions(record, plan, evaluator=metric_calls, top_k=top_k, seed=seed, configuration=about)
    return True


def identity(experiment: Experiment, variant: Variant) -> dict[str, object]:
    """What a run must have in common with the variant that it is to be one of."""
    settings = {**experiment.plan, **variant.settings}
    settings_of_run: dict[str, object] = {
        "experiment_id": experiment.experiment_id,
        "variant_id": variant.variant_id,
        "settings": {key: value for key, value in settings.items() if not _is_of_no_answer(key)},
        "arguments": dict(variant.arguments),
        "assignment": experiment.assignment,
    }
    if experiment.assignment == SPLIT:
        # Other shares would assign other samples to the variant.
        settings_of_run["shares"] = experiment.shares
    # Through JSON, so that it equals what is read from a file: tuples become lists there.
    return dict(msgspec.json.decode(canonical_json(settings_of_run)))


def _is_of_no_answer(key: str) -> bool:
    # The judge is asked about stored answers.
    return key in _OF_NO_ANSWER or key.partition("_")[0] == "judge"


def analyse_experiment(
    experiment: Experiment, storage: EvaluationResultsStorage, *, seed: int = 0
) -> Outcome:
    """The verdict on variants that were all run."""
    names = {metric.name for metric in _metrics(experiment)}
    runs = {}
    for variant in experiment.variants:
        run = storage.load_scores(run_id(experiment, variant))
        # Whatever else was scored would cost power.
        results = [result for result in run.results if result.name in names]
        runs[variant.variant_id] = replace(run, results=results)
    primary = parse_metric(experiment.primary_metric).name
    scored = [result.name for result in next(iter(runs.values())).results]
    sides = {name: scores_by_run(runs, name) for name in scored}
    tests = pair_tests(experiment, runs, primary, sides, seed=seed)
    tallies = {one.variant_id: storage.load_tally(run_id(experiment, one)) for one in experiment.variants}
    decision = decide(experiment, runs, tests, primary, sides)
    return Outcome(experiment, runs, primary, tests, sides, tallies, decision)


def _wrong_metric(name: str) -> str:
    try:
        parse_metric(name)
    except UnknownNameError as error:
        text = str(error)
        return text if text.endswith(("?", ".")) else f"{text}."
    return ""


def _wrong_rail(name: str, kind: str) -> str:
    """A rail that keeps a winner from being better, or that nothing can keep to."""
    if _wrong_metric(name):
        return ""  # reported already
    metric = parse_metric(name)
    if kind == "max_increase" and metric.higher_is_better:
        return f"more {metric.name} is better: an increase needs no limit. Use min, or margin for a loss."
    if kind == "margin" and is_of_time(metric):
        return f"{metric.name} is of times: one run each cannot rule out a loss. Use max or max_increase."
    return ""


# The stored state of a variant's run, and whether it can be resumed.


class OtherVariantError(StorageError):
    """A stored run cannot be resumed: it has another variant, other settings or other samples."""


class State(Enum):
    """How far a variant's run is."""

    NOTHING = "nothing is there"
    STARTED = "it was started"
    FINISHED = "it is finished"
    LACKS_METRICS = "it is finished, but for metrics that came to the plan since"


def stored_state(
    storage: EvaluationResultsStorage,
    name: str,
    identity: Mapping[str, Any],
    sha256: str,
    plan: EvaluationPlan,
    *,
    force: bool,
) -> State:
    """Return the stored state of a run id.

    Raise OtherVariantError if the run is not of this variant, or resuming it would mix two runs.
    """
    run = storage.state(name)
    if run.has_results:
        results = read_results(run.path)
        configuration, on = _mapping(results.get("configuration")), _mapping(results.get("metadata"))
        metrics = configuration.get("metrics") or ()
        is_lacking = any(metric.name not in metrics for metric in plan.metrics)
        state = State.LACKS_METRICS if is_lacking else State.FINISHED
    elif run.has_header:
        on, state = read_header(run.folder), State.STARTED
        configuration = _mapping(on.get("configuration"))
    else:
        return State.NOTHING
    before, variant = _mapping(configuration.get("experiment")), variant_of(configuration)
    if variant != (identity["experiment_id"], identity["variant_id"]):
        whose = f"of variant {variant[1]!r:.80} of {variant[0]!r:.80}" if variant else "of its own"
        raise OtherVariantError(f"{name} is a run {whose}. Choose another experiment_id or variant_id.")
    if force:
        return state
    if _without_budgets(before) != _without_budgets(identity):
        raise OtherVariantError(f"{name} was started with other settings. {_RESTORE}")
    if on.get("dataset_sha256") != sha256:
        # With a cache, starting again asks only the samples that are new.
        raise OtherVariantError(f"{name} was started on other samples. {_RESTORE}")
    return state


def score_again(
    evaluator: AueporaEvaluator,
    samples: EvaluationDataset,
    plan: EvaluationPlan,
    storage: EvaluationResultsStorage,
    name: str,
) -> None:
    """Score the stored outputs of a finished run with the plan of today; the system is not called."""
    folder = storage.run_folder(name)
    outputs = stored_places(folder) or predictions_at(folder / RUN_FILES[1])
    system_name = name_of(evaluator.system)
    state = storage.state(name)
    record = PredictionRecord(state, samples, outputs, system_name=system_name, force=True, ask_again=False)
    score_predictions(
        record,
        plan,
        evaluator=evaluator,
        top_k=evaluator.top_k,
        seed=evaluator.seed,
        configuration=evaluator.settings(),
    )


def _without_budgets(identity: Mapping[str, Any]) -> dict[str, object]:
    """What decides answers: a budget that is spent may be raised, and the run goes on."""
    settings = _mapping(identity.get("settings"))
    return {**identity, "settings": {key: value for key, value in settings.items() if key not in BUDGETS}}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


# Which variant a sample goes to: decided by its id alone, so that it is the same today and tomorrow.
#
# Each variant gets a number from the hash of experiment, variant and sample, larger the smaller its share;
# the smallest wins (weighted rendezvous hashing). New samples move no others, and a new variant takes
# samples away from the old ones without moving any between them. Samples of one cluster go to one variant
# together.


def assigned_variant(experiment_id: str, unit: str, shares: Mapping[str, float]) -> str:
    """The variant that a sample, or a cluster of samples, goes to."""
    # Exponentials with the shares as rates: each is the smallest with a probability equal to its share.
    return min(shares, key=lambda variant: (_draw(experiment_id, variant, unit) / shares[variant], variant))


def _draw(experiment_id: str, variant: str, unit: str) -> float:
    """An exponential number that depends on the three texts and on nothing else."""
    digest = sha256(canonical_json([experiment_id, variant, unit])).digest()
    # The half keeps the number above 0, so that the logarithm exists.
    return -math.log((int.from_bytes(digest[:8], "big") + 0.5) / 2**64)


def unit_of(sample: EvaluationSample) -> str:
    """What is assigned: the cluster of a sample, or else the sample."""
    cluster = sample.metadata.get("cluster")
    # The prefix keeps a cluster and a sample of the same name apart.
    return f"sample {sample.sample_id}" if cluster is None else f"cluster {cluster}"


def assigned_samples(
    dataset: EvaluationDataset, experiment_id: str, variant: str, shares: Mapping[str, float]
) -> EvaluationDataset:
    """Return the samples of a dataset that go to one variant."""

    def choose(samples: Iterable[EvaluationSample]) -> Iterator[EvaluationSample]:
        for sample in samples:
            if assigned_variant(experiment_id, unit_of(sample), shares) == variant:
                yield sample

    return PartOfDataset(dataset, choose)
