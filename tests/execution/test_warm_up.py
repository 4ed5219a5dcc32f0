"""Warm-up calls that hang or kill their worker: they cost their time, and nobody fails for them."""

from __future__ import annotations

import time

from auepora_eval.errors import WorkerLostError
from auepora_eval.execution.processes import ProcessExecutor
from auepora_eval.execution.warm_up import WarmedUp
from tests.execution.worker_calls import DeadlyAt, hung


def test_a_warm_up_call_that_hangs_ends_with_its_worker_and_is_left_out() -> None:
    start = time.monotonic()
    results = dict(WarmedUp(ProcessExecutor(concurrency=2, timeout=0.3), 2).map(hung, range(5)))
    assert isinstance(results.pop(0), TimeoutError)
    assert results == {1: 1, 2: 2, 3: 3, 4: 4}
    assert time.monotonic() - start < 20


def test_one_that_kills_its_worker_is_left_out_and_no_failed_start() -> None:
    results = dict(WarmedUp(ProcessExecutor(concurrency=1), 2).map(DeadlyAt(0), range(3)))
    assert isinstance(results.pop(0), WorkerLostError)
    assert results == {1: 1, 2: 4}
