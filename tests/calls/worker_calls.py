"""What workers are told to call in tests: in a module of its own, so that they can import it."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from auepora_eval.core.types import EvaluationSample, SystemOutputs
from tests.builders import an_output


class OddError(Exception):
    """Cannot be copied from its text alone."""

    def __init__(self, text: str, *, more: int) -> None:
        super().__init__(text)
        self.more = more


def squared(number: int) -> int:
    """Later numbers are ready first; 7 raises, and 8 raises what is not an Exception."""
    time.sleep(0.001 * (number % 3))
    if number == 7:
        raise LookupError("seven")
    if number == 8:
        raise asyncio.CancelledError("eight")
    return number * number


async def squared_async(number: int) -> int:
    await asyncio.sleep(0)
    return squared(number)


def ending(number: int) -> Any:
    """Return what must be awaited; 5 ends the program."""

    async def answer() -> int:
        if number == 5:
            raise SystemExit(5)
        return number

    return answer()


def odd(number: int) -> Any:
    """What cannot leave its process: an exception that cannot be copied, a result that cannot."""
    if number == 1:
        raise OddError("odd", more=1)
    if number == 4:
        return [OddError("odd", more=4)]
    return (lambda: number) if number == 2 else number


class DeadlyAt:
    """Kills its own process at some numbers: always, or only the first times, which files count."""

    def __init__(self, *numbers: int, once: Path | None = None, times: int = 1) -> None:
        self.numbers, self.once, self.times = numbers, once, times

    def __call__(self, number: int) -> int:
        if number in self.numbers and self._first_time(number):
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.001)
        return number * number

    def _first_time(self, number: int) -> bool:
        if self.once is None:
            return True
        for turn in range(self.times):
            with suppress(FileExistsError):
                (self.once / f"{number}-{turn}").touch(exist_ok=False)
                return True
        return False


class Quiet:
    """A system by its name, `tests.calls.worker_calls:Quiet`: answers by the query alone."""

    name = "quiet"

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
        print("a system may print what it likes")
        number = int(sample.query.split()[1])
        if number % 10 == 3:
            raise ConnectionError(f"no route to {number}")
        return an_output("abcde"[number % 3 :][:top_k], f"answer {number % 4}")


class Cheat:
    """Makes its own nonsense the gold of the sample that it is given."""

    name = "cheat"

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> Any:
        for documents in (sample.relevant_docs, sample.candidate_docs):
            for document in documents or ():
                document.doc_id, document.text = "wrong", "whatever"
                document.metadata["relevance"] = 1
            if documents:
                del documents[1:]
        if sample.reference_answer is not None:
            sample.reference_answer.text = "whatever"
            sample.reference_answer.metadata.setdefault("alternatives", []).append("whatever")
        sample.labels["unanswerable"] = True
        sample.metadata.setdefault("deep", {}).setdefault("list", []).append("whatever")
        return [("wrong", 1.0)], "whatever"


def lazily(query: str) -> Any:
    """Yields its documents one by one, which takes as long as it is asked to."""

    def documents() -> Iterator[tuple[str, str]]:
        for number in range(3):
            time.sleep(float(query))
            yield f"d{number}", "text"

    return documents(), "yes"


def endlessly(query: str) -> Any:
    return {"answer": "yes", "retrieved": (f"d{number}" for number in itertools.count())}


def hung(number: int) -> int:
    if number % 5 == 0:
        time.sleep(30)
    return number
