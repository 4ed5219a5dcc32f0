"""`manifest.json`: what a build was made of, what came out, and hashes to check whether it still is that."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

import msgspec

from ...errors import DataError
from ..files.atomic import file_sha256
from ..json.documents import read_content
from ..json.records import wrong_record
from ..json.text import parse_document

MANIFEST_NAME = "manifest.json"
_NAMES = "*manifest*.json"
# A million documents, the most that are counted, with names of 200 characters.
_MAX_BYTES = 300_000_000
_VERSION = re.compile(r"v[0-9]+(?:\.[0-9]+)*")


class FileFacts(msgspec.Struct, frozen=True):
    """A file as it was: where, how many records, which bytes."""

    path: str = ""
    count: int = 0
    sha256: str = ""
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
    source: FileFacts = FileFacts()
    coverage: Coverage = Coverage()
    notes: dict[str, int] = {}
    build: dict[str, object] = {}

    @property
    def records(self) -> int:
        """How many records of the source were read: each is in a split, excluded or skipped."""
        built = sum(split.count for split in self.splits.values())
        return built + sum(self.excluded_task_types.values()) + sum(self.skipped.values())

    def same_content(self, other: Manifest) -> bool:
        """Whether two builds gave the same bytes from the same source, whenever that was."""
        mine, theirs = (
            (each.version, each.filters, each.splits, each.excluded_task_types, each.skipped)
            for each in (self, other)
        )
        return mine == theirs and self.source.sha256 == other.source.sha256


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
    try:
        manifest = msgspec.convert(document, Manifest)
    except msgspec.ValidationError as error:
        place, what, _ = wrong_record(error)
        raise DataError(f"{path.name}: {place}", what, fix="Is it the manifest of a build?") from error
    return Snapshot(path, manifest, hashlib.sha256(content).hexdigest())


def _place(manifest: Path, name: str, split: FileFacts) -> Path:
    """The file that a manifest names, in its own folder or below.

    One elsewhere is taken only if it is the very file whose sha256 the manifest holds: so a manifest from a
    stranger cannot make us show a file that the stranger does not know already.
    """
    written = split.path
    beside = PurePosixPath(written.replace("\\", "/"))
    if beside.is_absolute() or not beside.name or beside.name == ".." or "\0" in written:
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


# The manifest that describes a split: beside the split or in the folder above, with "manifest" in its name.


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


def is_found_from(split: Path, manifest: Path) -> bool:
    """Whether a split's manifest is where it is looked for when the split is loaded."""
    folder, place = split.absolute().parent.resolve(), manifest.absolute().parent.resolve()
    return fnmatch(manifest.name, _NAMES) and place in (folder, folder.parent)


def _naming(path: Path) -> Iterator[tuple[Snapshot, str]]:
    for candidate in _candidates(path):
        try:
            snapshot = read_manifest(candidate)
            splits = snapshot.splits
        except DataError:
            continue  # some other tool's
        for name, place in splits.items():
            if place.exists() and place.samefile(path):
                yield snapshot, name


def _candidates(path: Path) -> Iterator[Path]:
    folder = path.absolute().parent
    for place in (folder, folder.parent):
        yield from sorted(place.glob(_NAMES), key=lambda each: (each.name != MANIFEST_NAME, each.name))


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
_LISTED = 3  # drops of a kind that are described one by one


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


def drops_in_words(losses: list[Drop]) -> list[str]:
    """Return a sentence for each drop, or one for all drops of a kind if there are many of it."""
    by_kind: dict[str, list[Drop]] = {}
    for drop in losses:
        by_kind.setdefault(drop.kind, []).append(drop)
    sentences: list[str] = []
    for kind, group in by_kind.items():
        if len(group) <= _LISTED:
            sentences += map(str, group)
            continue
        gone = sum(drop.after == 0 for drop in group)
        lost = sum(drop.before - drop.after for drop in group)
        largest = sorted(group, key=lambda drop: drop.after - drop.before)[:_LISTED]
        named = ", ".join(f"{drop.name} ({drop.before} to {drop.after})" for drop in largest)
        sentences.append(
            f"{len(group)} {kind}s have lost records: {gone} are gone, {len(group) - gone} have fewer, "
            f"{lost} records in all. The largest losses: {named}."
        )
    return sentences


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
