"""A cache of replies that runs share: one file with the same table of calls as a run."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

from ..core.systems.resources import CACHED
from ..core.types import SystemOutputs
from ..errors import StorageError
from .database import CallRow, Database, decoded_output


def call_key(kind: str, who: bytes, request: bytes) -> bytes:
    """Return the hash of a request and of who is asked: the server, model, prompt and parameters."""
    # Canonical JSON has no line break, so no two requests give the same bytes.
    return blake2b(b"\n".join((kind.encode(), who, request)), digest_size=16).digest()


class CallCache:
    """A file of replies. Only answers are kept: a failure is never reused. Several processes may use it.

    `identity` is what decides a reply beside the system itself, such as the names of the fields that are read
    from it.
    """

    def __init__(self, path: str | Path, identity: object = None) -> None:
        self.path = Path(path).absolute()  # a system may change the current folder
        if self.path.is_dir():
            raise StorageError(f"{path} is a folder. Name a file for the cache, such as {path}/calls.db.")
        self.identity = identity
        self.used = 0
        self._database = Database.write(self.path)
        # Not in runs, which look nothing up by key: each commit would write one more page.
        with self._database.transaction() as db:
            db.execute("CREATE INDEX IF NOT EXISTS call_key ON call (key)")

    def reply(self, key: bytes) -> str | None:
        """Return the stored reply of that key; None if there is none."""
        rows = self._database.select("SELECT reply FROM call WHERE key = ? ORDER BY n DESC LIMIT 1", [key])
        if not rows:
            return None
        self.used += 1
        return str(rows[0][0])

    def answer(self, key: bytes) -> SystemOutputs | None:
        """Return an earlier answer of the system; None if there is none."""
        reply = self.reply(key)
        if reply is None:
            return None
        output = decoded_output(reply, self.path.name)
        output.extra[CACHED] = True
        return output

    def add(self, row: CallRow) -> None:
        """Add a reply."""
        self._database.add_call(row)

    def __enter__(self) -> CallCache:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()
