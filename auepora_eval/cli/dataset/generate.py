"""Generate a test set from documents.

Read .txt, .md, .html, .pdf (extra `pdf`) and .jsonl files (one document per line), and write raw tasks:
questions with their exact answers, summaries, statements to cite, and variants of the questions for the
robustness targets. The passages that the systems under test should index are written to corpus.jsonl. The
same documents, flags and seed give the same bytes. `demo` is the name of the bundled documents.

With --llm a language model writes the tasks. Its replies are checked against the documents, and each is
stored in offline_tasks.jsonl when it arrives: --resume continues a generation that was stopped. Without the
flag nothing is sent anywhere.

Example:

  auepora dataset generate demo --out offline_dataset.jsonl
  auepora dataset generate demo --out few.jsonl --corpus few_corpus.jsonl --tasks qa --variants none
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from .. import echo
from ..common import add_json
from ..flags import at_least, covered, seconds

if TYPE_CHECKING:
    from ...generate.corpus import Corpus
    from ...generate.llm.tasks import Made
    from ...generate.passages import CutDocument
    from ...generate.tasks import Record
    from ...models.chat import ChatModel

_SHOWN = 5


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "folder", metavar="FOLDER", nargs="?", help="a folder of documents, one file of them, or demo"
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="take FOLDER and --out from the project's paths, such as configs/default.yaml",
    )
    parser.add_argument("--out", metavar="FILE", help="file for the tasks (default: offline_dataset.jsonl)")
    parser.add_argument(
        "--corpus", metavar="FILE", help="file for the passages (default: corpus.jsonl beside the tasks)"
    )
    parser.add_argument(
        "--tasks",
        type=_names,
        default="qa,summaries,citations",
        metavar="NAMES",
        help="qa,summaries,citations",
    )
    parser.add_argument(
        "--per-document",
        type=at_least(1),
        default=8,
        metavar="N",
        help="maximum number of questions per document (default: 8)",
    )
    parser.add_argument("--seed", type=at_least(0), default=0, metavar="N", help="random seed (default: 0)")
    parser.add_argument(
        "--chunk-tokens",
        type=at_least(16),
        default=256,
        metavar="N",
        help="maximum number of tokens per passage (default: 256)",
    )
    parser.add_argument(
        "--overlap",
        type=at_least(0),
        default=32,
        metavar="N",
        help="tokens that two passages share (default: 32)",
    )
    parser.add_argument(
        "--variants",
        type=_names,
        default="noise,unanswerable,counterfactual,paraphrase,typo",
        metavar="NAMES",
        help="variants of the questions: noise,unanswerable,counterfactual,paraphrase,typo, or none",
    )
    parser.add_argument(
        "--variant-share",
        type=covered,
        default=0.25,
        metavar="X",
        help="share of questions that get variants (default: 0.25)",
    )
    parser.add_argument("--force", action="store_true", help="replace existing files")
    _add_model_flags(parser)
    add_json(parser)


def _add_model_flags(parser: ArgumentParser) -> None:
    """Add the flags that only apply with --llm."""
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
    group.add_argument(
        "--resume",
        action="store_true",
        help="resume a generation that was stopped, without repeating a call",
    )
    group.add_argument(
        "--concurrency", type=at_least(1), default=4, metavar="N", help="concurrent calls (default: 4)"
    )
    group.add_argument(
        "--budget-calls", type=at_least(1), metavar="N", help="the most calls to make this time"
    )
    group.add_argument(
        "--timeout", type=seconds, default=60.0, metavar="S", help="seconds per attempt (default: 60)"
    )
    group.add_argument(
        "--plain-http",
        action="store_true",
        help="send the key unencrypted to a host that is not this machine",
    )


def run(args: Namespace) -> int:
    from ...demo.world import DATA
    from ...generate.corpus import read_corpus

    folder, out = _paths(args)
    corpus_out = Path(args.corpus) if args.corpus else out.with_name("corpus.jsonl")
    if args.folder == "demo":
        folder = DATA / "corpus.jsonl"
    _check_arguments(args, folder, out, corpus_out)
    corpus = read_corpus(folder)
    for left in corpus.left_out[:_SHOWN]:
        echo.note(f"note: {echo.one_line(left.name, 80)} is left out: {echo.one_line(left.reason, 120)}")
    if len(corpus.left_out) > _SHOWN:
        echo.note(f"note: ... and {len(corpus.left_out) - _SHOWN} more")
    write = _write_model_tasks if args.llm else _write_tasks
    report = write(args, corpus, out, corpus_out)
    if args.json:
        echo.say_json(report)
    else:
        _say_report(report)
    echo.note(f"stored: {out}")
    echo.note(f"stored: {corpus_out}")
    return 0


def _paths(args: Namespace) -> tuple[Path, Path]:
    """Return the folder of the documents and the file for the tasks, from the arguments or the config."""
    from ...errors import PlanError
    from ...io.config.project import EvaluationConfig, load_evaluation_config

    if args.config is None:
        if not args.folder:
            raise PlanError("Name a folder of documents, or --config with the project's paths.")
        return Path(args.folder), Path(args.out or "offline_dataset.jsonl")
    # An empty --config means the default paths of a project.
    config = load_evaluation_config(args.config) if args.config else EvaluationConfig()
    folder = Path(args.folder) if args.folder else config.path("documents_path")
    return folder, Path(args.out) if args.out else config.path("offline_dataset_path")


def _check_arguments(args: Namespace, folder: Path, out: Path, corpus_out: Path) -> None:
    from ...errors import DataError, PlanError

    if out.resolve() == corpus_out.resolve():
        raise DataError("--corpus", "is the same file as --out.", fix="Name two files.")
    for path in (out, corpus_out):
        inside = folder.is_dir() and path.resolve().is_relative_to(folder.resolve())
        if inside or path.resolve() == folder.resolve():
            raise DataError(
                str(path), "is among the documents, and would be read as one.", fix="Write it elsewhere."
            )
    if args.overlap >= args.chunk_tokens:
        raise PlanError(f"--overlap {args.overlap} must be less than --chunk-tokens {args.chunk_tokens}.")
    model_only = ("resume", "api_key_env", "budget_calls")
    for name in () if args.llm else model_only:
        if getattr(args, name) not in (None, False):
            flag = f"--{name.replace('_', '-')}"
            raise PlanError(
                f"{flag} is for a language model: name one with --llm URL#MODEL, or leave it out."
            )


def _write_tasks(args: Namespace, corpus: Corpus, out: Path, corpus_out: Path) -> Record:
    """Write the tasks by rules and their passages. Return the report."""
    from ...generate.generator import Generation, Settings

    settings = Settings(
        tasks=args.tasks,
        per_document=args.per_document,
        seed=args.seed,
        chunk_tokens=args.chunk_tokens,
        overlap=args.overlap,
        variants=args.variants,
        variant_share=args.variant_share,
    )
    generation = Generation(corpus, settings)
    no_task = ("the documents", "gave no task.", "The rules read English prose. Check the documents.")
    _save(generation.records(), generation.corpus_records(), out, corpus_out, no_task, force=args.force)
    return generation.report()


def _save(
    records: Iterable[Mapping[str, object]],
    passages: Iterable[Mapping[str, object]],
    out: Path,
    corpus_out: Path,
    no_task: tuple[str, str, str],
    *,
    force: bool,
) -> None:
    """Write both files; neither gets its name before both are complete.

    `no_task` is the error without records: where, what, fix.
    """
    from ...errors import DataError
    from ...io.files.atomic import written
    from ...io.jsonl import encode

    with written(out, force=force) as task_file, written(corpus_out, force=force) as passage_file:
        for passage in passages:
            passage_file.write(encode(passage) + b"\n")
        for record in records:
            task_file.write(encode(record) + b"\n")
        # Within the block: neither file gets its name, and those of an earlier generation stay.
        if not task_file.tell():
            where, what, fix = no_task
            raise DataError(where, what, fix=fix)


# What the table shows of a report, in this order; --json has the rest.
_LABELS = {
    "documents": "documents",
    "passages": "passages",
    "documents_without_questions": "documents without questions",
    "candidates": "candidates for questions",
    "questions": "questions accepted",
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
    "not_made": "COULD NOT BE MADE",
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
    for note in report.get("notes", ()):
        echo.note(f"note: {note}")
    if report.get("failed_calls") or report.get("calls", {}).get("left"):
        echo.note("note: calls are missing; the same command with --resume makes them")


def _figure(value: float | None) -> str:
    if value is None:
        return "not known"
    return f"{value:,}" if isinstance(value, int) else f"{value:.1%}"


def _names(text: str) -> tuple[str, ...]:
    """Parse names with commas between them, for argparse; none is an empty list."""
    return () if text == "none" else tuple(name.strip() for name in text.split(",") if name.strip())


@contextmanager
def _progress(title: str) -> Iterator[Callable[[int, int, str], None]]:
    """Show a bar on a terminal. The callback takes the number done, the total and a remark."""
    if not echo.is_interactive(sys.stderr):
        yield lambda done, total, remark: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    remark_column = TextColumn("{task.fields[remark]}")
    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), remark_column)
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None, remark="")
        yield lambda done, total, remark: bar.update(task, completed=done, total=total, remark=remark)


# `dataset generate --llm`.


def _write_model_tasks(args: Namespace, corpus: Corpus, out: Path, corpus_out: Path) -> Record:
    """Write the tasks of a language model and their passages. Return the report."""
    from ...errors import CallError, StorageError
    from ...generate.llm.tasks import ModelRecords
    from ...generate.passages import cut
    from ...generate.tasks import corpus_record

    # A resumed generation is rebuilt from its journal, which has all answers.
    replaces = args.force or args.resume
    for path in (out, corpus_out):
        if path.exists() and not replaces:  # checked before anything is paid for
            raise StorageError(f"{path} exists already. Choose another name, or use --force to replace it.")
    documents = [
        cut(document, tokens=args.chunk_tokens, overlap=args.overlap) for document in corpus.documents
    ]
    journal = _journal_path(out)
    is_new = not journal.exists()
    made = _ask_model(args, documents, journal)
    if not made.answered:
        if is_new:  # it has only calls that failed
            journal.unlink(missing_ok=True)
        raise CallError("no call was answered; nothing is written.", kind="no_answer")
    records = ModelRecords(
        made, documents, variants=args.variants, variant_share=args.variant_share, seed=args.seed
    )
    fix = f"{journal.name} has the reason for each rejected task. Try another model."
    no_task = ("the model's answers", "gave no task that its documents support.", fix)
    passages = (corpus_record(chunk) for document in documents for chunk in document.chunks)
    _save(records, passages, out, corpus_out, no_task, force=replaces)
    return records.report()


def _journal_path(out: Path) -> Path:
    """Return the file of the model's answers: offline_tasks.jsonl beside offline_dataset.jsonl."""
    if out.name == "offline_dataset.jsonl":
        return out.with_name("offline_tasks.jsonl")
    return out.with_name(f"{out.name.removesuffix('.gz').removesuffix('.jsonl')}.tasks.jsonl")


