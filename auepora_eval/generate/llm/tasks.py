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
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import msgspec

from ...calls.asking import Result, ask_all
from ...calls.chat import ChatModel, Reply, load_prompt
from ...calls.executors import ThreadExecutor
from ...calls.policy import CALLS, PASSING, CallPolicy, Limits, Usage
from ...core.dataset import canonical_json
from ...errors import DataError, RunStoppedError, StorageError
from ...store.cache import call_key
from ...store.database import ANSWERED, FAILED, MAY_PASS, CallRow, Database, remove_database
from ...store.identity import differences
from ...store.lock import RunLock
from ...text.content_words import content_words
from ..generator import TaskBuilder
from ..passages import CutDocument, Hit
from ..questions import VALUES, Question
from ..records import Record, Task, raw_record
from .asking import AcceptedTask, Call, Conversation, Wanted, find_quote, known_sum, planned_calls

GENERATE = "generate"  # the kind of a call to the generating model
OnReply = Callable[[bool, int], None]  # whether the call failed, and how many are planned
# More than a restart of a server causes, and few enough to notice an outage in minutes.
MOST_FAILURES = 8
_LONGEST = 200_000  # characters of a reply that are kept: it may be megabytes long


@dataclass
class Made:
    """The result of a generation: a conversation for each call."""

    conversations: list[Conversation]
    run_id: str
    reused: int = 0  # calls that were answered before

    @property
    def answered(self) -> list[Conversation]:
        """Return the calls that have a reply."""
        return [each for each in self.conversations if each.replies and (each.accepted or not each.failed)]

    @property
    def left(self) -> int:
        """Return how many calls were not made, or not to their end."""
        return sum(each.is_open for each in self.conversations)

    @property
    def failed(self) -> Counter[str]:
        """Return the number of failed calls by the kind of failure."""
        return Counter(each.failed for each in self.conversations if each.failed)

    @property
    def rejected(self) -> Counter[str]:
        """Return the number of rejected tasks by reason."""
        return Counter(reject.reason for each in self.answered for reject in each.rejects)

    @property
    def tokens(self) -> dict[str, float | None]:
        """Return the tokens of all answered calls, None if a server did not report all of them."""
        names = ("prompt", "completion")
        return {name: known_sum(each.tokens[name] for each in self.answered) for name in names}

    def accepted(self) -> Iterable[tuple[Conversation, AcceptedTask]]:
        """Yield each accepted task with its call."""
        for conversation in self.conversations:
            yield from ((conversation, task) for task in conversation.accepted)


class Turn(msgspec.Struct, frozen=True):
    """What asking once came to, as it is stored: a reply, or the kind of failure and its message."""

    attempts: int
    reply: Reply | None = None
    kind: str = ""
    message: str = ""


def generate_tasks(
    documents: Sequence[CutDocument],
    model: ChatModel,
    calls: Path,
    *,
    wanted: Wanted | None = None,
    resume: bool = False,
    force: bool = False,
    concurrency: int = 4,
    limits: Limits | None = None,
    on_reply: OnReply | None = None,
) -> Made:
    """Ask a model for tasks about the documents; every reply is in the file of calls before it counts.

    Budgets of the `limits` count every attempt, also those of earlier sessions; `limits.halt()` ends the
    session after the calls under way. Without them a failed call is retried four times, and eight consecutive
    failures end the session. What was answered is kept.
    """
    wanted = wanted or Wanted()
    limits = limits or Limits(CallPolicy(retries=4, breaker_after=MOST_FAILURES))
    prompts = {name: load_prompt(f"generate_{name}") for name in wanted.per_document}
    made_with = {
        # Without the endpoint: a local server may come back on another port.
        **{name: value for name, value in model.identity.items() if name != "endpoint"},
        "prompts": {name: prompt.sha256 for name, prompt in prompts.items()},
        "corpus": _corpus_sha256(documents),
        "wanted": asdict(wanted),
    }
    run_id = hashlib.sha256(canonical_json(made_with)).hexdigest()[:16]
    most = wanted.parse_retries + 1
    planned = planned_calls(documents, wanted)
    made = Made([Conversation(call, prompts[call.task_type], most) for call in planned], run_id)
    with _opened(calls, made_with, resume=resume, force=force) as database:
        limits.count(database.usages(GENERATE))
        session = _Session(model, database, limits, on_reply)
        session.replay(made.conversations)
        made.reused = len(made.answered)
        try:
            session.ask(made.conversations, ThreadExecutor(concurrency=concurrency))
        except RunStoppedError as stop:
            if not limits.halted and not limits.is_out_of_budget:
                raise type(stop)(f"{stop} Answers are in {calls}: continue with --resume.") from stop
    return made


def _corpus_sha256(documents: Sequence[CutDocument]) -> str:
    corpus = hashlib.sha256()
    for document in documents:
        for chunk in document.chunks:
            corpus.update(canonical_json(chunk))
    return corpus.hexdigest()


