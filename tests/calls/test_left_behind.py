"""Coroutines that do not let themselves be cancelled: their time is up all the same."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from auepora_eval.calls.policy import CallPolicy
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.core.systems.call import EXECUTORS
from auepora_eval.core.types import EvaluationSample, SystemOutputs
from tests.builders import a_dataset, a_sample, an_output
from tests.commands import ran

pytestmark = pytest.mark.full


class Stubborn:
    """The third call goes on when it is cancelled, until it is released."""

    name = "stubborn"

    def __init__(self) -> None:
        self.released = False

    async def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
        while sample.query == "3" and not self.released:
            try:
                await asyncio.sleep(0.2)
            except asyncio.CancelledError:
                continue
        return an_output("a", "fine")


@pytest.mark.parametrize("executor", ["async", "threads"])
def test_a_coroutine_that_refuses_to_end_is_recorded_and_left_behind(executor: str) -> None:
    system, start = Stubborn(), time.monotonic()
    evaluator = AueporaEvaluator(
        system,
        EvaluationPlan([]),
        executor=EXECUTORS.get(executor)(concurrency=4),
        policy=CallPolicy(timeout=0.1),
    )
    run = evaluator.run(a_dataset(*(a_sample(f"s{n}", f"{n}") for n in range(12))))
    seconds = time.monotonic() - start
    errors = {s.sample_id: o.error for s, o in zip(run.samples, run.outputs, strict=True) if o.error}
    assert list(errors) == ["s3"]
    assert (errors["s3"].type, errors["s3"].message) == ("TimeoutError", "no answer within 0.1 s")
    assert run.outputs[3].extra["attempts"][0]["kind"] == "timeout"
    assert seconds < 5
    system.released = True


def test_threads_of_a_system_do_not_keep_the_command_alive(tmp_path: Path) -> None:
    (tmp_path / "left.py").write_text(
        "import threading, time\n"
        "def rag(query):\n"
        "    threading.Thread(target=time.sleep, args=(60,), name='client').start()\n"
        "    return 'an answer'\n",
        encoding="utf-8",
    )
    words = "run --dataset demo --limit 2 --system left.py:rag --metrics exact_match --out out".split()
    start = time.monotonic()
    done = ran(tmp_path, *words, timeout=50)
    assert (done.returncode, time.monotonic() - start < 40) == (0, True)
    assert len(list((tmp_path / "out").glob("*.results.json"))) == 1
