"""Tasks and queues: who judges what, in which order, and what a folder must have."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from auepora_eval.errors import DataError, StorageError
from auepora_eval.people.task import (
    check_people,
    create_task,
    is_swapped,
    queue_of,
    read_task,
)
from tests.people.tasks import a_task, an_item, stored_task


def test_a_task_reads_back_as_it_was_written(tmp_path: Path) -> None:
    task, items = stored_task(tmp_path / "t", people=("ada", "ben"))
    assert read_task(tmp_path / "t") == (task, items)
    with pytest.raises(StorageError, match="exists already"):
        create_task(tmp_path / "t", task, items)


@pytest.mark.parametrize(
    ("overlap", "shared", "each"),
    [
        pytest.param(1.0, 10, 10, id="everyone judges everything"),
        pytest.param(0.0, 0, 5, id="split in two"),
        pytest.param(0.2, 2, 6, id="two shared, eight split"),
    ],
)
def test_queues_share_the_overlap_and_split_the_rest(overlap: float, shared: int, each: int) -> None:
    task = a_task(people=("ada", "ben"), overlap=overlap)
    items = [an_item(number) for number in range(10)]
    queues = [queue_of(task, items, person) for person in task.people]
    assert [len(queue) for queue in queues] == [each, each]
    counts = Counter(item for queue in queues for item in queue)
    assert set(counts) == {item.item_id for item in items}, "somebody judges each item"
    assert sum(count == 2 for count in counts.values()) == shared


def test_sides_of_pairs_are_swapped_about_half_of_the_time() -> None:
    task = a_task("pairs", people=("ada", "ben"))
    swapped = [is_swapped(task, person, str(number)) for person in task.people for number in range(500)]
    assert 450 < sum(swapped) < 550
    assert swapped[:500] != swapped[500:], "people see different sides"
    assert not is_swapped(a_task("answers"), "ada", "1")


@pytest.mark.parametrize("name", ["../ben", "", ".hidden", "-flag", "_settled", "a\0b", "x" * 200])
def test_a_name_that_cannot_be_a_file_name_is_an_error(name: str) -> None:
    with pytest.raises(DataError, match="cannot be a file name"):
        check_people([name])


def test_a_hostile_name_in_a_task_file_is_an_error(tmp_path: Path) -> None:
    stored_task(tmp_path)
    path = tmp_path / "task.json"
    path.write_text(path.read_text().replace('"ada"', '"../../ada"'))
    with pytest.raises(DataError, match="cannot be a file name"):
        read_task(tmp_path)
