"""Answers that were paid for: no command replaces them without --force, nor while a run goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from auepora_eval.cli.main import main
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.errors import StorageError
from auepora_eval.store.lock import locked
from auepora_eval.store.state import ReplacedRunWarning
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import a_sample, an_output, scored_run
from tests.stored import kept

RESULTS = Path("data/evaluation/results")
PAID = RESULTS / "paid.run.db"
DIES = """
import os, time
def rag(query, top_k=5):
    n = int(open('n').read()) + 1 if os.path.exists('n') else 1
    open('n', 'w').write(str(n))
    if n > 6 and 'GOES_ON' not in os.environ: os._exit(9)
    time.sleep(0.2 if 'GOES_ON' in os.environ else 0)
    return [], 'expensive answer'
"""
RUN = "run --dataset d.jsonl --system s.py:rag --metrics exact_match --id paid".split()
SCORE = "score --dataset d.jsonl --outputs p.jsonl --metrics exact_match".split()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Twenty samples with predictions, and the run `other`, whose outputs can be scored again."""
    monkeypatch.chdir(tmp_path)
    samples = [{"sample_id": f"s{n}", "query": f"q{n}", "reference_answer": "yes"} for n in range(20)]
    outputs = [{"sample_id": f"s{n}", "answer": "yes"} for n in range(20)]
    for name, records in (("d.jsonl", samples), ("p.jsonl", outputs)):
        Path(name).write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    Path("s.py").write_text(DIES, encoding="utf-8")
    assert main([*SCORE, "--id", "other"]) == 0
    return tmp_path


@pytest.fixture
def killed(here: Path) -> None:
    """The run `paid`, whose process died after six answers."""
    done = subprocess.run([sys.executable, "-m", "auepora_eval", *RUN], check=False, capture_output=True)
    assert done.returncode == 9
    assert kept(PAID) == 6


OTHER_COMMANDS = [
    pytest.param([*SCORE, "--id", "paid"], id="score"),
    pytest.param(["score", "--run", "other", "--metrics", "token_f1", "--id", "paid"], id="score --run"),
    pytest.param(RUN, id="run"),
]


@pytest.mark.usefixtures("killed")
@pytest.mark.parametrize("words", OTHER_COMMANDS)
def test_unfinished_answers_are_not_replaced(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 4
    said = capsys.readouterr().err
    assert "paid.run.db has 6 answers of a run that did not finish" in said
    assert "--resume" in said
    assert "--force" in said
    assert kept(PAID) == 6
    assert not (RESULTS / "paid.results.json").exists()


@pytest.mark.usefixtures("killed")
@pytest.mark.parametrize("words", OTHER_COMMANDS[:2])
def test_force_says_what_it_discards(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--force"]) == 0
    assert "--force discards 6 answers of 'paid'" in capsys.readouterr().err
    assert sorted(path.name for path in RESULTS.glob("paid*")) == ["paid.results.json", "paid.run.db"]
    assert main(["show", "paid", "--verify"]) == 0


@pytest.mark.usefixtures("killed")
def test_unfinished_answers_are_not_replaced_in_python() -> None:
    storage = EvaluationResultsStorage(RESULTS)
    run = scored_run(EvaluationPlan([]), [a_sample("1")], [an_output("a", "x")], evaluation_id="paid")
    with pytest.raises(StorageError, match="6 answers of a run that did not finish"):
        storage.save_run(run)
    with pytest.raises(StorageError, match="6 answers of a run that did not finish"):
        storage.save_results({"evaluation_id": "paid"})
    with pytest.warns(ReplacedRunWarning, match="discards 6 answers"):
        storage.save_run(run, force=True)


@pytest.mark.parametrize("words", OTHER_COMMANDS)
@pytest.mark.parametrize("force", [False, True])
def test_a_run_that_goes_on_is_not_replaced(
    here: Path, words: list[str], force: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    running = subprocess.Popen(
        [sys.executable, "-m", "auepora_eval", *RUN],
        env={**os.environ, "GOES_ON": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while running.poll() is None and kept(PAID) < 2:
        time.sleep(0.02)
    capsys.readouterr()
    assert main([*words, *(["--force"] if force else [])]) == 4
    assert f"is being written by process {running.pid} on" in capsys.readouterr().err
    assert running.wait(60) == 0
    assert EvaluationResultsStorage(RESULTS).load_tally("paid").total == 20


def test_readers_see_whole_answers_while_a_run_goes_on(here: Path) -> None:
    running = subprocess.Popen(
        [sys.executable, "-m", "auepora_eval", *RUN],
        env={**os.environ, "GOES_ON": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    seen = []
    while running.poll() is None:
        seen.append(kept(PAID))
        time.sleep(0.05)
    assert seen == sorted(seen)
    assert len(set(seen)) > 5
    assert running.returncode == 0


def test_two_processes_on_one_id(here: Path) -> None:
    words = [sys.executable, "-m", "auepora_eval", *RUN]
    both = [
        subprocess.Popen(words, env={**os.environ, "GOES_ON": "1"}, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    ended = [process.communicate(timeout=60)[1] for process in both]
    assert sorted(process.returncode for process in both) == [0, 4]
    assert sum("is being written by" in text for text in ended) == 1
    assert Path("n").read_text() == "20", "no sample was called twice"


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "x.run.db"
    script = "import os, pathlib, sys; from auepora_eval.store.lock import locked\n"
    script += "lock = locked(pathlib.Path(sys.argv[1])); lock.__enter__(); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", script, str(path)], check=False)
    refused = pytest.raises(StorageError, match=f"process {os.getpid()} on")
    with locked(path), refused, locked(path):
        pass
    assert list(tmp_path.iterdir()) == []
