"""What several commands share: their flags, datasets, plans and the table of a run."""

from __future__ import annotations

import shlex
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from . import echo
from .numbers import at_least, covered, price

if TYPE_CHECKING:
    from collections import Counter
    from pathlib import Path

    from ..core.dataset import EvaluationDataset, InMemoryDataset
    from ..core.metrics_base import Metric
    from ..core.runner import OnOutput
    from ..core.scoring import Tally
    from ..core.types import EvaluationRun, EvaluationSample, MetricResult, SystemOutputs

DEFAULT_OUT = "data/evaluation/results"
MIN_COVERAGE = 0.99
EXIT_INCOMPLETE = 3


def add_out(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--out", metavar="DIR", default=DEFAULT_OUT, help=f"where runs are kept ({DEFAULT_OUT})"
    )


def out_flag(out: str) -> str:
    """The words that name the folder in a command to type, where it is not the usual one."""
    return "" if out == DEFAULT_OUT else f" --out {shlex.quote(str(out))}"


def add_json(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")


def add_run_output(parser: ArgumentParser) -> None:
    """The flags of a command that stores a run."""
    parser.add_argument(
        "--metrics", metavar="NAMES", help="recall@5,ndcg@10,... (default: what the data allow)"
    )
    parser.add_argument("--seed", type=at_least(0), metavar="N", help="seed of everything that is random (0)")
    for name in ("input", "output"):
        about = f"price of 1,000 {name} tokens in US dollars, for outputs that tell their {name}_tokens"
        parser.add_argument(f"--price-{name}", type=price, metavar="USD", help=about)
    about = f"exit code 3 if a smaller share of the samples did not fail ({MIN_COVERAGE:g})"
    parser.add_argument("--min-coverage", type=covered, metavar="SHARE", help=about)
    parser.add_argument("--id", metavar="ID", help="id of the run (default: made from system, data and time)")
    parser.add_argument("--force", action="store_true", help="replace a run of the same id")
    add_out(parser)
    add_json(parser)


def open_samples(name: str, format_name: str | None) -> EvaluationDataset:
    """A dataset by path, or the bundled one by the name `demo`."""
    from ..demo.world import demo_dataset
    from ..io.loader import open_dataset

    return demo_dataset() if name == "demo" else open_dataset(name, format_name)


def load_samples(name: str, format_name: str | None, limit: int | None) -> InMemoryDataset:
    """The same, in memory; the first `limit` samples of it."""
    from ..core.dataset import DescribedDataset

    dataset = open_samples(name, format_name)
    samples = list(dataset)
    refuse_no_samples(name, len(samples))
    return DescribedDataset(dataset.name, samples[:limit], info=dataset.info)


def refuse_no_samples(name: str, count: int) -> None:
    from ..errors import DataError

    if not count:
        raise DataError(name, "there are no samples in it.", fix="Write one JSON object a line.")


def refuse_no_metrics(metrics: Sequence[Metric]) -> None:
    from ..errors import PlanError

    if not metrics:
        raise PlanError("no metric was named. Try --metrics recall@5,token_f1, or leave the flag out.")


def chosen_metrics(
    names: str | Sequence[str] | None, samples: Sequence[EvaluationSample], top_k: int
) -> list[Metric]:
    """The metrics asked for, or those that the data allow."""
    from ..metrics.parse import default_metrics, parse_metrics

    metrics = parse_metrics(names) if names is not None else default_metrics(samples, top_k=top_k)
    refuse_no_metrics(metrics)
    return metrics


def say_run(run: EvaluationRun, tally: Tally | None = None) -> None:
    """Print a run: what it was, the table, and what went wrong."""
    from ..core.scoring import Tally

    tally = tally or Tally().add(run.outputs)
    about = f"{run.system_name} on {run.dataset_name}: {tally.total} samples, top_k {run.top_k}"
    echo.say(f"{about}, {tally.failed} failed" if tally.failed else about)
    say_results(run.results)
    _say_not_measured(run.results)
    say_failures(tally.failures)
    say_attempts(tally)
    if run.stopping is not None:
        from ..reporting.stopping_words import stopping_in_words

        echo.say_words(stopping_in_words(run.stopping))


def say_results(results: Sequence[MetricResult]) -> None:
    """Print the table of results, under the target that each is about."""
    from ..reporting.tables import HEADINGS, row

    # The last column, the range with failures scored, is empty unless something failed.
    width = len(HEADINGS) - (not any(result.details.get("num_failed") for result in results))
    rows: list[Sequence[str]] = []
    for place, result in enumerate(results):
        if place == 0 or result.target is not results[place - 1].target:
            rows.append([result.target.name])
        arrow = "" if result.details.get("higher_is_better", True) else " ↓"
        rows.append([f"{result.name}{arrow}", *row(result)[2:width]])
    echo.say_table(HEADINGS[1:width], rows, numeric=range(1, len(HEADINGS)))


def _say_not_measured(results: Sequence[MetricResult]) -> None:
    """Print why metrics could not score anything, where that is known of the whole run."""
    names: dict[str, list[str]] = {}
    for result in results:
        if reason := result.details.get("not_measured"):
            names.setdefault(str(reason), []).append(result.name)
    for reason, of_reason in names.items():
        echo.say(echo.one_line(f"Not measured ({reason}): {', '.join(of_reason)}", 1000))


def say_failures(counts: Counter[tuple[str, str]]) -> None:
    """Print what the failures were, grouped."""
    if counts:
        echo.say("Failed calls (the value leaves them out; 'If failed' is its range with them scored):")
    for (kind, message), count in counts.most_common(5):
        echo.say(f"  {count} × {echo.one_line(f'{kind}: {message}', 120)}")
    if len(counts) > 5:
        echo.say(f"  ... and {counts.total() - sum(n for _, n in counts.most_common(5))} others")


def say_attempts(tally: Tally) -> None:
    """Print how many attempts failed, of samples that were answered in the end and of those that were not."""
    if tally.tried_again:
        kinds = ", ".join(f"{count} × {kind}" for kind, count in tally.failed_attempts.most_common(5))
        more = ", ..." if len(tally.failed_attempts) > 5 else ""
        about = f"Failed attempts: {tally.failed_attempts.total()} ({echo.one_line(kinds, 120)}{more})"
        echo.say(f"{about}; {tally.recovered} samples were answered by a later one.")


def exit_code(run: EvaluationRun, tally: Tally, minimum: float | None) -> int:
    """3 if so many samples failed that the values do not stand for all: finished is not the same as good."""
    least = MIN_COVERAGE if minimum is None else minimum
    counts = {"the calls": (tally.failed, tally.total)}
    for result in run.results:
        counts[result.name] = (
            int(result.details.get("num_failed", 0)),
            int(result.details.get("num_total", 0)),
        )
    name, (failed, total) = max(counts.items(), key=lambda item: item[1][0] / (item[1][1] or 1))
    if not total or 1 - failed / total >= least:
        return 0
    if tally.failed == tally.total:
        echo.note("auepora: every call failed; nothing was measured.")
    else:
        words = f"{failed} of {total} samples failed ({name}): coverage {1 - failed / total:.1%}"
        echo.note(f"auepora: {words}, less than the {least:.1%} asked for (--min-coverage).")
    return EXIT_INCOMPLETE


def say_stored(path: Path) -> None:
    echo.note(f"stored: {path}")


@contextmanager
def progress(total: int, title: str) -> Iterator[OnOutput]:
    """A progress bar on stderr where a person watches: done, failed, rate, time left."""
    if not echo.is_interactive(sys.stderr):
        yield lambda sample, output: None
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
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(echo.one_line(title, 40), total=total, rate="", failed="")
        failures = 0

        def advance(sample: EvaluationSample, output: SystemOutputs) -> None:
            nonlocal failures
            failures += output.error is not None
            speed = bar.tasks[0].finished_speed or bar.tasks[0].speed
            rate = f"{speed:.1f}/s" if speed else ""
            bar.update(task, advance=1, rate=rate, failed=f"{failures} failed" if failures else "")

        yield advance
