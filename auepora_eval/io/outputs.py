"""Answers of a system from any file or object, and datasets with answers written for other tools.

Our own predictions.jsonl has one sample per line. TREC runs, tables and files of other tools are read too.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ..core.dataset import EvaluationDataset, records_of
from ..core.types import (
    Document,
    EvaluationSample,
    Failure,
    Response,
    RetrievedDocument,
    SystemOutputs,
    gold_documents,
    retrieved_ids,
)
from ..errors import DataError, warn_user, wrong_type
from ..read.fields import Reading, UnreadFields, is_query_id, read_foreign
from ..read.outputs import to_output
from ..read.records import RawPrediction, decoded, read_prediction
from ..read.text import parse_line
from .beir import save_beir
from .detect import kind_of_file
from .documents import read_document, write_document
from .jsonl import BYTE_ORDER_MARK, MAX_LINE_BYTES, opened, read_lines, read_records, save_records
from .trec import ranked_output, read_run, save_qrels, save_run

if TYPE_CHECKING:
    from .tables import Columns

_LARGEST_FILE = 1 << 44  # bytes
MISSING_PREDICTION = "MissingPrediction"  # the kind of failure of a sample that a file has no line for


def load_predictions(path: str | Path, *, max_line_bytes: int = MAX_LINE_BYTES) -> dict[str, SystemOutputs]:
    """Outputs by sample id."""
    outputs: dict[str, SystemOutputs] = {}
    unread = UnreadFields()
    for where, record in read_records(path, max_line_bytes=max_line_bytes):
        sample_id, output = read_prediction(record, where, unread)
        if sample_id in outputs:
            raise _used_already(where, sample_id)
        outputs[sample_id] = output
    unread.report(Path(path).name)
    return outputs


class PredictionFile:
    """Predictions that are looked up in their file, which is not packed: only their places are in memory.

    A place is forgotten when it was used, since the scores keep the ids of all samples too.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._name = self.path.name
        self.longest = 0  # documents retrieved for a sample, at the most
        self.timed = False  # whether any prediction has times
        # The line of each prediction and its first byte, in one number: a pair takes 90 bytes more.
        self._places: dict[str, int]
        self._survey()
        self._size = len(self._places)

    def __len__(self) -> int:
        return self._size

    def check_known_samples(self, known: Container[str]) -> None:
        """DataError if there are predictions for samples that the data do not have."""
        check_known_samples(self._places, known, self._name)

    def outputs(self, sample_ids: Iterable[str]) -> Iterator[SystemOutputs]:
        """An output for each sample, in order; a sample without a prediction has failed."""
        unread = UnreadFields()
        if len(self._places) < self._size:
            self._survey()
        with opened(self.path) as file:
            for sample_id in sample_ids:
                number, start = divmod(self._places.pop(sample_id, 0), _LARGEST_FILE)
                file.seek(start)  # within the buffer as a rule: samples are wanted in the order of the file
                line = file.readline().removeprefix(BYTE_ORDER_MARK) if number else b""
                struct = decoded(line, RawPrediction)
                yield self._output(struct or line, sample_id, number, unread) if number else missing_output()
        unread.report(self._name)

    def _output(
        self, record: RawPrediction | bytes, sample_id: str, number: int, unread: UnreadFields
    ) -> SystemOutputs:
        where = f"{self._name}:{number}"
        whole = parse_line(record, where) if isinstance(record, bytes) else record
        stored_id, output = read_prediction(whole, where, unread)
        if stored_id != sample_id:
            raise DataError(where, "the file changed while it was read.", fix="Score it again.")
        return output

    def _survey(self) -> None:
        """Note the place of each prediction, and how many documents were retrieved at the most."""
        start, self._places = 0, {}
        decode = msgspec.json.Decoder(_Head).decode
        for number, line in enumerate(read_lines(self.path), start=1):
            place, start = start, start + len(line)
            line = line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
            if not line.strip():
                continue
            where = f"{self._name}:{number}"
            try:
                head = decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                sample_id, output = read_prediction(parse_line(line, where), where, UnreadFields())
                head = _Head(sample_id, output.retrieved, output.timings)
            if head.sample_id in self._places:
                raise _used_already(where, head.sample_id)
            self._places[head.sample_id] = number * _LARGEST_FILE + place
            hits = head.retrieved.doc_id if isinstance(head.retrieved, _Ranked) else head.retrieved
            if hits and len(hits) > self.longest:
                self.longest = len(hits)
            self.timed = self.timed or bool(head.timings or head.latency_ms)


