"""The measured resources of a run."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.core.systems.resources import ApiUsage, ResourceMonitor
from auepora_eval.metrics.parse import parse_metrics
from tests.builders import a_dataset, a_sample, an_output


def names() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "auepora-resources"]


def test_cpu_time_is_measured_and_the_thread_ends() -> None:
    with ResourceMonitor(interval=0.05) as monitor:
        end = time.process_time() + 0.3
        while time.process_time() < end:
            pass
        assert names()
    assert not names()
    memory, cpu = monitor.usage()["memory_mb"], monitor.usage()["cpu_percent"]
    assert memory["mean"] is not None
    assert memory["peak"] is not None
    assert 1 < memory["mean"] <= memory["peak"]
    assert memory["std"] is not None
    assert cpu["mean"] is not None
    assert cpu["peak"] is not None
    assert 10 < cpu["mean"] <= cpu["peak"]


def test_child_processes_are_measured() -> None:
    code = "x = bytearray(60_000_000); print('there', flush=True); input()"
    pipe = subprocess.PIPE
    with ResourceMonitor() as alone:
        pass
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe) as child:
        assert child.stdout is not None
        child.stdout.readline()
        with ResourceMonitor() as together:
            pass
        child.communicate(b"\n")
    first, second = alone.usage()["memory_mb"]["mean"], together.usage()["memory_mb"]["mean"]
    assert first is not None
    assert second is not None
    assert second - first > 50


def test_work_of_children_before_the_block_is_not_counted() -> None:
    code = "import time\nwhile time.process_time() < 2: pass\nprint('there', flush=True); input()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe) as child:
        assert child.stdout is not None
        child.stdout.readline()
        with ResourceMonitor() as monitor:
            time.sleep(0.5)
        child.communicate(b"\n")
    peak = monitor.usage()["cpu_percent"]["peak"]
    assert peak is not None
    assert peak < 300


def test_run_reports_resources_of_its_calls() -> None:
    plan = EvaluationPlan(parse_metrics("mean_latency"))
    run = AueporaEvaluator(lambda query: an_output("a", "x"), plan).run(a_dataset(a_sample()))
    assert run.resource_usage is not None
    assert run.resource_usage["memory_mb"]["peak"] > 1
    assert AueporaEvaluator(lambda query: "x", plan).run(a_dataset()).resource_usage is None


@pytest.mark.parametrize(
    ("outputs", "prices", "expected"),
    [
        pytest.param([{}], {}, None, id="nobody says anything"),
        pytest.param(
            [{"input_tokens": 800, "output_tokens": 200}] * 2,
            {"price_input": 0.5, "price_output": 2},
            (2000, 2, 1.6, 1600, 400, 2),
            id="0.5 x 1.6 + 2 x 0.4",
        ),
        pytest.param([{"output_tokens": 9}, {}], {"price_output": 1}, (None, 1, None, None, 9, 1), id="half"),
        pytest.param(
            [{"input_tokens": 1000, "output_tokens": 0}],
            {"price_input": 3},
            (1000, 1, None, 1000, 0, 1),
            id="a price is missing",
        ),
        pytest.param([{"total_tokens": 7, "requests": 3}], {}, (7, 3, None, None, None, 1), id="in all"),
        pytest.param(
            [{"input_tokens": 2, "output_tokens": 1, "total_tokens": 9}],
            {},
            (9, 1, None, 2, 1, 1),
            id="thoughts",
        ),
        pytest.param(
            [{"input_tokens": 2, "output_tokens": 1, "total_tokens": 1}],
            {},
            (3, 1, None, 2, 1, 1),
            id="too few",
        ),
        pytest.param(
            [{"total_tokens": np.int64(7)}, {"total_tokens": 3.0}],
            {"price_input": 2.0, "price_output": 2.0},
            (10, 2, 0.02, None, None, 2),
            id="in all, at one price",
        ),
        pytest.param(
            [{"total_tokens": 7}],
            {"price_input": 2.0, "price_output": 1.0},
            (7, 1, None, None, None, 1),
            id="in all, at two prices",
        ),
        pytest.param(
            [{"output_tokens": True}, {"output_tokens": -1}, {"output_tokens": "9"}], {}, None, id="no counts"
        ),
        pytest.param(
            [{"output_tokens": float("nan")}, {"output_tokens": float("inf")}], {}, None, id="no numbers"
        ),
    ],
)
def test_api_usage(outputs: list[Any], prices: dict[str, float], expected: Any) -> None:
    usage = ApiUsage()
    for extra in outputs:
        usage.add(extra)
    found = usage.as_dict(prices)
    assert (None if found is None else tuple(found.values())) == (
        expected if expected is None else pytest.approx(expected)
    )
