"""Build the index of a run: `<id>.run/index.sqlite`, a cache that can be deleted at any time.

The header has the size, the time and the hash of every file that the index was made of. It is built again if
one of them has changed. It is written to a temporary name and renamed, so a reader never sees half of it.
Where the folder of the run cannot be written, the index goes to the user's cache folder.

`python -m auepora_eval.runs.index.build RESULTS_FILE SAMPLES` builds it in a process of its own, which keeps
the memory that a large run needs out of the program that asks for the index.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import sys
import zlib
from array import array
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...core.matching import gold_found
from ...core.scores import Note, Scores, given, is_given
from ...core.types import (
    Document,
    EvaluationSample,
    Response,
    RetrievedDocument,
    SystemOutputs,
)
from ...errors import DataError, StorageError
from ...io.files import file_sha256, remove_leftovers
from ...io.results.document import EDITED, SECTIONS
from ...io.results.rows_parquet import QUERIES_SUFFIX
from ..journal.journal import JOURNAL, opened_journal, run_key, text_of
from ..store.state import RUN_FILES, SUFFIX, read_results
from ..store.storage import places_of, query_rows, run_folder, stored_match

INDEX = "index.sqlite"
SCHEMA = 4  # grows whenever an older index must not be read
MOST_VALUES = 50  # of a field that samples can be sliced by; the values of a sample are bits of 64
SEVERAL = 5  # samples of a value on average; with fewer, a field names pairs or single samples
MOST_REASONS = 1_000  # kept of one metric: some name the sample
_SHOWN = 200  # characters of a text in a list
_SEARCHED = 4_000  # characters of an answer that are searched
_SCALARS = (str, int, float)  # what a field to slice by may have as values
_BATCH = 2_000  # rows that are inserted at once

Progress = Callable[[int], None]  # called with the number of samples that are indexed

_TABLES = """
CREATE TABLE header (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE sample (
  n INTEGER PRIMARY KEY, id TEXT NOT NULL, query TEXT NOT NULL, answer TEXT NOT NULL,
  sample_start INTEGER, sample_bytes INTEGER, output_start INTEGER, output_bytes INTEGER
);
CREATE TABLE data (name TEXT PRIMARY KEY, content BLOB) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5(text, content='', detail=none, columnsize=0);
"""


# Only the fields that are indexed are decoded. The rest of a line is skipped.
class _Document(msgspec.Struct):
    doc_id: str
    text: str = ""
    metadata: dict[str, Any] | None = None


class _Text(msgspec.Struct):
    text: str | None = None


class _Sample(msgspec.Struct):
    sample_id: str
    query: str
    relevant_docs: list[_Document | str] | None = None
    candidate_docs: list[_Document | str] | None = None
    reference_answer: _Text | str | None = None
    labels: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None


class _Ranking(msgspec.Struct):
    """Documents that are only ids with scores, as two columns."""

    doc_id: list[str]


class _Error(msgspec.Struct):
    type: str
    message: str | None = None


class _Output(msgspec.Struct):
    sample_id: str
    retrieved: list[_Document | str] | _Ranking | None = None
    response: _Text | str | None = None
    answer: str | None = None
    extra: dict[str, Any] | None = None
    error: _Error | str | None = None


class _JournalRecord(msgspec.Struct):
    output: _Output


_sample = msgspec.json.Decoder(_Sample).decode
_output = msgspec.json.Decoder(_Output).decode
_journal_record = msgspec.json.Decoder(_JournalRecord).decode

Place = tuple[int, int]  # the first byte of a line, and its length


def cache_folder() -> Path:
    """Return the folder of files that can be made again, by the rule of the XDG base directories."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "auepora"


def index_paths(results: Path) -> list[Path]:
    """Return where the index of a run may be: beside its samples, or in the user's cache folder."""
    name = hashlib.sha256(os.fsencode(results.absolute())).hexdigest()[:32]
    return [run_folder(results) / INDEX, cache_folder() / f"{name}.{INDEX}"]


def source_files(results: Path) -> dict[str, Path]:
    """Return the files of a run that its index is made of."""
    folder = run_folder(results)
    outputs = folder / JOURNAL
    files = {
        "results": results,
        "samples": folder / RUN_FILES[0],
        "outputs": outputs if outputs.exists() else folder / RUN_FILES[1],
        "rows": results.with_name(results.name.removesuffix(SUFFIX) + QUERIES_SUFFIX),
    }
    return {name: path for name, path in files.items() if name != "rows" or path.exists()}


def stamp(path: Path) -> list[Any]:
    """Return the name, size and time of a file: what a reader compares before it trusts an index."""
    facts = path.stat()
    return [path.name, facts.st_size, facts.st_mtime_ns]


def build_index(results: Path, progress: Progress | None = None) -> Path:
    """Build the index of a finished run and return its path."""
    files = source_files(results)
    header = {name: [*stamp(path), file_sha256(path)] for name, path in files.items()}
    error: Exception | None = None
    for path in index_paths(results):
        try:
            _write(path, results, header, progress)
            return path
        except (OSError, sqlite3.OperationalError) as denied:
            error = denied  # a folder that cannot be written: the next one is tried
    raise StorageError(f"The index of {results} cannot be written: {error}.")


def _write(path: Path, results: Path, files: Mapping[str, list[Any]], progress: Progress | None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path.parent, [path.name])
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}.tmp")
    try:
        # The texts of a run are in it: only its owner may read it, as the run itself.
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        with closing(sqlite3.connect(temporary)) as database:
            # No journal and no sync while it is written: a half-written file never gets its name.
            database.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;" + _TABLES)
            facts = _Facts(stored_match(results))
            _add_samples(database, facts, results, progress)
            _add_scores(database, facts, results)
            header = {"schema": SCHEMA, "files": files, **facts.header()}
            database.executemany(
                "INSERT INTO header VALUES (?, ?)",
                [(name, msgspec.json.encode(value).decode()) for name, value in header.items()],
            )
            database.commit()
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        with suppress(OSError):
            temporary.unlink()


