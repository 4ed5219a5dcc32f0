"""Generate a test set from documents.

The documents are .txt, .md, .html, .pdf (extra `pdf`) or .jsonl files. The output is a
file of raw tasks, and corpus.jsonl with the passages, which your system should index.
The same documents, flags and seed give identical files. With --llm, a model writes
questions and summaries, and each reply is stored, so that --resume repeats no call.

  auepora dataset generate demo --out offline_dataset.jsonl
"""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...builder.corpus import read_corpus
from ...calls.chat import ChatModel, split_endpoint
from ...calls.keys import key_from_environment
from ...calls.policy import CallPolicy, Limits
from ...demo.world import DATA
from ...errors import CallError, DataError, PlanError, StorageError
from ...generate.generator import TASKS, Generation, Settings
from ...generate.model import MOST_FAILURES, ModelRecords, generate_tasks
from ...generate.passages import cut
from ...generate.variants import VARIANTS
from ...io.config.project import (
    EvaluationConfig,
    GenerationConfig,
    load_evaluation_config,
    load_generation_config,
)
from ...io.files import written
from ...io.jsonl import encode
from .. import echo
from ..common import progress_bar, say_next
from ..flags import add_flag, add_json, add_settings, at_least
from ..interrupts import StopNow, finishing_first

if TYPE_CHECKING:
    from ...builder.corpus import Corpus
    from ...generate.records import Record

_SHOWN = 5


def add_arguments(parser: ArgumentParser) -> None:
    about = "folder of documents, a single file, or `demo`"
    parser.add_argument("folder", metavar="FOLDER", nargs="?", help=about)
    add_flag(parser, "--out", "file for the tasks (default: offline_dataset.jsonl)", "FILE")
    add_flag(parser, "--corpus", "file for the passages (default: corpus.jsonl)", "FILE")
    about = "qa, summaries, citations (default: all; with --llm, the first two)"
    add_flag(parser, "--tasks", about, "NAMES", type=_names)
    add_flag(parser, "--per-document", "most questions per document", "N", type=at_least(1), default=8)
    about = "noise, unanswerable, counterfactual, paraphrase, typo, or none (default: all)"
    add_flag(parser, "--variants", about, "NAMES", type=_names, default=tuple(VARIANTS))
    add_flag(parser, "--seed", "random seed", "N", type=at_least(0), default=0)
    about = "project file: FOLDER, --out, and the section `generation`"
    add_flag(parser, "--config", about, "FILE")
    add_flag(parser, "--llm", "model that writes the tasks", "URL#MODEL")
    add_settings(parser, "api_key_env")
    add_flag(parser, "--concurrency", "with --llm: concurrent calls", "N", type=at_least(1), default=4)
    add_settings(parser, "budget_calls")
    add_flag(parser, "--resume", "with --llm: resume without repeating a call")
    add_flag(parser, "--force", "replace existing files")
    add_json(parser)


def run(args: Namespace) -> int:
    folder, out = _paths(args)
    rare = load_generation_config(args.config) if args.config else GenerationConfig()
    corpus_out = Path(args.corpus) if args.corpus else out.with_name("corpus.jsonl")
    if args.folder == "demo":
        folder = DATA / "corpus.jsonl"
    _check_arguments(args, folder, out, corpus_out, rare)
    corpus = read_corpus(folder)
    for left in corpus.left_out[:_SHOWN]:
        echo.note(f"note: {echo.one_line(left.name, 80)} is left out: {echo.one_line(left.reason, 120)}")
    if len(corpus.left_out) > _SHOWN:
        echo.note(f"note: ... and {len(corpus.left_out) - _SHOWN} more")
    settings = Settings(
        tasks=args.tasks or TASKS,
        per_document=args.per_document,
        seed=args.seed,
        chunk_tokens=rare.chunk_tokens,
        overlap=rare.overlap,
        variants=args.variants,
        variant_share=rare.variant_share,
    )
    tasks: Generation | ModelRecords
    if args.llm:
        tasks = _model_tasks(args, rare, corpus, settings, (out, corpus_out))
        where, problem = "the model's answers", "gave no task that its documents support."
        fix = f"{_calls_path(out).name} has its replies. Try another model."
    else:
        tasks = Generation(corpus, settings)
        where, problem = "the documents", "gave no task."
        fix = "The rules read English prose. Check the documents."
    # A resumed generation is made again from the stored replies. Neither file gets its name before both are
    # complete, and those of an earlier generation stay if there is no task.
    force = args.force or args.resume
    with written(out, force=force) as task_file, written(corpus_out, force=force) as passage_file:
        for passage in tasks.corpus_records():
            passage_file.write(encode(passage) + b"\n")
        for record in tasks.records():
            task_file.write(encode(record) + b"\n")
        if not task_file.tell():
            raise DataError(where, problem, fix=fix)
    report = tasks.report()
    if args.json:
        echo.say_json(report)
    else:
        _say_report(report)
    echo.note(f"stored: {out}")
    echo.note(f"stored: {corpus_out}")
    if not args.json:
        dataset = shlex.quote(str(out))
        say_next({f"auepora run --dataset {dataset} --system FILE.py:my_rag --match text": "ask your system"})
    return 0


