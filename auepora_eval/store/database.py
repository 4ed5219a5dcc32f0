"""The file of a run, `<id>.run.db`: a SQLite database with everything but the results document.

Its tables are described in docs/formats.md. The cache of replies is a file with the same tables. One process
writes a run (see lock.py), several may write a cache, and any number may read meanwhile: every row is whole.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..core.types import EvaluationSample, SystemOutputs
from ..errors import DataError, StorageError
from ..io.files import link, temporary_name
from ..read.records import RawPrediction, RawSample, decoded, read_prediction, read_sample

SUFFIX = ".run.db"
SCHEMA = 1  # grows when older programs would read the file wrongly
ANSWER, JUDGE = "answer", "judge"  # the kinds of calls to the system and to a judge
ANSWERED, FAILED, MAY_PASS = 0, 1, 2  # the outcome of a call; the last is a failure that a retry may fix

# Rowid tables: WITHOUT ROWID would put long rows on pages of their own, at twice the size.
_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value ANY);
CREATE TABLE sample (n INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, answer INTEGER, record TEXT NOT NULL);
CREATE TABLE call (
  n INTEGER PRIMARY KEY, key BLOB, kind TEXT NOT NULL, sample TEXT, outcome INTEGER NOT NULL, at REAL,
  usage TEXT, request TEXT, reply TEXT NOT NULL
);
CREATE INDEX call_answer ON call (sample, outcome) WHERE kind = 'answer';
CREATE TABLE score (
  metric TEXT PRIMARY KEY, value BLOB NOT NULL, parts BLOB, width INTEGER NOT NULL, note BLOB, notes TEXT
);
CREATE TABLE text (n INTEGER PRIMARY KEY, words TEXT NOT NULL);
"""
# What people say of samples (labels.py).
LABELS = """CREATE TABLE IF NOT EXISTS label (
  n INTEGER PRIMARY KEY, item TEXT NOT NULL, question TEXT NOT NULL, person TEXT NOT NULL,
  answer TEXT NOT NULL, at REAL
);"""
_NEW = f"BEGIN; {_TABLES} {LABELS} INSERT INTO meta VALUES ('schema', '{SCHEMA}'); COMMIT"  # noqa: S608 - our own
_CALL = (
    "INSERT INTO call (key, kind, sample, outcome, reply, usage, request, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_AT_ONCE = 5_000  # values in one query; SQLite takes 32,766
_TIMEOUT = 30.0  # seconds that a writer waits for another program that has the file

Usage = Mapping[str, float]


class CallRow(NamedTuple):
    """A call as it is stored: who was asked what, and the reply. Rows are added, never changed."""

    key: bytes | None  # the hash of the request and of who was asked; None if nobody was asked
    kind: str
    sample: str | None  # its id
    outcome: int
    reply: str
    usage: Usage | None = None
    request: str | None = None


class Database:
    """A file of the tables above. Safe to use from several threads."""

    def __init__(self, path: Path, connection: sqlite3.Connection, *, is_read_only: bool = False) -> None:
        self.path, self._db, self._is_read_only = path, connection, is_read_only
        self._process = os.getpid()
        self._guard = threading.RLock()  # of the connection
        try:
            version = self.meta("schema")
            if version != SCHEMA:
                raise StorageError(
                    f"{path} has version {version!r:.20} of its tables, this program reads {SCHEMA}. "
                    "If the file is newer, upgrade auepora-eval."
                )
        except BaseException:
            connection.close()
            raise

    # Reading.

    @classmethod
    def read(cls, path: Path) -> Database:
        """Open a file for reading; StorageError if that is not possible."""
        if not path.is_file():
            raise StorageError(f"{path} is missing: there are no samples and outputs without it.")
        # A reader of a run in progress needs to lock it, which takes a folder that can be written.
        is_writable = os.access(path.parent, os.W_OK)
        log = path.with_name(f"{path.name}-wal")
        if not is_writable and log.exists() and log.stat().st_size:
            raise StorageError(
                f"{path} cannot be read: its last changes are in {log.name}, and SQLite reads them only in a "
                "folder that can be written. Copy both files to one."
            )
        how = "mode=ro" if is_writable else "mode=ro&immutable=1"
        with _naming(path, "read"):
            try:
                connection = _connected(path, how)
                connection.execute("SELECT 1 FROM meta").fetchone()
            except sqlite3.OperationalError as error:
                if "readonly" not in str(error):
                    raise
                # Its writer was killed in the middle of a change, which has to be undone first.
                with closing(_connected(path, "mode=rw")) as repaired:
                    repaired.execute("SELECT 1 FROM meta").fetchone()
        return cls(path, connection, is_read_only=True)

    def meta(self, name: str) -> Any:
        """Return a fact about the run; None if it is not stored."""
        rows = self.select("SELECT value FROM meta WHERE name = ?", [name])
        return _decoded(rows[0][0]) if rows else None

    def select(self, query: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Return the rows of a query."""
        with self._guard, _naming(self.path, "read"):
            return self._db.execute(query, parameters).fetchall()

    def select_in(self, query: str, values: Sequence[Any]) -> list[Any]:
        """Return the rows of a query whose last column is one of these values."""
        rows = []
        for start in range(0, len(values), _AT_ONCE):
            part = values[start : start + _AT_ONCE]
            rows += self.select(f"{query} IN ({','.join('?' * len(part))})", part)
        return rows

    def stream(self, query: str, parameters: Sequence[Any] = ()) -> Iterator[Any]:
        """Yield the rows of a query one by one, from one state of the file."""
        # A cursor of its own: the connection may be used meanwhile.
        with closing(self._db.cursor()) as cursor:
            with self._guard, _naming(self.path, "read"):
                rows = cursor.execute(query, parameters).fetchmany(500)
            while rows:
                yield from rows
                with self._guard, _naming(self.path, "read"):
                    rows = cursor.fetchmany(500)

    def answers(self, sample_ids: Sequence[str], columns: str = "reply") -> dict[str, Any]:
        """Return the number and some columns of the last answer of some samples, by id."""
        query = f"SELECT sample, n, {columns} FROM call WHERE kind = 'answer' AND sample"  # noqa: S608
        rows = sorted(self.select_in(query, sample_ids), key=lambda row: row[1])
        return {row[0]: row[1:] for row in rows}

    def outcomes(self) -> Counter[int]:
        """Return how many samples were answered, and how many failed, each by its last call."""
        last = "SELECT max(n), outcome FROM call WHERE kind = 'answer' GROUP BY sample"
        return Counter(dict(self.select(f"SELECT outcome, count(*) FROM ({last}) GROUP BY outcome")))  # noqa: S608

    def usages(self, kind: str = ANSWER) -> Iterator[Usage]:
        """Yield what each call of a kind used, also of those that failed or were replaced."""
        for (usage,) in self.stream("SELECT usage FROM call WHERE kind = ? AND usage NOT NULL", [kind]):
            yield msgspec.json.decode(usage)

    def verdicts_sha256(self, last: int) -> str:
        """Return the hash of the calls to judges, up to this number."""
        columns = "key, sample, outcome, usage, request, reply"
        query = f"SELECT {columns} FROM call WHERE kind = ? AND n <= ? ORDER BY n"  # noqa: S608 - our own names
        return rows_sha256(self.stream(query, [JUDGE, last]))

    # Writing.

    @classmethod
    def write(cls, path: Path) -> Database:
        """Open a file for writing; it is made if there is none. A run must be locked by this process."""
        if not path.exists():
            # Left by a file that was deleted after a kill. SQLite would apply it to the new one.
            _remove_beside(path)
            draft = cls.draft(path)  # no reader sees a file without its tables
            draft.close()
            with suppress(StorageError):  # another program was quicker: its file has rows by now
                link(draft.path, path)
            draft.path.unlink(missing_ok=True)
        with _naming(path, "written"):
            connection = _connected(path, "mode=rw")
            with suppress(sqlite3.OperationalError):  # somebody reads it: it stays as it is
                connection.execute("PRAGMA journal_mode=WAL").fetchone()
            # A commit survives the end of the process; the last ones may not survive a power cut.
            connection.execute("PRAGMA synchronous=NORMAL")
        return cls(path, connection)

    @classmethod
    def draft(cls, name: Path) -> Database:
        """Make a file that gets its name when it is complete: until then, nothing needs to be durable."""
        path = temporary_name(name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Only its owner may read it: answers are private.
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except OSError as error:
            raise StorageError(f"{path} cannot be written: {error.strerror or error}.") from error
        with _naming(path, "written"):
            connection = _connected(path, "mode=rw")
            connection.executescript(
                f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;PRAGMA locking_mode=EXCLUSIVE; {_NEW}"
            )
        return cls(path, connection)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Write several rows: all of them, or none if there is an error. Within another one, a part of it."""
        self._check_process()
        with self._guard, _naming(self.path, "written"):
            if self._db.in_transaction:
                yield self._db
                return
            self.begin()
            try:
                yield self._db
                self.commit()
            except BaseException:
                with suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
                raise

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise StorageError(f"{self.path} is written by the process that this one was forked from.")

    def begin(self) -> None:
        """Start a transaction that lasts until `commit`; without that, nothing of it is stored."""
        self._db.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Store what was written since `begin`."""
        with _naming(self.path, "written"):
            self._db.execute("COMMIT")

    def set_meta(self, **facts: Any) -> None:
        """Store facts about the run: arrays as bytes, everything else as JSON."""
        rows = [(name, _as_stored(value)) for name, value in facts.items()]
        with self.transaction() as db:
            db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)

    def other_meta(self, **facts: Any) -> list[str]:
        """Return the names of facts that are stored otherwise, or not at all."""
        return [name for name, value in facts.items() if self.meta(name) != _decoded(_as_stored(value))]

    def add_call(self, row: CallRow) -> None:
        """Store a call. When this returns outside a transaction, the end of the process cannot lose it."""
        self._check_process()
        usage = None if row.usage is None else msgspec.json.encode(row.usage).decode()
        with self._guard, _naming(self.path, "written"):
            self._db.execute(_CALL, (*row[:5], usage, row.request, time.time()))

    def close(self) -> None:
        """Close the file. A run is then a single file again, without the log of its last changes."""
        if os.getpid() != self._process:
            return  # a fork must not touch it
        with self._guard:
            if not self._is_read_only:
                with suppress(sqlite3.Error):  # somebody reads it: the next writer tidies up
                    self._db.execute("PRAGMA journal_mode=DELETE").fetchone()
            self._db.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def rows_sha256(rows: Iterable[Sequence[Any]]) -> str:
    """Return the hash of rows."""
    digest = sha256()
    for row in rows:
        for cell in row:
            digest.update(cell if isinstance(cell, bytes) else f"{cell!r}\n".encode())
    return digest.hexdigest()


def _as_stored(value: Any) -> bytes | str:
    return value if isinstance(value, bytes) else msgspec.json.encode(value).decode()


def _decoded(value: Any) -> Any:
    return msgspec.json.decode(value) if isinstance(value, str) else value


# Samples and outputs, as the columns `record` and `reply` have them.


def decoded_sample(record: str, where: str) -> EvaluationSample:
    """Return a stored sample; DataError that starts with `where` if it is damaged."""
    return read_sample(_struct(record, RawSample, where), where)


def decoded_output(reply: str, where: str) -> SystemOutputs:
    """Return a stored output; DataError that starts with `where` if it is damaged."""
    return read_prediction(_struct(reply, RawPrediction, where), where)[1]


def _struct(text: str, kind: type[msgspec.Struct], where: str) -> Any:
    """Return the struct of a record, or the record itself if it is not of the form that we write."""
    try:
        return decoded(text.encode(), kind) or msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        what = f"a row of its database is damaged: {error}."
        raise DataError(where, what, fix="Was it edited? Run the evaluation again.") from error


def remove_database(path: Path) -> None:
    """Remove a file, with what SQLite keeps beside it while it is written, or after a kill."""
    path.unlink(missing_ok=True)
    _remove_beside(path)


def _remove_beside(path: Path) -> None:
    for end in ("-wal", "-shm", "-journal"):
        path.with_name(f"{path.name}{end}").unlink(missing_ok=True)


class Connection(sqlite3.Connection):
    """A connection that is closed with its last user: the readers of a view come and go with its pages."""

    def __del__(self) -> None:
        self.close()


def _connected(path: Path, how: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{how}",
        uri=True,
        factory=Connection,
        isolation_level=None,  # transactions start where they are written
        check_same_thread=False,
        timeout=_TIMEOUT,
    )
    # No function of a schema that somebody else may have made is trusted.
    connection.execute("PRAGMA trusted_schema=OFF")
    return connection


@contextmanager
def _naming(path: Path, what: str) -> Iterator[None]:
    """Raise StorageError with the name of the file for an error of the database."""
    try:
        yield
    except sqlite3.OperationalError as error:
        kept = " What was stored before is kept." if what == "written" else ""
        raise StorageError(f"{path} cannot be {what}: {error}.{kept}") from error
    except sqlite3.DatabaseError as error:
        raise StorageError(f"{path} cannot be {what}: {error}. Is it a run of auepora?") from error
