"""A new version against an earlier one."""

from __future__ import annotations

from typing import Any

import pytest

from auepora_eval.io.builds import Coverage, FileFacts, Manifest, drops, not_compared


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
