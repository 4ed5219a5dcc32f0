"""Metadata with what a record had beyond it: read into our nouns, and put back where it was.

A field that our nouns have no place for stays under `metadata["eval_json"]`. Some fields of a record are
metadata for us (a title, citations); where the record's own metadata have one of the same name, or none at
all was given but an empty object, that too is noted there, so that writing gives back the very same record.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec

from ..errors import DataError

Record = dict[str, Any]
Lifted = Mapping[
    str, Callable[[Any], bool]
]  # fields that are metadata for us, and which values they may have
OF_THE_FORMAT = "eval_json"
OF_THE_SAMPLE = "auepora"


class _Form(msgspec.Struct, forbid_unknown_fields=True):
    """How the metadata of a record were written: what was hidden by a field, what looked like a field."""

    hidden: dict[str, Any] = {}
    stay: list[str] = []


def read_extras(record: Record, fields: Collection[str], lifted: Lifted, reserved: Collection[str]) -> Record:
    """The metadata of a noun from a record with these fields; reserved names are kept out of sight."""
    given = record.get("metadata")
    metadata = dict(given) if given else {}
    form: Record = {}
    for name in given or ():
        if name in reserved or (name in lifted and name in record):
            form.setdefault("hidden", {})[name] = metadata.pop(name)
        elif name in lifted and lifted[name](metadata[name]):
            form.setdefault("stay", []).append(name)
    for name in lifted:
        if name in record:
            metadata[name] = record[name]
    kept = {key: value for key, value in record.items() if key not in fields}
    if form or given == {}:
        kept["metadata"] = form
    if kept:
        metadata[OF_THE_FORMAT] = kept
    return metadata


def write_extras(metadata: Record, fields: Collection[str], lifted: Lifted, where: str) -> Record:
    """The fields of a record that are in the metadata of a noun: those that were lifted, and the rest."""
    metadata = dict(metadata)
    kept = metadata.pop(OF_THE_FORMAT, None)
    form = kept.get("metadata", {}) if isinstance(kept, dict) else {}
    if (kept is not None and not _is_ours(kept, fields)) or OF_THE_SAMPLE in metadata:
        raise reserved_name(where)
    record: Record = {
        name: metadata.pop(name)
        for name, is_right in lifted.items()
        if name in metadata and name not in form.get("stay", ()) and is_right(metadata[name])
    }
    metadata = {**form.get("hidden", {}), **metadata}
    record |= {key: value for key, value in (kept or {}).items() if key != "metadata"}
    if metadata or "metadata" in (kept or {}):
        record["metadata"] = metadata
    return record


def reserved_name(where: str) -> DataError:
    """What to say where somebody else uses the names that we keep for ourselves."""
    what = f"its metadata have {OF_THE_FORMAT!r} or {OF_THE_SAMPLE!r}, which this format keeps for itself."
    return DataError(where, what, fix="Rename them.")


def _is_ours(kept: Any, fields: Collection[str]) -> bool:
    if not isinstance(kept, dict) or not kept or (kept.keys() & set(fields)) - {"metadata"}:
        return False
    return fits(kept.get("metadata", {}), _Form)


def fits(value: Any, kind: Any) -> bool:
    """Whether a value has a type."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True
