"""A new version against an earlier one, and records to read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from auepora_eval.curation.builder import BuildPlan, build_dataset
from auepora_eval.curation.coverage import drops, spot_checks
from auepora_eval.io.manifest import Coverage, FileFacts, Manifest
from tests.raw_tasks import a_flat_task, write_tasks


def a_manifest(qa: int, **coverage: dict[str, int]) -> Manifest:
    return Manifest("v1", "", "", splits={"qa": FileFacts("qa.jsonl", qa)}, coverage=Coverage(**coverage))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(a_manifest(100), a_manifest(90), [], id="a tenth is not more than a tenth"),
        pytest.param(
            a_manifest(100),
            a_manifest(89),
            ["split qa: 11% fewer, 89 records after 100."],
            id="more than that",
        ),
        pytest.param(a_manifest(0), a_manifest(0), [], id="nothing cannot be lost"),
        pytest.param(a_manifest(10), a_manifest(20), [], id="more is no drop"),
        pytest.param(
            a_manifest(10, documents={"a": 5, "b": 5}),
            a_manifest(10, documents={"a": 10}),
            ["document b: gone, 0 records after 5."],
            id="a document is gone though the total stays",
        ),
        pytest.param(
            a_manifest(10, labels={"scenario=noise": 4}, task_types={"qa": 10, "citations": 3}),
            a_manifest(10, labels={"scenario=noise": 3}, task_types={"qa": 10}),
            [
                "task type citations: gone, 0 records after 3.",
                "label scenario=noise: 25% fewer, 3 records after 4.",
            ],
            id="the greatest loss first",
        ),
        pytest.param(
            a_manifest(10), a_manifest(10, task_types={"qa": 10}), [], id="an old one has only counts"
        ),
    ],
)
def test_drops(before: Manifest, after: Manifest, expected: list[str]) -> None:
    assert [str(drop) for drop in drops(before, after)] == expected


def test_the_share_can_be_set() -> None:
    assert drops(a_manifest(100), a_manifest(60), 0.5) == []
    assert len(drops(a_manifest(100), a_manifest(99), 0.001)) == 1


def test_spot_checks_are_seeded_and_the_least_supported_come_first(tmp_path: Path) -> None:
    def task(number: int, answer: str) -> dict[str, Any]:
        return a_flat_task(
            f"t{number:02}", answer=answer, contexts=["The harbour has three blue boats."], sources=["a"]
        )

    tasks = [
        task(n, "Three blue boats lie in the harbour." if n % 5 else "Seven green submarines.")
        for n in range(20)
    ]
    write_tasks(tmp_path / "offline_dataset.jsonl", tasks)
    build_dataset(BuildPlan.in_folder(tmp_path))
    split = tmp_path / "qa_pairs.jsonl"
    every = spot_checks(split, 20)
    assert [check.support for check in every[:4]] == [0.0] * 4
    assert every[0].missing
    assert every[-1].support is not None
    assert every[-1].support > 0.7
    some = spot_checks(split, 5, seed=1)
    assert some == spot_checks(split, 5, seed=1)
    assert {check.task_id for check in some} != {check.task_id for check in spot_checks(split, 5, seed=2)}
    assert some[0].contexts == ("[1] The harbour has three blue boats.",)
