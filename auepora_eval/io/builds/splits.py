"""Split files (`qa_pairs.jsonl`, `summaries.jsonl`, `citations.jsonl`) as datasets, and raw tasks too.

What a record becomes:

    task_id -> sample_id                    question or instruction -> query
    reference_answer or _summary -> reference_answer.text
    retrieved -> candidate_docs             metadata.selected_chunk_ids -> relevant_docs, flagged `circular`
    task_type -> labels["task_type"]        metadata.labels -> labels
    rag_prompt, contexts, sources, retrieved, citations, answer_citations -> metadata["split"]
    metadata -> metadata

A question that the documents do not answer (metadata.labels.answerable is false) has no correct answer: its
reference is a stock phrase, kept under metadata["split"], and reference_answer is None.

`circular` marks the chunks that the generator made its question from: they are not an independent judgement
of what is relevant to it. If a manifest beside the file or in the folder above names the file, the dataset
has its version and hash, and a file with another hash is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from ...core.dataset import InMemoryDataset
from ...core.types import Document, EvaluationSample, Response
from ...errors import DataError
from ..detect import kind_of_file
from ..files.atomic import file_sha256, stem
from ..jsonl import read_records, record_errors
from .manifest import MANIFEST_NAME, Snapshot, manifest_of, read_manifest
from .tasks import (
    SplitRecord,
    check_complete,
    is_raw_record,
    is_split_record,
    question_and_reference,
    read_raw_record,
    read_split_record,
)

_OF_A_SPLIT = "split"
# Fields of a record that a sample has no place for.
_ENVELOPE = ("rag_prompt", "contexts", "sources", "retrieved", "citations", "answer_citations")


def load_split(path: str | Path) -> InMemoryDataset:
    """Load a split, or raw tasks; a malformed record or a repeated id is an error."""
    path = Path(path)
    described = manifest_of(path)
    samples = [_sample(record) for _, record in read_split(path)]
    return InMemoryDataset(stem(path), samples, info=_info(path, *described) if described else {})


def load_split_of(path: str | Path, task_type: str) -> InMemoryDataset:
    """Load the split of a type: from its own file, from a manifest or its folder, or from raw tasks."""
    path = Path(path)
    if path.is_dir():
        path /= MANIFEST_NAME
    if kind_of_file(path) == "manifest":
        splits = read_manifest(path).splits
        if task_type not in splits:
            what = f"it has no split {task_type!r}."
            raise DataError(str(path), what, fix=f"It has {', '.join(splits)}: build it with --splits.")
        path = splits[task_type]
    dataset = load_split(path)
    samples = [sample for sample in dataset if sample.labels["task_type"] == task_type]
    if not samples:
        types = ", ".join(sorted({str(sample.labels["task_type"]) for sample in dataset})) or "no records"
        raise DataError(str(path), f"it has no records of the type {task_type!r}.", fix=f"It has {types}.")
    return InMemoryDataset(dataset.name, samples, info=dataset.info)


def read_split(path: Path) -> Iterator[tuple[str, SplitRecord]]:
    """Yield ("file.jsonl:17", record) for each record of a split, or each record that a raw task becomes."""
    reader = SplitReader()
    for where, raw in read_records(path):
        yield where, reader.read(raw, where)


class SplitReader:
    """Reads the records of one file: of a split, which has one type of them, or raw tasks.

    With `complete`, a record that loads but gives a system nothing to work with is an error as well.
    """

    def __init__(self, task_type: str | None = None, *, complete: bool = False) -> None:
        self._is_raw = False
        self._task_type = task_type
        self._complete = complete
        self._places: dict[str, str] = {}

    def read(self, raw: Mapping[str, object], where: str) -> SplitRecord:
        """Return the record of a split; DataError if it is malformed, or its id was used already."""
        # A record that shows neither form is read as the one before it.
        if is_split_record(raw) and "rag" not in raw:
            self._is_raw = False
        elif is_raw_record(raw):
            self._is_raw = True
        if self._is_raw:
            record = read_raw_record(raw, where, complete=self._complete)
        else:
            record = read_split_record(raw, where, self._task_type)
            self._task_type = record.task_type
        if self._complete:
            check_complete(record, where)
        if record.task_id in self._places:
            what = f"{record.task_id!r:.80} was used already, at {self._places[record.task_id]}."
            raise DataError(f"{where}: $.task_id", what, fix="Scores are matched by id: give each its own.")
        self._places[record.task_id] = where
        return record


def _info(path: Path, snapshot: Snapshot, name: str) -> dict[str, object]:
    manifest = snapshot.manifest
    return {
        "dataset_id": stem(path),
        "name": f"{name} split",
        "version": manifest.version,
        "created_at": manifest.generated_at_utc,
        "metadata": {
            "split": name,
            "manifest_sha256": snapshot.sha256,
            "split_sha256": manifest.splits[name].sha256,
            "source_sha256": manifest.source.sha256,
        },
    }


def _sample(record: SplitRecord) -> EvaluationSample:
    question, reference = (getattr(record, name) for name in question_and_reference(type(record)))
    split = {name: getattr(record, name) for name in _ENVELOPE if hasattr(record, name)}
    candidates = _candidates(record)
    labels = record.metadata.get("labels")
    labels = labels if isinstance(labels, dict) else {}
    answer: Response | None = None
    if labels.get("answerable") is False:
        split["reference"] = reference
    else:
        alternatives = record.metadata.get("alternatives")
        are_texts = isinstance(alternatives, list) and all(isinstance(text, str) for text in alternatives)
        has_alternatives = bool(alternatives) and are_texts
        answer = Response(reference, metadata={"alternatives": alternatives} if has_alternatives else {})
    return EvaluationSample(
        record.task_id,
        question,
        relevant_docs=_selected(record, candidates) or None,
        candidate_docs=list(candidates.values()) or None,
        reference_answer=answer,
        labels={**labels, "task_type": record.task_type},
        metadata={**record.metadata, _OF_A_SPLIT: split},
    )


def _candidates(record: SplitRecord) -> dict[str, Document]:
    """Return what was retrieved, by id; without it the contexts, by their sources."""
    documents: dict[str, Document] = {}
    for place, chunk in enumerate(record.retrieved):
        identifier, text = chunk.get("id"), chunk.get("text")
        source = record.sources[place] if place < len(record.sources) else ""
        name = source if identifier is None else str(identifier)
        if name and name not in documents:
            metadata = {key: value for key, value in chunk.items() if key not in ("id", "text")}
            missing = {} if isinstance(text, str) else {"text_missing": True}
            documents[name] = Document(name, text if isinstance(text, str) else "", {**metadata, **missing})
    if not record.retrieved:
        for place, (context, source) in enumerate(zip(record.contexts, record.sources, strict=True), start=1):
            text = context.removeprefix(f"[{place}]").lstrip()
            documents.setdefault(source, Document(source, text, {"ordinal": place}))
    return documents


def _selected(record: SplitRecord, candidates: Mapping[str, Document]) -> list[Document]:
    """Return the chunks that the question was made from."""
    selected = record.metadata.get("selected_chunk_ids")
    ids = selected if isinstance(selected, list) else []
    names = dict.fromkeys(str(name) for name in ids if isinstance(name, str | int))
    missing = Document("", "", {"text_missing": True})
    chunks = {name: candidates.get(name, missing) for name in names}
    return [Document(name, doc.text, {**doc.metadata, "circular": True}) for name, doc in chunks.items()]


# The errors of splits and their manifest: form, references, counts, hashes.


def manifest_errors(path: Path) -> list[str]:
    """Return the errors of a manifest and of the splits that it describes."""
    snapshot = read_manifest(path)
    manifest = snapshot.manifest
    errors = []
    if manifest.source.sha256 and manifest.source.count != manifest.records:
        errors.append(
            f"{path.name}: $.source.count: {manifest.source.count} records were read, but splits, "
            f"excluded and skipped come to {manifest.records}. Build it again."
        )
    for name, split in snapshot.splits.items():
        where = f"{path.name}: $.splits.{name}"
        if not split.is_file():
            errors.append(f"{where}.path: there is no {split.name}. Build the dataset again.")
            continue
        of_records, count = _split_errors(split, name)
        errors += of_records
        facts = manifest.splits[name]
        if facts.count != count:
            errors.append(
                f"{where}.count: {facts.count}, but {split.name} has {count} records. Build it again."
            )
        if facts.sha256 and facts.sha256 != file_sha256(split):
            errors.append(f"{where}.sha256: {split.name} is not the file that was built. Build it again.")
    return errors


def _split_errors(path: Path, task_type: str) -> tuple[list[str], int]:
    """Return the errors of a split, and how many records it has."""
    outcomes = list(record_errors(path, SplitReader(task_type, complete=True).read))
    return [str(error) for error in outcomes if error is not None], len(outcomes)
