"""A task in use: what a person sees next, and what keys mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from auepora_eval.people.desk import Desk
from auepora_eval.people.labels import read_labels
from auepora_eval.people.results import write_labels
from auepora_eval.people.task import is_swapped
from tests.people.tasks import stored_task


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    stored_task(tmp_path, people=("ada", "ben"))
    return Desk(tmp_path)


def next_id(desk: Desk, person: str = "ada") -> str:
    shown = desk.next_item(person)
    assert shown is not None
    return shown.item.item_id


def test_a_key_saves_the_label_and_the_next_item_follows(desk: Desk) -> None:
    first = next_id(desk)
    assert next_id(desk) == first, "looking again changes nothing"
    desk.press("ada", first, "2", note="  fine ")
    assert desk.labels("ada").said == {first: "supported"}
    assert 0 <= desk.labels("ada").seconds[first] < 5
    assert desk.labels("ada").notes == {first: "  fine "}
    assert next_id(desk) != first
    assert desk.labels("ben").said == {}


def test_a_queue_has_an_end_and_its_labels_are_written(desk: Desk) -> None:
    assert not write_labels(desk), "there are none yet"
    for _ in range(4):
        desk.press("ada", next_id(desk), "1")
    assert desk.next_item("ada") is None
    assert desk.progress("ada").is_finished
    assert write_labels(desk)
    assert (desk.folder / "labels.jsonl").read_text().count("\n") == 4
    assert (desk.folder / "labels.gt.json").exists()
    last = desk.labels("ada").last_item
    assert last is not None
    desk.press("ada", last, "undo")
    assert next_id(desk) == last


def test_skipped_items_come_back_in_turn(desk: Desk) -> None:
    order = []
    for _ in range(6):
        order.append(next_id(desk))
        desk.press("ada", order[-1], "skip")
    assert len(set(order[:4])) == 4
    assert order[4:] == order[:2]


def test_a_label_of_a_pair_is_of_the_run_whatever_side_it_was_shown_on(tmp_path: Path) -> None:
    task, _ = stored_task(tmp_path, 30, "pairs")
    sides = set()
    desk = Desk(tmp_path)
    while (shown := desk.next_item("ada")) is not None:
        swapped = is_swapped(task, "ada", shown.item.item_id)
        sides.add(swapped)
        assert (shown.first == shown.item.second) is swapped
        # The annotator always prefers the answer of the first run, by its text.
        desk.press("ada", shown.item.item_id, "2" if shown.second == shown.item.text else "1")
    assert sides == {True, False}
    assert set(read_labels(tmp_path, task, "ada").said.values()) == {"first"}


def test_a_decision_on_a_pair_is_never_swapped(tmp_path: Path) -> None:
    stored_task(tmp_path, 10, "pairs")
    desk = Desk(tmp_path)
    for number in range(1, 11):
        desk.settle(str(number), "1")
    assert {label.name for label in desk.decisions().values()} == {"first"}