def is_packed(path: Path) -> bool:
    """Return whether a file is gzip, which cannot be read from the middle."""
    with opened(path) as file:
        return isinstance(file, gzip.GzipFile)


def check_known_samples(sample_ids: Iterable[str], known: Container[str], where: str) -> None:
    """DataError if there are predictions for samples that the data do not have."""
    strangers = [sample_id for sample_id in sample_ids if sample_id not in known]
    if not strangers:
        return
    what = f"{len(strangers)} predictions are for samples that the data lack, first {strangers[0]!r:.60}."
    fix = "Is this the right dataset?"
    if is_query_id(strangers[0]):
        fix = "The file has no ids: add a column sample_id with the ids of the dataset."
    raise DataError(where, what, fix=fix)


class _Ranked(msgspec.Struct):
    doc_id: list[msgspec.Raw]


class _Head(msgspec.Struct):
    sample_id: str
    retrieved: Sequence[Any] | _Ranked | None = None
    timings: Any = None
    latency_ms: Any = None


def missing_output() -> SystemOutputs:
    """What stands for a prediction that is not there."""
    failure = Failure(MISSING_PREDICTION, "the file has no answer to this sample: no line, or an empty cell")
    return SystemOutputs([], Response(""), error=failure)


def _used_already(where: str, sample_id: str) -> DataError:
    what = f"{sample_id!r:.80} was used already."
    return DataError(f"{where}: $.sample_id", what, fix="Keep one prediction per sample.")


# Answers of a system from any file or object: our predictions, TREC runs, tables, files of other tools.

OWN_LINES = ("predictions", "jsonl")  # kinds of files with one record of ours per line
OUTPUT_FORMS = "a path, a list of dicts, a DataFrame, or a dict of outputs by sample id"


class ForeignPredictions:
    """Outputs by sample id, in memory (a `store.record.Predictions`).

    A run of TREC may lack queries and have others: those that it lacks have no documents, as in trec_eval.
    """

    def __init__(self, name: str, outputs: Mapping[str, SystemOutputs], *, is_run: bool = False) -> None:
        self._name, self._outputs, self._is_run = name, outputs, is_run
        self.longest = max((len(output.retrieved) for output in outputs.values()), default=0)
        self.timed = any(output.timings for output in outputs.values())

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
    """Predictions without the document whose id is that of the query (a `store.record.Predictions`).

    In ArguAna and Quora the queries are documents of the corpus. BEIR removes such hits before it scores.
    """

    def __init__(self, predictions: Any) -> None:
        self._predictions = predictions
        self.longest, self.timed = predictions.longest, predictions.timed
        self.check_known_samples = predictions.check_known_samples

    def __len__(self) -> int:
        return len(self._predictions)

    def outputs(self, sample_ids: Iterable[str]) -> Iterator[SystemOutputs]:
        """Yield an output for each sample."""
        ids, asked = tee(sample_ids)
        return map(_without_id, self._predictions.outputs(asked), ids)


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
        return ForeignPredictions("outputs", {str(name): to_output(raw) for name, raw in source.items()})
    rows = records_of(source)
    if rows is None or not all(isinstance(row, Mapping) for row in rows):
        raise wrong_type("outputs", OUTPUT_FORMS, source)
    readings = read_foreign(rows, "outputs", columns, for_outputs=True)
    return ForeignPredictions("outputs", _answers_in(readings, "outputs"))


def _predictions_in(path: Path, columns: Columns) -> ForeignPredictions:
    from .tables import readings_in, tool_in  # which JSON Lines do not need

    kind = kind_of_file(path)
    if kind in OWN_LINES and not columns:
        return ForeignPredictions(path.name, load_predictions(path))
    if kind in ("trec", "trec-run"):  # whole numbers in JSON may be scores too
        return ForeignPredictions(path.name, read_run(path), is_run=True)
    if kind == "answers" and not columns:
        answers = {name: to_output(text) for name, text in read_document(path).items()}
        return ForeignPredictions(path.name, answers)
    tool = tool_in(path)
    readings = readings_in(path, columns, for_outputs=tool is None, tool=tool)
    outputs = _answers_in(readings, path.name)
    if not outputs:
        raise DataError(path.name, "there are no answers in it.", fix="Is it the file of the questions?")
    return ForeignPredictions(path.name, outputs)


