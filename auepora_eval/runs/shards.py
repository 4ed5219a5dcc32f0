"""Score predictions in several processes: each reads, checks and scores blocks of the samples.

Only this process writes, in the order of the dataset, so that the files of the run are the same. Whatever is
unusual raises `ShardsFailed`: the caller then scores everything in one process, which says what is wrong.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ..core.metrics_base import Metric, SampleMetric
from ..core.plan import EvaluationPlan, Survey
from ..core.scores import Batch, Scores
from ..core.scoring import SIZE, Scoring, Tally, can_be_cut, rare_collections
from ..io.datasets.predictions import PredictionFile
from ..io.json.records import RawSample, decoded, read_sample
from ..io.jsonl import MAX_LINE_BYTES, JsonlDataset

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from .store.state import Prepared, RunWriter

LEAST_SAMPLES = 20_000  # fewer take less time than it takes to start processes and to join what they did
MOST_PROCESSES = 4  # one more process writes, which takes a sixth of the time that scoring takes
LINES = 2 * SIZE  # of a block: whole batches, so that the rows are written in the same groups
_CPU_LIMIT = Path("/sys/fs/cgroup/cpu.max")  # of a container: microseconds, and those of a period
_MOST_BYTES = 32_000  # of a sample or an output, on average: several blocks are in memory at once
Block = tuple[int, int]  # its first byte, and the first byte behind it


class ShardsFailed(Exception):  # noqa: N818 - it is not an error of the user
    """A process met something unusual, or has died."""


class Piece(NamedTuple):
    """What another process returns for a batch."""

    scores: Mapping[str, Scores]
    prepared: Prepared
    tally: Tally
    sample_ids: Sequence[str]
    counts: Counter[str]  # samples that have each field
    unanswerable: int


def process_count(dataset: object, predictions: object, plan: EvaluationPlan) -> int:
    """Return how many processes should score; 1 if it is not worth it, or not possible."""
    is_shareable = (
        isinstance(dataset, JsonlDataset)
        and isinstance(predictions, PredictionFile)
        and len(predictions) >= LEAST_SAMPLES
        and all(_is_short(path, len(predictions)) for path in (dataset.path, predictions.path))
        and not dataset.documents  # every process would need the corpus
        and can_be_cut(plan)
        and all(map(_only_computes, plan.metrics))
        # The process is copied, and a lock that another thread holds would stay locked in the copy.
        and sys.platform == "linux"
        and threading.active_count() == 1
    )
    return min(_cores(), MOST_PROCESSES) if is_shareable else 1


def _is_short(path: Path, lines: int) -> bool:
    return path.stat().st_size <= _MOST_BYTES * lines


def _only_computes(metric: Metric) -> bool:
    """Return whether a metric is one of ours without a model or a connection, which must not be copied."""
    is_ours = type(metric).__module__.startswith("auepora_eval.metrics.")
    return is_ours and type(metric).ready is SampleMetric.ready  # type: ignore[attr-defined]


def _cores() -> int:
    """Return the number of cores that this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    with suppress(OSError, ValueError):
        limit, period = _CPU_LIMIT.read_text().split()
        cores = min(cores, int(limit) // int(period))  # ValueError if there is no limit: "max"
    return cores


def scored_pieces(
    dataset: JsonlDataset,
    predictions: PredictionFile,
    plan: EvaluationPlan,
    writer: RunWriter,
    processes: int,
) -> Generator[Piece]:
    """Score a dataset in other processes, and yield what they return for each batch, in order."""
    import multiprocessing

    context: Any = multiprocessing.get_context("fork")  # the copies have the places of all predictions
    shard = _Shard(dataset.path, predictions, plan, writer)
    workers: list[Any] = []
    wires: list[Connection] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads of numpy, which Python cannot see
            for _ in range(processes):
                ours, theirs = context.Pipe()
                wires.append(ours)
                worker = context.Process(target=_work, args=(shard, theirs, wires), daemon=True)
                worker.start()
                workers.append(worker)
                theirs.close()
        yield from _in_order(_blocks(dataset), wires)
    except (EOFError, OSError) as error:
        raise ShardsFailed from error
    finally:
        for worker in workers:
            worker.kill()
            worker.join()
        for wire in wires:
            wire.close()


def _blocks(dataset: JsonlDataset) -> Iterator[Block]:
    """Yield the blocks of lines of a file, without the line that describes the dataset."""
    with dataset.path.open("rb") as file:
        end = len(file.readline()) if dataset.info else 0
        while lines := list(islice(file, LINES)):
            start, end = end, end + sum(map(len, lines))
            yield start, end


def _in_order(blocks: Iterator[Block], wires: Sequence[Connection]) -> Iterator[Piece]:
    """Give blocks to the processes that are ready, and yield the pieces in the order of the blocks."""
    from multiprocessing.connection import wait

    given = written = 0
    arrived: dict[int, list[Piece]] = {}
    idle = [*wires, *wires]  # two blocks each: no process waits while pieces are written
    while True:
        while idle and given - written < 3 * len(wires) and (block := next(blocks, None)):
            idle.pop().send((given, block))
            given += 1
        if written in arrived:
            yield from arrived.pop(written)
            written += 1
        elif written < given:
            ready = cast("list[Connection]", wait(wires))
            arrived.update(map(_answer, ready))
            idle += ready
        else:
            return


def _answer(wire: Connection) -> tuple[int, list[Piece]]:
    answer: tuple[int, list[Piece]] | None = wire.recv()
    if answer is None:
        raise ShardsFailed
    return answer


def _work(shard: _Shard, wire: Connection, wires: Sequence[Connection]) -> None:
    """Send the pieces of each block that is asked for; None if something is unusual."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for other in wires:
        other.close()  # or the pipe would have no end when the parent dies
    with suppress(EOFError, OSError), rare_collections():
        try:
            for kind in (UserWarning, RuntimeWarning):
                warnings.simplefilter("error", kind)
            while True:
                number, block = wire.recv()
                wire.send((number, shard.pieces(block)))
        except (EOFError, BrokenPipeError):
            raise
        except BaseException:  # noqa: BLE001 - whatever it is, it happens again in the parent
            wire.send(None)


class _Shard:
    """Reads, checks and scores blocks of samples, in one of several processes."""

    def __init__(
        self, path: Path, predictions: PredictionFile, plan: EvaluationPlan, writer: RunWriter
    ) -> None:
        self._path, self._predictions, self._plan, self._writer = path, predictions, plan, writer
        self.scoring = Scoring(plan)

    def pieces(self, block: Block) -> list[Piece]:
        """Return what there is to know and to write of each batch of a block."""
        start, end = block
        with self._path.open("rb") as file:
            file.seek(start)
            lines = BytesIO(file.read(end - start)).readlines()
        structs, _ = decoded(lines, RawSample)
        if None in structs or max(map(len, lines)) > MAX_LINE_BYTES:
            raise ShardsFailed
        samples = [read_sample(struct, "") for struct in structs if struct is not None]
        output_lines: list[bytes] = []
        self._predictions.lines = output_lines
        outputs = self._predictions.outputs(sample.sample_id for sample in samples)
        pieces = []
        for first in range(0, len(samples), SIZE):
            batch = Batch(samples[first : first + SIZE], list(islice(outputs, SIZE)))
            pieces.append(self._piece(batch, output_lines))
            output_lines.clear()
        if self.scoring.has_notes:
            raise ShardsFailed  # a note counts samples, and there may be more of them in other processes
        return pieces

    def _piece(self, batch: Batch, output_lines: list[bytes]) -> Piece:
        survey = Survey.new(self._plan)
        for sample in batch.samples:
            survey.add(sample)
        tally = Tally().add(batch.outputs)
        if not all(type(count) is int for count in tally.usage.sums.values()):
            raise ShardsFailed  # the last digit of a sum of fractions depends on the order
        scores = self.scoring.score(batch)
        known_lines = output_lines if len(output_lines) == len(batch) else None
        prepared = self._writer.prepared(batch, scores, known_lines)
        return Piece(scores, prepared, tally, batch.sample_ids(), survey.counts, survey.unanswerable)