def _ask_model(args: Namespace, documents: Sequence[CutDocument], journal: Path) -> Made:
    from ...generate.llm.asking import Answer, Wanted
    from ...generate.llm.tasks import generate_tasks

    counts = {"qa": args.per_document, "summaries": 1, "citations": max(1, args.per_document // 4)}
    wanted = Wanted({name: counts.get(name, 1) for name in args.tasks})
    failed = 0
    with _model(args) as model, _progress("asking the model") as advance:

        def on_answer(answer: Answer, done: int, total: int) -> None:
            nonlocal failed
            failed += answer.status == "error"
            advance(done, total, f"{failed} failed" if failed else "")

        try:
            return generate_tasks(
                documents,
                model,
                journal,
                wanted=wanted,
                resume=args.resume,
                force=args.force,
                concurrency=args.concurrency,
                budget_calls=args.budget_calls,
                on_answer=on_answer,
            )
        except KeyboardInterrupt:
            echo.note(f"The answers so far are in {journal}. Resume with the same command and --resume.")
            raise


def _model(args: Namespace) -> ChatModel:
    from ...models.chat import ChatModel, split_endpoint
    from ...models.keys import key_from_environment

    url, model = split_endpoint(args.llm)
    key = key_from_environment(args.api_key_env) if args.api_key_env is not None else None
    return ChatModel(url, model, api_key=key, timeout=args.timeout, plain_http=args.plain_http)