def _answers_in(readings: Iterable[Reading], where: str) -> dict[str, SystemOutputs]:
    outputs: dict[str, SystemOutputs] = {}
    for sample, output in readings:
        if output is not None and sample.sample_id in outputs:
            what = f"{sample.sample_id!r:.80} has two answers."
            raise DataError(where, what, fix="Keep one answer per sample.")
        if output is not None:
            outputs[sample.sample_id] = output
    return outputs


# Datasets and answers written for other tools: TREC, BEIR, ragas, DeepEval, Label Studio.

Record = dict[str, Any]


def save_with_answers(
    form: str, dataset: EvaluationDataset, target: Path, outputs: Path | None, *, force: bool = False
) -> None:
    """Write a dataset for another tool, with the answers of a file or of the dataset itself."""
    answers: Mapping[str, SystemOutputs] = dataset.outputs
    if outputs is not None:
        ids = [sample.sample_id for sample in dataset]
        predictions = predictions_of(outputs)
        predictions.check_known_samples(set(ids))
        answers = dict(zip(ids, predictions.outputs(ids), strict=True))
    failed = {name for name, output in answers.items() if output.error is not None}
    if form == "beir":
        save_beir(dataset, target, force=force)
        return
    if form == "trec" and answers:
        save_run(answers.items(), target, force=force)
    elif form == "trec":  # the judgements
        save_qrels(dataset, target, force=force)
    else:
        given = {name: output for name, output in answers.items() if name not in failed}
        _save_records(form, dataset, given, target, force=force)
    if failed:
        missing = "is missing: its call" if len(failed) == 1 else "are missing: their calls"
        warn_user(f"{target.name}: {len(failed)} of {len(answers)} answers {missing} failed.")


def _save_records(
    form: str, dataset: EvaluationDataset, answers: Mapping[str, SystemOutputs], target: Path, *, force: bool
) -> None:
    if form == "label-studio" and not answers:
        what = "annotators judge answers, and there are none."
        raise DataError(dataset.name, what, fix="Name their file: --outputs FILE.")
    made = (_RECORDS[form](sample, answers.get(sample.sample_id)) for sample in dataset)
    records = [record for record in made if record is not None]
    if form == "ragas":
        save_records(records, target, force=force)
    else:
        write_document(records, target, force=force)


def _ragas_record(sample: EvaluationSample, output: SystemOutputs | None) -> Record:
    gold, hits = gold_documents(sample), None if output is None else output.retrieved
    record: Record = {
        "user_input": sample.query,
        "reference": None if sample.reference_answer is None else sample.reference_answer.text,
        "reference_contexts": [doc.text for doc in gold] if gold and all(doc.text for doc in gold) else None,
        "reference_context_ids": [doc.doc_id for doc in gold] or None,
        "response": None if output is None else output.response.text,
    }
    if hits is not None:
        if all(hit.doc.text for hit in hits):
            record["retrieved_contexts"] = [hit.doc.text for hit in hits]
        record["retrieved_context_ids"] = [hit.doc.doc_id for hit in hits]
    # An empty answer is written, as it is an answer; ragas leaves out what is not there.
    return {name: value for name, value in record.items() if value is not None}


def _deepeval_record(sample: EvaluationSample, output: SystemOutputs | None) -> Record:
    return {
        "input": sample.query,
        "actual_output": None if output is None else output.response.text,
        "expected_output": None if sample.reference_answer is None else sample.reference_answer.text,
        "context": [_sourced(doc) for doc in gold_documents(sample)] or None,
        "retrieval_context": None if output is None else [_sourced(hit.doc) for hit in output.retrieved],
        "name": sample.sample_id,
    }


def _sourced(doc: Document) -> str:
    # The form in which DeepEval keeps the source of a context.
    return f"deepeval_source={doc.doc_id},deepeval_context={doc.text}"


def _label_studio_task(sample: EvaluationSample, output: SystemOutputs | None) -> Record | None:
    """Return a task for the template "Evaluate RAG with Human Feedback"; None without an answer."""
    if output is None:
        return None
    documents = [{"id": hit.doc.doc_id, "body": hit.doc.text} for hit in output.retrieved]
    data = {"sample_id": sample.sample_id, "question": sample.query, "answer": output.response.text}
    return {"data": {**data, "similar_docs": documents}}


_RECORDS: Mapping[str, Callable[[EvaluationSample, SystemOutputs | None], Record | None]] = {
    "ragas": _ragas_record,
    "deepeval": _deepeval_record,
    "label-studio": _label_studio_task,
}
WRITERS = ("trec", "beir", *_RECORDS)
