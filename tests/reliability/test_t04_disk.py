"""T-04: full disk, read-only folder, missing journal: a clear error, and counted outputs are kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from auepora_eval.cli.main import main
from auepora_eval.core.types import EvaluationSample, SystemOutputs
from auepora_eval.errors import StorageError
from auepora_eval.runs.journal.journal import JOURNAL, Journal, stored_places
from auepora_eval.runs.store.storage import EvaluationResultsStorage
from tests.builders import an_output
from tests.reliability.journaled_run import dataset_of, evaluator
from tests.stable import stable_bytes

resource = pytest.importorskip("resource", reason="there are no limits on the size of files here")
SIZE = 60
HEAD = {"begun_at": "2026-01-01T00:00:00Z"}


def limited_to(size: int) -> None:
    """As on a full disk, a write beyond this many bytes of a file fails."""
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


_SCRIPT = """
import sys
from pathlib import Path
from tests.reliability.test_t04_disk import limited_to, SIZE
from tests.reliability.journaled_run import dataset_of, evaluator
from auepora_eval.errors import StorageError
from auepora_eval.runs.store.storage import EvaluationResultsStorage
limited_to(int(sys.argv[2]))
running = evaluator("threads", 4, 0.003)  # a pause: one write must not hold all samples
running.on_output = lambda sample, output: print(sample.sample_id, flush=True)
try:
    storage = EvaluationResultsStorage(sys.argv[1])
    running.run(dataset_of(SIZE), evaluation_id="x", storage=storage, resume=True)
except StorageError as error:
    print(error, file=sys.stderr)
    sys.exit(4)
"""


def test_t04_full_disk_stops_the_run(tmp_path: Path) -> None:
    storage = EvaluationResultsStorage(tmp_path)
    evaluator("serial", 1, 0.0).run(dataset_of(SIZE), evaluation_id="quiet", storage=storage)
    acknowledged = found = 0
    for size in range(1_700, 12_000, 1_571):
        folder = tmp_path / f"full{size}"
        done = subprocess.run(
            [sys.executable, "-c", _SCRIPT, str(folder), str(size)],
            capture_output=True,
            text=True,
            check=False,
            cwd=Path(__file__).parents[2],
        )
        assert done.returncode == 4, done.stderr
        assert f"{JOURNAL} cannot be written: File too large" in done.stderr
        places = stored_places(folder / "x.run")
        assert places is not None
        assert not places.damage.torn_bytes, "the half that was written is taken back"
        told = done.stdout.split()
        acknowledged += len(told)
        found += sum(sample_id in places for sample_id in told)
        # When there is room again, the run goes on.
        again = EvaluationResultsStorage(folder)
        evaluator("serial", 1, 0.0).run(dataset_of(SIZE), evaluation_id="x", storage=again, resume=True)
        assert stable_bytes(again.load_results("x")) == stable_bytes(storage.load_results("quiet"))
    print(f"\nT-04 full disk: {acknowledged} acknowledged, {found} on the disk; resumed to equal results")
    assert found == acknowledged > 0


def write_journal(folder: Path, count: int = 3) -> Journal:
    journal = Journal.create(folder, HEAD)
    for number in range(count):
        journal.wait(journal.submit(f"s{number}", an_output("a", f"answer {number}")))
    return journal


def test_t04_journal_deleted_during_a_run(tmp_path: Path) -> None:
    journal = write_journal(tmp_path)
    (tmp_path / JOURNAL).unlink()
    with pytest.raises(StorageError, match=r"journal\.jsonl cannot be written: No such file"):
        journal.wait(journal.submit("s3", an_output()))
    with pytest.raises(StorageError):
        journal.wait(journal.submit("s4", an_output()))
    journal.close("stopped")


def test_t04_journal_replaced_during_a_run(tmp_path: Path) -> None:
    journal = write_journal(tmp_path)
    (tmp_path / "other").write_bytes(b"")
    (tmp_path / "other").replace(tmp_path / JOURNAL)
    with pytest.raises(StorageError, match=r"replaced by another file\. What this session wrote"):
        journal.wait(journal.submit("s3", an_output()))
    journal.close("stopped")
    assert (tmp_path / JOURNAL).read_bytes() == b""


def test_t04_journal_truncated_during_a_run(tmp_path: Path) -> None:
    journal = write_journal(tmp_path)
    whole = (tmp_path / JOURNAL).read_bytes()
    first = whole[: whole.index(b"\n") + 1]
    os.truncate(tmp_path / JOURNAL, len(first))
    with pytest.raises(StorageError, match=r"somebody cut it off at byte .* Its good lines are kept"):
        journal.wait(journal.submit("s3", an_output()))
    journal.close("stopped")
    assert (tmp_path / JOURNAL).read_bytes() == first  # not made longer, with zeros


def test_t04_journal_truncated_after_the_last_output(tmp_path: Path) -> None:
    journal = write_journal(tmp_path)
    journal.check_not_lost()
    os.truncate(tmp_path / JOURNAL, 0)
    with pytest.raises(StorageError, match="somebody cut it off at byte 0"):
        journal.check_not_lost()
    journal.close("stopped")


def test_t04_disk_error_removes_the_partial_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = write_journal(tmp_path)
    before = (tmp_path / JOURNAL).read_bytes()

    def fails(file: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", fails)
    with pytest.raises(StorageError, match=r"Input/output error\. What was written before is kept"):
        journal.wait(journal.submit("s3", an_output()))
    monkeypatch.undo()
    journal.close("stopped")
    assert (tmp_path / JOURNAL).read_bytes() == before


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder in which nobody can write")
def test_t04_unwritable_folder_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "d.jsonl").write_text('{"sample_id": "1", "query": "q", "reference_answer": "a"}\n')
    (tmp_path / "asked.py").write_text("def system(query):\n    raise AssertionError('asked')\n")
    words = ["run", "--dataset", str(tmp_path / "d.jsonl"), "--system", f"{tmp_path / 'asked.py'}:system"]
    assert main([*words, "--out", "/proc/runs", "--id", "x"]) == 4
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "cannot be written" in shown.err
    assert "Traceback" not in shown.err


def test_t04_outputs_count_only_when_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[str] = []
    running = evaluator("threads", 4, 0.001)

    def count(sample: EvaluationSample, output: SystemOutputs) -> None:
        counted.append(sample.sample_id)
        if len(counted) == 10:
            monkeypatch.setattr(os, "fdatasync", lambda file: os.fsync(-1))

    running.on_output = count
    storage = EvaluationResultsStorage(tmp_path)
    with pytest.raises(StorageError, match="negative integer"):
        running.run(dataset_of(SIZE), evaluation_id="x", storage=storage)
    monkeypatch.undo()
    lines = (tmp_path / "x.run" / JOURNAL).read_bytes().splitlines()
    kept = {json.loads(line[9:]).get("output", {}).get("sample_id") for line in lines}
    print(f"\nT-04 sync fails: {len(counted)} counted, {len(kept - {None})} on the disk")
    assert set(counted) <= kept
