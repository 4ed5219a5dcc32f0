"""What several commands share: their flags, datasets, plans and the table of a run."""

from __future__ import annotations

import shlex
import sys
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from ..core.settings import MIN_COVERAGE, RunSettings, column_names, out_flag
from ..core.table import Table
from ..core.types import (
    RESULT_HEADINGS,
    EvaluationRun,
    EvaluationSample,
    Failure,
    MetricResult,
    result_cells,
    result_notes,
    results_table,
)
from ..errors import DataError, PlanError
from ..read.convert import Convert
from ..read.fields import columns_of_samples
from . import echo
from .flags import add_flag, without_judged

if TYPE_CHECKING:
    from argparse import _ActionsContainer

    from ..comparison.compare import Comparison
    from ..comparison.ranking import Ranking
    from ..core.dataset import EvaluationDataset
    from ..core.plan import EvaluationPlan
    from ..core.runner import OnOutput
    from ..core.scoring import Tally
    from ..pages.workspace import Workspace
    from ..store.storage import EvaluationResultsStorage

EXIT_INCOMPLETE = 3
_TRACEBACK_LINES, _LONGEST_LINE = 6, 250  # three frames
_SECONDS_BETWEEN = 0.05  # two moves of a progress bar


def open_samples(
    name: str,
    format_name: str | None,
    columns: Mapping[str, str] | None = None,
    convert: str | None = None,
    *,
    is_answered: bool = False,
) -> EvaluationDataset:
    """Return a dataset by its path, or the bundled one by the name `demo`."""
    if name == "demo":
        from ..demo.world import demo_dataset

        return demo_dataset()
    from ..io.loader import open_dataset

    reader = None if convert is None else convert_function(convert)
    return open_dataset(name, format_name, columns, reader, is_answered)


def convert_function(name: str) -> Convert:
    """Return the function that --convert names."""
    from ..core.systems.named import imported

    function: Convert = imported("--convert", name, str(Path.cwd()))
    if not callable(function):
        raise PlanError(f"--convert {name} is not a function.")
    return function


def evaluated_dataset(
    settings: RunSettings, *, is_answered: bool = False, is_answered_elsewhere: bool = False
) -> EvaluationDataset:
    """Return the dataset of a run: one split, if its type is named, with the gold of a ground truth file.

    The answers of the system are in it, are in another file, or are yet to be given.
    """
    name = settings.dataset or ""
    if settings.dataset_type is None:
        columns = column_names(settings.columns)
        columns = columns_of_samples(columns) if is_answered_elsewhere else columns
        dataset = open_samples(name, settings.format, columns, settings.convert, is_answered=is_answered)
    else:
        from ..io.builds import load_split_of

        dataset = load_split_of(name, settings.dataset_type)
    if settings.ground_truth is None:
        return dataset
    from ..people.annotators import gold_dataset, read_annotators

    return gold_dataset(dataset, read_annotators([settings.ground_truth], least=1))


def check_has_samples(name: str, count: int) -> None:
    if not count:
        raise DataError(name, "there are no samples in it.", fix="Write one line or row per sample.")


def named_plan(settings: RunSettings) -> EvaluationPlan | None:
    """Return the plan of the named metrics, without the judged ones; None if no metric is named."""
    from ..core.plan import EvaluationPlan
    from ..metrics.parse import parse_metrics

    plan = None
    if settings.metrics is not None:
        metrics = parse_metrics(settings.metrics)
        if not metrics:
            raise PlanError("No metric was named. Try --metrics recall@5,token_f1, or leave the flag out.")
        plan = EvaluationPlan(metrics, match=settings.match or "id")
    return without_judged(plan, settings)


def default_plan(
    settings: RunSettings, examples: Mapping[str, EvaluationSample], top_k: int, *, timed: bool = True
) -> EvaluationPlan:
    """Return the plan of the metrics that a dataset supports, by its example samples and the system."""
    from ..core.plan import EvaluationPlan
    from ..metrics.parse import default_metrics

    samples = list(examples.values())
    # A chat model retrieves nothing: relevant documents apply only if a sample gives it documents. They do
    # not apply either if the documents are the dataset's own contexts.
    is_chat_model = (settings.system or "").startswith("openai:")
    if settings.contexts_as_retrieved or (is_chat_model and "candidate_docs" not in examples):
        samples = [replace(sample, relevant_docs=None) for sample in samples]
    prices = {"price_input": settings.price_input, "price_output": settings.price_output}
    metrics = default_metrics(samples, top_k=top_k, prices=prices, timed=timed)
    return EvaluationPlan(metrics, match=settings.match or "id")


def say_run(run: EvaluationRun, tally: Tally | None = None) -> None:
    """Print a run: what it was, the table, and what went wrong."""
    from ..core.scoring import Tally

    tally = tally or Tally().add(run.outputs)
    samples = "1 sample" if tally.total == 1 else f"{tally.total} samples"
    about = f"{run.system_name} on {run.dataset_name}: {samples}, top_k {run.top_k}"
    echo.say_words(f"{about}, {tally.failed} failed" if tally.failed else about)
    echo.show(results_table(run.results))
    _say_what_went_wrong(run, tally)


