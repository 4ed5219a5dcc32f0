"""Labels on the disk: nothing that was saved is lost."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from auepora_eval.errors import DataError, StorageError
from auepora_eval.people.labels import read_labels
from auepora_eval.people.task import queue_of
from tests.people.tasks import stored_task


def test_labels_undo_skip_and_notes_survive_a_restart(tmp_path: Path) -> None:
    task, _items = stored_task(tmp_path)
    labels = read_labels(tmp_path, task, "ada")
    labels.label("1", "supported")
    labels.label("2", None)
    labels.skip("3")
    labels.note("1", "see page 2")
    labels.label("4", "not supported")
    assert labels.take_back() == "4"
    again = read_labels(tmp_path, task, "ada")
    assert again.answers == labels.answers
    assert again.said == {"1": "supported", "2": None}
    assert again.notes == {"1": "see page 2"}
    assert again.rest(["1", "2", "3", "4"]) == ["4", "3"], "skipped items come last"
    assert again.last_item == "3"


def test_only_people_of_the_task_have_a_file(tmp_path: Path) -> None:
    task, _ = stored_task(tmp_path)
    for name in ("ben", "../ada", ""):
        with pytest.raises(DataError, match="is not one of ada"):
            read_labels(tmp_path, task, name)
    with pytest.raises(DataError, match="at most 10,000"):
        read_labels(tmp_path, task, "ada").note("1", "x" * 10_001)
    assert not (tmp_path / "annotations").exists(), "reading writes nothing"
    read_labels(tmp_path, task, "ada").label("1", "supported")
    assert (tmp_path / "annotations" / "ada.db").stat().st_mode & 0o077 == 0


def test_a_label_that_cannot_be_written_is_an_error_and_does_not_count(tmp_path: Path) -> None:
    task, _ = stored_task(tmp_path)
    labels = read_labels(tmp_path, task, "ada")
    labels.label("1", "supported")
    labels.path.unlink()
    labels.path.mkdir()
    with pytest.raises(StorageError, match="cannot be written"):
        labels.label("2", "supported")
    assert list(labels.said) == ["1"]


_LABELS_UNTIL_KILLED = """
import sys
from pathlib import Path
from auepora_eval.people.labels import read_labels
from auepora_eval.people.task import queue_of, read_task
folder = Path(sys.argv[1])
task, items = read_task(folder)
labels = read_labels(folder, task, "ada")
for item in labels.rest(queue_of(task, items, "ada")):
    labels.label(item, "supported")
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
