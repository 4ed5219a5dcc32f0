"""`dataset generate --llm`: the flags of tasks by a language model, the call, and its report."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import echo
from .numbers import at_least, price, seconds

if TYPE_CHECKING:
    from ..curation.chunks import CutDocument
    from ..curation.corpus import Corpus
    from ..curation.llm_asking import Prices
    from ..curation.llm_records import ModelRecords
    from ..curation.llm_tasks import Made, OnAnswer
    from ..judges.llm import ChatModel


def add_model_flags(parser: ArgumentParser) -> None:
    """The flags that only count with --llm."""
    group = parser.add_argument_group("with a language model")
    group.add_argument(
        "--llm",
        metavar="URL#MODEL",
        help="let a model write the tasks: any OpenAI-compatible endpoint, http://127.0.0.1:8000/v1#small-model",
    )
    group.add_argument(
        "--api-key-env",
        metavar="NAME",
        help="the environment variable that holds the key; not the key itself",
    )
    group.add_argument("--price-input", type=price, metavar="USD", help="price of 1,000 tokens sent")
    group.add_argument("--price-output", type=price, metavar="USD", help="price of 1,000 tokens received")
    group.add_argument(
        "--resume",
        action="store_true",
        help="go on with a generation that was stopped: nothing is asked twice",
    )
    group.add_argument("--concurrency", type=at_least(1), default=4, metavar="N", help="calls at a time (4)")
    group.add_argument(
        "--budget-calls", type=at_least(1), metavar="N", help="the most calls to make this time"
    )
    group.add_argument("--timeout", type=seconds, default=60.0, metavar="S", help="seconds for a reply (60)")
    group.add_argument(
        "--plain-http",
        action="store_true",
        help="send the key unencrypted to a host that is not this machine",
    )


def refuse_model_flags(args: Namespace) -> None:
    """A flag that would do nothing is a mistake that somebody would find out about too late."""
    from ..errors import PlanError

    given = {
        "--resume": args.resume,
        "--api-key-env": args.api_key_env,
        "--budget-calls": args.budget_calls,
        "--price-input": args.price_input,
        "--price-output": args.price_output,
    }
    for flag, value in given.items():
        if value not in (None, False):
            raise PlanError(
                f"{flag} is for a language model: name one with --llm URL#MODEL, or leave it out."
            )


def journal_beside(out: Path) -> Path:
    """Where the model's answers are kept: offline_tasks.jsonl beside offline_dataset.jsonl."""
    if out.name == "offline_dataset.jsonl":
        return out.with_name("offline_tasks.jsonl")
    return out.with_name(f"{out.name.removesuffix('.gz').removesuffix('.jsonl')}.tasks.jsonl")


def save_model_tasks(args: Namespace, corpus: Corpus, out: Path, corpus_out: Path) -> dict[str, Any]:
    """Have the tasks written, save them beside their passages, and say what came of it."""
    from ..curation.chunks import cut
    from ..curation.llm_records import ModelRecords
    from ..errors import CallError, StorageError

    replaces = args.force or args.resume  # what is resumed is made from the journal, which has it all
    for path in (out, corpus_out):
        if path.exists() and not replaces:  # said before anything is paid for
            raise StorageError(f"{path} exists already. Choose another name, or use --force to replace it.")
    documents = [
        cut(document, tokens=args.chunk_tokens, overlap=args.overlap) for document in corpus.documents
    ]
    journal = journal_beside(out)
    is_new = not journal.exists()
    made = _made(args, documents, journal)
    records = ModelRecords(
        made, documents, variants=args.variants, variant_share=args.variant_share, seed=args.seed
    )
    if not any(made.answers):
        if is_new:  # all that it holds are calls that failed
            journal.unlink(missing_ok=True)
        raise CallError("no call was answered; nothing is written.", kind="no_answer")
    _save(records, documents, out, corpus_out, force=replaces)
    return _report(made, records, documents)