@contextmanager
def _opened(path: Path, made_with: Mapping[str, object], *, resume: bool, force: bool) -> Iterator[Database]:
    """Open the file of the calls, locked: two generations with one file would pay twice."""
    with RunLock(path):
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
    """Asks a model, and continues conversations by its replies, new or stored."""

    keeps_time = True  # the model ends late calls itself

    def __init__(
        self, model: ChatModel, database: Database, limits: Limits, on_reply: OnReply | None
    ) -> None:
        self._model, self._database, self._limits, self._on_reply = model, database, limits, on_reply
        self._who = canonical_json({**model.identity, "endpoint": ""})
        rows = database.select("SELECT key, reply FROM call WHERE kind = ? AND outcome = 0", [GENERATE])
        decode = msgspec.json.Decoder(Turn).decode
        self._turns: dict[bytes, Turn] = {key: decode(reply) for key, reply in rows}

    def replay(self, conversations: Sequence[Conversation]) -> None:
        """Continue conversations as far as their replies are stored."""
        for each in conversations:
            while each.is_open and (turn := self._turns.get(self._key(each))) is not None:
                _continue(each, turn)

    def ask(self, conversations: Sequence[Conversation], executor: ThreadExecutor) -> None:
        """Ask until no conversation is open: all of them once, then those that lack tasks again."""
        while todo := [each for each in conversations if each.is_open]:
            replies = ask_all(self, todo, self._limits, reply=_turn, store=self._store, executor=executor)
            for each, turn in replies:
                _continue(each, turn)
                if self._on_reply is not None:
                    self._on_reply(turn.reply is None, len(conversations))

    def __call__(self, conversation: Conversation) -> Reply:
        reply = self._model.complete(conversation.messages, response_schema=conversation.schema)
        return replace(reply, text=reply.text[:_LONGEST])

    def usage(self, reply: Reply) -> Usage:
        """Return the tokens that a reply took."""
        return {"input_tokens": reply.prompt_tokens, "output_tokens": reply.completion_tokens}

    def _key(self, conversation: Conversation) -> bytes:
        return call_key(GENERATE, self._who, canonical_json(conversation.messages))

    def _store(self, pairs: Sequence[tuple[Conversation, Turn]]) -> None:
        self._database.add_calls(self._row(*pair) for pair in pairs)

    def _row(self, conversation: Conversation, turn: Turn) -> CallRow:
        used = {} if turn.reply is None else self.usage(turn.reply)
        failed = MAY_PASS if turn.kind in PASSING else FAILED
        return CallRow(
            self._key(conversation),
            GENERATE,
            conversation.call.chunks[0].document,
            failed if turn.reply is None else ANSWERED,
            msgspec.json.encode(turn).decode(),
            {**{name: count for name, count in used.items() if count is not None}, CALLS: turn.attempts},
            msgspec.json.encode(conversation.messages).decode(),
        )


def _turn(conversation: Conversation, result: Result[Reply]) -> Turn:
    if result.failure is None:
        return Turn(len(result.attempts) + 1, result.answer())
    kind = result.attempts[-1]["kind"] if result.attempts else result.failure.type
    return Turn(len(result.attempts), kind=kind, message=str(result.failure))


def _continue(conversation: Conversation, turn: Turn) -> None:
    if turn.reply is None:
        conversation.failed = turn.kind
    else:
        conversation.add(turn.reply, turn.attempts)


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

    def __iter__(self) -> Iterator[Record]:
        terms_by_document: dict[int, list[set[str]]] = defaultdict(list)
        instructions: set[tuple[str, str]] = set()
        for conversation, task in self._made.accepted():
            call = conversation.call
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
                    more=_about(conversation, task, document.source.name),
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
        made, counts = self._made, self._builder.report()
        rejected = made.rejected
        if self.near_duplicates:
            rejected["near duplicate"] = self.near_duplicates
        accepted = self._builder.scenarios["base"]
        judged = accepted + rejected.total()
        calls = {
            "planned": len(made.conversations),
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
        }


def _is_near(terms: set[str], others: Iterable[set[str]]) -> bool:
    """Return whether a question has nearly the content words of another one."""
    return any(len(terms & other) >= _NEAR * max(1, len(terms | other)) for other in others)


def _about(conversation: Conversation, task: AcceptedTask, document: str) -> Record:
    """Return the metadata about the model and its calls."""
    return {
        "generator_model": conversation.replies[-1].model,
        "evidence_spans": [
            {"document": document, "start": evidence.start, "end": evidence.end} for evidence in task.evidence
        ],
        "generator_metadata": {
            "prompt_sha256": conversation.prompt.sha256,
            "calls": len(conversation.replies),
            "attempts": conversation.attempts,
            "tokens": conversation.tokens,
            "warnings": task.warnings,
        },
    }
