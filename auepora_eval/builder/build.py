"""From raw tasks to splits with a manifest: one pass over the source, all files written or none.

    plan = BuildPlan.in_folder("evaluation/datasets", version="v2")
    result = build_dataset(plan)
    result.manifest.splits["qa"].count

Every record that is read is in a split, in `excluded_task_types` or in `skipped`.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from ..errors import DataError, StorageError
from ..io.builds import (
    Coverage,
    FileFacts,
    Manifest,
    SourceFacts,
    build_time,
    check_version,
    manifest_bytes,
    read_manifest,
    relative_path,
)
from ..io.files import check_absent, file_sha256, naming, written_together
from ..io.jsonl import opened, placed_lines
from ..read.tasks import QA, SPLIT_NAMES, SUMMARIES, TaskError, read_task, split_record

OnSkipped = Callable[[str, str, str], None]  # where, reason, what
_PORTION = 1 << 18  # bytes that are hashed and written at a time: they fit the cache of a core
_encode_into = msgspec.json.Encoder().encode_into


@dataclass
class BuildPlan:
    """What to build from what: the paths, and how strict to be."""

    source: Path
    outputs: dict[str, Path]
    manifest: Path
    version: str = "v1"
    limit: int | None = None
    rejects: Path | None = None
    force: bool = False
    strict: bool = False

    @classmethod
    def in_folder(cls, folder: str | Path, **settings: Any) -> BuildPlan:
        """Return the plan with all files in one folder, under their usual names."""
        folder = Path(folder)
        outputs = {QA: folder / "qa_pairs.jsonl", SUMMARIES: folder / "summaries.jsonl"}
        plan = {"source": folder / "offline_dataset.jsonl", "manifest": folder / "manifest.json"}
        return cls(**{**plan, "outputs": outputs, **settings})

    @property
    def files(self) -> list[Path]:
        """Every file that is written; the manifest last."""
        rejects = [] if self.rejects is None else [self.rejects]
        return [*self.outputs.values(), *rejects, self.manifest]


@dataclass
class BuildResult:
    """The manifest of a build; `unchanged` if the same files were there already."""

    manifest: Manifest
    unchanged: bool = False
    # None for the first build in a folder.
    replaced: Manifest | None = None


def build_dataset(
    plan: BuildPlan,
    *,
    on_skipped: OnSkipped | None = None,
    environment: Mapping[str, str] | None = None,
    now: datetime | None = None,
) -> BuildResult:
    """Build the splits; no file is changed until everything is written."""
    built_at = build_time(os.environ if environment is None else environment, now or datetime.now(UTC))
    _check_plan(plan)
    before = _earlier_build(plan)
    same_version = before is not None and before.version == plan.version
    if plan.rejects is not None and not same_version:  # those of a rebuild are written again
        check_absent([plan.rejects], force=plan.force)
    build = _Build(plan, on_skipped)
    with written_together(plan.files, force=plan.force or same_version) as together:
        splits, source = build.run(together)
        manifest = _manifest(plan, build.counts, splits, source, built_at)
        if before is not None and same_version and not plan.force:
            _check_same_content(plan, manifest, before)
            for path in (*plan.outputs.values(), plan.manifest):
                del together[path]
            return BuildResult(before, unchanged=True)
        together[plan.manifest].write(manifest_bytes(manifest))
    return BuildResult(manifest, replaced=before)


class _Build:
    """One pass over the source."""

    def __init__(self, plan: BuildPlan, on_skipped: OnSkipped | None) -> None:
        self.plan, self.on_skipped = plan, on_skipped
        self.counts = BuildCounts()
        self.first_skipped = ""
        self.ids: dict[str, set[str]] = {name: set() for name in plan.outputs}
        self.rejects: Sink | None = None

    def run(self, together: Mapping[Path, BinaryIO]) -> tuple[dict[str, FileFacts], SourceFacts]:
        """Write the splits, and return the facts about them and about the source."""
        plan = self.plan
        self.sinks = {name: Sink(together[path], path) for name, path in plan.outputs.items()}
        if plan.rejects is not None:
            self.rejects = Sink(together[plan.rejects], plan.rejects)
        self._read()
        splits = {
            name: FileFacts(
                relative_path(plan.outputs[name], plan.manifest),
                sink.count,
                sink.sha256(),
                sink.size,
            )
            for name, sink in self.sinks.items()
        }
        if self.rejects is not None:
            self.rejects.sha256()
        self._check_usable()
        name, size = relative_path(plan.source, plan.manifest), plan.source.stat().st_size
        return splits, SourceFacts(name, self.counts.records, size)

    def _read(self) -> None:
        for where, line in placed_lines(self.plan.source):
            if self.counts.records == self.plan.limit:
                return
            self.counts.records += 1
            try:
                self._add(line, where)
            except TaskError as error:
                self._skip(line, where, error)

    def _add(self, line: bytes, where: str) -> None:
        """Write a task to its split, or count it as excluded; TaskError if it cannot be used."""
        task = read_task(line, where)
        kind = task.kind
        if kind not in self.sinks:
            self.counts.excluded[kind[:_MAX_LENGTH]] += 1
            return
        record, ids = split_record(task, self.counts.notes), self.ids[kind]
        if record.task_id in ids:
            what = f"$.task_id: {record.task_id!r:.80} was used already. Give each task an id of its own."
            raise TaskError("duplicate_task_id", what)
        self.sinks[kind].add(record)
        ids.add(record.task_id)
        self.counts.build(record.metadata, record.sources)

    def _skip(self, line: bytes, where: str, error: TaskError) -> None:
        if self.plan.strict:
            raise DataError(where, error.what, fix="Nothing was written.") from error
        self.counts.skipped[error.reason] += 1
        self.first_skipped = self.first_skipped or f"{where}: {error.what}"
        if self.on_skipped is not None:
            self.on_skipped(where, error.reason, error.what)
        if self.rejects is not None:
            self.rejects.add(_rejected(line, where, error))

    def _check_usable(self) -> None:
        name, counts = self.plan.source.name, self.counts
        if not counts.records:
            raise DataError(name, "there are no records in it.", fix="Write one JSON object per line.")
        if counts.skipped.total() == counts.records:
            raise DataError(
                name,
                f"not one of its {counts.records} records can be used. The first: {self.first_skipped}",
                fix="Nothing was written.",
            )
        if not any(sink.count for sink in self.sinks.values()):
            kinds = ", ".join(f"{kind!r:.40}" for kind, _ in counts.excluded.most_common(5))
            raise DataError(
                name,
                f"not one of its {counts.records} records is for {', '.join(self.sinks)}; there are {kinds}.",
                fix=f"Choose other --splits, or write {', '.join(SPLIT_NAMES)} as task_type.",
            )


def _rejected(line: bytes, where: str, error: TaskError) -> dict[str, object]:
    """Return the record of a line that was left out: the line as JSON, or as text if it is not JSON."""
    kept: dict[str, object] = {"where": where, "reason": error.reason, "what": error.what}
    line = line.strip()
    if error.reason != "invalid_json":
        return kept | {"record": msgspec.Raw(line)}
    return kept | {"line": line.decode("utf-8", "replace")}


def _manifest(
    plan: BuildPlan, counts: BuildCounts, splits: dict[str, FileFacts], source: SourceFacts, built_at: str
) -> Manifest:
    return Manifest(
        version=plan.version,
        generated_at_utc=built_at,
        source_offline_dataset=source.path,
        filters={} if plan.limit is None else {"limit": plan.limit},
        splits=splits,
        excluded_task_types=dict(sorted(counts.excluded.items())),
        skipped=dict(sorted(counts.skipped.items())),
        source=source,
        coverage=counts.coverage({name: split.count for name, split in splits.items()}),
        notes=dict(sorted(counts.notes.items())),
        build={
            "tool": "auepora-eval",
            "tool_version": installed_version("auepora-eval"),
            "parameters": {"splits": list(plan.outputs), "limit": plan.limit, "strict": plan.strict},
        },
    )


def _check_plan(plan: BuildPlan) -> None:
    """DataError or StorageError for what can be found out before anything is read."""
    check_version(plan.version)
    if not plan.outputs or not set(plan.outputs) <= set(SPLIT_NAMES):
        raise DataError("--splits", "names no split to build.", fix=f"Choose from {', '.join(SPLIT_NAMES)}.")
    source = plan.source.absolute()
    with opened(plan.source):
        pass  # there is such a file, and it can be read
    places: set[Path] = set()
    for path in plan.files:
        place = path.absolute().parent.resolve() / path.name
        if place == source.resolve() or (path.exists() and path.samefile(source)):
            raise StorageError(f"{path} is the source itself. Name another file to write to.")
        if place in places:
            raise StorageError(f"{path} is to be written twice. Give each output a name of its own.")
        places.add(place)


def _earlier_build(plan: BuildPlan) -> Manifest | None:
    """Return the manifest that is to be replaced; None if there is none that can be read."""
    if not plan.manifest.is_file():
        return None
    try:
        return read_manifest(plan.manifest).manifest
    except DataError:
        return None


def _check_same_content(plan: BuildPlan, manifest: Manifest, before: Manifest) -> None:
    """StorageError unless the new files equal those of this version byte for byte."""
    is_same = manifest.same_content(before) and all(
        path.is_file() and file_sha256(path) == manifest.splits[name].sha256
        for name, path in plan.outputs.items()
    )
    if not is_same:
        raise StorageError(
            f"{plan.manifest} is of {plan.version} already, with other content. Choose a new --version, "
            "and --force to replace the files; --force alone gives the old version new content."
        )


class Sink:
    """A file that grows by lines; its size and sha256 are known at the end."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self.count = self.size = 0
        self._file, self._path = file, path
        self._digest = hashlib.sha256()
        self._lines = bytearray()

    def add(self, record: object) -> None:
        """Write a record as one more line."""
        _encode_into(record, self._lines, -1)
        self._lines += b"\n"
        self.count += 1
        if len(self._lines) > _PORTION:
            self._write()

    def sha256(self) -> str:
        """Write what is left, and return the hash of everything."""
        self._write()
        return self._digest.hexdigest()

    def _write(self) -> None:
        with naming(self._path):
            self._file.write(self._lines)
        self._digest.update(self._lines)
        self.size += len(self._lines)
        self._lines.clear()


