"""Generate tasks with a language model, check them against the corpus, and keep every answer in a journal.

    documents = [cut(document) for document in read_corpus("docs").documents]
    with ChatModel("http://127.0.0.1:8000/v1", "small-model") as model:
        made = generate_tasks(documents, model, Path("offline_tasks.jsonl"))

Each call has a few passages of one document and asks for tasks of one type. An interrupted generation is
resumed from its journal (`resume=True`): answered calls are not repeated.
"""

from __future__ import annotations

import os
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

import msgspec

from ...calls.chat import ChatModel
from ...calls.executors import ThreadExecutor
from ...calls.policy import CallPolicy, Limits
from ...errors import CallError, DataError, RunStoppedError, StorageError
from ...io.jsonl import MAX_LINE_BYTES, encode
from ...read.text import parse_line
from ...text.content_words import content_words
from ..generator import TaskBuilder
from ..passages import CutDocument, Hit
from ..questions import VALUES, Question
from ..records import Record, Task, raw_record
from .asking import (
    NO_ACCESS,
    AcceptedTask,
    Answer,
    Asking,
    Call,
    Failure,
    Wanted,
    find_quote,
    known_sum,
    planned_calls,
)

# The journal, offline_tasks.jsonl: every answer is on disk before it counts.

# Calls with another status are repeated.
DONE = ("success", "skipped")


class TaskJournal:
    """A journal that is open for writing, locked for this process.

    `finished` are the answers that it had when it was opened, by the key of their call. `damaged` are the
    numbers of unreadable lines. Their calls are repeated.
    """

    def __init__(
        self, path: Path, made_with: Mapping[str, object], *, resume: bool = False, force: bool = False
    ) -> None:
        self.path = path
        self._made_with, self._lock = made_with, threading.Lock()
        self.finished: dict[str, Answer] = {}
        self.damaged: list[int] = []
        if path.exists() and not resume and not force:
            raise StorageError(f"{path} exists already. Resume it with --resume, or start over with --force.")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = _opened(path)
        except OSError as error:
            if isinstance(error, StorageError):
                raise
            raise StorageError(f"{path} cannot be written: {error.strerror or error}.") from error
        try:
            if not resume:
                self._file.truncate(0)
            self._end = self._read()
            self._file.truncate(self._end)
            self._file.seek(self._end)
        except BaseException:
            self._file.close()
            raise

    def append(self, answer: Answer) -> Answer:
        """Write an answer to disk and return what is kept of it in memory."""
        line = encode(answer) + b"\n"
        if len(line) > MAX_LINE_BYTES:
            raise StorageError(f"{self.path}: an answer of {len(line) / 1e6:.1f} MB is too long for a line.")
        with self._lock:
            try:
                self._file.write(line)
                self._file.flush()
                os.fsync(self._file.fileno())
            except OSError as error:
                with suppress(OSError):  # earlier lines stay readable
                    os.ftruncate(self._file.fileno(), self._end)
                raise StorageError(
                    f"{self.path} cannot be written: {error.strerror or error}. Its content is kept. "
                    "Free some space and use --resume."
                ) from error
            self._end += len(line)
        return _without_texts(answer)

    def __enter__(self) -> TaskJournal:
        return self

    def __exit__(self, *exception: object) -> None:
        with suppress(OSError):  # append has reported write errors already
            self._file.close()

    def _read(self) -> int:
        """Read the answers and return the offset after the last complete line."""
        end = 0
        self._file.seek(0)
        for number, line in enumerate(iter(lambda: self._file.readline(MAX_LINE_BYTES + 1), b""), start=1):
            if not line.endswith(b"\n"):  # torn by a kill: the next answer overwrites it
                self.damaged.append(number)
                break
            end += len(line)
            if line.strip():
                self._take(number, line)
        return end

    def _take(self, number: int, line: bytes) -> None:
        where = f"{self.path.name}:{number}"
        try:
            answer = msgspec.convert(parse_line(line, where), Answer)
        except msgspec.ValidationError:
            raise DataError(
                where, "is not a line of a generation journal.", fix="Name another file."
            ) from None
        except DataError:
            self.damaged.append(number)
            return
        _check_same(where, answer.made_with, self._made_with)
        if answer.status in DONE:
            self.finished[answer.key] = _without_texts(answer)


def _without_texts(answer: Answer) -> Answer:
    """Return an answer without what is long: thousands of them are kept in memory."""
    return msgspec.structs.replace(answer, prompt="", response=None, made_with={})


def _check_same(where: str, before: Mapping[str, object], now: Mapping[str, object]) -> None:
    names = sorted(set(before) | set(now))
    differing = [name for name in names if before.get(name) != now.get(name)]
    if differing:
        changes = "; ".join(
            f"{name} was {str(before.get(name))[:80]!r}, is {str(now.get(name))[:80]!r}" for name in differing
        )
        raise DataError(
            where,
            f"was made with something else: {changes}.",
            fix="Use the same, or start over with --force.",
        )


