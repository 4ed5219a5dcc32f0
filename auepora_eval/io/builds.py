"""Split files (`qa_pairs.jsonl`, `summaries.jsonl`, `citations.jsonl`) as datasets, and raw tasks too.

What a record becomes:

    task_id -> sample_id                    question or instruction -> query
    reference_answer or _summary -> reference_answer.text
    retrieved -> candidate_docs             metadata.selected_chunk_ids -> relevant_docs, flagged `circular`
    answer_citations -> metadata["citations"]
    metadata.answer_span, .summary_spans -> metadata["spans"] of the relevant document that they are in
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

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

import msgspec

from ..core.dataset import InMemoryDataset
from ..core.types import Document, EvaluationSample, Response
from ..errors import DataError
from ..read.records import as_struct
from ..read.tasks import (
    SplitRecord,
    check_complete,
    is_raw_record,
    is_split_record,
    question_and_reference,
    read_raw_record,
    read_split_record,
)
from ..read.text import parse_document
from .detect import kind_of_file
from .documents import read_content
from .files import file_sha256, stem
from .jsonl import read_records, record_errors

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
        metadata={**_gold_citations(record), **record.metadata, _OF_A_SPLIT: split},
    )


def _gold_citations(record: SplitRecord) -> dict[str, list[dict[str, object]]]:
    """Return what the reference cites, in the form that the citation metrics read."""
    cited = [_citation(entry) for entry in getattr(record, "answer_citations", ())]
    return {"citations": cited} if cited else {}


def _citation(entry: Mapping[str, object]) -> dict[str, object]:
    if "file_name" in entry:
        return dict(entry)
    if entry.get("id") is not None:
        return {"file_name": str(entry["id"])}
    page = entry.get("page")
    pages = {"page_number": page} if type(page) is int else {}
    return {"file_name": str(entry.get("source_path")), **pages}


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
    return [
        Document(name, doc.text, {**doc.metadata, **_spans_in(record, doc), "circular": True})
        for name, doc in chunks.items()
    ]


def _spans_in(record: SplitRecord, chunk: Document) -> dict[str, object]:
    """Return the spans of the reference that a chunk holds, in characters of the document that it is from."""
    summary = record.metadata.get("summary_spans")
    named = [record.metadata.get("answer_span"), *(summary if isinstance(summary, list) else ())]
    documents = [chunk.metadata.get("document"), chunk.metadata.get("source_path")]
    first, last = chunk.metadata.get("start"), chunk.metadata.get("end")
    if not (isinstance(first, int) and isinstance(last, int)):
        return {}
    spans = []
    for span in named:
        if not isinstance(span, dict):
            continue
        source, start, end = (span.get(name) for name in ("document", "start", "end"))
        if not (isinstance(start, int) and isinstance(end, int) and source is not None):
            continue
        if source in documents and first <= start < end <= last:
            words = chunk.text[start - first : end - first]
            spans.append({"source": source, "start": start, "end": end, "text": words})
    return {"spans": spans} if spans else {}


# The errors of splits and their manifest: form, references, counts, hashes.


def manifest_errors(path: Path) -> list[str]:
    """Return the errors of a manifest and of the splits that it describes."""
    snapshot = read_manifest(path)
    manifest = snapshot.manifest
    errors = []
    if manifest.source.path and manifest.source.count != manifest.records:
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


# `manifest.json`: what a build was made of, what came out, and hashes to check whether it still is that.

MANIFEST_NAME = "manifest.json"
_START = 4096  # bytes
_LONGEST_NAME = 255  # characters of a file name: systems fail on longer ones
# A million documents, the most that are counted, with names of 200 characters.
_MAX_BYTES = 300_000_000
_VERSION = re.compile(r"v[0-9]+(?:\.[0-9]+)*")


class FileFacts(msgspec.Struct, frozen=True):
    """A file as it was: where, how many records, which bytes."""

    path: str = ""
    count: int = 0
    sha256: str = ""
    bytes: int | None = None


class SourceFacts(msgspec.Struct, frozen=True):
    """What a build was made from. What it used of it is in the splits, which have a hash."""

    path: str = ""
    count: int = 0
    bytes: int | None = None


class Coverage(msgspec.Struct, frozen=True):
    """How many records each task type, document and label has: what a later version is compared with.

    `not_counted` names the labels that have too many values for that: "labels.NAME".
    """

    task_types: dict[str, int] = {}
    documents: dict[str, int] = {}
    labels: dict[str, int] = {}
    not_counted: list[str] = []


class Manifest(msgspec.Struct):
    """A build, described; in the order in which it is written. Paths are from where the manifest lies."""

    version: str
    generated_at_utc: str
    source_offline_dataset: str
    filters: dict[str, object] = {}
    splits: dict[str, FileFacts] = {}
    excluded_task_types: dict[str, int] = {}
    skipped: dict[str, int] = {}
    source: SourceFacts = SourceFacts()
    coverage: Coverage = Coverage()
    notes: dict[str, int] = {}
    build: dict[str, object] = {}

    @property
    def records(self) -> int:
        """How many records of the source were read: each is in a split, excluded or skipped."""
        built = sum(split.count for split in self.splits.values())
        return built + sum(self.excluded_task_types.values()) + sum(self.skipped.values())

    def same_content(self, other: Manifest) -> bool:
        """Whether two builds gave the same bytes from a source of the same size, whenever that was."""
        mine, theirs = (
            (each.version, each.filters, each.splits, each.excluded_task_types, each.skipped)
            for each in (self, other)
        )
        return mine == theirs and self.source.bytes == other.source.bytes


@dataclass(frozen=True)
class Snapshot:
    """A manifest that was read, and the hash by which a run can say which one it was."""

    path: Path
    manifest: Manifest
    sha256: str

    @property
    def splits(self) -> dict[str, Path]:
        """Where the splits lie, by name; DataError if one is said to lie where a manifest may not point."""
        return {name: _place(self.path, name, split) for name, split in self.manifest.splits.items()}


def manifest_bytes(manifest: Manifest) -> bytes:
    """A manifest as it is written: indented JSON."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"