# What a build counts: every record of the source once, and what the records of the splits are about.

_MAX_VALUES = 1000  # of a label: one with more is an id or a measurement
_MAX_LENGTH = 200  # characters of a name
_NO_LABELS = ("variant_of", "true_answer", "fake_answer")  # ids and texts, another one in every record


@dataclass
class BuildCounts:
    """Records by where they went, and records of the splits by type, document and label.

    A label of too many values is not counted at all, and named in `not_counted`: counts of its first values
    would look like a loss when the order of the records changes.
    """

    records: int = 0
    excluded: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    documents: Counter[str] = field(default_factory=Counter)
    labels: dict[str, Counter[str]] = field(default_factory=dict)
    not_counted: set[str] = field(default_factory=set)

    def build(self, metadata: Mapping[str, object], sources: Sequence[str]) -> None:
        """Count a record of a split."""
        document = metadata.get("document") or metadata.get("source_path")
        if isinstance(document, str):
            self.documents[document[:_MAX_LENGTH]] += 1
        else:  # the metadata do not say: the documents of its contexts
            self.documents.update({source.partition("#page=")[0][:_MAX_LENGTH] for source in sources})
        labels = metadata.get("labels")
        if isinstance(labels, dict):
            for name, value in labels.items():
                if name not in _NO_LABELS and value is not None:
                    self._add_label(name[:_MAX_LENGTH], value)

    def coverage(self, built: dict[str, int]) -> Coverage:
        """The counts by which a later version is judged, in one order; `built` are the records by type."""
        kinds = Counter(built) + self.excluded
        labels = {
            f"{name}={value}": count
            for name, values in sorted(self.labels.items())
            if f"labels.{name}" not in self.not_counted
            for value, count in sorted(values.items())
        }
        return Coverage(
            dict(sorted(kinds.items())),
            dict(sorted(self.documents.items())),
            labels,
            sorted(self.not_counted),
        )

    def _add_label(self, name: str, value: Any) -> None:
        """Count a label; the entries of a list each."""
        values = self.labels.setdefault(name, Counter())
        entries = value if isinstance(value, list) else [value]
        if not all(isinstance(entry, str | bool | int | float) for entry in entries):
            self.not_counted.add(f"labels.{name}")
            return
        values.update({_label_text(entry) for entry in entries})
        if len(values) > _MAX_VALUES:
            self.not_counted.add(f"labels.{name}")
            values.clear()


def _label_text(value: str | bool | int | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)[:_MAX_LENGTH]