_MAIN_RESULTS = 8  # lines of a summary; `auepora show` has the table of all results


def say_run_summary(run: EvaluationRun, tally: Tally, *, is_named: bool) -> None:
    """Print what was measured, on how many samples, the main values with their intervals, and failures.

    `is_named` says that the user named the metrics: then those without a value have a row, too.
    """
    answered = tally.total - tally.failed
    share = answered / tally.total if tally.total else 1.0
    counts = f"{answered:,} of {tally.total:,} samples answered ({share:.1%})"
    style = "" if not tally.failed else "yellow" if answered else "bold red"
    echo.say_words(f"{run.system_name} on {run.dataset_name}: {counts}, top_k {run.top_k}", style)
    if not tally.total or answered:  # else nothing was measured: why is all there is to say
        say_main_results(run.results, "auepora show has all", is_named=is_named)
    _say_what_went_wrong(run, tally)


def say_finished(
    settings: RunSettings, storage: EvaluationResultsStorage, run: EvaluationRun, tally: Tally
) -> int:
    """Print a run that was just stored, where it is, and the next command; return the exit code."""
    if settings.json:
        echo.say_json(storage.load_results(run.evaluation_id))
    else:
        say_run_summary(run, tally, is_named=settings.metrics is not None)
        flags = f"{' --failed' if tally.failed else ''}{out_flag(settings.out)}"
        echo.say(f"Next: auepora show {shlex.quote(run.evaluation_id)}{flags}")
    say_stored(storage.state(run.evaluation_id).path)
    return exit_code(run, tally, settings.min_coverage)


def say_main_results(results: Sequence[MetricResult], more: str, *, is_named: bool) -> None:
    """Print the main values with their intervals and notes, and what shows the others."""
    # The notes say why a metric has no value.
    shown = [result for result in results if is_named or result.coverage.scored]
    main = shown[:_MAIN_RESULTS]
    # A failed sample could have had any score: the range shows that failing does not pay.
    places = (1, 2, 3, 4, 7) if any(result.coverage.failed for result in main) else (1, 2, 3, 4)
    rows = [[result_cells(result)[place] for place in places] for result in main]
    if rows:
        echo.show(Table([RESULT_HEADINGS[place] for place in places], rows, numeric=range(1, 5)))
    if len(shown) > _MAIN_RESULTS:
        echo.say(f"... and {len(shown) - _MAIN_RESULTS} more ({more})")
    for note in result_notes(results, main):
        echo.say_words(echo.one_line(note, 1000))


def say_next(commands: Mapping[str, str], flags: str = "") -> None:
    """Print the commands to try next, each with its purpose; `flags` come after each."""
    width, room = max(map(len, commands), default=0) + len(flags), echo.screen_width()
    if any(len(f"Next: {'':{width}}  # {purpose}") > room for purpose in commands.values()):
        width = 0  # purposes below each other would be broken over two lines
    for number, (command, purpose) in enumerate(commands.items()):
        line = f"{'      ' if number else 'Next: '}{command + flags:<{width}}"
        echo.say(f"{line}  # {purpose}" if len(f"{line}  # {purpose}") <= room else line)


def _say_what_went_wrong(run: EvaluationRun, tally: Tally) -> None:
    say_failures(tally)
    if tally.tried_again:
        kinds = ", ".join(f"{count} × {kind}" for kind, count in tally.failed_attempts.most_common(5))
        about = f"Failed attempts: {tally.failed_attempts.total()} ({echo.one_line(kinds, 120)})"
        echo.say_words(f"{about}; {tally.recovered} samples were answered by a later one.")
    if run.stopping is not None:
        from ..store.stopping import stopping_in_words

        echo.say_words(stopping_in_words(run.stopping))


@contextmanager
def notes_printed_once(*, as_json: bool) -> Iterator[None]:
    """Leave out warnings that the table of results has as notes; JSON is printed without a table."""
    from ..core.watches import SuspectValueWarning

    with warnings.catch_warnings():
        if not as_json:
            warnings.simplefilter("ignore", SuspectValueWarning)
        yield


def say_failures(tally: Tally) -> None:
    """Print where the first call failed, and what the failures were, grouped."""
    counts, first = tally.failures, tally.first_failure
    if first is not None and first.traceback:
        echo.say("The first failed call:")
        say_traceback(first)
        echo.say_words(echo.one_line(first, 300))
    if counts:
        echo.say_words(
            "Failed calls (left out of the values; the ranges count them as lowest and as highest):", "red"
        )
    for (kind, message), count in counts.most_common(5):
        echo.say_words(f"  {count} × {echo.one_line(f'{kind}: {message}', 120)}")
    if len(counts) > 5:
        echo.say(f"  ... and {counts.total() - sum(n for _, n in counts.most_common(5))} others")


def say_traceback(failure: Failure) -> None:
    """Print where a call failed: lines of the user's own files."""
    # A file of predictions may have a text of any length there.
    for line in failure.traceback.splitlines()[:_TRACEBACK_LINES]:
        echo.say(line[:_LONGEST_LINE])