def read_manifest(path: str | Path) -> Snapshot:
    """Read a manifest, ours or one that has only the version, the paths and the counts."""
    path = Path(path)
    content = read_content(path, _MAX_BYTES)
    document = parse_document(content, path.name)
    manifest = as_struct(document, Manifest, path.name, fix="Is it the manifest of a build?")
    return Snapshot(path, manifest, hashlib.sha256(content).hexdigest())


def _place(manifest: Path, name: str, split: FileFacts) -> Path:
    """The file that a manifest names, in its own folder or below.

    One elsewhere is taken only if it is the very file whose sha256 the manifest holds: so a manifest from a
    stranger cannot make us show a file that the stranger does not know already.
    """
    written = split.path
    beside = PurePosixPath(written.replace("\\", "/"))
    is_name = beside.name not in ("", "..") and "\0" not in written
    if beside.is_absolute() or not is_name or max(map(len, beside.parts)) > _LONGEST_NAME:
        raise _not_there(manifest, name, written)
    path = manifest.parent / beside
    if ".." in beside.parts:
        if not split.sha256:
            raise _not_there(manifest, name, written)
        if path.exists() and not (path.is_file() and file_sha256(path) == split.sha256):
            raise DataError(
                f"{manifest.name}: $.splits.{name:.40}.sha256",
                f"{written!r:.80} is not the file that was built.",
                fix="Build it again.",
            )
        return path
    # A manifest may also name its files from the project's root, as the first ones did.
    return path if path.exists() else manifest.parent / beside.name


def _not_there(manifest: Path, name: str, written: str) -> DataError:
    return DataError(
        f"{manifest.name}: $.splits.{name:.40}.path",
        f"{written!r:.80} is not in the manifest's own folder.",
        fix="Keep the splits beside their manifest, or below it.",
    )


def relative_path(path: Path, manifest: Path) -> str:
    """A path as it is written into a manifest: from where that lies, with slashes."""
    return Path(os.path.relpath(path.absolute(), manifest.absolute().parent)).as_posix()


def check_version(version: str) -> None:
    """DataError unless the version is vN or vN.N."""
    if not _VERSION.fullmatch(version):
        raise DataError(f"--version {version[:40]!r}", "is not a version.", fix="Write v1, v2 or v2.1.")


def build_time(environment: Mapping[str, str], now: datetime) -> str:
    """When a build is said to have been made: now, or as SOURCE_DATE_EPOCH has it for equal bytes."""
    epoch = environment.get("SOURCE_DATE_EPOCH", "").strip()
    if epoch:
        try:
            now = datetime.fromtimestamp(int(epoch), UTC)
        except (ValueError, OverflowError, OSError) as error:
            raise DataError(
                "SOURCE_DATE_EPOCH", f"{epoch[:40]!r} is not a number of seconds.", fix="Write 1735689600."
            ) from error
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# The manifest that describes a split: a .json file beside the split or in the folder above.


