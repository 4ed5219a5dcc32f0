"""A run with a journal: begun or gone on with, answered, scored from the disk, and stored."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING, Any

import msgspec

from ..core.dataset import EvaluationDataset, PartOfDataset
from ..core.fingerprint import canonical_json, dataset_fingerprint
from ..core.metrics_base import SampleMetric
from ..core.resources import ResourceMonitor
from ..core.runner import name_of
from ..core.scoring import Tally, environment, new_evaluation_id, now, score_in_chunks, utc_text
from ..core.types import EvaluationRun, EvaluationSample, SystemOutputs
from ..errors import DataError, StorageError
from .journal import Journal, lacking, read_header, stored_places
from .run_log import RunLog, logged
from .same_run import refuse_other
from .scoring import Survey
from .stopping_results import sequence_results

if TYPE_CHECKING:
    from pathlib import Path

    from ..core.runner import AueporaEvaluator
    from .cache import OutputCache
    from .stopping import StopRule, Watch
    from .storage import EvaluationResultsStorage

_TOGETHER = 512


@dataclass(frozen=True)
class SystemIdentity:
    """What is known of a system beyond its name, for a run that is gone on with.

    Another server, model or prompt (`asks`) is refused. Another text of the program is only told: people mend
    what crashed and go on. `begun_in` is the folder from which files were named.
    """

    asks: dict[str, Any] | None = None
    program_sha256: str | None = None
    begun_in: str | None = None

    def as_header(self) -> dict[str, Any]:
        """What of it is known, by the names of a header."""
        facts = {"asks": self.asks, "program_sha256": self.program_sha256, "begun_in": self.begun_in}
        return {name: fact for name, fact in facts.items() if fact is not None}


@dataclass
class StoredRun:
    """A run that is on the disk, with what became of its calls; its samples and outputs are not in memory."""

    run: EvaluationRun
    tally: Tally
    path: Path
    called: int = 0  # samples that the system was asked now; the others were answered before


class FirstSamples(PartOfDataset):
    """The first samples of a dataset."""

    def __init__(self, dataset: EvaluationDataset, limit: int) -> None:
        super().__init__(dataset)
        self._limit = min(limit, sys.maxsize)

    def __iter__(self) -> Iterator[EvaluationSample]:
        return islice(self._dataset, self._limit)

    def __len__(self) -> int:
        return min(len(self._dataset), self._limit)


def evaluate_and_store(
    evaluator: AueporaEvaluator,
    dataset: EvaluationDataset,
    storage: EvaluationResultsStorage,
    *,
    evaluation_id: str | None = None,
    resume: bool = False,
    retry_failed: bool = False,
    force: bool = False,
    cache: OutputCache | None = None,
    survey: Survey | None = None,
    stop_rule: StopRule | None = None,
    identity: SystemIdentity | None = None,
) -> StoredRun:
    """Run a plan with every output in a journal before it counts, then score chunk by chunk.

    `resume` goes on with a run that was begun, or finished: answers are kept, and so are failures that would
    come again; the others are tried once more (`retry_failed`: all of them). With a `stop_rule` samples are
    asked in random order until its goals are clear, and the run has only those.
    """
    system_name, started = name_of(evaluator.system), now()
    evaluation_id = evaluation_id or new_evaluation_id(system_name, dataset.name, started)
    folder = storage.run_folder(evaluation_id)
    mends = resume and storage.is_finished(evaluation_id) and lacking(folder, retry_failed=retry_failed) > 0
    if not mends:
        storage.refuse_finished(evaluation_id, force=force)
    survey = survey or Survey.of(dataset, evaluator.plan)
    _refuse_repeated(dataset, survey)
    survey.forget_ids()
    # Before the first call: a plan that cannot be carried out must not cost a four-hour run.
    evaluator.plan.validate_counts(survey.counts, survey.size)
    evaluator.warn_of_cutoffs_beyond_top_k()
    watch = None if stop_rule is None else stop_rule.watch(evaluator, dataset, survey.sha256)
    facts = _facts(evaluator, dataset, survey, stop_rule, identity)
    header = {
        "evaluation_id": evaluation_id,
        "begun_at": utc_text(started),
        **facts,
        "configuration": evaluator.settings(),
    }
    clock = perf_counter()
    journal = Journal.resume(folder, header) if resume else Journal.create(folder, header, force=force)
    there = _kept(journal, retry_failed=retry_failed) if resume else None
    log = logged(evaluator, RunLog(folder, anew=not resume), header, samples=survey.size, there=there)
    ending = "stopped"
    try:
        with log:
            if mends or (force and not resume):
                storage.forget_results(evaluation_id)  # they are of outputs that are gone, or asked for again
            with ResourceMonitor() as monitor:
                called = _answer(
                    evaluator, dataset, journal, retry_failed=retry_failed, cache=cache, watch=watch
                )
            journal.refuse_if_lost()
            used = dataset if watch is None else watch.used(dataset)
            journal.places = None  # of a million samples that were there before they are not small
            usage = monitor.usage() if called else None
            run = EvaluationRun(
                evaluation_id=evaluation_id,
                system_name=system_name,
                dataset_name=dataset.name,
                dataset_fingerprint=survey.sha256 if used is dataset else dataset_fingerprint(used),
                results=[],
                samples=[],
                outputs=[],
                top_k=evaluator.top_k,
                seed=evaluator.seed,
                started_at=str(journal.header["begun_at"]),
                environment=environment(),
                configuration=evaluator.settings() | _programs(journal.header, header),
                resource_usage=usage,
                snapshot=dataset.snapshot,
                stopping=None if watch is None else watch.outcome(),
            )
            stored = _scored(run, evaluator, used, storage, force=force, clock=clock)
        ending = "finished"
    finally:
        journal.close(ending)
    stored.called = called
    return stored


def _kept(journal: Journal, *, retry_failed: bool) -> int:
    """How many samples need not be asked any more."""
    places = journal.places
    if places is None:
        return 0
    return len(places) - places.failed[True] - (places.failed[False] if retry_failed else 0)


def refuse_another_run(
    evaluator: AueporaEvaluator,
    dataset: EvaluationDataset,
    storage: EvaluationResultsStorage,
    evaluation_id: str,
    survey: Survey,
    stop_rule: StopRule | None = None,
    identity: SystemIdentity | None = None,
) -> None:
    """StorageError that says what differs, if the run of that id was begun as another one."""
    folder = storage.run_folder(evaluation_id)
    facts = _facts(evaluator, dataset, survey, stop_rule, identity)
    refuse_other(read_header(folder), facts, folder)


def _facts(
    evaluator: AueporaEvaluator,
    dataset: EvaluationDataset,
    survey: Survey,
    stop_rule: StopRule | None,
    identity: SystemIdentity | None,
) -> dict[str, Any]:
    return {
        "dataset": dataset.name,
        "samples": survey.size,
        **_binding(evaluator, survey, name_of(evaluator.system)),
        **({} if stop_rule is None else {"stop_when": stop_rule.as_dict()}),
        **({} if identity is None else identity.as_header()),
    }


def _programs(before: Mapping[str, Any], now_: Mapping[str, Any]) -> dict[str, Any]:
    """Both hashes of a program that was changed between two sessions of its run."""
    first, last = before.get("program_sha256"), now_.get("program_sha256")
    return {"programs_sha256": [first, last]} if first and last and first != last else {}


def _binding(evaluator: AueporaEvaluator, survey: Survey, system_name: str) -> dict[str, Any]:
    """What a run must have in common with the one that it goes on with."""
    metrics = {
        metric.name: metric.signature() if isinstance(metric, SampleMetric) else {}
        for metric in evaluator.plan.metrics
    }
    return {
        "dataset_sha256": survey.sha256,
        "system": system_name,
        # In the plan's order, which a run that is resumed by its header alone must keep.
        "metrics": {name: msgspec.json.decode(canonical_json(facts)) for name, facts in metrics.items()},
        "top_k": evaluator.top_k,
        "seed": evaluator.seed,
    }


def _answer(
    evaluator: AueporaEvaluator,
    dataset: EvaluationDataset,
    journal: Journal,
    *,
    retry_failed: bool,
    cache: OutputCache | None,
    watch: Watch | None = None,
) -> int:
    """Ask the system for what the journal lacks; how many samples that was."""
    done = journal.places
    if cache is not None and _reuse(evaluator, dataset, journal, cache, retry_failed=retry_failed):
        done = stored_places(journal.folder)

    def lacking() -> Iterator[EvaluationSample]:
        for sample in dataset if watch is None else watch.samples():
            if watch is not None and watch.clear:
                return
            if done is None or not done.is_done(sample.sample_id, retry_failed=retry_failed):
                yield sample
            elif watch is not None:
                watch.tell(sample, next(done.outputs([sample.sample_id])))

    called = 0
    for sample, output in evaluator.outputs(lacking(), journal):
        called += 1
        if watch is not None:
            watch.tell(sample, output)
        if cache is not None:
            cache.add(sample, output)
    return called


def _reuse(
    evaluator: AueporaEvaluator,
    dataset: EvaluationDataset,
    journal: Journal,
    cache: OutputCache,
    *,
    retry_failed: bool,
) -> int:
    """Write to the journal what the cache has; how many outputs that was."""
    done, found = journal.places, 0
    waiting: list[tuple[int, EvaluationSample, SystemOutputs]] = []

    def acknowledge() -> None:
        if waiting:
            journal.wait(waiting[-1][0])
        for _, sample, output in waiting:
            if evaluator.on_output is not None:
                evaluator.on_output(sample, output)
        waiting.clear()

    for sample in dataset:
        if done is not None and done.is_done(sample.sample_id, retry_failed=retry_failed):
            continue
        output = cache.get(sample)
        if output is not None:
            found += 1
            waiting.append((journal.submit(sample.sample_id, output), sample, output))
            if len(waiting) == _TOGETHER:
                acknowledge()
    acknowledge()
    return found


def _scored(
    run: EvaluationRun,
    evaluator: AueporaEvaluator,
    dataset: EvaluationDataset,
    storage: EvaluationResultsStorage,
    *,
    force: bool,
    clock: float,
) -> StoredRun:
    """Score what the journal has, in the dataset's order, whatever order it was answered in."""
    folder = storage.run_folder(run.evaluation_id)
    # The survey found all ids different: the writer need not remember them once more.
    with storage.writer(run.evaluation_id, force=force, with_outputs=False, all_differ=True) as writer:
        results = score_in_chunks(
            evaluator.plan,
            _pairs(folder, dataset),
            writer.add,
            seed=run.seed,
            folder=folder,
            executor=evaluator.executor,
        )
        run.results = sequence_results(evaluator.plan.metrics, results, run.stopping)
        run.seconds = perf_counter() - clock
        return StoredRun(run, writer.tally, writer.finish(run))


def _pairs(folder: Path, dataset: EvaluationDataset) -> Iterator[tuple[EvaluationSample, SystemOutputs]]:
    """Each sample with its output in the journal; where these are is forgotten after the last one."""
    places = stored_places(folder)
    if places is None:
        raise StorageError(f"{folder} has lost its journal.")
    yield from places.pairs(dataset)


def _refuse_repeated(dataset: EvaluationDataset, survey: Survey) -> None:
    if survey.repeated:
        raise DataError(
            dataset.name,
            f"{survey.repeated} samples have the sample_id of another one.",
            fix="Scores are matched by id: give each sample its own.",
        )
