"""Labels on the disk: nothing that was saved is lost, and only one process writes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from auepora_eval.errors import DataError, StorageError
from auepora_eval.people.annotation.saved import LabelFiles, Said, read_labels
from auepora_eval.people.annotation.task import queue_of
from tests.people.annotation.tasks import stored_task


def test_labels_undo_skip_and_notes_survive_a_restart(tmp_path: Path) -> None:
    task, _items = stored_task(tmp_path)
    with LabelFiles(tmp_path, task) as files:
        files.label("ada", "1", Said("supported", 2.5, "2026-01-01T00:00:00Z"))
        files.label("ada", "2", Said(None))
        files.add("ada", "skip", "3")
        files.note("ada", "1", "see page 2")
        files.label("ada", "4", Said("not supported"))
        assert files.undo("ada") == "4"
    again = read_labels(tmp_path, task, "ada")
    assert again.said == {"1": Said("supported", 2.5, "2026-01-01T00:00:00Z"), "2": Said(None)}
    assert again.notes == {"1": "see page 2"}
    assert again.rest(["1", "2", "3", "4"]) == ["4", "3"], "skipped items come last"
    assert again.last == "3"


def test_undo_goes_back_step_by_step(tmp_path: Path) -> None:
    task, _ = stored_task(tmp_path)
    with LabelFiles(tmp_path, task) as files:
        files.label("ada", "1", Said("supported"))
        files.add("ada", "skip", "2")
        assert [files.undo("ada") for _ in range(3)] == ["2", "1", None]
        assert files.of("ada").said == {}
        assert files.of("ada").skipped == {}


def test_the_last_label_of_an_item_counts(tmp_path: Path) -> None:
    task, _ = stored_task(tmp_path)
    with LabelFiles(tmp_path, task) as files:
        files.label("ada", "1", Said("supported"))
        files.label("ada", "1", Said("not supported"))
        files.undo("ada")
        assert files.of("ada").said == {}, "undo takes the item back, not to the label before"


@pytest.mark.parametrize("cut", [1, 5, 30])
def test_a_torn_last_line_is_dropped_and_the_file_is_continued(tmp_path: Path, cut: int) -> None:
    task, _ = stored_task(tmp_path)
    with LabelFiles(tmp_path, task) as files:
        for item in ("1", "2"):
            files.label("ada", item, Said("supported"))
    path = tmp_path / "annotations" / "ada.jsonl"
    path.write_bytes(path.read_bytes()[:-cut])
    assert list(read_labels(tmp_path, task, "ada").said) == ["1"]
    with LabelFiles(tmp_path, task) as files:
        files.label("ada", "3", Said("supported"))
    assert list(read_labels(tmp_path, task, "ada").said) == ["1", "3"]


def test_a_damaged_line_in_the_middle_is_left_out_with_a_warning(tmp_path: Path) -> None:
    task, _ = stored_task(tmp_path)
    with LabelFiles(tmp_path, task) as files:
        for item in ("1", "2", "3"):
            files.label("ada", item, Said("supported"))
    path = tmp_path / "annotations" / "ada.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"item":"2"', b'"item":"4"'))
    with pytest.warns(UserWarning, match="1 lines are damaged"):
        assert list(read_labels(tmp_path, task, "ada").said) == ["1", "3"]


def test_a_second_process_cannot_write(tmp_path: Path) -> None:
    task, _ = stored_task(tmp_path)
    code = (
        "import sys; from pathlib import Path; from auepora_eval.people.annotation.saved import *;"
        "from auepora_eval.people.annotation.task import read_task\n"
        "folder = Path(sys.argv[1])\n"
        "try:\n    LabelFiles(folder, read_task(folder)[0])\nexcept OSError as error:\n    print(error)"
    )
    with LabelFiles(tmp_path, task):
        other = subprocess.run(
            [sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True
        )
    assert f"is being labelled through process {os.getpid()}" in other.stdout
    with LabelFiles(tmp_path, task) as files:  # free again
        files.label("ada", "1", Said("supported"))


def test_only_people_of_the_task_have_a_file(tmp_path: Path) -> None:
    task, _ = stored_task(tmp_path)
    with LabelFiles(tmp_path, task) as files:
        for name in ("ben", "../ada", ""):
            with pytest.raises(DataError, match="is not one of ada"):
                files.label(name, "1", Said("supported"))
        with pytest.raises(DataError, match="at most 10,000"):
            files.note("ada", "1", "x" * 10_001)
    assert sorted(path.name for path in (tmp_path / "annotations").iterdir()) == ["lock"]


def test_a_label_that_cannot_be_written_is_an_error_and_does_not_count(tmp_path: Path) -> None:
    task, _ = stored_task(tmp_path)
    with LabelFiles(tmp_path, task) as files:
        files.label("ada", "1", Said("supported"))
        (tmp_path / "annotations" / "ada.jsonl").unlink()
        time.sleep(0.05)  # the file is looked at again after a moment; a person needs longer for a label
        with pytest.raises(StorageError, match="cannot be written"):
            files.label("ada", "2", Said("supported"))
        assert list(files.of("ada").said) == ["1"]


_LABELS_UNTIL_KILLED = """
import sys
import time
from pathlib import Path
from auepora_eval.people.annotation.saved import LabelFiles, Said
from auepora_eval.people.annotation.task import queue_of, read_task
folder = Path(sys.argv[1])
task, items = read_task(folder)
with LabelFiles(folder, task) as files:
    for item in files.of("ada").rest(queue_of(task, items, "ada")):
        files.label("ada", item, Said("supported"))
        print(item, flush=True)
"""


@pytest.mark.full
def test_kill_9_loses_no_label_that_was_reported_as_saved(tmp_path: Path) -> None:
    task, items = stored_task(tmp_path, count=3_000)
    saved: list[str] = []
    for stop_after in (1, 40, 7):
        command = [sys.executable, "-c", _LABELS_UNTIL_KILLED, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(stop_after):
                saved.append(process.stdout.readline().strip())
            process.send_signal(signal.SIGKILL)
            saved += process.stdout.read().split()
        # What the process had written but could not report any more may be there too, one label at most.
        kept = list(read_labels(tmp_path, task, "ada").said)
        assert kept[: len(saved)] == saved
        assert len(kept) - len(saved) <= 1
        saved = kept
    assert saved == queue_of(task, items, "ada")[: len(saved)], "the queue was continued in order"