def manifest_of(path: Path) -> tuple[Snapshot, str] | None:
    """The manifest that names this very file, and the split's name in it; None if there is none.

    DataError if there is one, but of other bytes than the file's: it was changed after it was built.
    """
    if "\0" in str(path) or not path.is_file():
        return None
    sha256, other = "", None
    for snapshot, name in _naming(path):
        expected = snapshot.manifest.splits[name].sha256
        sha256 = sha256 or file_sha256(path)
        if expected in ("", sha256):
            return snapshot, name
        if snapshot.path.name == MANIFEST_NAME and snapshot.path.parent == path.parent:
            raise _other_bytes(path, snapshot)
        other = other or snapshot  # it may be kept from an earlier version, with a newer one beside it
    if other is not None:
        raise _other_bytes(path, other)
    return None


def _naming(path: Path) -> Iterator[tuple[Snapshot, str]]:
    for candidate in _manifests_near(path):
        try:
            snapshot = read_manifest(candidate)
            splits = snapshot.splits
        except DataError:
            continue  # some other tool's
        for name, place in splits.items():
            if place.exists() and place.samefile(path):
                yield snapshot, name


def _manifests_near(path: Path) -> Iterator[Path]:
    folder = path.absolute().parent
    for place in (folder, folder.parent):
        files = sorted(place.glob("*.json"), key=lambda each: (each.name != MANIFEST_NAME, each.name))
        yield from filter(_starts_like_a_manifest, files)


def _starts_like_a_manifest(path: Path) -> bool:
    """Return whether a file has the first fields of a manifest; other files may be large."""
    with suppress(OSError), path.open("rb") as file:
        return b'"generated_at_utc"' in file.read(_START)
    return False


def _other_bytes(path: Path, snapshot: Snapshot) -> DataError:
    return DataError(
        str(path),
        f"it is not the file that {snapshot.path.name} describes as {snapshot.manifest.version}: "
        "its sha256 is another.",
        fix="Build the dataset again, or load a copy of the file from a folder without that manifest.",
    )


# What a build lost since an earlier one, by their manifests.
#
# A drop is judged for each split, task type, document and label by itself: a total that stays the same can
# hide that a document is gone.

# The share of records that may be lost: a tenth, as seed 000 has it.
MAX_DROP = 0.10


@dataclass(frozen=True)
class Drop:
    """Something of which there are fewer records than before."""

    kind: str
    name: str
    before: int
    after: int

    @property
    def share(self) -> float:
        """The share that is gone."""
        return (self.before - self.after) / self.before

    def __str__(self) -> str:
        gone = "gone" if not self.after else f"{self.share:.0%} fewer"
        return f"{self.kind} {self.name}: {gone}, {self.after} records after {self.before}."


def drops(before: Manifest, after: Manifest, max_drop: float = MAX_DROP) -> list[Drop]:
    """Whatever lost more than that share of its records, the greatest losses first."""
    losses = [
        Drop(kind, name, old, new.get(name, 0))
        for kind, earlier, new in _compared(before, after)
        for name, old in earlier.items()
        if old > 0 and (old - new.get(name, 0)) / old > max_drop
    ]
    return sorted(losses, key=lambda drop: (-drop.share, -drop.before, drop.kind, drop.name))


def not_compared(before: Manifest, after: Manifest) -> list[str]:
    """What may have lost records without our knowing: it has too many names to be counted."""
    return sorted({*before.coverage.not_counted, *after.coverage.not_counted})


def _compared(before: Manifest, after: Manifest) -> Iterator[tuple[str, dict[str, int], dict[str, int]]]:
    old, new = ({name: split.count for name, split in each.splits.items()} for each in (before, after))
    yield "split", old, new
    earlier, later = before.coverage, after.coverage
    yield "task type", earlier.task_types, later.task_types
    yield "document", earlier.documents, later.documents
    uncounted = tuple(f"{name.removeprefix('labels.')}=" for name in later.not_counted)
    labels = {name: n for name, n in earlier.labels.items() if not name.startswith(uncounted)}
    yield "label", labels, later.labels
