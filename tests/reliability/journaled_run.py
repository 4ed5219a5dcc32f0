"""A run in a process of its own, to be killed: python journaled_run.py '{"out": ..., "id": ..., ...}'.

It goes on with the run if there is one. An id is written to the file `acknowledged` when its output counts;
`die_at` names a call of the operating system, how many of them, and whether to die before or after it.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.core.systems.call import EXECUTORS
from auepora_eval.core.types import EvaluationSample, SystemOutputs
from auepora_eval.metrics.parse import parse_metrics
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import a_dataset, a_sample, an_output
from tests.killing import die_at

METRICS = "recall@3,mrr,token_f1,failure_rate,mean_latency"


class Slow:
    """Takes a moment and answers by the query alone; one in eleven fails, always."""

    name = "slow"

    def __init__(self, seconds: float, asked: Path | None) -> None:
        self._seconds, self._asked = seconds, asked

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
        number = int(sample.query.split()[1])
        if self._asked is not None:
            with self._asked.open("a", encoding="utf-8") as file:
                file.write(f"{sample.sample_id}\n")
        time.sleep(self._seconds * random.uniform(0.5, 1.5))
        if number % 11 == 5:
            raise LookupError(f"nothing is known of {number}")
        return an_output("abcd"[number % 3 :][:top_k], f"answer {number % 7}")


def dataset_of(size: int, order: int = 0) -> Any:
    samples = [
        a_sample(f"s{n:04}", f"query {n}", relevant="abc"[n % 3], reference=f"answer {n % 5}")
        for n in range(size)
    ]
    if order:
        random.Random(order).shuffle(samples)
    return a_dataset(*samples)


def evaluator(
    executor: str, concurrency: int, seconds: float, asked: Path | None = None, **where: Any
) -> AueporaEvaluator:
    return AueporaEvaluator(
        Slow(seconds, asked),
        EvaluationPlan(parse_metrics(METRICS)),
        executor=EXECUTORS.get(executor)(concurrency=concurrency, **where),
        seed=3,
    )


def main() -> None:
    told = json.loads(sys.argv[1])
    folder = Path(told["out"])
    where = {"address": told["address"]} if "address" in told else {}
    running = evaluator(told["executor"], told["concurrency"], told["seconds"], folder / "asked", **where)
    acknowledged = os.open(folder / "acknowledged", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    write = os.write

    def acknowledge(sample: EvaluationSample, output: SystemOutputs) -> None:
        write(acknowledged, f"{sample.sample_id}\n".encode())

    running.on_output = acknowledge
    evaluator("serial", 1, 0.0).run(
        dataset_of(3)
    )  # whatever is imported late: the kill is to hit the run itself
    if told.get("die_at"):
        name, count, after = told["die_at"]
        die_at(name, count, after=after)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    running.run(
        dataset_of(told["size"]),
        evaluation_id=told["id"],
        storage=EvaluationResultsStorage(folder),
        resume=True,
    )


if __name__ == "__main__":
    # By its own name, so that worker processes find the system where it is.
    from tests.reliability import journaled_run

    journaled_run.main()
