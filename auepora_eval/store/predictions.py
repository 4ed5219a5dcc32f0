"""Predictions in a file, scored on a dataset in a file. Neither has to fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass
from itertools import islice
from pathlib import Path
from typing import Protocol

from ..core.dataset import EvaluationDataset
from ..core.plan import EvaluationPlan, Survey
from ..core.scores import Batch, Scores
from ..core.scoring import Pair, now, score_record, utc_text
from ..core.types import EvaluationRun, EvaluationSample, SystemOutputs
from ..io.detect import kind_of_file
from ..io.outputs import (
    OWN_LINES,
    PredictionFile,
    check_known_samples,
    is_packed,
    missing_output,
    predictions_of,
)
from .database import SUFFIX as DATABASE
from .database import Database, decoded_output
from .state import RunState
from .writer import WrittenRecord, drafted, plan_match


class Predictions(Protocol):
    """Outputs that are looked up by id (see `io.outputs`)."""

    longest: int
    timed: bool

    def __len__(self) -> int: ...

    def check_known_samples(self, known: Container[str]) -> None: ...

    def outputs(self, sample_ids: Iterable[str]) -> Iterator[SystemOutputs]: ...


def predictions_at(path: str | Path, columns: Mapping[str, str] | None = None) -> Predictions:
    """Return the predictions in a file, which may be the database of a run or a file of another tool."""
    path = Path(path)
    if path.name.endswith(DATABASE):
        return StoredOutputs(path)
    kind = kind_of_file(path) if columns is None else None
    if kind in OWN_LINES and not is_packed(path):
        return PredictionFile(path)
    return predictions_of(path, columns)


# Documents are a list, or columns of ids, texts and scores.
_LONGEST = (
    "SELECT max(coalesce(json_array_length(reply, '$.retrieved.doc_id'), "
    "json_array_length(reply, '$.retrieved'))) FROM call WHERE kind = 'answer'"
)


class StoredOutputs:
    """The outputs of a run, read from its database one by one; one that did not finish has them too."""

    timed = True

    def __init__(self, path: Path) -> None:
        self._database = Database.read(path)
        self._size = self._database.outcomes().total()
        self.longest: int = self._database.select(_LONGEST)[0][0] or 0

    def __len__(self) -> int:
        return self._size

    def check_known_samples(self, known: Container[str]) -> None:
        """Raise DataError if there are outputs of samples that the dataset does not have."""
        ids = self._database.stream("SELECT DISTINCT sample FROM call WHERE kind = 'answer'")
        check_known_samples((name for (name,) in ids), known, self._database.path.name)

    def outputs(self, sample_ids: Iterable[str]) -> Iterator[SystemOutputs]:
        """Yield an output for each sample, in order; a sample without one has failed."""
        for sample_id in sample_ids:
            row = self._database.answers([sample_id]).get(sample_id)
            where = self._database.path.name
            yield missing_output() if row is None else decoded_output(row[1], where)


@dataclass
class PredictionRecord(WrittenRecord):
    """A run of predictions that are scored: no system is called.

    The dataset is read once: that it fits the plan and the predictions is checked at its end, before anything
    is stored. `known` are the ids that predictions may have, if not those of the dataset. `force` replaces
    stored results. `on_scored` is called for each sample that is stored, with whether its output has failed.
    """

    state: RunState
    dataset: EvaluationDataset
    predictions: Predictions
    plan: EvaluationPlan
    _: KW_ONLY
    system_name: str
    limit: int | None = None
    force: bool = False
    on_scored: Callable[[bool], None] | None = None
    contexts_as_retrieved: bool = False
    known: Container[str] | None = None

    def __post_init__(self) -> None:
        self.survey, self._opened = Survey(), ExitStack()
        self.evaluation_id, self.started_at = self.state.evaluation_id, utc_text(now())
        self.names_documents = self.predictions.longest > 0 or self.contexts_as_retrieved

    def __enter__(self) -> PredictionRecord:
        draft = drafted(self.state, force=self.force, match=plan_match(self.plan))
        self._writer = self._opened.enter_context(draft)
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def pairs(self) -> Iterator[Pair]:
        """Yield each sample with its prediction, in the order of the dataset."""
        waiting: list[EvaluationSample] = []

        def ids() -> Iterator[str]:
            for sample in self._surveyed():
                waiting.append(sample)
                yield sample.sample_id

        # `outputs` takes one id per output that it yields, so at most one sample waits.
        for output in self.predictions.outputs(ids()):
            sample = waiting.pop()
            if self.contexts_as_retrieved:
                from ..core.rag_interface import with_contexts

                output = with_contexts(sample, output)
            yield sample, output

    def _surveyed(self) -> Iterator[EvaluationSample]:
        """Yield the samples that are scored; count all of the dataset, and check what was counted."""
        survey = self.survey = Survey.new(self.plan)
        samples = iter(self.dataset)
        for sample in islice(samples, self.limit):
            survey.add(sample)
            yield sample
        for sample in samples:
            survey.add(sample)
        self.predictions.check_known_samples(survey.ids if self.known is None else self.known)
        survey.check_unique(self.dataset.name)
        survey.forget_ids()
        self.plan.validate_survey(survey)

    def add(self, batch: Batch, scores: Mapping[str, Scores]) -> None:
        super().add(batch, scores)
        if self.on_scored is not None:
            for output in batch.outputs:
                self.on_scored(output.error is not None)


def score_predictions(
    record: PredictionRecord, *, seed: int = 0, configuration: Mapping[str, object] | None = None
) -> EvaluationRun:
    """Score predictions chunk by chunk and store the run. Its samples and outputs are on the disk only.

    The run has no `resource_usage`: what the scoring uses says nothing about the system.
    """
    record.plan.check_metrics()
    with record:
        return score_record(
            record,
            record.plan,
            system_name=record.system_name,
            top_k=record.predictions.longest or 5,
            seed=seed,
            configuration=configuration or {},
        )
