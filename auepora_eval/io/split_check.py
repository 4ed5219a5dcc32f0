"""Everything that is wrong with splits and their manifest: form, references, counts, hashes."""

from __future__ import annotations

from pathlib import Path

from ..errors import DataError
from .jsonl import BYTE_ORDER_MARK, parse_line, read_lines
from .manifest import Snapshot, file_sha256, read_manifest
from .split_records import read_split_record
from .together import wait_until_in_place

MAX_LISTED = 100


def split_errors(path: Path, task_type: str | None = None) -> list[str]:
    """What is wrong with the records of a split, a line each; the first hundred.

    They are all of that type; by default of the first one's.
    """
    return _checked(path, task_type)[0]


def manifest_errors(path: Path) -> list[str]:
    """What is wrong with a manifest and with the splits that it describes."""
    wait_until_in_place(path)
    snapshot = read_manifest(path)
    errors = _wrong_total(snapshot)
    for name, split in snapshot.splits.items():
        if not split.is_file():
            errors.append(
                f"{path.name}: $.splits.{name}.path: there is no {split.name}. Build the dataset anew."
            )
            continue
        found, count = _checked(split, name)
        errors += found
        errors += _wrong_facts(snapshot, name, split, count)
    return errors


def _checked(path: Path, task_type: str | None) -> tuple[list[str], int]:
    """The errors of a split, and how many records it has."""
    errors: list[str] = []
    places: dict[str, str] = {}
    count = wrong = 0
    for number, line in enumerate(read_lines(path), start=1):
        line = line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
        if line.isspace():
            continue
        count += 1
        try:
            task_type = _check(line, f"{path.name}:{number}", places, task_type)
        except DataError as error:
            wrong += 1
            if wrong <= MAX_LISTED:
                errors.append(str(error))
    if wrong > MAX_LISTED:
        errors.append(f"{path.name}: ... and {wrong - MAX_LISTED} more records with errors")
    return errors, count


def _check(line: bytes, where: str, places: dict[str, str], task_type: str | None) -> str:
    """The type of a line's record; DataError if it is not right, or of another type than that."""
    record = read_split_record(parse_line(line, where), where, task_type)
    if record.task_id in places:
        what = f"{record.task_id!r:.80} was used already, at {places[record.task_id]}."
        raise DataError(f"{where}: $.task_id", what, fix="Give each record an id of its own.")
    places[record.task_id] = where
    return record.task_type


def _wrong_facts(snapshot: Snapshot, name: str, split: Path, count: int) -> list[str]:
    said = snapshot.manifest.splits[name]
    where = f"{snapshot.path.name}: $.splits.{name}"
    errors = []
    if said.count != count:
        errors.append(f"{where}.count: {said.count}, but {split.name} has {count} records. Build it anew.")
    if said.sha256 and said.sha256 != file_sha256(split):
        errors.append(f"{where}.sha256: {split.name} is not the file that was built. Build it anew.")
    return errors


def _wrong_total(snapshot: Snapshot) -> list[str]:
    manifest = snapshot.manifest
    if not manifest.source.sha256 or manifest.source.count == manifest.records:
        return []
    return [
        f"{snapshot.path.name}: $.source.count: {manifest.source.count} records were read, but splits, "
        f"excluded and skipped come to {manifest.records}. Build it anew."
    ]
