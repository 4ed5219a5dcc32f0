"""make a test set from a folder of documents, by rule or with a language model

Reads .txt, .md, .html, .pdf (extra `pdf`) and .jsonl (a document a line), and writes raw tasks: questions
with their exact answers, summaries, statements to cite, and twins of the questions for the robustness
targets. Beside them corpus.jsonl is written: the passages that the systems under test should index. The same
documents, flags and seed give the same bytes. `demo` stands for the bundled documents.

With --llm a language model writes the tasks. Its replies are checked against the documents, and kept in
offline_tasks.jsonl as they come: a generation that was stopped goes on with --resume. Without the flag
nothing is sent anywhere.

Example:

  auepora dataset generate demo --out offline_dataset.jsonl
  auepora dataset generate demo --out few.jsonl --corpus few_corpus.jsonl --tasks qa --variants none
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import echo
from .common import add_json
from .model_tasks import add_model_flags, refuse_model_flags, save_model_tasks, say_model_report
from .numbers import at_least, covered

if TYPE_CHECKING:
    from ..curation.corpus import Corpus
    from ..curation.generator import Generation

_SHOWN = 5


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "folder", metavar="FOLDER", nargs="?", help="a folder of documents, one file of them, or demo"
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="the project's paths, such as configs/default.yaml: for FOLDER and --out",
    )
    parser.add_argument("--out", metavar="FILE", help="where the tasks go (offline_dataset.jsonl)")
    parser.add_argument(
        "--corpus", metavar="FILE", help="where the passages go (default: corpus.jsonl beside the tasks)"
    )
    parser.add_argument(
        "--tasks",
        type=_names,
        default="qa,summaries,citations",
        metavar="NAMES",
        help="qa,summaries,citations",
    )
    parser.add_argument(
        "--per-document", type=at_least(1), default=8, metavar="N", help="at most N questions a document (8)"
    )
    parser.add_argument("--seed", type=at_least(0), default=0, metavar="N", help="seed of every choice (0)")
    parser.add_argument(
        "--chunk-tokens", type=at_least(16), default=256, metavar="N", help="most tokens of a passage (256)"
    )
    parser.add_argument(
        "--overlap", type=at_least(0), default=32, metavar="N", help="tokens that two passages may share (32)"
    )
    parser.add_argument(
        "--variants",
        type=_names,
        default="noise,unanswerable,counterfactual,paraphrase,typo",
        metavar="NAMES",
        help="twins of the questions: noise,unanswerable,counterfactual,paraphrase,typo, or none",
    )
    parser.add_argument(
        "--variant-share",
        type=covered,
        default=0.25,
        metavar="X",
        help="share of questions with twins (0.25)",
    )
    parser.add_argument("--force", action="store_true", help="replace files that are there")
    add_model_flags(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    from ..curation.corpus import read_corpus
    from ..demo.world import DATA

    folder, out = _places(args)
    corpus_out = Path(args.corpus) if args.corpus else out.with_name("corpus.jsonl")
    if args.folder == "demo":
        folder = DATA / "corpus.jsonl"
    _refuse_places(folder, out, corpus_out)
    corpus = read_corpus(folder)
    _say_left_out(corpus)
    _refuse_overlap(args)
    if args.llm:
        report, say = save_model_tasks(args, corpus, out, corpus_out), say_model_report
    else:
        refuse_model_flags(args)
        report, say = _written(_generation(corpus, args), out, corpus_out, force=args.force), _say_report
    if args.json:
        echo.say_json(report)
    else:
        say(report)
    echo.note(f"stored: {out}")
    echo.note(f"stored: {corpus_out}")
    return 0


def _places(args: Namespace) -> tuple[Path, Path]:
    """Where the documents are and where the tasks go: as said, or as the project's config has it."""
    from ..errors import PlanError
    from ..io.project_config import EvaluationConfig, load_evaluation_config

    if args.config is None:
        if not args.folder:
            raise PlanError("name a folder of documents, or --config with the project's paths.")
        return Path(args.folder), Path(args.out or "offline_dataset.jsonl")
    config = load_evaluation_config(args.config) if args.config else EvaluationConfig()
    folder = Path(args.folder) if args.folder else config.path("documents_path")
    return folder, Path(args.out) if args.out else config.path("offline_dataset_path")


