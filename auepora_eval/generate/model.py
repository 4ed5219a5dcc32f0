"""Generate tasks with a language model, check them against the corpus, and store every reply.

    documents = [cut(document) for document in read_corpus("docs").documents]
    with ChatModel("http://127.0.0.1:8000/v1", "small-model") as model:
        made = generate_tasks(documents, model, Path("offline_dataset.calls.db"))

Each call has a few passages of one document and asks for tasks of one type. An interrupted generation is
resumed from the file of its calls (`resume=True`): what the model has replied to is not asked again.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import msgspec

from ..calls.asking import Result, ask_all
from ..calls.chat import ChatModel, Prompt, Reply, load_prompt
from ..calls.executors import ThreadExecutor
from ..calls.policy import CALLS, PASSING, CallPolicy, Limits, Usage
from ..core.dataset import canonical_json
from ..errors import DataError, PlanError, RunStoppedError, StorageError
from ..store.cache import call_key
from ..store.database import ANSWERED, FAILED, MAY_PASS, CallRow, Database, remove_database
from ..store.identity import differences
from ..store.lock import locked
from ..text.content_words import content_words
from .generator import TaskBuilder
from .passages import CutDocument, Hit
from .questions import VALUES, Question
from .records import Record, Task, corpus_record, raw_record
from .replies import KINDS, PER_DOCUMENT, AcceptedTask, Call, checked_tasks, find_quote, planned_calls

GENERATE = "generate"  # the kind of a call to the generating model
OnReply = Callable[[bool, int], None]  # whether the call failed, and how many are planned
# More than a restart of a server causes, and few enough to notice an outage in minutes.
MOST_FAILURES = 8
_LONGEST = 200_000  # characters of a reply that are kept: it may be megabytes long


@dataclass
class Asked:
    """A call and what came of it: a reply with its tasks, the kind of a failure, or nothing yet."""

    call: Call
    prompt: Prompt
    reply: Reply | None = None
    failed: str = ""
    accepted: list[AcceptedTask] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)

    def answer(self, reply: Reply) -> None:
        """Take the tasks of a reply."""
        self.reply = reply
        self.accepted, self.rejected = checked_tasks(reply.text, self.call)


@dataclass
class Made:
    """The result of a generation."""

    asked: list[Asked]
    run_id: str
    reused: int = 0  # calls that were answered before

    @property
    def answered(self) -> list[Asked]:
        """Return the calls that have a reply."""
        return [each for each in self.asked if each.reply is not None]

    def accepted(self) -> Iterable[tuple[Asked, AcceptedTask]]:
        """Yield each accepted task with its call."""
        for each in self.asked:
            yield from ((each, task) for task in each.accepted)

    def report(self) -> Record:
        """Return the counts of calls, failures by kind, rejected tasks by reason, and tokens.

        The tokens are None if a server did not report all of them.
        """
        failed = Counter(each.failed for each in self.asked if each.failed)
        reasons = Counter(why.partition(":")[0] for each in self.asked for why in each.rejected)
        answered, planned = len(self.answered), len(self.asked)
        left = planned - answered - failed.total()
        replies = [each.reply for each in self.asked if each.reply is not None]
        return {
            "calls": {"planned": planned, "answered": answered, "reused": self.reused, "left": left},
            "failed_calls": dict(failed),
            "rejected": dict(reasons.most_common()),
            "tokens": {
                "prompt": _known_sum([reply.prompt_tokens for reply in replies]),
                "completion": _known_sum([reply.completion_tokens for reply in replies]),
            },
        }


def _known_sum(amounts: Sequence[float | None]) -> float | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known and len(known) == len(amounts) else None


def generate_tasks(
    documents: Sequence[CutDocument],
    model: ChatModel,
    calls: Path,
    *,
    wanted: Mapping[str, int] = PER_DOCUMENT,
    resume: bool = False,
    force: bool = False,
    concurrency: int = 4,
    limits: Limits | None = None,
    on_reply: OnReply | None = None,
) -> Made:
    """Ask a model for tasks about the documents; every reply is in the file of calls before it counts.

    `wanted` is the number of tasks of each type per document.
    Budgets of the `limits` count every attempt, also those of earlier sessions; `limits.halt()` ends the
    session after the calls under way. Without them a failed call is retried four times, and eight consecutive
    failures end the session. What was answered is kept.
    """
    unknown = [name for name in wanted if name not in KINDS]
    if unknown:
        raise PlanError(f"there is no task type {unknown[0]!r}. There are {', '.join(KINDS)}.")
    limits = limits or Limits(CallPolicy(retries=4, breaker_after=MOST_FAILURES))
    prompts = {name: load_prompt(f"generate_{name}") for name in wanted}
    made_with = {
        # Without the endpoint: a local server may come back on another port.
        **{name: value for name, value in model.identity.items() if name != "endpoint"},
        "prompts": {name: prompt.sha256 for name, prompt in prompts.items()},
        "corpus": _corpus_sha256(documents),
        "wanted": dict(wanted),
    }
    run_id = hashlib.sha256(canonical_json(made_with)).hexdigest()[:16]
    made = Made([Asked(call, prompts[call.task_type]) for call in planned_calls(documents, wanted)], run_id)
    with _opened(calls, made_with, resume=resume, force=force) as database:
        limits.count(database.usages(GENERATE))
        session = _Session(model, database)
        session.replay(made.asked)
        made.reused = len(made.answered)
        todo = [each for each in made.asked if each.reply is None]
        executor = ThreadExecutor(concurrency=concurrency)
        try:
            for each, turn in ask_all(
                session, todo, limits, reply=_turn, store=session.store, executor=executor
            ):
                each.failed = turn.failed
                if turn.reply is not None:
                    each.answer(turn.reply)
                if on_reply is not None:
                    on_reply(bool(each.failed), len(made.asked))
        except RunStoppedError as stop:
            if not limits.halted and not limits.is_out_of_budget:
                raise type(stop)(f"{stop} Answers are in {calls}: continue with --resume.") from stop
    return made


class _Turn(NamedTuple):
    """What asking once came to: a reply, or the kind of the failure and its message."""

    attempts: int
    reply: Reply | None = None
    failed: str = ""
    message: str = ""


def _turn(asked: Asked, result: Result[Reply]) -> _Turn:
    if result.failure is None:
        return _Turn(len(result.attempts) + 1, result.answer())
    kind = result.attempts[-1]["kind"] if result.attempts else result.failure.type
    return _Turn(len(result.attempts), failed=kind, message=str(result.failure))


def _corpus_sha256(documents: Sequence[CutDocument]) -> str:
    corpus = hashlib.sha256()
    for document in documents:
        for chunk in document.chunks:
            corpus.update(canonical_json(chunk))
    return corpus.hexdigest()


@contextmanager
def _opened(path: Path, made_with: Mapping[str, object], *, resume: bool, force: bool) -> Iterator[Database]:
    """Open the file of the calls, locked: two generations with one file would pay twice."""
    with locked(path):
        if path.exists() and not resume:
            if not force:
                raise StorageError(
                    f"{path} exists already. Resume it with --resume, or start over with --force."
                )
            remove_database(path)
        with Database.write(path) as database:
            before = database.meta(GENERATE)
            changes = [] if before is None else list(differences("", before, msgspec.to_builtins(made_with)))
            if changes:
                what = f"was made with something else: {'; '.join(changes)}."
                raise DataError(str(path), what, fix="Use the same, or start over with --force.")
            database.set_meta(**{GENERATE: made_with})
            yield database


class _Session:
    """Asks a model, and stores what it replies."""

    keeps_time = True  # the model ends late calls itself

    def __init__(self, model: ChatModel, database: Database) -> None:
        self._model, self._database = model, database
        self._who = canonical_json({**model.identity, "endpoint": ""})

    def replay(self, asked: Sequence[Asked]) -> None:
        """Take over the replies that are stored."""
        rows = self._database.select(
            "SELECT key, reply FROM call WHERE kind = ? AND outcome = ?", [GENERATE, ANSWERED]
        )
        stored = dict(rows)
        for each in asked:
            reply = stored.get(self._key(each))
            if reply is not None:
                each.answer(msgspec.json.decode(reply, type=Reply))

    def __call__(self, asked: Asked) -> Reply:
        reply = self._model.complete(asked.call.messages(asked.prompt), response_schema=asked.call.schema)
        return replace(reply, text=reply.text[:_LONGEST])

    def usage(self, reply: Reply) -> Usage:
        """Return the tokens that a reply took."""
        return {"input_tokens": reply.prompt_tokens, "output_tokens": reply.completion_tokens}

    def _key(self, asked: Asked) -> bytes:
        return call_key(GENERATE, self._who, canonical_json(asked.call.messages(asked.prompt)))

    def store(self, pairs: Sequence[tuple[Asked, _Turn]]) -> None:
        """Store replies and failures."""
        self._database.add_calls(self._row(*pair) for pair in pairs)

    def _row(self, asked: Asked, turn: _Turn) -> CallRow:
        used: dict[str, float] = {CALLS: turn.attempts}
        if turn.reply is None:
            outcome = MAY_PASS if turn.failed in PASSING else FAILED
            stored = msgspec.json.encode({"kind": turn.failed, "message": turn.message})
        else:
            outcome, stored = ANSWERED, msgspec.json.encode(turn.reply)
            used |= {name: count for name, count in self.usage(turn.reply).items() if count is not None}
        messages = msgspec.json.encode(asked.call.messages(asked.prompt)).decode()
        document = asked.call.chunks[0].document
        return CallRow(self._key(asked), GENERATE, document, outcome, stored.decode(), used, messages)


# Raw records of offline_dataset.jsonl, in the same form as those by rules.

_QUERY_TYPES = {"qa": "factual", "summaries": "summary"}


# Two questions with this share of common words are duplicates.
_NEAR = 0.8


class ModelRecords:
    """The records of a generation, with counts of what is left out and of how easily BM25 finds the passages.

    A question that repeats an earlier one in other words is left out. The context of a question is what BM25
    finds for it, plus the passage with the answer. Summaries have the passages of their call. A share of the
    questions whose answer is a literal quote get variants.
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

    def corpus_records(self) -> Iterator[Record]:
        """Yield the passages for the systems under test to index."""
        return map(corpus_record, self._builder.chunks)

    def records(self) -> Iterator[Record]:
        """Yield the raw records."""
        terms_by_document: dict[int, list[set[str]]] = defaultdict(list)
        instructions: set[tuple[str, str]] = set()
        for asked, task in self._made.accepted():
            call = asked.call
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
                    run_id=self._made.run_id,
                    document_index=call.document_index,
                    task_index=self._builder.tasks.total() - 1,
                    more=_about(asked, task, document.source.name),
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
            closed=is_part,
        )

    def report(self) -> Record:
        """Return the counts, after all records were written."""
        report = {**self._builder.report(), **self._made.report()}
        if self.near_duplicates:
            report["rejected"]["near duplicate"] = self.near_duplicates
        accepted = self._builder.scenarios["base"]
        judged = accepted + sum(report["rejected"].values())
        return {**report, "accepted_share": accepted / judged if judged else None}


def _is_near(terms: set[str], others: Iterable[set[str]]) -> bool:
    """Return whether a question has nearly the content words of another one."""
    return any(len(terms & other) >= _NEAR * max(1, len(terms | other)) for other in others)


def _about(asked: Asked, task: AcceptedTask, document: str) -> Record:
    """Return the metadata about the model and its call."""
    reply = asked.reply
    return {
        "generator_model": reply and reply.model,
        "evidence_spans": [
            {"document": document, "start": evidence.start, "end": evidence.end} for evidence in task.evidence
        ],
        "generator_metadata": {
            "prompt_sha256": asked.prompt.sha256,
            "tokens": reply and {"prompt": reply.prompt_tokens, "completion": reply.completion_tokens},
            "warnings": task.warnings,
        },
    }
