"""Tasks written by a language model from a corpus, checked against it, and kept from the first to the last.

    documents = [cut(document) for document in read_corpus("docs").documents]
    with ChatModel("http://127.0.0.1:8000/v1", "small-model") as model:
        made = generate_tasks(documents, model, Path("offline_tasks.jsonl"))

Each call shows a few chunks of one document and asks for tasks of one type. A generation that was interrupted
goes on from its journal (`resume=True`): what was answered is not asked again.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from ..errors import CallError
from ..execution.local import ThreadExecutor
from ..judges.llm import ChatModel
from .chunks import CutDocument
from .llm_asking import Asking, Budget, Prices, known_sum
from .llm_journal import TaskJournal
from .llm_plan import Call, Wanted, planned_calls

OnAnswer = Callable[[dict[str, Any], int, int], None]  # what the journal keeps of it, how many, of how many
_LASTING = (401, 403, 404)  # the next call would fare no better
_FAILURES_IN_A_ROW = 8
_LAST_WORDS = 10.0  # seconds for calls that are under way when the generation is stopped


@dataclass
class Made:
    """What a generation brought: for each call what the journal keeps of its answer, or None."""

    calls: list[Call]
    answers: list[dict[str, Any] | None]
    reused: int = 0
    left: int = 0  # not asked, since the budget was used up
    failed: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    @property
    def rejected(self) -> Counter[str]:
        """Tasks that did not pass, by reason."""
        told = (reject for answer in self.answers if answer for reject in answer["rejects"])
        return Counter(reject["reason"] for reject in told)

    @property
    def tokens(self) -> dict[str, int | None]:
        """Tokens of all answered calls; None if a server did not tell all of them."""
        return {
            name: known_sum(answer["tokens"][name] for answer in self._answered())
            for name in ("prompt", "completion")
        }

    @property
    def cost(self) -> float | None:
        """US dollars for all answered calls; None without prices or token counts."""
        total: float | None = known_sum(answer["cost"] for answer in self._answered())
        return total

    def accepted(self) -> Iterable[tuple[Call, dict[str, Any], dict[str, Any]]]:
        """(call, its answer, a task of it) for every task that passed."""
        for call, answer in zip(self.calls, self.answers, strict=True):
            for task in (answer or {}).get("parsed") or ():
                yield call, answer or {}, task

    def _answered(self) -> list[dict[str, Any]]:
        return [answer for answer in self.answers if answer]


def generate_tasks(
    documents: Sequence[CutDocument],
    model: ChatModel,
    journal: Path,
    *,
    wanted: Wanted | None = None,
    prices: Prices | None = None,
    resume: bool = False,
    force: bool = False,
    concurrency: int = 4,
    budget_calls: int | None = None,
    prompts: Path | None = None,
    on_answer: OnAnswer | None = None,
) -> Made:
    """Ask a model for tasks about the documents; every answer is in the journal before it counts.

    `budget_calls` is the most calls to make this time, those that ask again for a rejected task included.
    CallError if the endpoint refuses for good, or fails time after time: what was answered is kept.
    """
    wanted = wanted or Wanted()
    calls = planned_calls(documents, wanted)
    asking = Asking(model, wanted, prices, Budget(budget_calls), prompts)
    with TaskJournal(journal, asking.made_with(documents), resume=resume, force=force) as kept:
        made = Made(calls, [kept.finished.get(call.key) for call in calls], notes=_notes(kept))
        made.reused = sum(answer is not None for answer in made.answers)
        todo = [place for place, answer in enumerate(made.answers) if answer is None]
        keeping = _Keeping(asking, kept)
        answering = ThreadExecutor(concurrency=concurrency).map(
            keeping.answer, [calls[place] for place in todo]
        )
        in_a_row = 0
        with keeping.to_the_end(), closing(cast("Generator[tuple[int, Any]]", answering)) as outcomes:
            for done, (turn, answer) in enumerate(outcomes, start=1):
                if isinstance(answer, BaseException):
                    raise answer
                if answer is None:
                    made.left += 1
                    continue
                if on_answer:
                    on_answer(answer, done, len(todo))
                if answer["status"] == "error":
                    in_a_row += 1
                    made.failed[answer["error"]["type"]] += 1
                    _stop_if_hopeless(answer["error"], in_a_row, journal)
                else:
                    in_a_row = 0
                    made.answers[todo[turn]] = answer
    return made


class _Keeping:
    """Answers calls, each on the disk before the next is made: a kill costs at most what is under way."""

    def __init__(self, asking: Asking, journal: TaskJournal) -> None:
        self._asking, self._journal = asking, journal
        self._under_way = 0
        self._changed = threading.Condition()

    def answer(self, call: Call) -> dict[str, Any] | None:
        with self._changed:
            self._under_way += 1
        try:
            record = self._asking.answer(call)
            with self._changed:  # one writer at a time
                return self._journal.append(record) if record else None
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    @contextmanager
    def to_the_end(self) -> Iterator[None]:
        """However the block ends: no new call is made, and those under way get time to be kept."""
        try:
            yield
        finally:
            self._asking.budget.end()
            with self._changed:
                self._changed.wait_for(lambda: not self._under_way, _LAST_WORDS)


def _notes(journal: TaskJournal) -> list[str]:
    notes = []
    if journal.dropped_tail:
        notes.append(f"{journal.path.name}: the last line was torn; its call is made again")
    if journal.damaged:
        lines = ", ".join(map(str, journal.damaged[:5]))
        notes.append(f"{journal.path.name}: cannot be read at line {lines}; what it held is asked again")
    return notes


def _stop_if_hopeless(error: dict[str, Any], in_a_row: int, journal: Path) -> None:
    if error["status"] in _LASTING or in_a_row >= _FAILURES_IN_A_ROW:
        often = f"{in_a_row} calls in a row failed. " if in_a_row > 1 else ""
        raise CallError(
            f"{often}{error['message']} What was answered is in {journal}: --resume goes on from there.",
            kind=error["type"],
            status=error["status"],
        )
