"""Runs on a Ray cluster of several nodes on this machine, in a process of its own: prints what came of them.

python -m tests.reliability.ray_run FOLDER
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any, cast

from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.policy import CallPolicy
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.errors import RunStoppedError
from auepora_eval.execution.ray_cluster import RayExecutor
from auepora_eval.execution.systems import load_system
from auepora_eval.metrics.parse import parse_metrics
from tests.builders import a_dataset, a_sample
from tests.execution.worker_calls import DeadlyAt, squared, squared_async

PLAN = EvaluationPlan(parse_metrics("recall@5,mrr,token_f1"))


def slow_square(number: int) -> int:
    time.sleep(0.02)
    return number * number


def described(results: list[tuple[int, Any]]) -> dict[str, Any]:
    """How many results there are, how many places, and which are not the square."""
    odd = {place: f"{type(value).__name__}: {value}" for place, value in results if value != place * place}
    return {"results": len(results), "places": len(dict(results)), "odd": odd}


def equal_results(executor: RayExecutor) -> dict[str, Any]:
    dataset = a_dataset(
        *(a_sample(f"s{n}", f"query {n}", relevant="ab", reference="answer 1") for n in range(60))
    )
    system = load_system("tests.execution.worker_calls:Quiet")
    plain = AueporaEvaluator(system, PLAN).run(dataset)
    run = AueporaEvaluator(system, PLAN, executor=executor).run(dataset)
    errors = [[o.error and (o.error.type, o.error.message) for o in r.outputs] for r in (plain, run)]
    return {"equal": plain.results == run.results, "errors_equal": errors[0] == errors[1]}


def window(executor: RayExecutor) -> int:
    """The most items that were under way."""
    taken = most = 0

    def numbers() -> Any:
        nonlocal taken
        for number in itertools.count():
            taken += 1
            yield number

    with closing(cast(Any, executor.map(squared, numbers()))) as results:
        for yielded, _ in enumerate(itertools.islice(results, 200)):
            most = max(most, taken - yielded)
    return most


def budget(executor: RayExecutor) -> str:
    system = load_system("tests.execution.worker_calls:Quiet")
    evaluator = AueporaEvaluator(system, PLAN, executor=executor, policy=CallPolicy(max_calls=30))
    try:
        evaluator.run(
            a_dataset(*(a_sample(f"s{n}", f"query {n}", relevant="a", reference="x") for n in range(500)))
        )
    except RunStoppedError as error:
        return str(error)
    return "it did not stop"


def node_lost(cluster: Any, executor: RayExecutor, node: Any) -> dict[str, Any]:
    results: list[tuple[int, Any]] = []
    for pair in executor.map(slow_square, range(300)):
        results.append(pair)
        if len(results) == 60:
            cluster.remove_node(node, allow_graceful=False)
    return described(results)


def main(folder: Path) -> None:
    # Nothing is reported, and every port is on loopback.
    os.environ.update({"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"})
    from ray.cluster_utils import Cluster

    start = time.perf_counter()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    executor = RayExecutor(concurrency=3, address=cluster.address)
    said: dict[str, Any] = {"start_seconds": time.perf_counter() - start}
    said["plain"] = described(list(executor.map(squared, range(100))))
    said["async"] = described(list(executor.map(squared_async, range(100))))
    said |= {"window": window(executor), **equal_results(executor), "budget": budget(executor)}
    killed = DeadlyAt(3, 50, 90, 120, once=folder)
    said["workers_killed"] = described(list(executor.map(killed, range(150))))
    said["kills"] = len(list(folder.iterdir()))
    said["poisoned"] = described(list(executor.map(DeadlyAt(17), range(40))))
    said["node_lost"] = node_lost(cluster, executor, nodes[0])
    said["seconds"] = time.perf_counter() - start
    print(json.dumps(said))
    import ray

    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()))
