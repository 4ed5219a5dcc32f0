"""What a dataset is, in 64 hex digits: equal samples give equal fingerprints, on every machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, is_dataclass, replace
from pathlib import PurePath
from typing import Any

import msgspec

from .types import EvaluationSample


class Fingerprint:
    """sha256 over the canonical JSON of samples, or of records, in their order, as they go by."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, things: Iterable[EvaluationSample | Mapping[str, Any]]) -> Fingerprint:
        """Go on with further samples or records."""
        for thing in things:
            if isinstance(thing, EvaluationSample) and [] in (thing.relevant_docs, thing.candidate_docs):
                # No documents are no documents, however it is put: a file has one way to say it.
                thing = replace(
                    thing,
                    relevant_docs=thing.relevant_docs or None,
                    candidate_docs=thing.candidate_docs or None,
                )
            self._digest.update(canonical_json(thing))
            self._digest.update(b"\n")
        return self

    def hexdigest(self) -> str:
        """The fingerprint of all that went by so far."""
        return self._digest.hexdigest()


def dataset_fingerprint(samples: Iterable[EvaluationSample]) -> str:
    """The fingerprint of samples that are all there."""
    return Fingerprint().add(samples).hexdigest()


def canonical_json(thing: Any) -> bytes:
    """JSON with sorted keys and no spaces; not-a-number becomes null."""
    try:
        return msgspec.json.encode(thing, enc_hook=plain, order="deterministic")
    except UnicodeEncodeError:
        # A lone surrogate has no UTF-8 form; escaped, it still has one spelling.
        document = asdict(thing) if is_dataclass(thing) and not isinstance(thing, type) else thing
        return json.dumps(document, sort_keys=True, separators=(",", ":"), default=plain).encode("ascii")


def plain(thing: Any) -> Any:
    """What JSON can hold in place of a value that it cannot: arrays as lists, paths as text."""
    if isinstance(thing, PurePath):
        return thing.as_posix()
    if hasattr(thing, "tolist"):  # numpy arrays and scalars
        return thing.tolist()
    return f"<{type(thing).__module__}.{type(thing).__qualname__}>"