def _paths(args: Namespace) -> tuple[Path, Path]:
    """Return the folder of the documents and the file for the tasks, from the arguments or the config."""
    if args.config is None:
        if not args.folder:
            raise PlanError("Name a folder of documents, or --config with the project's paths.")
        return Path(args.folder), Path(args.out or "offline_dataset.jsonl")
    # An empty --config means the default paths of a project.
    config = load_evaluation_config(args.config) if args.config else EvaluationConfig()
    folder = Path(args.folder) if args.folder else config.path("documents_path")
    return folder, Path(args.out) if args.out else config.path("offline_dataset_path")


def _check_arguments(
    args: Namespace, folder: Path, out: Path, corpus_out: Path, rare: GenerationConfig
) -> None:
    if out.resolve() == corpus_out.resolve():
        raise DataError("--corpus", "is the same file as --out.", fix="Name two files.")
    for path in (out, corpus_out):
        inside = folder.is_dir() and path.resolve().is_relative_to(folder.resolve())
        if inside or path.resolve() == folder.resolve():
            raise DataError(
                str(path), "is among the documents, and would be read as one.", fix="Write it elsewhere."
            )
    if rare.overlap >= rare.chunk_tokens:
        raise PlanError(f"overlap {rare.overlap} must be less than chunk_tokens {rare.chunk_tokens}.")
    model_only = ("resume", "api_key_env", "budget_calls")
    for name in () if args.llm else model_only:
        if getattr(args, name) not in (None, False):
            flag = f"--{name.replace('_', '-')}"
            raise PlanError(
                f"{flag} is for a language model: name one with --llm URL#MODEL, or leave it out."
            )


# What the table shows of a report, in this order; --json has the rest.
_LABELS = {
    "documents": "documents",
    "passages": "passages",
    "documents_without_questions": "documents without questions",
    "questions": "questions",
    "accepted_share": "accepted, share of those judged",
    "gold_first_share": "gold passage ranked first by BM25 (easy)",
    "gold_never_share": "gold passage not found by BM25 (broken)",
    "tasks": "TASKS",
    "scenarios": "BY SCENARIO",
    "families": "KINDS OF QUESTION",
    "calls": "CALLS",
    "failed_calls": "FAILED CALLS",
    "tokens": "TOKENS",
    "rejected": "REJECTED",
}


def _say_report(report: Record) -> None:
    rows: list[list[str]] = []
    for name, label in _LABELS.items():
        value = report.get(name)
        if isinstance(value, dict):
            counts = [[what, _figure(count)] for what, count in value.items()]
            rows += [[label], *counts] if counts else []
        elif name in report:
            rows.append([label, _figure(value)])
    echo.say_table(("What", "How many"), rows, numeric=(1,))
    passages, questions = report.get("passages", 0), report.get("questions", 0)
    if "documents_without_questions" in report and questions < passages / 10:  # made by rules
        echo.note(
            f"note: {questions} questions from {passages:,} passages: the rules read plain statements of "
            "definitions, numbers, dates and names. A model writes questions about any text: --llm URL#MODEL"
        )
    if report.get("failed_calls") or report.get("calls", {}).get("left"):
        echo.note("note: calls are missing; the same command with --resume makes them")


def _figure(value: float | None) -> str:
    if value is None:
        return "not known"
    return f"{value:,}" if isinstance(value, int) else f"{value:.1%}"


def _names(text: str) -> tuple[str, ...]:
    """Parse names with commas between them, for argparse; none is an empty list."""
    return () if text == "none" else tuple(name.strip() for name in text.split(",") if name.strip())


# `dataset generate --llm`.


def _model_tasks(
    args: Namespace, rare: GenerationConfig, corpus: Corpus, settings: Settings, files: Sequence[Path]
) -> ModelRecords:
    """Return the tasks that a language model writes."""
    for path in files:
        if path.exists() and not (args.force or args.resume):  # checked before anything is paid for
            raise StorageError(f"{path} exists already. Choose another name, or use --force to replace it.")
    documents = [
        cut(document, tokens=rare.chunk_tokens, overlap=rare.overlap) for document in corpus.documents
    ]
    calls = _calls_path(files[0])
    is_new = not calls.exists()
    counts = {"qa": args.per_document, "summaries": 1}
    limits = Limits(CallPolicy(retries=4, max_calls=args.budget_calls, breaker_after=MOST_FAILURES))
    url, name = split_endpoint(args.llm)
    key = key_from_environment(args.api_key_env) if args.api_key_env is not None else None
    model = ChatModel(url, name, api_key=key, timeout=rare.timeout, plain_http=rare.plain_http)
    bar = progress_bar(None, "asking the model")
    with finishing_first(limits.halt) as signalled, model, bar as advance:
        made = generate_tasks(
            documents,
            model,
            calls,
            wanted={name: counts.get(name, 1) for name in args.tasks or counts},
            resume=args.resume,
            force=args.force,
            concurrency=args.concurrency,
            limits=limits,
            on_reply=lambda failed, total: advance(failed, total=total),
        )
    if signalled.number:
        echo.note(f"The answers so far are in {calls}. Resume with the same command and --resume.")
        raise StopNow(signalled.number)
    if not made.replies:
        if is_new:  # it has only calls that failed
            calls.unlink(missing_ok=True)
        raise CallError("no call was answered; nothing is written.", kind="no_answer")
    return ModelRecords(made, documents, settings)


def _calls_path(out: Path) -> Path:
    """Return the file of the model's replies: offline_dataset.calls.db beside offline_dataset.jsonl."""
    return out.with_name(f"{out.name.removesuffix('.gz').removesuffix('.jsonl')}.calls.db")
