"""From raw tasks to splits with a manifest: one pass, every record accounted for, all files at once.

    plan = BuildPlan.in_folder("evaluation/datasets", version="v2")
    result = build_dataset(plan)
    result.manifest.splits["qa"].count

Whatever is read is in a split, in `excluded_task_types` or in `skipped`.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

import msgspec

from ..errors import DataError, StorageError
from ..io.manifest import (
    FileFacts,
    Manifest,
    build_time,
    checked_version,
    file_sha256,
    manifest_bytes,
    read_manifest,
    relative_path,
)
from ..io.raw_tasks import TaskError, put_record_line, read_task, split_record
from ..io.split_records import QA, SPLIT_NAMES, SUMMARIES
from ..io.together import FilesTogether, refuse_existing, written_together
from .build_counts import BuildCounts
from .build_files import Sink
from .build_source import Line, OnProgress, Source, TooLong, is_blank

FILE_NAMES = {"qa": "qa_pairs.jsonl", "summaries": "summaries.jsonl", "citations": "citations.jsonl"}
OnSkipped = Callable[[str, str, str], None]  # where, reason, what


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
    sync: bool = False

    @classmethod
    def in_folder(cls, folder: str | Path, **settings: Any) -> BuildPlan:
        """The plan with all files in one folder, under their usual names."""
        folder = Path(folder)
        outputs = {name: folder / FILE_NAMES[name] for name in (QA, SUMMARIES)}
        plan = {"source": folder / "offline_dataset.jsonl", "manifest": folder / "manifest.json"}
        return cls(**{**plan, "outputs": outputs, **settings})

    @property
    def files(self) -> list[Path]:
        """All that is written; the manifest last."""
        rejects = [] if self.rejects is None else [self.rejects]
        return [*self.outputs.values(), *rejects, self.manifest]


@dataclass
class BuildResult:
    """What a build came to; `unchanged` if the very same was there already.

    `left_behind` are splits of the build that was replaced, of which this one has none.
    """

    manifest: Manifest
    unchanged: bool = False
    replaced: Manifest | None = None
    first_skipped: list[str] = field(default_factory=list)
    left_behind: list[Path] = field(default_factory=list)


def build_dataset(
    plan: BuildPlan,
    *,
    on_skipped: OnSkipped | None = None,
    on_progress: OnProgress | None = None,
    environment: Mapping[str, str] | None = None,
    now: datetime | None = None,
) -> BuildResult:
    """Build the splits; nothing is touched until all is written, and then all of it is put in place."""
    made_at = build_time(os.environ if environment is None else environment, now or datetime.now(UTC))
    _refuse_bad_plan(plan)
    before = _earlier_build(plan)
    same_version = before is not None and before.version == plan.version
    if plan.rejects is not None and not same_version:
        refuse_existing([plan.rejects], force=plan.force)
    build = _Build(plan, on_skipped or _say_nothing, on_progress)
    replace = plan.force or same_version
    with written_together(plan.files, force=replace, sync=plan.sync) as together:
        splits, source = build.run(together)
        manifest = _manifest(plan, build.counts, splits, source, made_at)
        if before is not None and same_version and not plan.force:
            _refuse_other_content(plan, manifest, before)
            together.leave_unchanged(*plan.outputs.values(), *_same_rejects(plan, build), plan.manifest)
            return BuildResult(before, unchanged=True, first_skipped=build.first_skipped)
        together[plan.manifest].write(manifest_bytes(manifest))
    return BuildResult(
        manifest,
        replaced=before,
        first_skipped=build.first_skipped,
        left_behind=_left_behind(plan, before),
    )


class _Build:
    """One pass over the source."""

    def __init__(self, plan: BuildPlan, on_skipped: OnSkipped, on_progress: OnProgress | None) -> None:
        self.plan, self.on_skipped, self.on_progress = plan, on_skipped, on_progress
        self.counts = BuildCounts()
        self.first_skipped: list[str] = []
        self.ids: dict[str, set[str]] = {name: set() for name in plan.outputs}
        self.line = bytearray()
        self.rejects: Sink | None = None
        self.rejects_sha256 = ""

    def run(self, together: FilesTogether) -> tuple[dict[str, FileFacts], FileFacts]:
        """Write the splits, and tell what is in them and in the source."""
        plan = self.plan
        # One thread beside this one: a third would take turns with it where there are two cores.
        with ThreadPoolExecutor(1) as beside, Source(plan.source, beside) as source:
            self.sinks = {name: Sink(together[path], path, beside) for name, path in plan.outputs.items()}
            if plan.rejects is not None:
                self.rejects = Sink(together[plan.rejects], plan.rejects, beside)
            self._read(source)
            splits = {
                name: FileFacts(
                    relative_path(plan.outputs[name], plan.manifest), sink.count, sink.sha256(), sink.size
                )
                for name, sink in self.sinks.items()
            }
            if self.rejects is not None:
                self.rejects_sha256 = self.rejects.sha256()
            self._refuse_nothing_usable()
            name = relative_path(plan.source, plan.manifest)
            return splits, FileFacts(name, self.counts.records, source.sha256(), source.size)

    def _read(self, source: Source) -> None:
        name, limit = source.path.name, self.plan.limit
        for first, lines in source.lines(on_progress=self.on_progress):
            for number, line in enumerate(lines, start=first):
                if is_blank(line):
                    continue
                if self.counts.records == limit:
                    return
                self.counts.records += 1
                try:
                    self._take(line, name, source.may_hold_huge)
                except TaskError as error:
                    self._skip(line, f"{name}:{number}", error)

    def _take(self, line: Line, where: str, may_hold_huge: bool) -> None:
        """Put a task into its split, or count it as one that has none; TaskError if it cannot be used."""
        if isinstance(line, TooLong):
            raise TaskError("line_too_long", "the line is too long. Write one task a line.")
        task = read_task(line, where, may_hold_huge=may_hold_huge)
        kind = task.kind
        if kind not in self.sinks:
            self.counts.exclude(kind)
            return
        record, ids = split_record(task, self.counts.notes), self.ids[kind]
        if record.task_id in ids:
            what = f"$.task_id: {record.task_id!r:.80} was used already. Give each task an id of its own."
            raise TaskError("duplicate_task_id", what)
        put_record_line(record, self.line)
        self.sinks[kind].add(self.line)
        ids.add(record.task_id)
        self.counts.build(record.metadata, record.sources)

    def _skip(self, line: Line, where: str, error: TaskError) -> None:
        if self.plan.strict:
            raise DataError(where, error.what, fix="Nothing was written.") from error
        self.counts.skipped[error.reason] += 1
        if len(self.first_skipped) < 10:
            self.first_skipped.append(f"{where}: {error.what}")
        self.on_skipped(where, error.reason, error.what)
        if self.rejects is not None:
            self.rejects.add(_rejected(line, where, error))

    def _refuse_nothing_usable(self) -> None:
        name, counts = self.plan.source.name, self.counts
        if not counts.records:
            raise DataError(name, "there are no records in it.", fix="Write one JSON object a line.")
        if counts.skipped.total() == counts.records:
            raise DataError(
                name,
                f"not one of its {counts.records} records can be used. The first: {self.first_skipped[0]}",
                fix="Nothing was written.",
            )
        if not any(sink.count for sink in self.sinks.values()):
            kinds = ", ".join(f"{kind!r:.40}" for kind, _ in counts.excluded.most_common(5))
            raise DataError(
                name,
                f"not one of its {counts.records} records is for {', '.join(self.sinks)}; there are {kinds}.",
                fix="Choose other --splits. Nothing was written.",
            )


def _rejected(line: Line, where: str, error: TaskError) -> bytes:
    """A record that was left out, with the reason: as it is, as text, or as bytes, so that none is lost."""
    kept: dict[str, Any] = {"where": where, "reason": error.reason, "what": error.what}
    if isinstance(line, TooLong):  # it stays in the source
        kept |= {"offset": line.offset, "length": line.length}
    elif error.reason != "invalid_json":
        kept["record"] = msgspec.Raw(bytes(line).strip())
    else:
        try:
            kept["line"] = bytes(line).decode("utf-8")
        except UnicodeDecodeError:
            kept["line_base64"] = b64encode(line).decode("ascii")
    return msgspec.json.encode(kept)


def _manifest(
    plan: BuildPlan, counts: BuildCounts, splits: dict[str, FileFacts], source: FileFacts, made_at: str
) -> Manifest:
    return Manifest(
        version=plan.version,
        generated_at_utc=made_at,
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


def _refuse_bad_plan(plan: BuildPlan) -> None:
    """DataError or StorageError for what can be known before anything is read."""
    checked_version(plan.version)
    if not plan.outputs or not set(plan.outputs) <= set(SPLIT_NAMES):
        raise DataError("--splits", "names no split to build.", fix=f"Choose from {', '.join(SPLIT_NAMES)}.")
    source = plan.source.absolute()
    if not plan.source.is_file():
        what = "there is no such file."
        if plan.source.exists():
            what = "is a folder." if plan.source.is_dir() else "is a pipe or a device, and no file."
        raise DataError(str(plan.source), what, fix="Name the raw dataset with --offline-dataset.")
    seen: dict[Path, Path] = {}
    for path in plan.files:
        place = path.absolute().parent.resolve() / path.name
        if place == source.resolve() or (path.exists() and path.samefile(source)):
            raise StorageError(f"{path} is the source itself. Name another file to write to.")
        if place in seen:
            raise StorageError(f"{path} is to be written twice. Give each output a name of its own.")
        seen[place] = path


def _earlier_build(plan: BuildPlan) -> Manifest | None:
    """The manifest that is there, if it can be read; one that cannot is treated as any other file."""
    if not plan.manifest.is_file():
        return None
    try:
        return read_manifest(plan.manifest).manifest
    except DataError:
        return None


def _left_behind(plan: BuildPlan, before: Manifest | None) -> list[Path]:
    if before is None:
        return []
    written = {path.resolve() for path in plan.files}
    old = [plan.manifest.parent / split.path for split in before.splits.values() if split.path]
    return [path for path in old if path.resolve() not in written and path.is_file()]


def _same_rejects(plan: BuildPlan, build: _Build) -> list[Path]:
    """The file of rejects, if it is there and the same; StorageError if it is there with other content."""
    if plan.rejects is None or not plan.rejects.exists():
        return []
    if not plan.rejects.is_file() or file_sha256(plan.rejects) != build.rejects_sha256:
        refuse_existing([plan.rejects], force=False)
    return [plan.rejects]


def _refuse_other_content(plan: BuildPlan, manifest: Manifest, before: Manifest) -> None:
    """StorageError unless what was built is what is there under this version, byte for byte."""
    fits = manifest.same_content(before) and all(
        path.is_file() and file_sha256(path) == manifest.splits[name].sha256
        for name, path in plan.outputs.items()
    )
    if not fits:
        raise StorageError(
            f"{plan.manifest} is of {plan.version} already, with other content. Choose a new --version, "
            "and --force to replace the files; --force alone gives the old version new content."
        )


def _say_nothing(where: str, reason: str, what: str) -> None:
    pass
