"""A run with a journal: begun or gone on with, answered, scored from the disk, and stored."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING, Any

import msgspec

from ..core.dataset import EvaluationDataset, PartOfDataset
from ..core.fingerprint import canonical_json, dataset_fingerprint
from ..core.metrics_base import SampleMetric
from ..core.resources import ResourceMonitor
from ..core.runner import name_of
from ..core.scoring import Tally, environment, measurable, new_evaluation_id, now, score_in_chunks, utc_text
from ..core.types import EvaluationRun, EvaluationSample, SystemOutputs
from ..errors import DataError, StorageError
from .budgets import counted_and_given, first_budgets
from .journal import HEADER, Journal, read_header, stored_places
from .run_log import RunLog, logged
from .same_run import changed_since, facts_of_results, refuse_other
from .scoring import Survey
from .stopping_results import sequence_results
from .system_identity import SystemIdentity, identity_of

if TYPE_CHECKING:
    from pathlib import Path

    from ..core.runner import AueporaEvaluator
    from .cache import OutputCache
    from .journal_places import JournalPlaces
    from .stopping import StopRule, Watch
    from .storage import EvaluationResultsStorage

_TOGETHER = 512


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
    on_begun: Callable[[JournalPlaces | None], None] | None = None,
) -> StoredRun:
    """Run a plan with every output in a journal before it counts, then score chunk by chunk.

    `resume` goes on with a run that was begun, or finished: answers are kept, and so are failures that would
    come again; the others are tried once more (`retry_failed`: all of them). With a `stop_rule` samples are
    asked in random order until its goals are clear, and the run has only those. `on_begun` is told what
    outputs are there, when the run is ours and before the first call.
    """
    if resume and evaluation_id is None:
        raise DataError("resume", "it does not say which run.", fix="Name it: evaluation_id='...'.")
    system_name, started = name_of(evaluator.system), now()
    evaluation_id = evaluation_id or new_evaluation_id(system_name, dataset.name, started)
    folder = storage.run_folder(evaluation_id)
    mends = resume and storage.is_finished(evaluation_id)
    if not mends or storage.is_complete(evaluation_id, retry_failed=retry_failed):
        storage.refuse_finished(evaluation_id, force=force)
    survey = survey or Survey.of(dataset, evaluator.plan)
    _refuse_repeated(dataset, survey)
    survey.forget_ids()
    # Before the first call: a plan that cannot be carried out must not cost a four-hour run.
    evaluator.plan.validate_counts(survey.counts, survey.size)
    evaluator.warn_of_cutoffs_beyond_top_k()
    watch = None if stop_rule is None else stop_rule.watch(evaluator, dataset, survey.sha256)
    identity = _with_budgets(identity or identity_of(evaluator.system), evaluator, folder, resume=resume)
    header = {
        "evaluation_id": evaluation_id,
        "begun_at": utc_text(started),
        **_facts(evaluator, dataset, survey, stop_rule, identity),
    }
    clock = perf_counter()
    journal = _opened(storage, header, resume=resume, force=force)
    there = _kept(journal, retry_failed=retry_failed) if resume else None
    log = logged(evaluator, RunLog(folder, anew=not resume), header, samples=survey.size, there=there)
    ending = "stopped"
    try:
        if on_begun is not None:
            on_begun(journal.places)
        with log:
            if force and not resume:
                storage.forget_results(evaluation_id)  # they are of outputs that are gone
            with ResourceMonitor() as monitor:
                called = _answer(
                    evaluator,
                    dataset,
                    journal,
                    retry_failed=retry_failed,
                    cache=cache,
                    keeps=_is_of_one_program(journal, header),
                    watch=watch,
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
            stored = _scored(run, evaluator, used, storage, journal, force=force or mends, clock=clock)
        ending = "finished"
    finally:
        journal.close(ending)
    stored.called = called
    return stored


def _opened(
    storage: EvaluationResultsStorage, header: Mapping[str, Any], *, resume: bool, force: bool
) -> Journal:
    evaluation_id = header["evaluation_id"]
    folder = storage.run_folder(evaluation_id)
    if not resume:
        return Journal.create(folder, header, force=force)
    journal = Journal.resume(folder, header, mends=storage.outputs_sha256(evaluation_id))
    storage.remove_leftovers(evaluation_id)
    return journal


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
    survey: Survey | None = None,
    stop_rule: StopRule | None = None,
    identity: SystemIdentity | None = None,
    *,
    is_read: bool = False,
) -> None:
    """StorageError that says what differs, if the run of that id was begun as another one.

    `is_read`: it is complete, and only read. Then a program that was changed since is told.
    """
    folder = storage.run_folder(evaluation_id)
    survey = survey or Survey.of(dataset, evaluator.plan)
    facts = _facts(evaluator, dataset, survey, stop_rule, identity or identity_of(evaluator.system))
    if is_read and not (folder / HEADER).exists():  # it was scored, or made without a journal
        before = facts_of_results(storage.load_results(evaluation_id), facts)
    else:
        before = read_header(folder)
    refuse_other(before, facts, folder)
    if is_read:
        changed_since(before, facts)


def _with_budgets(
    identity: SystemIdentity, evaluator: AueporaEvaluator, folder: Path, *, resume: bool
) -> SystemIdentity:
    """The identity with the budgets that are new to the run; the others count what was spent before."""
    evaluator.spent_before = {}
    if resume and (folder / HEADER).exists():
        counted, given = counted_and_given(folder, read_header(folder), evaluator.policy)
        evaluator.spent_before = counted
    else:
        given = first_budgets(evaluator.policy, evaluator.settings())
    return replace(identity, budgets=given or None)


def _is_of_one_program(journal: Journal, header: Mapping[str, Any]) -> bool:
    """Whether all answers in a journal are of the program of now: only those may go to its cache."""
    others = set() if journal.places is None else journal.places.programs
    return {journal.header.get("program_sha256"), *others} == {header.get("program_sha256")}


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
        "dataset_marks": survey.marks.as_header(),
        "configuration": evaluator.settings(),
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
    keeps: bool,
    watch: Watch | None = None,
) -> int:
    """Ask the system for what the journal lacks; how many samples that was."""
    done = journal.places
    if cache is not None and done is not None and keeps:
        cache.add_all(done.pairs(sample for sample in dataset if sample.sample_id in done))
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
    journal: Journal,
    *,
    force: bool,
    clock: float,
) -> StoredRun:
    """Score what the journal has, in the dataset's order, whatever order it was answered in."""
    # The survey found all ids different: the writer need not remember them once more.
    with storage.writer(run.evaluation_id, force=force, with_outputs=False, all_differ=True) as writer:
        places = journal.unharmed_places()
        plan = evaluator.plan
        if not places.longest and run.stopping is None:  # else it was watched as it is
            plan = measurable(plan, (output for _, output in places.pairs(dataset)))
        pairs = _pairs(journal, places, dataset)
        del places
        results = score_in_chunks(
            plan,
            pairs,
            writer.add,
            seed=run.seed,
            folder=journal.folder,
            executor=evaluator.executor,
        )
        run.results = sequence_results(evaluator.plan.metrics, results, run.stopping)
        run.seconds = perf_counter() - clock
        journal.refuse_if_lost()  # it may have become another's while this was computed
        return StoredRun(run, writer.tally, writer.finish(run))


def _pairs(
    journal: Journal, places: JournalPlaces, dataset: EvaluationDataset
) -> Iterator[tuple[EvaluationSample, SystemOutputs]]:
    """Each sample with its output in the journal; where these are is forgotten after the last one."""
    for sample, output in places.pairs(dataset):
        if output.error is not None and sample.sample_id not in places:
            raise StorageError(
                f"{journal.path} has no output of sample {sample.sample_id!r:.80} any more. Nothing is "
                "stored: go on with the run (--resume, resume=True), it is asked again."
            )
        yield sample, output


def _refuse_repeated(dataset: EvaluationDataset, survey: Survey) -> None:
    if survey.repeated:
        raise DataError(
            dataset.name,
            f"{survey.repeated} samples have the sample_id of another one.",
            fix="Scores are matched by id: give each sample its own.",
        )
