"""A new version against an earlier one, and records to read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.builder.build import BuildPlan, build_dataset
from auepora_eval.io.builds.manifest import Coverage, FileFacts, Manifest
from auepora_eval.quality.coverage import drops, not_compared, spot_checks
from tests.raw_tasks import a_flat_task, write_tasks


def a_manifest(qa: int, **coverage: Any) -> Manifest:
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


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({"labels": {"id=1": 5}}, {"not_counted": ["labels.id"]}, [], id="a label"),
        pytest.param({"labels": {"id=1": 5}}, {"not_counted": ["labels.i"]}, ["id=1"], id="another label"),
    ],
)
def test_what_is_not_counted_is_no_loss(
    before: dict[str, Any], after: dict[str, Any], expected: list[str]
) -> None:
    old, new = a_manifest(10, **before), a_manifest(10, **after)
    assert [drop.name for drop in drops(old, new)] == expected
    assert not_compared(old, new) == after.get("not_counted", [])


def test_the_share_can_be_set() -> None:
    assert drops(a_manifest(100), a_manifest(60), 0.5) == []
    assert len(drops(a_manifest(100), a_manifest(99), 0.001)) == 1


@pytest.fixture
def split(tmp_path: Path) -> Path:
    """Of twenty records four are wrong, and two twins are unsupported by intent."""

    def task(number: int, answer: str, **labels: Any) -> dict[str, Any]:
        contexts = ["The harbour has three blue boats."]
        return a_flat_task(
            f"t{number:02}", answer=answer, contexts=contexts, sources=["a"], metadata={"labels": labels}
        )

    tasks = [
        task(n, "Three blue boats lie in the harbour." if n % 5 else "Seven green submarines.")
        for n in range(18)
    ]
    tasks += [
        task(18, "Nine purple zeppelins.", scenario="counterfactual"),
        task(19, "The documents do not say.", answerable=False),
    ]
    write_tasks(tmp_path / "offline_dataset.jsonl", tasks)
    build_dataset(BuildPlan.in_folder(tmp_path))
    return tmp_path / "qa_pairs.jsonl"


def test_the_least_supported_come_first_whatever_chance_says(split: Path) -> None:
    for seed in range(5):
        found = spot_checks(split, 4, seed=seed)
        assert [check.task_id for check in found[:4]] == ["t00", "t05", "t10", "t15"]
        assert [check.suspicious for check in found] == [True] * 4 + [False] * (len(found) - 4)
        assert found[0].support == 0.0
        assert found[0].missing
    every = spot_checks(split, 20)
    assert len(every) == len({check.task_id for check in every}) == 20
    assert {check.task_id for check in every if not check.suspicious} >= {"t18", "t19"}
    assert every[0].contexts == ("[1] The harbour has three blue boats.",)


def test_chance_is_seeded_and_prefers_no_record(split: Path) -> None:
    def looked_at(seed: int) -> list[str]:
        return [check.task_id for check in spot_checks(split, 8, seed=seed, among=8)]

    assert looked_at(1) == looked_at(1)
    chosen = Counter(name for seed in range(200) for name in looked_at(seed))
    assert chosen.total() == 200 * 8
    # Eight of twenty, 200 times: 80 each, with a standard deviation of 7.
    assert min(chosen.values()) > 55
    assert max(chosen.values()) < 105
    assert len(chosen) == 20
