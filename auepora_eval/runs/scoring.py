"""Predictions in a file, scored against a dataset in a file: neither needs to fit into memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

from ..core.batch import Batch, has_field
from ..core.dataset import EvaluationDataset
from ..core.executor import Executor
from ..core.fingerprint import Fingerprint
from ..core.plan import EvaluationPlan
from ..core.resources import checked_prices
from ..core.runner import OnOutput
from ..core.scores import Scores
from ..core.scoring import (
    Tally,
    environment,
    measurable,
    new_evaluation_id,
    now,
    score_in_chunks,
    utc_text,
)
from ..core.seen import SeenIds
from ..core.types import EvaluationRun, EvaluationSample, SystemOutputs
from ..io.predictions import PredictionFile
from .dataset_marks import DatasetMarks
from .journal import JOURNAL, stored_places
from .run_log import RunLog, logged_scoring
from .storage import EvaluationResultsStorage

FIELDS = ("relevant_docs", "candidate_docs", "reference_answer", "labels", "metadata")


class Predictions(Protocol):
    """Outputs that are looked up by id: in a file of predictions, or in the journal of a run."""

    longest: int

    def refuse_strangers(self, known: Container[str]) -> None: ...

    def outputs(self, sample_ids: Iterable[str]) -> Iterator[SystemOutputs]: ...


def predictions_at(path: str | Path) -> Predictions:
    """The predictions of a file; the journal of a run, finished or not, is one too."""
    path = Path(path)
    places = stored_places(path.parent) if path.name == JOURNAL else None
    return PredictionFile(path) if places is None else places


@dataclass
class Survey:
    """What a dataset has, found out in one walk: enough to choose metrics and to check a plan."""

    ids: SeenIds = field(default_factory=SeenIds)
    size: int = 0
    repeated: int = 0  # samples with the id of another one
    sha256: str = ""  # the dataset's fingerprint
    marks: DatasetMarks = field(default_factory=DatasetMarks)
    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, EvaluationSample] = field(default_factory=dict)

    @classmethod
    def of(cls, dataset: EvaluationDataset, plan: EvaluationPlan | None = None) -> Survey:
        """Walk through a dataset and count who has what the plan needs."""
        names = {*FIELDS, *(name for m in (plan.metrics if plan else ()) for name in m.required_fields())}
        plain, dotted = [n for n in names if "." not in n], [n for n in names if "." in n]
        survey, fingerprint = cls(), Fingerprint()
        for sample in dataset:
            survey.repeated += not survey.ids.add(sample.sample_id)
            survey.size += 1
            fingerprint.add([sample])
            survey.marks.add(survey.size, fingerprint)
            survey._note(sample, plain, dotted)
        survey.sha256 = fingerprint.hexdigest()
        return survey

    def _note(self, sample: EvaluationSample, plain: Sequence[str], dotted: Sequence[str]) -> None:
        # Most answers need no closer look, and this is asked of every sample.
        there = [
            name
            for name in plain
            if (value := getattr(sample, name, None)) is not None and (value or has_field(sample, name))
        ]
        there += [name for name in dotted if has_field(sample, name)]
        for name in there:
            self.counts[name] += 1
            if name not in self.examples:
                self.examples[name] = sample

    def forget_ids(self) -> None:
        """Let go of the ids, once nobody will ask for them: they are most of what a survey holds."""
        self.ids = SeenIds()


def score_predictions(
    dataset: EvaluationDataset,
    predictions: Predictions,
    plan: EvaluationPlan,
    storage: EvaluationResultsStorage,
    *,
    system_name: str,
    evaluation_id: str | None = None,
    top_k: int = 5,
    seed: int = 0,
    limit: int | None = None,
    configuration: dict[str, Any] | None = None,
    price_input: float | None = None,
    price_output: float | None = None,
    force: bool = False,
    all_differ: bool = False,
    on_output: OnOutput | None = None,
    executor: Executor | None = None,
) -> tuple[EvaluationRun, Tally, Path]:
    """Score predictions chunk by chunk and store the run; its samples and outputs are on the disk only.

    The run has no `resource_usage`: what the scoring takes says nothing of the system. `all_differ`: it is
    known that no id of the dataset comes twice, and need not be found out. `executor`: `processes` and `ray`
    have the chunks scored by workers.
    """
    started, clock = now(), perf_counter()
    evaluation_id = evaluation_id or new_evaluation_id(system_name, dataset.name, started)
    settings = {**(configuration or {}), **checked_prices(price_input, price_output)}
    fingerprint = Fingerprint()
    facts = {"evaluation_id": evaluation_id, "system": system_name, "dataset": dataset.name}
    with (
        logged_scoring(RunLog(storage.run_folder(evaluation_id)), facts) as note,
        storage.writer(evaluation_id, force=force, all_differ=all_differ) as writer,
    ):

        def keep(batch: Batch, scores: Mapping[str, Scores]) -> None:
            fingerprint.add(batch.samples)
            writer.add(batch, scores)
            for sample, output in zip(batch.samples, batch.outputs, strict=True):
                note(sample, output)
                if on_output is not None:
                    on_output(sample, output)

        folder = storage.run_folder(evaluation_id)
        if not predictions.longest:
            plan = measurable(plan, (output for _, output in _pairs(dataset, predictions, limit)))
        pairs = _pairs(dataset, predictions, limit)
        results = score_in_chunks(plan, pairs, keep, seed=seed, folder=folder, executor=executor)
        run = EvaluationRun(
            evaluation_id=evaluation_id,
            system_name=system_name,
            dataset_name=dataset.name,
            dataset_fingerprint=fingerprint.hexdigest(),
            results=results,
            samples=[],
            outputs=[],
            top_k=top_k,
            seed=seed,
            started_at=utc_text(started),
            seconds=perf_counter() - clock,
            environment=environment(),
            configuration=settings,
            snapshot=dataset.snapshot,
        )
        return run, writer.tally, writer.finish(run)


def _pairs(
    dataset: EvaluationDataset, predictions: Predictions, limit: int | None
) -> Iterator[tuple[EvaluationSample, SystemOutputs]]:
    waiting: list[EvaluationSample] = []

    def ids() -> Iterator[str]:
        for sample in islice(dataset, limit):
            waiting.append(sample)
            yield sample.sample_id

    for output in predictions.outputs(ids()):
        yield waiting.pop(), output
