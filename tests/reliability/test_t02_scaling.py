"""T-02: twice the data take at most three times as long: nothing is quadratic."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import process_time

import pytest

from auepora_eval.core.plan import EvaluationPlan, Survey
from auepora_eval.core.scoring import score_in_chunks
from auepora_eval.io.jsonl import read_samples
from auepora_eval.io.outputs import PredictionFile
from auepora_eval.metrics.parse import parse_metrics
from auepora_eval.runs.journal.journal import JOURNAL, Journal, JournalPlaces, read_header
from tests.builders import a_dataset, a_sample, an_output

SIZE = 6_000
OUTPUT = an_output("abc", "an answer")


def write(folder: Path, size: int) -> Journal:
    journal = Journal.create(folder, {})
    number = 0
    for place in range(size):
        number = journal.submit(f"s{place}", OUTPUT)
    journal.wait(number)
    journal.close("finished")
    return journal


def journal(folder: Path, size: int) -> Callable[[], object]:
    return lambda: write(folder / f"{size}-{process_time()}", size)


def scan(folder: Path, size: int) -> Callable[[], object]:
    write(folder / str(size), size)
    key = read_header(folder / str(size))["run_key"].encode()
    return lambda: JournalPlaces(folder / str(size) / JOURNAL, key)


def lookup(folder: Path, size: int) -> Callable[[], object]:
    write(folder / str(size), size)
    places = JournalPlaces(folder / str(size) / JOURNAL, read_header(folder / str(size))["run_key"].encode())
    return lambda: sum(1 for _ in places.outputs(f"s{place}" for place in range(size)))


def survey(folder: Path, size: int) -> Callable[[], object]:
    data = a_dataset(*(a_sample(f"s{place}", relevant="a") for place in range(size)))
    plan = EvaluationPlan(parse_metrics("recall@5"))
    return lambda: Survey.of(data, plan)


def loader(folder: Path, size: int) -> Callable[[], object]:
    path = folder / f"{size}.jsonl"
    path.write_text("".join(f'{{"sample_id":"s{n}","query":"q"}}\n' for n in range(size)), encoding="utf-8")
    return lambda: sum(1 for _ in read_samples(path))


def predictions(folder: Path, size: int) -> Callable[[], object]:
    path = folder / f"{size}.jsonl"
    path.write_text("".join(f'{{"sample_id":"s{n}","answer":"x"}}\n' for n in range(size)), encoding="utf-8")
    ids = [f"s{n}" for n in reversed(range(size))]
    return lambda: sum(1 for _ in PredictionFile(path).outputs(ids))


def scored(folder: Path, size: int) -> Callable[[], object]:
    plan = EvaluationPlan(parse_metrics("recall@5,mrr"))
    pairs = [(a_sample(f"s{place}", relevant="a"), OUTPUT) for place in range(size)]
    return lambda: score_in_chunks(plan, pairs, lambda batch, scores: None, size=500)


@pytest.mark.parametrize(
    "work",
    [journal, scan, lookup, survey, loader, predictions, scored],
    ids=lambda work: work.__name__,
)
def test_t02_time_grows_linearly_with_the_data(
    tmp_path: Path, work: Callable[[Path, int], Callable[[], object]]
) -> None:
    # Processor time, the best of several, the sizes in turn: a busy moment must not meet one of them only.
    calls = {size: work(tmp_path, size) for size in (SIZE, 2 * SIZE)}
    times: dict[int, list[float]] = {size: [] for size in calls}
    for _ in range(6):
        for size, call in calls.items():
            clock = process_time()
            call()
            times[size].append(process_time() - clock)
    ratio = min(times[2 * SIZE]) / min(times[SIZE])
    print(f"\nT-02 {work.__name__}: {ratio:.2f} times as long for twice the data")
    assert ratio <= 3  # quadratic work takes four times as long; the rest is the noise of a busy machine