def _made(args: Namespace, documents: Sequence[CutDocument], journal: Path) -> Made:
    from ..curation.llm_plan import Wanted
    from ..curation.llm_tasks import generate_tasks

    counts = {"qa": args.per_document, "summaries": 1, "citations": max(1, args.per_document // 4)}
    wanted = Wanted({name: counts.get(name, 1) for name in args.tasks})
    with _model(args) as model, _progress("asking the model") as advance:
        try:
            return generate_tasks(
                documents,
                model,
                journal,
                wanted=wanted,
                prices=_prices(args),
                resume=args.resume,
                force=args.force,
                concurrency=args.concurrency,
                budget_calls=args.budget_calls,
                on_answer=advance,
            )
        except KeyboardInterrupt:
            echo.note(f"what was answered is in {journal}; the same command with --resume goes on from there")
            raise


def _save(
    records: ModelRecords, documents: Sequence[CutDocument], out: Path, corpus_out: Path, *, force: bool
) -> None:
    """Write both files; neither gets its name before both are complete."""
    from ..curation.tasks import corpus_record
    from ..errors import DataError
    from ..io.atomic import written
    from ..io.jsonl import encode

    with written(out, force=force) as tasks, written(corpus_out, force=force) as passages:
        for document in documents:
            for chunk in document.chunks:
                passages.write(encode(corpus_record(chunk)) + b"\n")
        for record in records:
            tasks.write(encode(record) + b"\n")
        if not records.tasks:
            raise DataError(
                "the model's answers",
                "gave no task that its documents support.",
                fix=f"The journal beside {out.name} says why each was rejected; try another model.",
            )


def say_model_report(report: dict[str, Any]) -> None:
    """Print what came of it."""
    calls, tokens = report["calls"], report["tokens"]
    rows = [
        ["documents", str(report["documents"])],
        ["passages", str(report["passages"])],
        ["tasks", _listed(report["tasks"])],
        ["by scenario", _listed(report["scenarios"])],
        ["calls answered", f"{calls['answered']} of {calls['planned']} ({calls['reused']} kept from before)"],
        ["calls that failed", _listed(calls["failed"]) or "none"],
        ["accepted", _percent(report["accepted_share"])],
        ["rejected", _listed(report["rejected"]) or "none"],
        ["tokens", f"{_known(tokens['prompt'])} sent, {_known(tokens['completion'])} received"],
        ["cost in US dollars", _known(report["cost_usd"])],
        ["gold ranked first by BM25", f"{_percent(report['gold_first_share'])} (too easy)"],
        [
            f"gold not among its first {report['search_depth']}",
            f"{_percent(report['gold_never_share'])} (broken)",
        ],
    ]
    if report["not_made"]:
        rows.append(["not made", _listed(report["not_made"])])
    echo.say_table(("What", "How much"), rows)
    for note in report["notes"]:
        echo.note(f"note: {note}")
    if calls["failed"] or calls["left"]:
        echo.note("note: calls are missing; the same command with --resume makes them")


def _report(made: Made, records: ModelRecords, documents: Sequence[CutDocument]) -> dict[str, Any]:
    from ..curation.passage_search import DEPTH

    rejected = made.rejected
    if records.near_duplicates:
        rejected["near duplicate"] = records.near_duplicates
    originals = records.scenarios["base"]
    asked = originals + rejected.total()
    return {
        "documents": len(documents),
        "passages": sum(len(document.chunks) for document in documents),
        "tasks": dict(sorted(records.tasks.items())),
        "scenarios": dict(sorted(records.scenarios.items())),
        "questions": records.questions,
        "calls": {
            "planned": len(made.calls),
            "answered": sum(answer is not None for answer in made.answers),
            "reused": made.reused,
            "left": made.left,
            "failed": dict(made.failed),
        },
        "accepted_share": originals / asked if asked else None,
        "rejected": dict(rejected.most_common()),
        "not_made": dict(records.not_made.most_common()),
        "tokens": made.tokens,
        "cost_usd": made.cost,
        "gold_first_share": records.found_first / records.questions if records.questions else None,
        "gold_never_share": records.never_found / records.questions if records.questions else None,
        "search_depth": DEPTH,
        "notes": made.notes,
    }


def _model(args: Namespace) -> ChatModel:
    from ..judges.llm import ChatModel, split_endpoint
    from ..judges.secrets import key_from_environment

    url, model = split_endpoint(args.llm)
    key = key_from_environment(args.api_key_env) if args.api_key_env is not None else None
    return ChatModel(url, model, api_key=key, timeout=args.timeout, plain_http=args.plain_http)


def _prices(args: Namespace) -> Prices | None:
    from ..curation.llm_asking import Prices
    from ..errors import PlanError

    given = (args.price_input, args.price_output)
    if given == (None, None):
        return None
    if None in given:
        raise PlanError("--price-input and --price-output go together: give both, or neither.")
    return Prices(*given)


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _percent(share: float | None) -> str:
    return "n/a" if share is None else f"{share:.1%}"


def _known(value: float | None) -> str:
    if value is None:
        return "not known"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


@contextmanager
def _progress(title: str) -> Iterator[OnAnswer]:
    """A progress bar on stderr where a person watches: calls answered, failed, rate, time left."""
    if not echo.is_interactive(sys.stderr):
        yield lambda answer, done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[told]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        shown = bar.add_task(title, total=None, told="")
        failed = 0

        def advance(answer: dict[str, Any], done: int, total: int) -> None:
            nonlocal failed
            failed += answer["status"] == "error"
            speed = bar.tasks[0].speed
            told = [f"{speed:.1f}/s" if speed else "", f"{failed} failed" if failed else ""]
            bar.update(shown, completed=done, total=total, told=" ".join(filter(None, told)))

        yield advance