def _opened(path: Path) -> BinaryIO:
    """Open and lock the file: two generations with one journal would pay twice."""
    # Links are not followed, because the journal may be truncated.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        pass  # this system has no such locks
    except OSError:
        os.close(descriptor)
        raise StorageError(f"{path} is in use by another generation. Wait for it, or name another.") from None
    return os.fdopen(descriptor, "r+b")


# The generation.


OnAnswer = Callable[[Answer, int, int], None]  # answer, number, total
# More than a restart of a server causes, and few enough to notice an outage in minutes.
MOST_FAILURES = 8


@dataclass
class Made:
    """The result of a generation: the answer to each call, or None."""

    calls: list[Call]
    answers: list[Answer | None]
    reused: int = 0
    left: int = 0  # not made, because the budget was spent
    failed: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    @property
    def answered(self) -> list[Answer]:
        """Return the answers of all calls that have one."""
        return [answer for answer in self.answers if answer]

    @property
    def rejected(self) -> Counter[str]:
        """Return the number of rejected tasks by reason."""
        return Counter(reject.reason for answer in self.answered for reject in answer.rejects)

    @property
    def tokens(self) -> dict[str, float | None]:
        """Return the tokens of all answered calls, None if a server did not report all of them."""
        return {
            name: known_sum(answer.tokens[name] for answer in self.answered)
            for name in ("prompt", "completion")
        }

    def accepted(self) -> Iterable[tuple[Call, Answer, AcceptedTask]]:
        """Yield (call, its answer, one of its tasks) for every accepted task."""
        for call, answer in zip(self.calls, self.answers, strict=True):
            if answer is not None:
                yield from ((call, answer, task) for task in answer.parsed)


def generate_tasks(
    documents: Sequence[CutDocument],
    model: ChatModel,
    journal: Path,
    *,
    wanted: Wanted | None = None,
    resume: bool = False,
    force: bool = False,
    concurrency: int = 4,
    limits: Limits | None = None,
    on_answer: OnAnswer | None = None,
) -> Made:
    """Ask a model for tasks about the documents; every answer is in the journal before it counts.

    The `limits` are those of this process: `max_calls` of their policy also counts the calls that ask again
    for a rejected task, and `limits.halt()` ends the session after the calls under way. Without them a failed
    call is retried four times, and eight consecutive failures end the session. CallError if the endpoint
    denies access. What was answered is kept.
    """
    wanted = wanted or Wanted()
    limits = limits or Limits(CallPolicy(retries=4, breaker_after=MOST_FAILURES))
    calls = planned_calls(documents, wanted)
    asking = Asking(model, wanted, limits, documents)
    with TaskJournal(journal, asking.made_with, resume=resume, force=force) as kept:
        made = Made(calls, [kept.finished.get(call.key) for call in calls])
        if kept.damaged:
            numbers = ", ".join(map(str, kept.damaged[:5]))
            made.notes.append(f"{journal.name}: cannot be read at line {numbers}; the calls are repeated")
        made.reused = len(made.answered)
        todo = [place for place, answer in enumerate(made.answers) if answer is None]
        made.left = len(todo)
        outcomes = ThreadExecutor(concurrency=concurrency).map(
            lambda place: kept.append(asking.answer(calls[place])), todo
        )
        try:
            for turn, answer in outcomes:
                if isinstance(answer, BaseException):
                    raise answer
                made.left -= 1
                if on_answer:
                    on_answer(answer, len(todo) - made.left, len(todo))
                if answer.error is None or answer.parsed:
                    made.answers[todo[turn]] = answer
                else:
                    made.failed[answer.error.type] += 1
                    _check_access(answer.error, journal)
        except RunStoppedError as stop:
            if not limits.halted and not limits.is_out_of_budget:
                raise RunStoppedError(f"{stop} Answers are in {journal}: continue with --resume.") from stop
        except BaseException:
            limits.halt()
            with suppress(RunStoppedError):
                list(outcomes)  # the calls under way, which are paid for, go to the journal
            raise
    return made


def _check_access(error: Failure, journal: Path) -> None:
    """Raise CallError after a failure that every further call would have, too."""
    if error.status in NO_ACCESS:
        message = f"{error.message} Answers so far are in {journal}: continue with --resume."
        raise CallError(message, kind=error.type, status=error.status)


# Raw records of offline_dataset.jsonl, in the same form as those by rules.

_QUERY_TYPES = {"qa": "factual", "summaries": "summary", "citations": "citation"}


# Two questions with this share of common words are duplicates.
_NEAR = 0.8


