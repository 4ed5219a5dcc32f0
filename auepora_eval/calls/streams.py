"""Streams whose reader may go away: the exit code of `auepora gate ... | head` is that of the gate."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import Any, TextIO, cast


class Lasting:
    """A stream that drops what is written after its reader has gone away.

    A command that stopped there would not reach its verdict, nor store anything.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        # Asked now: a terminal that was closed does not say any more that it is one.
        self._is_terminal = stream.isatty()

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            self._drop_or_raise(error)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._drop_or_raise(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _drop_or_raise(self, error: OSError) -> None:
        closed = self._is_terminal and error.errno == errno.EIO  # a terminal that was closed; else a bad disk
        if not closed and not isinstance(error, BrokenPipeError):
            raise error
        self._drop()

    def _drop(self) -> None:
        """Connect the stream to the null device, which also takes its buffer."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, self._stream.fileno())
        except OSError:  # a stream without a file of its own
            self._stream = Path(os.devnull).open("w")  # noqa: SIM115 - for the life of the process
        finally:
            os.close(nowhere)


@contextmanager
def lasting_streams() -> Iterator[None]:
    """Let the readers of stdout and stderr go away within the block."""
    out, err = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = cast(TextIO, Lasting(out)), cast(TextIO, Lasting(err))
    try:
        yield
    finally:
        for stream in filter(None, (sys.stdout, sys.stderr)):  # None if nothing can be written to it
            stream.flush()
        sys.stdout, sys.stderr = sys.stdout and out, sys.stderr and err


@contextmanager
def stdout_for_results() -> Iterator[None]:
    """Send to stderr what is written to stdout within the block, by Python, by libraries in C or by children.

    What a system prints is not a result.
    """
    with redirect_stdout(sys.stderr), ExitStack() as stack:
        with suppress(OSError, AttributeError):  # one of the two streams is closed
            sys.__stdout__.flush()  # type: ignore[union-attr]
            kept = os.dup(1)
            stack.callback(os.close, kept)
            stack.callback(os.dup2, kept, 1)
            os.dup2(2, 1)
        yield
