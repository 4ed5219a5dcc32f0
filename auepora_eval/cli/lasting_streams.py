"""Output that its reader may leave: the exit code of `auepora gate ... | head` is that of the gate."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, cast


class _Lasting:
    """A stream that goes on when nobody reads it any more: what is written from then on is dropped.

    A command that stopped there would not come to its verdict, nor to what it has to store.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except BrokenPipeError:
            self._drop()
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except BrokenPipeError:
            self._drop()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _drop(self) -> None:
        """Let the pipe end in nothing: what waits in the stream's buffer goes there too."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, self._stream.fileno())
        except OSError:  # a stream without a file of its own
            self._stream = Path(os.devnull).open("w")  # noqa: SIM115 - for the life of the process
        finally:
            os.close(nowhere)


@contextmanager
def lasting_streams() -> Iterator[None]:
    """Within this, stdout and stderr can be left by their readers."""
    before = {name: getattr(sys, name) for name in ("stdout", "stderr")}
    lasting = {name: cast(TextIO, _Lasting(stream)) for name, stream in before.items()}
    for name, stream in lasting.items():
        setattr(sys, name, stream)
    try:
        yield
    finally:
        for name, stream in lasting.items():
            if getattr(sys, name) is stream:  # None, once it was found that nothing can be written to it
                stream.flush()
                setattr(sys, name, before[name])
