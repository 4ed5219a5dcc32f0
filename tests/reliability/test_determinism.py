"""The same data and seed give the same bytes, in any order of answers, stopped or not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from auepora_eval.core.systems.call import EXECUTORS
from auepora_eval.core.types import EvaluationSample, SystemOutputs
from auepora_eval.errors import InterruptedRunError
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.reliability.journaled_run import dataset_of, evaluator
from tests.stable import stable_bytes, stable_part

SIZE = 90
KINDS = [name for name in ("serial", "threads", "async") if name in EXECUTORS]


def digest(storage: EvaluationResultsStorage, name: str) -> str:
    return sha256(stable_bytes(storage.load_results(name))).hexdigest()


def test_equal_runs_have_equal_digests(tmp_path: Path) -> None:
    storage, world, digests, runs = EvaluationResultsStorage(tmp_path), dataset_of(SIZE), set(), 0
    for kind in KINDS:
        for concurrency in (1, 8, 32):
            for stop_after in (0, 30):
                name = f"{kind}-{concurrency}-{stop_after}"
                if stop_after:
                    stopped = evaluator(kind, concurrency, 0.0005)
                    seen: list[str] = []

                    def count(sample: EvaluationSample, output: SystemOutputs) -> None:
                        seen.append(sample.sample_id)  # noqa: B023 - called before the next turn
                        if len(seen) == 30:  # noqa: B023
                            stopped.stop()  # noqa: B023

                    stopped.on_output = count
                    with pytest.raises(InterruptedRunError):
                        stopped.run(world, evaluation_id=name, storage=storage)
                running = evaluator(kind, concurrency, 0.0005)
                running.run(world, evaluation_id=name, storage=storage, resume=True)
                digests.add(digest(storage, name))
                runs += 1
    # In memory, and stored whole, it is the same too.
    run = evaluator("serial", 1, 0.0).run(world, evaluation_id="memory")
    storage.save_run(run)
    digests.add(digest(storage, "memory"))
    print(f"\n{runs + 1} runs, {len(digests)} digest")
    assert len(digests) == 1


def test_hash_seeds(tmp_path: Path) -> None:
    digests = set()
    for seed in ("0", "1", "4242"):
        folder = tmp_path / seed
        folder.mkdir()
        told = {"out": str(folder), "id": "x", "executor": "threads", "concurrency": 8, "size": SIZE}
        subprocess.run(
            [sys.executable, "-m", "tests.reliability.journaled_run", json.dumps({**told, "seconds": 0.0})],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        )
        digests.add(digest(EvaluationResultsStorage(folder), "x"))
    print(f"\n3 hash seeds, {len(digests)} digest")
    assert len(digests) == 1


def test_order_of_the_data_changes_no_value(tmp_path: Path) -> None:
    storage = EvaluationResultsStorage(tmp_path)
    found = set()
    for order in range(8):
        running = evaluator("serial", 1, 0.0)
        running.run(dataset_of(SIZE, order), evaluation_id=f"o{order}", storage=storage)
        results = storage.load_results(f"o{order}")
        values = {
            name: repr(entry["value"])
            for section, entries in stable_part(results).items()
            if section.endswith("_metrics")
            for name, entry in entries.items()
            if isinstance(entry, dict) and "value" in entry
        }
        found.add(json.dumps(values, sort_keys=True))
    print(f"\n8 orders of the data, {len(found)} set of values")
    assert len(found) == 1
