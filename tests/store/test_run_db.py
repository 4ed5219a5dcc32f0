"""The database of a run: what is in it, who can read it, and that it holds what was stored."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from auepora_eval.comparison.compare import compare_runs
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.types import EvaluationRun
from auepora_eval.errors import StorageError
from auepora_eval.metrics.parse import parse_metrics
from auepora_eval.store.cache import CallCache
from auepora_eval.store.database import ANSWER, ANSWERED, CallRow, Database
from auepora_eval.store.storage import EvaluationResultsStorage
from auepora_eval.store.verify import verify_run
from tests.builders import a_failure, scored_run, small_world

METRICS = "recall@3,ndcg@3,token_f1,bleu,rejection_rate"


def stored_run(evaluation_id: str = "one", *, better: bool = False) -> EvaluationRun:
    samples, outputs = small_world()
    outputs[2] = a_failure()
    samples[3].metadata["cluster"] = samples[4].metadata["cluster"] = "pair"
    if better:
        outputs[0].response.text = "three boats"
    plan = EvaluationPlan(parse_metrics(METRICS))
    return scored_run(plan, samples, outputs, system_name="s", dataset_name="d", evaluation_id=evaluation_id)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    EvaluationResultsStorage(tmp_path).save_run(stored_run())
    return tmp_path / "one.run.db"


@pytest.mark.parametrize("most_rows", [100, 3])
def test_a_run_comes_back_whole(tmp_path: Path, most_rows: int) -> None:
    storage, run = EvaluationResultsStorage(tmp_path), stored_run()
    storage.save_run(run, most_rows=most_rows)
    loaded = storage.load_run("one")
    assert (loaded.samples, loaded.outputs) == (run.samples, run.outputs)
    for before, after in zip(run.results, loaded.results, strict=True):
        assert list(before.scores) == list(after.scores)
        assert before.scores.clusters == after.scores.clusters  # type: ignore[attr-defined]
    document = json.loads((tmp_path / "one.results.json").read_bytes())
    assert ("run_file" in document) == (most_rows == 3)
    assert len(document["query_results"]) == (0 if most_rows == 3 else 10)
    assert len(storage.load_results("one")["query_results"]) == 10
    assert verify_run(storage, "one").ok


def test_documents_alone_compare_as_whole_runs_do(tmp_path: Path) -> None:
    storage = EvaluationResultsStorage(tmp_path)
    for run in (stored_run("a"), stored_run("b", better=True)):
        storage.save_run(run)

    def compared() -> list[tuple[str, object, object]]:
        runs = (storage.load_run(name, texts=False) for name in "ab")
        return [(one.name, one.effect.interval, one.verdict) for one in compare_runs(*runs).metrics]

    whole = compared()
    (tmp_path / "a.run.db").unlink()
    assert compared() == whole


def test_a_large_document_without_its_database_says_where_the_rows_are(tmp_path: Path) -> None:
    storage = EvaluationResultsStorage(tmp_path)
    storage.save_run(stored_run(), most_rows=3)
    (tmp_path / "one.run.db").unlink()
    with pytest.raises(StorageError, match=r"one\.run\.db is missing: it has the scores"):
        storage.load_run("one", texts=False)
    assert storage.load_summary("one").result("recall@3").coverage.total == 10


def test_people_can_query_it(path: Path) -> None:
    """By SQLite alone, as docs/formats.md shows."""
    database = sqlite3.connect(path)
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert tables == {"meta", "sample", "call", "score", "text", "label"}
    answers = database.execute(
        "SELECT id, outcome, reply ->> '$.response.text' FROM sample JOIN call ON call.n = sample.answer"
    ).fetchall()
    assert len(answers) == 10
    assert [sample for sample, outcome, _ in answers if outcome] == ["s3"]
    ((content,),) = database.execute("SELECT value FROM score WHERE metric = 'recall@3'")
    assert np.nanmean(np.frombuffer(content)) == pytest.approx(stored_run()["recall@3"].value)
    database.close()


def test_a_newer_version_is_refused_by_name(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("UPDATE meta SET value = '99' WHERE name = 'schema'")
    for open_it in (Database.read, Database.write):
        with pytest.raises(StorageError, match=r"one\.run\.db has version 99 .* reads 1.*upgrade"):
            open_it(path)


def row(number: int) -> CallRow:
    return CallRow(number.to_bytes(16, "big"), ANSWER, f"s{number}", ANSWERED, "{}")


def test_many_threads_store_each_row_once(tmp_path: Path) -> None:
    path = tmp_path / "x.run.db"
    with Database.write(path) as database:

        def work(start: int) -> None:
            for number in range(start, start + 50):
                database.add_call(row(number))
                assert database.answers([f"s{number}"]), "it is there when add_call returns"

        threads = [threading.Thread(target=work, args=(50 * n,)) for n in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with Database.read(path) as database:
        assert database.outcomes()[ANSWERED] == 800
        assert database.select("SELECT count(*) FROM call") == [(800,)]


def test_a_cache_that_two_programs_make_at_once_keeps_the_replies_of_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, draft = tmp_path / "calls.db", Database.draft

    def late(name: Path) -> Database:
        made = draft(name)
        monkeypatch.undo()
        with CallCache(path) as first:  # the other program is quicker
            first.add(CallRow(b"first", ANSWER, None, ANSWERED, "{}"))
        return made

    monkeypatch.setattr(Database, "draft", late)
    with CallCache(path) as second:
        assert second.reply(b"first") == "{}"
    assert [*tmp_path.iterdir()] == [path]


def test_a_cache_that_was_deleted_after_a_kill_is_empty(tmp_path: Path) -> None:
    path, copy = tmp_path / "calls.db", tmp_path / "copy"
    with CallCache(path) as cache:
        for n in range(9):
            cache.add(CallRow(b"%d" % n, ANSWER, None, ANSWERED, json.dumps("x" * 9_000)))
        copy.write_bytes(Path(f"{path}-wal").read_bytes())
    path.unlink()
    copy.rename(f"{path}-wal")  # SQLite would apply it to the new file
    with CallCache(path) as cache:
        assert cache.reply(b"1") is None
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_writer_that_is_killed_in_the_middle_of_a_change_can_be_read(path: Path) -> None:
    """Without a write-ahead log, as while a run is opened or closed: half a change is on the disk."""
    script = (
        "import os, sqlite3, sys\n"
        "database = sqlite3.connect(sys.argv[1])\n"
        "database.execute('PRAGMA cache_size=1')\n"
        "database.execute('UPDATE call SET reply = reply || zeroblob(9000)')\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=False)
    assert path.with_name(f"{path.name}-journal").exists()
    assert EvaluationResultsStorage(path.parent).load_run("one").outputs == stored_run().outputs


def test_a_killed_run_in_a_folder_that_is_read_only_is_not_read_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, killed = tmp_path / "x.run.db", tmp_path / "killed"
    killed.mkdir()
    with Database.write(path) as database:
        database.add_call(CallRow(None, ANSWER, "1", ANSWERED, "{}"))
        for file in tmp_path.glob("x.*"):
            shutil.copy(file, killed)
    with Database.read(killed / path.name) as found:
        assert found.outcomes().total() == 1
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(StorageError, match="can be written"):
        Database.read(killed / path.name)


def test_the_last_call_of_a_sample_counts(tmp_path: Path) -> None:
    with Database.write(tmp_path / "x.run.db") as database:
        for outcome in (2, 1, 0):
            database.add_call(row(7)._replace(outcome=outcome, reply=f'"{outcome}"', usage={"calls": 1}))
            assert dict(database.outcomes()) == {outcome: 1}
        assert database.answers(["s7"])["s7"][1] == '"0"'
        assert len(list(database.usages())) == 3, "budgets count replaced calls too"
