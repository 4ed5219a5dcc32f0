"""Answers of a system from any file or object: our predictions, TREC runs, tables, files of other tools."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ...core.dataset import records_of
from ...core.fields import are_predictions, as_id, columns_of_answers, prediction_part, read_foreign
from ...core.shapes import as_outputs
from ...core.types import RetrievedDocument, SystemOutputs, retrieved_ids
from ...errors import DataError, wrong_type
from ..datasets.predictions import check_known_samples, load_predictions, missing_output
from ..detect import kind_of_file
from ..json.documents import read_document
from ..json.records import read_prediction
from .tables import Columns, load_tool, outputs_in
from .tools import TOOLS
from .trec import ranked_output, read_run

OUTPUT_FORMS = "a path, a list of dicts, a DataFrame, or a dict of outputs by sample id"
# Kinds of files with answers that are read as a whole; others have a prediction per line.
FOREIGN_KINDS = frozenset({"records", "csv", "parquet", "trec", "trec-run", "answers", *TOOLS})


class ForeignPredictions:
    """Outputs by sample id, in memory (a `runs.evaluation.Predictions`).

    A run of TREC may lack queries and have others: those that it lacks have no documents, as in trec_eval.
    """

    def __init__(self, name: str, outputs: Mapping[str, SystemOutputs], *, is_run: bool = False) -> None:
        self._name, self._outputs, self._is_run = name, outputs, is_run
        self.longest = max((len(output.retrieved) for output in outputs.values()), default=0)

    def __len__(self) -> int:
        return len(self._outputs)

    def check_known_samples(self, known: Container[str]) -> None:
        """DataError if there are outputs for samples that the data do not have."""
        if not self._is_run:
            check_known_samples(self._outputs, known, self._name)

    def outputs(self, sample_ids: Iterable[str]) -> Iterator[SystemOutputs]:
        """Yield an output for each sample; a sample without one has failed."""
        missing = partial(ranked_output, []) if self._is_run else missing_output
        return (self._outputs.get(sample_id) or missing() for sample_id in sample_ids)


class WithoutOwnIds:
    """Predictions without the document whose id is that of the query (a `runs.evaluation.Predictions`).

    In ArguAna and Quora the queries are documents of the corpus. BEIR removes such hits before it scores.
    """

    def __init__(self, predictions: Any) -> None:
        self._predictions, self.longest = predictions, predictions.longest
        self.check_known_samples = predictions.check_known_samples

    def __len__(self) -> int:
        return len(self._predictions)

    def outputs(self, sample_ids: Iterable[str]) -> Iterator[SystemOutputs]:
        """Yield an output for each sample."""
        waiting: list[str] = []

        def noted() -> Iterator[str]:
            for sample_id in sample_ids:
                waiting.append(sample_id)
                yield sample_id

        for output in self._predictions.outputs(noted()):
            yield _without_id(output, waiting.pop())


def _without_id(output: SystemOutputs, doc_id: str) -> SystemOutputs:
    if doc_id not in retrieved_ids(output.retrieved):
        return output
    ranked = sorted(output.retrieved, key=lambda hit: hit.rank)
    kept = [hit for hit in ranked if hit.doc.doc_id != doc_id]
    hits = [RetrievedDocument(hit.doc, hit.score, rank) for rank, hit in enumerate(kept, start=1)]
    return replace(output, retrieved=hits)


def predictions_of(source: Any, columns: Columns = None) -> ForeignPredictions:
    """Return the outputs of a file, a list of dicts, a frame, or a dict by sample id."""
    if isinstance(source, str | Path):
        return _predictions_in(Path(source), columns)
    if isinstance(source, Mapping):
        return ForeignPredictions("outputs", {str(name): as_outputs(raw) for name, raw in source.items()})
    rows = records_of(source)
    if rows is None or not all(isinstance(row, Mapping) for row in rows):
        raise wrong_type("outputs", OUTPUT_FORMS, source)
    columns = columns_of_answers(columns, rows)
    if columns is None and are_predictions(rows):
        named = ({**prediction_part(row), "sample_id": as_id(row["sample_id"])} for row in rows)
        pairs = (read_prediction(row, f"outputs[{n}]") for n, row in enumerate(named))
        return ForeignPredictions("outputs", _unique(pairs, "outputs"))
    readings = read_foreign(rows, "outputs", columns, for_outputs=True)
    answered = ((sample.sample_id, output) for sample, output in readings if output is not None)
    return ForeignPredictions("outputs", _unique(answered, "outputs"))


def _predictions_in(path: Path, columns: Columns) -> ForeignPredictions:
    kind = kind_of_file(path)
    if kind not in FOREIGN_KINDS and not columns:
        return ForeignPredictions(path.name, load_predictions(path))
    if kind in ("trec", "trec-run"):  # whole numbers in JSON may be scores too
        return ForeignPredictions(path.name, read_run(path), is_run=True)
    if kind == "answers" and not columns:
        answers = {name: as_outputs(text) for name, text in read_document(path).items()}
        return ForeignPredictions(path.name, answers)
    if kind in TOOLS:
        outputs = dict(load_tool(kind)(path, columns).outputs)
    else:
        outputs = _unique(outputs_in(path, columns), path.name)
    if not outputs:
        raise DataError(path.name, "there are no answers in it.", fix="Is it the file of the questions?")
    return ForeignPredictions(path.name, outputs)


def _unique(pairs: Iterable[tuple[str, SystemOutputs]], where: str) -> dict[str, SystemOutputs]:
    outputs: dict[str, SystemOutputs] = {}
    for sample_id, output in pairs:
        if sample_id in outputs:
            raise DataError(where, f"{sample_id!r:.80} has two answers.", fix="Keep one answer per sample.")
        outputs[sample_id] = output
    return outputs