@dataclass
class _Facts:
    """What is collected while the samples are read."""

    match: str  # by what the run compares documents
    ids: list[str] = field(default_factory=list)
    fields: dict[str, _Field] = field(default_factory=dict)
    errors: dict[tuple[str, str], int] = field(default_factory=dict)  # their codes
    error_codes: array[int] = field(default_factory=lambda: array("i"))
    gold_missed: bytearray = field(default_factory=bytearray)
    families: dict[str, int] = field(default_factory=dict)  # the questions that have variants, and others
    family_codes: array[int] = field(default_factory=lambda: array("i"))

    def add(self, sample: _Sample, output: _Output | None) -> None:
        place = len(self.ids)
        self.ids.append(sample.sample_id)
        self.gold_missed.append(_misses_gold(sample, output, self.match))
        self.error_codes.append(self._error_code(output))
        self.family_codes.append(self.families.setdefault(_family(sample), len(self.families)))
        for name, value in (sample.labels or {}).items():
            self._add_value(name, value, place)
        for name, value in (sample.metadata or {}).items():
            # A label wins over a metadata field of the same name, as in `auepora compare --by`.
            if given(sample.labels or {}, name) is None:
                self._add_value(name, value, place)

    def _add_value(self, name: str, value: Any, place: int) -> None:
        if not is_given(value):
            return
        field = self.fields.get(name)
        if field is None:
            field = self.fields[name] = _Field()
        if isinstance(value, _SCALARS):
            field.add(place, (value,))
        elif isinstance(value, list) and all(isinstance(each, _SCALARS) for each in value):
            field.add(place, value)

    def _error_code(self, output: _Output | None) -> int:
        if output is not None and output.error is None:
            return -1
        error = _Error("MissingPrediction", "no output") if output is None else output.error
        if not isinstance(error, _Error):
            error = _Error("error", error)
        key = (error.type, (error.message or "")[:_SHOWN])
        if len(self.errors) >= MOST_REASONS and key not in self.errors:
            key = (error.type, "other messages")
        return self.errors.setdefault(key, len(self.errors))

    def header(self) -> dict[str, Any]:
        kept = {name: one for name, one in self.fields.items() if one.is_slice}
        return {
            "samples": len(self.ids),
            "ids": hashlib.sha256("\0".join(self.ids).encode("utf-8", "replace")).hexdigest(),
            "fields": {name: list(one.codes) for name, one in kept.items()},
            "errors": list(self.errors),
        }