class ModelRecords:
    """The records of a generation, with counts of what is left out and of how easily BM25 finds the passages.

    A question that repeats an earlier one in other words is left out. The context of a question is what BM25
    finds for it, plus the passage with the answer. Summaries and answers with marks [n] have the passages
    of their call. A share of the questions whose answer is a literal quote get variants.
    """

    def __init__(
        self,
        made: Made,
        documents: Sequence[CutDocument],
        *,
        variants: Sequence[str] = (),
        variant_share: float = 0.0,
        seed: int = 0,
    ) -> None:
        self._made, self._documents = made, documents
        self._builder = TaskBuilder(documents, variants, variant_share, seed)
        self.near_duplicates = 0

    def __iter__(self) -> Iterator[Record]:
        terms_by_document: dict[int, list[set[str]]] = defaultdict(list)
        instructions: set[tuple[str, str]] = set()
        for call, answer, task in self._made.accepted():
            terms = set(content_words(task.instruction, stemmed=True))
            others = terms_by_document[call.document_index]
            flat = (call.task_type, " ".join(task.instruction.lower().split()))
            is_question = call.task_type == "qa"
            if flat in instructions or (is_question and _is_near(terms, others)):
                self.near_duplicates += 1
                continue
            instructions.add(flat)
            if is_question:
                others.append(terms)
            document = self._documents[call.document_index]
            for each in self._tasks(call, document, task):
                self._builder.count(each)
                yield raw_record(
                    each,
                    run_id=answer.run_id,
                    document_index=call.document_index,
                    task_index=self._builder.tasks.total() - 1,
                    more=_about(answer, task, document.source.name),
                )

    def _tasks(self, call: Call, document: CutDocument, task: AcceptedTask) -> Iterator[Task]:
        """Yield a task, and its variants if it is a question that gets some."""
        if call.task_type != "qa":
            yield self._task(call, document, task, [(chunk, None) for chunk in call.chunks])
            return
        evidence = task.evidence[0]
        gold = document.chunks_with(evidence.start, evidence.end)
        context, _ = self._builder.context(task.instruction, gold)
        base = self._task(call, document, task, context)
        quoted = find_quote(task.response, document.source.text[evidence.start : evidence.end])
        if quoted is None:  # not literal, so no fact can be edited
            yield replace(base, gold=tuple(chunk.id for chunk in gold))
            return
        span = (evidence.start + quoted[0], evidence.start + quoted[1])
        base = replace(base, gold=tuple(chunk.id for chunk in gold), span=span)
        answer = document.source.text[slice(*span)]
        kinds = [kind for kind, pattern in VALUES.items() if re.search(pattern, answer)]
        # A date has a number in it.
        kind = "date" if "date" in kinds else kinds[0] if kinds else "text"
        place = (evidence.start, evidence.end)
        question = Question(kind, base.instruction, "", answer, *span, evidence=place)
        yield from self._builder.with_variants(base, question, document)

    def _task(self, call: Call, document: CutDocument, task: AcceptedTask, context: Sequence[Hit]) -> Task:
        is_part = call.task_type == "summaries" and len(call.chunks) < len(document.chunks)
        return Task(
            call.task_type,
            "model",
            task.instruction,
            task.response,
            document.source,
            tuple(context),
            tuple(dict.fromkeys(evidence.chunk for evidence in task.evidence)),
            {"scenario": "base", "answerable": True, "query_type": _QUERY_TYPES[call.task_type]},
            checks={"evidence_exact": True, "support": task.support},
            closed=is_part or call.task_type == "citations",
        )

    def report(self) -> Record:
        """Return the counts, after all records were written."""
        made, counts = self._made, self._builder.report()
        rejected = made.rejected
        if self.near_duplicates:
            rejected["near duplicate"] = self.near_duplicates
        accepted = self._builder.scenarios["base"]
        judged = accepted + rejected.total()
        calls = {
            "planned": len(made.calls),
            "answered": len(made.answered),
            "reused": made.reused,
            "left": made.left,
        }
        return {
            **counts,
            "calls": calls,
            "failed_calls": dict(made.failed),
            "accepted_share": accepted / judged if judged else None,
            "rejected": dict(rejected.most_common()),
            "tokens": made.tokens,
            "notes": made.notes,
        }


def _is_near(terms: set[str], others: Iterable[set[str]]) -> bool:
    """Return whether a question has nearly the content words of another one."""
    return any(len(terms & other) >= _NEAR * max(1, len(terms | other)) for other in others)


def _about(answer: Answer, task: AcceptedTask, document: str) -> Record:
    """Return the metadata about the model and its calls."""
    return {
        "generator_model": answer.model,
        "evidence_spans": [
            {"document": document, "start": evidence.start, "end": evidence.end} for evidence in task.evidence
        ],
        "generator_metadata": {
            "prompt_sha256": answer.prompt_sha256,
            "calls": answer.calls,
            "attempts": answer.attempts,
            "tokens": answer.tokens,
            "warnings": task.warnings,
        },
    }
