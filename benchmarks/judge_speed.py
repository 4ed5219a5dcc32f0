"""How fast verdicts are asked, stored and replayed: python benchmarks/judge_speed.py

2,000 verdicts of 20 ms at concurrency 64 take 0.625 s if nothing but the judge takes time; each is on the
disk before it counts. A replay reads the verdicts of 2,000 answers, with five passages each, and scores them.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from auepora_eval.calls.executors import ThreadExecutor
from auepora_eval.calls.policy import CallPolicy
from auepora_eval.core.types import Document, EvaluationSample, Response, RetrievedDocument, SystemOutputs
from auepora_eval.judges.ask import Asked, Asking, stored_verdicts
from auepora_eval.judges.judge import FunctionJudge
from auepora_eval.judges.metric import JudgedMetric
from auepora_eval.judges.question import Question, kind_named
from auepora_eval.metrics.parse import parse_metrics
from auepora_eval.store.database import Database

SECONDS, CONCURRENCY = 0.02, 64
ASKED, MOST_ASKING = 2_000, 0.75
REPLAYED, MOST_REPLAYING = 2_000, 1.0
PASSAGE = "The Annet carries 22 cars from the pier at Hallamoor. " * 20


def slow_judge(question: Question) -> str:
    time.sleep(SECONDS)
    return "yes"


def quick_judge(question: Question) -> str:
    return "yes" if "7" in question.material["claim"] else "no"


def asking(count: int, folder: Path) -> float:
    """Return the seconds that asking and storing takes."""
    judge, kind = FunctionJudge(slow_judge), kind_named("support")
    questions: list[Asked] = [
        (judge, Question(kind, {"passage": PASSAGE, "claim": str(number)}, {"sample_id": str(number)}))
        for number in range(count)
    ]
    start = time.perf_counter()
    with Database.write(folder / "x.run.db") as database:
        executor, policy = ThreadExecutor(concurrency=CONCURRENCY), CallPolicy(retries=4)
        Asking(judge, database=database, executor=executor, policy=policy).ask(questions)
    seconds = time.perf_counter() - start
    assert len(stored_verdicts(folder / "x.run.db")) == count
    return seconds


def pairs_of(count: int) -> list[tuple[EvaluationSample, SystemOutputs]]:
    """Answers of one sentence with five passages each: one verdict per answer."""
    hits = [RetrievedDocument(Document(f"d{rank}", f"{rank}. {PASSAGE}"), 1.0, rank) for rank in range(1, 6)]
    return [
        (
            EvaluationSample(str(number), "How many?"),
            SystemOutputs(hits, Response(f"It carries {number} cars.")),
        )
        for number in range(count)
    ]


def faithfulness(asking: Asking) -> JudgedMetric:
    metric = parse_metrics("judged_faithfulness")[0]
    assert isinstance(metric, JudgedMetric)
    return metric.judged_by(asking)


def replaying(count: int, folder: Path, clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the seconds that reading the verdicts and computing the scores takes."""
    pairs = pairs_of(count)
    samples, outputs = [sample for sample, _ in pairs], [output for _, output in pairs]
    with Database.write(folder / "x.run.db") as database:
        judge = FunctionJudge(quick_judge)
        expected = faithfulness(Asking(judge, database=database)).compute(samples, outputs).value
    start = clock()
    asking = Asking(judge, stored_verdicts(folder / "x.run.db"), is_replay=True)
    value = faithfulness(asking).compute(samples, outputs).value
    seconds = clock() - start
    assert value == expected
    assert len(asking.book) == count
    return seconds


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folders = [Path(name, str(number)) for number in range(6)]
        for folder in folders:
            folder.mkdir()
        asked = min(asking(ASKED, folder) for folder in folders[:3])
        replayed = min(replaying(REPLAYED, folder) for folder in folders[3:])
    ideal = ASKED * SECONDS / CONCURRENCY
    print(
        f"ask:    {ASKED:,} verdicts of {SECONDS * 1000:.0f} ms, {CONCURRENCY} at once: {asked:.3f} s", end=""
    )
    print(f" (ideal {ideal:.3f}, bar {MOST_ASKING})")
    print(f"replay: {REPLAYED:,} answers: {replayed:.3f} s (bar {MOST_REPLAYING:.0f})")
    assert asked <= MOST_ASKING
    assert replayed <= MOST_REPLAYING


if __name__ == "__main__":
    main()