class _Field:
    """The values of a label: each sample has the bits of its values."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}
        self.places, self.bits = array("I"), array("Q")

    def add(self, place: int, values: Sequence[Any]) -> None:
        if len(self.codes) > MOST_VALUES:
            return  # an id or a text: not something to slice by
        bits = 0
        for value in values:
            text = str(value)
            code = self.codes.get(text)
            if code is None:
                code = self.codes[text] = len(self.codes)
            bits |= 1 << code % 64
        self.places.append(place)
        self.bits.append(bits)

    @property
    def is_slice(self) -> bool:
        """Return whether the field divides the samples into few groups: an id or a text does not."""
        return 1 < len(self.codes) <= min(MOST_VALUES, len(self.places) // SEVERAL)

    def column(self, samples: int) -> NDArray[np.uint64]:
        column = np.zeros(samples, np.uint64)
        column[np.frombuffer(self.places, np.uint32)] = np.frombuffer(self.bits, np.uint64)
        return column


def _family(sample: _Sample) -> str:
    """Return what the variants of one question share: its cluster, or the id of the base question."""
    cluster = given(sample.metadata or {}, "cluster")
    named = cluster if cluster is not None else given(sample.labels or {}, "variant_of")
    return sample.sample_id if named is None else str(named)


def _misses_gold(sample: _Sample, output: _Output | None, match: str) -> bool:
    """Return whether a gold document was not retrieved. An output without documents does not say."""
    if output is None or output.retrieved is None or not sample.relevant_docs:
        return False
    retrieved = output.retrieved.doc_id if isinstance(output.retrieved, _Ranking) else output.retrieved
    hits = [RetrievedDocument(doc, 0.0, rank) for rank, doc in enumerate(_documents(retrieved), start=1)]
    asked = EvaluationSample(
        sample.sample_id,
        sample.query,
        relevant_docs=_documents(sample.relevant_docs),
        candidate_docs=_documents(sample.candidate_docs or ()),
    )
    _, missed = gold_found(asked, SystemOutputs(hits, Response(""), extra=output.extra or {}), match)
    return bool(missed)


def _documents(docs: Sequence[_Document | str]) -> list[Document]:
    return [
        Document(doc, "") if isinstance(doc, str) else Document(doc.doc_id, doc.text, doc.metadata or {})
        for doc in docs
    ]


def _add_samples(
    database: sqlite3.Connection, facts: _Facts, results: Path, progress: Progress | None
) -> None:
    """Add a row per sample, with the places of its lines, and the words to search."""
    rows: list[tuple[Any, ...]] = []
    words: list[tuple[int, str]] = []

    def insert() -> None:
        database.executemany("INSERT INTO sample VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
        database.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", words)
        rows.clear()
        words.clear()
        if progress is not None:
            progress(len(facts.ids))

    with closing(_outputs_of(results)) as outputs:
        for (start, size), sample in _lines(source_files(results)["samples"], _sample):
            place, output = outputs.find(sample.sample_id)
            answer, reference = _answer(output), _text(sample.reference_answer)
            row = (len(facts.ids), sample.sample_id, sample.query[:_SHOWN], answer[:_SHOWN])
            rows.append((*row, start, size, *place))
            words.append((len(facts.ids), f"{sample.query}\n{reference}\n{answer[:_SEARCHED]}"))
            facts.add(sample, output)
            if len(rows) == _BATCH:
                insert()
    insert()
    try:
        database.execute("CREATE UNIQUE INDEX by_id ON sample (id)")
    except sqlite3.IntegrityError as error:
        raise DataError(RUN_FILES[0], "two samples have the same id.", fix=EDITED) from error


def _text(response: _Text | str | None) -> str:
    return response if isinstance(response, str) else (response.text if response else None) or ""


def _answer(output: _Output | None) -> str:
    if output is None:
        return ""
    return _text(output.response) or output.answer or ""


def _lines(path: Path, decode: Callable[[bytes], Any]) -> Generator[tuple[Place, Any]]:
    """Yield the place and the record of each line of a file of JSON lines."""
    start = number = 0
    with path.open("rb") as file:
        for line in file:
            number += 1
            if line.strip():
                try:
                    yield (start, len(line)), decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                    raise DataError(
                        f"{path.name}:{number}", f"cannot be read: {error}.", fix=EDITED
                    ) from error
            start += len(line)


_NOWHERE: Place = (-1, 0)


class _OutputFile:
    """The outputs of `outputs.jsonl`, which has them in the order of the samples, as a rule."""

    def __init__(self, path: Path) -> None:
        self._lines = _lines(path, _output)
        self.close = self._lines.close
        self._ahead: dict[str, tuple[Place, _Output]] = {}  # read before they were asked for

    def find(self, sample_id: str) -> tuple[Place, _Output | None]:
        while sample_id not in self._ahead:
            place, output = next(self._lines, (_NOWHERE, None))
            if output is None:
                return _NOWHERE, None
            self._ahead[output.sample_id] = (place, output)
        return self._ahead.pop(sample_id)


class _JournalFile:
    """The outputs of a journal, which has them in the order of arrival."""

    def __init__(self, results: Path) -> None:
        path = run_folder(results) / JOURNAL
        places = places_of(results)
        self._offsets = {} if places is None else places.offsets
        self._key = run_key(path.parent)
        self._file: BinaryIO = opened_journal(path)
        self.close = self._file.close

    def find(self, sample_id: str) -> tuple[Place, _Output | None]:
        offset = self._offsets.get(sample_id)
        if offset is None:
            return _NOWHERE, None
        if offset != self._file.tell():
            self._file.seek(offset)
        line = self._file.readline()
        text = text_of(line, self._key)
        if text is None:
            raise StorageError(f"{self._file.name} changed while it was read. Try again.")
        return (offset, len(line)), _journal_record(text).output


def _outputs_of(results: Path) -> _OutputFile | _JournalFile:
    path = source_files(results)["outputs"]
    return _JournalFile(results) if path.name == JOURNAL else _OutputFile(path)


def _add_scores(database: sqlite3.Connection, facts: _Facts, results: Path) -> None:
    """Add a column per metric, per field to slice by, and of what happened to the calls."""
    document = read_results(results)
    rows = query_rows(document, results)
    if rows.ids != facts.ids:
        what = "these are not the samples of the run's folder."
        raise DataError(f"{results.name}: $.query_results", what, fix=EDITED)
    count = len(facts.ids)
    _add(database, "error", np.frombuffer(facts.error_codes, np.int32))
    _add(database, "gold_missed", np.frombuffer(bytes(facts.gold_missed), np.uint8))
    families = np.frombuffer(facts.family_codes, np.int32)
    # A sample without variants has no family: a column of one value is small, and most have none.
    alone = np.bincount(families, minlength=1)[families] == 1
    _add(database, "family", np.where(alone, np.int32(-1), families))
    for name, one in facts.fields.items():
        if one.is_slice:
            _add(database, f"field {name}", one.column(count))
    reasons = {}
    for name in _metric_names(document):
        scores = rows.scores(name)
        if len(scores) != count:
            continue  # a metric without scores of its own
        _add(database, f"metric {name}", scores.values)
        codes, reasons[name] = _reasons(scores)
        _add(database, f"reason {name}", codes)
    database.execute("INSERT INTO header VALUES ('reasons', ?)", [msgspec.json.encode(reasons).decode()])


def _metric_names(document: Mapping[str, Any]) -> list[str]:
    entries = {name: entry for section in SECTIONS for name, entry in document.get(section, {}).items()}
    return [name for name, entry in entries.items() if isinstance(entry, dict) and "target" in entry]


def _reasons(scores: Scores) -> tuple[NDArray[np.int16], list[Note]]:
    """Return a code per sample, and the notes: 0 is "measured", 1 the first note, and so on."""
    codes = np.zeros(len(scores), np.int16)
    known: dict[Note, int] = {}
    for place, note in scores.notes.items():
        if len(known) >= MOST_REASONS and note not in known:
            note = Note("the reason is in the results file", note.failed)
        codes[place] = known.setdefault(note, len(known) + 1)
    return codes, list(known)


def _add(database: sqlite3.Connection, name: str, column: NDArray[Any]) -> None:
    # Scores have few distinct values: the fastest level makes most columns ten times smaller.
    content = zlib.compress(np.ascontiguousarray(column).tobytes(), level=1)
    database.execute("INSERT INTO data VALUES (?, ?)", (f"{name}\0{column.dtype.str}", content))


def _main(results: str, samples: str) -> None:
    """Build an index, and print the percentage that is done: `auepora view` shows it."""
    total = max(int(samples), 1)

    def say(done: int) -> None:
        # The columns of scores come after the samples, so the last sample is not yet the end.
        print(min(done * 95 // total, 95), flush=True)  # noqa: T201 - a program of its own

    build_index(Path(results), say)


if __name__ == "__main__":
    _main(*sys.argv[1:])