def exit_code(run: EvaluationRun, tally: Tally, minimum: float | None) -> int:
    """Return 3 if too many samples failed for the values to describe the dataset, else 0."""
    counts = {"the calls": (tally.failed, tally.total)}
    for result in run.results:
        counts[result.name] = (result.coverage.failed, result.coverage.total)
    # The worst share decides: a judge that failed on half of the samples is no better than failed calls.
    name, (failed, total) = max(counts.items(), key=lambda item: item[1][0] / (item[1][1] or 1))
    none = "every call failed" if tally.failed == total else ""
    return coverage_code(failed, total, minimum, name, none=none)


def coverage_code(
    failed: int, total: int, minimum: float | None, name: str, *, none: str, noun: str = "samples"
) -> int:
    """Return 3 and say why if fewer samples than --min-coverage succeeded, else 0.

    `none` says that there is nothing at all.
    """
    least = MIN_COVERAGE if minimum is None else minimum
    if not total or 1 - failed / total >= least:
        return 0
    if failed == total and none:
        echo.note(f"auepora: {none}; nothing was measured.")
    else:
        words = f"{failed} of {total} {noun} failed ({name}): coverage {1 - failed / total:.1%}"
        echo.note(f"auepora: {words}, less than the {least:.1%} asked for (--min-coverage).")
    return EXIT_INCOMPLETE


def say_stored(path: Path) -> None:
    echo.note(f"stored: {path}")


# --html and --markdown: runs as a page or as a comment.


def add_report_flags(parser: ArgumentParser, forms: _ActionsContainer) -> None:
    """Add --html, and --markdown to the forms that the output of the command may have."""
    add_flag(parser, "--html", "write a self-contained page instead", "FILE")
    text = "write a comment for a pull request; - prints it"
    add_flag(forms, "--markdown", text, "FILE")


def write_page(
    args: Namespace,
    workspace: Workspace,
    comparison: Comparison | None = None,
    ranking: Ranking | None = None,
) -> None:
    """Write the pages of the named runs to the file of --html."""
    from ..pages.one_file import one_file

    page = one_file(workspace, list(workspace.only), comparison=comparison, ranking=ranking)
    _write_text(args.html, page, force=args.force)


def write_comment(args: Namespace, text: str) -> None:
    """Write a comment to the file of --markdown, or print it."""
    if args.markdown == "-":
        echo.say(text)
    else:
        _write_text(args.markdown, f"{text}\n", force=args.force)


def _write_text(name: str, text: str, *, force: bool) -> None:
    from ..io.files import write_bytes

    # An answer of a model may contain half of a surrogate pair, which UTF-8 cannot write.
    write_bytes(Path(name), text.encode("utf-8", "replace"), force=force)
    say_stored(Path(name))


@contextmanager
def progress(total: int, title: str) -> Iterator[OnOutput]:
    """Show the progress of the calls of a run."""
    with progress_bar(total, title) as advance:
        yield lambda sample, output: advance(output.error is not None)


class Advance(Protocol):
    """Moves a progress bar by one: has a call failed, a note for the end, the total if it was not known."""

    def __call__(self, has_failed: bool, note: str = "", total: int | None = None) -> None: ...


@contextmanager
def progress_bar(total: int | None, title: str) -> Iterator[Advance]:
    """Show a progress bar on stderr if it is a terminal: done, failed, rate, time left."""
    if not echo.is_interactive(sys.stderr):
        yield lambda has_failed, note="", total=None: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[failed]}"),
        TextColumn("{task.fields[note]}"),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(echo.one_line(title, 40), total=total, rate="", failed="", note="")
        done = failures = 0
        moved_at = 0.0

        def advance(has_failed: bool, note: str = "", total: int | None = None) -> None:
            nonlocal done, failures, moved_at
            done, failures = done + 1, failures + has_failed
            # Moving the bar takes 0.1 ms, which is three times as long as to score a sample.
            if monotonic() - moved_at < _SECONDS_BETWEEN and not note and total is None:
                return
            moved_at = monotonic()
            speed = bar.tasks[0].finished_speed or bar.tasks[0].speed
            bar.update(
                task,
                completed=done,
                total=total,
                rate=f"{speed:.1f}/s" if speed else "",
                failed=f"{failures} failed" if failures else "",
                note=note,
            )

        yield advance


# A system on the command line: the name of a stored run, or of several (its repeats), joined by commas.


def load_named_runs(storage: EvaluationResultsStorage, name: str) -> list[EvaluationRun]:
    """Return the runs of a name with their scores."""
    return [storage.load_run(part, texts=False) for part in named_ids(name)]


def named_ids(name: str) -> list[str]:
    """Return the id of one run, or of several that are joined by commas."""
    return [part.strip() for part in name.split(",") if part.strip()] or [name]


def check_distinct_runs(storage: EvaluationResultsStorage, names: Iterable[str]) -> None:
    """Raise PlanError if a run is named twice, which is a typing error."""
    seen = set()
    for name in names:
        for part in named_ids(name):
            # By file: an id and a path may be the same run.
            path = storage.find(part).resolve()
            if path in seen:
                raise PlanError(f"{part} is named twice. Name different runs.")
            seen.add(path)