def _generation(corpus: Corpus, args: Namespace) -> Generation:
    from ..curation.generator import Generation, Settings

    settings = Settings(
        tasks=args.tasks,
        per_document=args.per_document,
        seed=args.seed,
        chunk_tokens=args.chunk_tokens,
        overlap=args.overlap,
        variants=args.variants,
        variant_share=args.variant_share,
    )
    return Generation(corpus, settings)


def _refuse_overlap(args: Namespace) -> None:
    from ..errors import PlanError

    if args.overlap >= args.chunk_tokens:
        raise PlanError(f"--overlap {args.overlap} must be less than --chunk-tokens {args.chunk_tokens}.")


def _written(generation: Generation, out: Path, corpus_out: Path, *, force: bool) -> dict[str, Any]:
    """Write both files; neither gets its name before both are complete."""
    from ..errors import DataError
    from ..io.atomic import written
    from ..io.jsonl import encode

    with written(out, force=force) as tasks, written(corpus_out, force=force) as passages:
        for record in generation.corpus_records():
            passages.write(encode(record) + b"\n")
        with _progress(len(generation.documents)) as advance:
            for record in generation.records(advance):
                tasks.write(encode(record) + b"\n")
        report = generation.report()
        if not sum(report["tasks"].values()):
            raise DataError(
                "the documents",
                "gave no task: no sentence could be turned into one.",
                fix="The rules read English prose; are the documents that?",
            )
    return report


def _refuse_places(folder: Path, out: Path, corpus_out: Path) -> None:
    """Outputs that would be read as documents the next time, or that are one file."""
    from ..errors import DataError

    if out.resolve() == corpus_out.resolve():
        raise DataError("--corpus", "is the same file as --out.", fix="Name two files.")
    for path in (out, corpus_out):
        inside = folder.is_dir() and path.resolve().is_relative_to(folder.resolve())
        if inside or path.resolve() == folder.resolve():
            raise DataError(
                str(path), "lies among the documents, and would be read as one.", fix="Write it elsewhere."
            )


def _say_left_out(corpus: Corpus) -> None:
    for left in corpus.left_out[:_SHOWN]:
        echo.note(f"note: {echo.one_line(left.name, 80)} is left out: {echo.one_line(left.reason, 120)}")
    if len(corpus.left_out) > _SHOWN:
        echo.note(f"note: ... and {len(corpus.left_out) - _SHOWN} more")


def _say_report(report: dict[str, Any]) -> None:
    rows: list[list[str]] = [
        ["documents", str(report["documents"])],
        ["passages", str(report["passages"])],
        *_counted("TASKS", report["tasks"]),
        *_counted("BY SCENARIO", report["scenarios"]),
    ]
    if report["candidates"]:
        rows += _about_questions(report)
        rows += _counted("KINDS OF QUESTION", report["families"])
        rows += _counted("REJECTED", report["rejected"])
    rows += _counted("COULD NOT BE MADE", report["not_made"])
    echo.say_table(("What", "How many"), rows, numeric=(1,))


def _about_questions(report: dict[str, Any]) -> list[list[str]]:
    per_document, depth = report["questions_per_document"], report["search_depth"]
    return [
        ["QUESTIONS"],
        ["candidates", str(report["candidates"])],
        ["accepted", str(report["questions"])],
        ["accepted, share of those judged", _percent(report["accepted_share"])],
        ["per document, mean", f"{per_document['mean']:.2f}"],
        ["per document, most", str(per_document["most"])],
        ["documents without any", str(per_document["documents_without"])],
        ["gold passage ranked first by BM25 (easy)", _percent(report["gold_first_share"])],
        [f"gold passage not in its first {depth} (broken)", _percent(report["gold_never_share"])],
    ]


def _counted(heading: str, counts: dict[str, int]) -> list[list[str]]:
    return [[heading], *([name, str(count)] for name, count in counts.items())] if counts else []


def _percent(share: float | None) -> str:
    return "n/a" if share is None else f"{share:.1%}"


def _names(text: str) -> tuple[str, ...]:
    """An argparse type: names with commas between them; none is an empty list."""
    return () if text == "none" else tuple(name.strip() for name in text.split(",") if name.strip())


@contextmanager
def _progress(total: int) -> Iterator[Callable[[], None]]:
    """A bar on stderr where a person watches: documents done, rate, time left."""
    if not echo.is_interactive(sys.stderr):
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("documents"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("documents", total=total)
        yield lambda: bar.advance(task)
