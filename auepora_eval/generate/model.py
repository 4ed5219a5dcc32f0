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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from ..calls.asking import Result, ask_all
from ..calls.chat import ChatModel, Reply, load_prompt
from ..calls.executors import ThreadExecutor
from ..calls.policy import PASSING, CallPolicy, Limits
from ..calls.usage import CALLS, Usage
from ..core.dataset import canonical_json
from ..errors import DataError, PlanError, RunStoppedError, StorageError
from ..store.cache import call_key
from ..store.database import ANSWERED, FAILED, MAY_PASS, CallRow, Database, remove_database
from ..store.identity import differences
from ..store.lock import locked
from ..text.content_words import content_words
from .generator import Settings, TaskBuilder
from .passages import CutDocument
from .questions import VALUES, Question
from .records import Record, Task, raw_record
from .replies import KINDS, PER_DOCUMENT, AcceptedTask, Call, find_quote, planned_calls

GENERATE = "generate"  # the kind of a call to the generating model
OnReply = Callable[[bool, int], None]  # whether the call failed, and how many are planned
# More than a restart of a server causes, and few enough to notice an outage in minutes.
MOST_FAILURES = 8
_LONGEST = 200_000  # characters of a reply that are kept: it may be megabytes long


@dataclass
class Made:
    """The result of a generation."""

    asked: list[Call]
    run_id: str
    reused: int = 0  # calls that were answered before

    @property
    def replies(self) -> list[Reply]:
        """Return the replies of the calls that were answered."""
        return [call.reply for call in self.asked if call.reply is not None]

    def accepted(self) -> Iterator[tuple[Call, AcceptedTask]]:
        """Yield each accepted task with its call."""
        return ((call, task) for call in self.asked for task in call.accepted)

    def report(self) -> Record:
        """Return the counts of calls, failures by kind, rejected tasks by reason, and tokens.

        The tokens are None if a server did not report all of them.
        """
        failed = Counter(call.failed for call in self.asked if call.failed)
        reasons = Counter(why.partition(":")[0] for call in self.asked for why in call.rejected)
        answered, planned = len(self.replies), len(self.asked)
        left = planned - answered - failed.total()
        return {
            "calls": {"planned": planned, "answered": answered, "reused": self.reused, "left": left},
            "failed_calls": dict(failed),
            "rejected": dict(reasons.most_common()),
            "tokens": {
                "prompt": _known_sum([reply.prompt_tokens for reply in self.replies]),
                "completion": _known_sum([reply.completion_tokens for reply in self.replies]),
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
    chunks = (canonical_json(chunk) for document in documents for chunk in document.chunks)
    made_with = {
        # Without the endpoint: a local server may come back on another port.
        **{name: value for name, value in model.identity.items() if name != "endpoint"},
        "prompts": {name: prompt.sha256 for name, prompt in prompts.items()},
        "corpus": hashlib.sha256(b"".join(chunks)).hexdigest(),
        "wanted": dict(wanted),
    }
    run_id = hashlib.sha256(canonical_json(made_with)).hexdigest()[:16]
    made = Made(planned_calls(documents, wanted, prompts), run_id)
    with _opened(calls, made_with, resume=resume, force=force) as database:
        limits.count(database.usages(GENERATE))
        rows = "SELECT key, reply FROM call WHERE kind = ? AND outcome = ?"
        stored = dict(database.select(rows, [GENERATE, ANSWERED]))
        asker = _Asker(model)
        for call in made.asked:
            reply = stored.get(asker.key(call))
            if reply is not None:
                call.answer(msgspec.json.decode(reply, type=Reply))
        made.reused = len(made.replies)
        todo = [call for call in made.asked if call.reply is None]
        replies = ask_all(
            asker,
            todo,
            limits,
            reply=asker.row,
            store=lambda _, row: database.add_call(row),
            executor=ThreadExecutor(concurrency=concurrency),
        )
        try:
            for call, _ in replies:
                if on_reply is not None:
                    on_reply(bool(call.failed), len(made.asked))
        except RunStoppedError as stop:
            if not limits.halted and not limits.is_out_of_budget:
                raise type(stop)(f"{stop} Answers are in {calls}: continue with --resume.") from stop
    return made


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


class _Asker:
    """Asks a model, and makes rows of what it replies."""

    keeps_time = True  # the model ends late calls itself

    def __init__(self, model: ChatModel) -> None:
        self._model, self._who = model, canonical_json({**model.identity, "endpoint": ""})

    def __call__(self, call: Call) -> Reply:
        reply = self._model.complete(call.messages(), response_schema=call.schema)
        return replace(reply, text=reply.text[:_LONGEST])

    def usage(self, reply: Reply) -> Usage:
        """Return the tokens that a reply took."""
        return {"input_tokens": reply.prompt_tokens, "output_tokens": reply.completion_tokens}

    def key(self, call: Call) -> bytes:
        """Return the key of a call: who is asked what."""
        return call_key(GENERATE, self._who, canonical_json(call.messages()))

    def row(self, call: Call, result: Result[Reply]) -> CallRow:
        """Return what is stored of a call, and take its tasks or the kind of its failure."""
        used: dict[str, float] = {CALLS: len(result.attempts)}
        if result.failure is None:
            reply = result.answer()
            call.answer(reply)
            outcome, stored = ANSWERED, msgspec.json.encode(reply)
            used[CALLS] += 1
            used |= {name: count for name, count in self.usage(reply).items() if count is not None}
        else:
            call.failed = result.attempts[-1]["kind"] if result.attempts else result.failure.type
            outcome = MAY_PASS if call.failed in PASSING else FAILED
            stored = msgspec.json.encode({"kind": call.failed, "message": str(result.failure)})
        messages = msgspec.json.encode(call.messages()).decode()
        document = call.chunks[0].document
        return CallRow(self.key(call), GENERATE, document, outcome, stored.decode(), used, messages)


# Raw records of offline_dataset.jsonl, in the same form as those by rules.

_QUERY_TYPES = {"qa": "factual", "summaries": "summary"}
# Two questions with this share of common words are duplicates.
_NEAR = 0.8


class ModelRecords(TaskBuilder):
    """The records of a generation, with counts of what is left out and of how easily BM25 finds the passages.

    A question that repeats an earlier one in other words is left out. The context of a question is what BM25
    finds for it, plus the passage with the answer. Summaries have the passages of their call. A share of the
    questions whose answer is a literal quote get variants.
    """

    def __init__(self, made: Made, documents: Sequence[CutDocument], settings: Settings) -> None:
        super().__init__(documents, settings)
        self._made = made
        self.near_duplicates = 0

    def records(self) -> Iterator[Record]:
        """Yield the raw records."""
        questions: dict[int, list[set[str]]] = defaultdict(list)  # the words of each, by document
        instructions: set[tuple[str, str]] = set()
        for call, task in self._made.accepted():
            terms = set(content_words(task.instruction, stemmed=True))
            others = questions[call.document_index] if call.task_type == "qa" else []
            flat = (call.task_type, " ".join(task.instruction.lower().split()))
            near = (len(terms & other) >= _NEAR * max(1, len(terms | other)) for other in others)
            if flat in instructions or any(near):
                self.near_duplicates += 1
                continue
            instructions.add(flat)
            others.append(terms)
            document = self.documents[call.document_index]
            for each in self._tasks(call, document, task):
                self.count(each)
                yield raw_record(
                    each,
                    run_id=self._made.run_id,
                    document_index=call.document_index,
                    task_index=self.tasks.total() - 1,
                    more=_about(call, task, document.source.name),
                )

    def _tasks(self, call: Call, document: CutDocument, accepted: AcceptedTask) -> Iterator[Task]:
        """Yield a task, and its variants if it is a question that gets some."""
        is_question, text = call.task_type == "qa", document.source.text
        evidence = accepted.evidence[0]
        place = (evidence.start, evidence.end)
        if is_question:
            gold = document.chunks_with(*place)
            context, _ = self.context(accepted.instruction, gold)
        else:
            context = tuple((chunk, None) for chunk in call.chunks)
        ids = [chunk.id for chunk in gold] if is_question else [each.chunk for each in accepted.evidence]
        task = Task(
            call.task_type,
            "model",
            accepted.instruction,
            accepted.response,
            document.source,
            context,
            tuple(dict.fromkeys(ids)),
            {"scenario": "base", "answerable": True, "query_type": _QUERY_TYPES[call.task_type]},
            checks={"evidence_exact": True, "support": accepted.support},
            closed=not is_question and len(call.chunks) < len(document.chunks),
        )
        quoted = find_quote(accepted.response, text[slice(*place)]) if is_question else None
        if quoted is None:  # not literal, so no fact can be edited
            yield task
            return
        span = (evidence.start + quoted[0], evidence.start + quoted[1])
        answer = text[slice(*span)]
        kinds = [kind for kind, pattern in VALUES.items() if re.search(pattern, answer)]
        # A date has a number in it.
        kind = "date" if "date" in kinds else kinds[0] if kinds else "text"
        question = Question(kind, task.instruction, "", answer, *span, evidence=place)
        yield from self.with_variants(replace(task, span=span), question, document)

    def report(self) -> Record:
        """Return the counts, after all records were written."""
        report = {**super().report(), **self._made.report()}
        if self.near_duplicates:
            report["rejected"]["near duplicate"] = self.near_duplicates
        accepted = self.scenarios["base"]
        judged = accepted + sum(report["rejected"].values())
        return {**report, "accepted_share": accepted / judged if judged else None}


def _about(call: Call, task: AcceptedTask, document: str) -> Record:
    """Return the metadata about the model and its call."""
    reply = call.reply
    return {
        "generator_model": reply and reply.model,
        "evidence_spans": [
            {"document": document, "start": evidence.start, "end": evidence.end} for evidence in task.evidence
        ],
        "generator_metadata": {
            "prompt_sha256": call.prompt.sha256,
            "tokens": reply and {"prompt": reply.prompt_tokens, "completion": reply.completion_tokens},
        },
    }
