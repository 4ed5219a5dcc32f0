"""The command with narrow screens, poor encodings and closed streams."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from auepora_eval.cli.main import main
from tests.commands import ran

pytestmark = pytest.mark.full

SLOW = """
import time

def system(query):
    print("hello from the system")
    time.sleep({})
    return "x"
"""
DATA = "".join(f'{{"sample_id": "{n}", "query": "q", "reference_answer": "x"}}\n' for n in range(50))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slow.py").write_text(SLOW.format(0.1))
    (tmp_path / "quick.py").write_text(SLOW.format(0))
    (tmp_path / "d.jsonl").write_text(DATA)
    return tmp_path


def test_terminal_encoding_without_unicode(here: Path) -> None:
    for words in (("metrics", "recall@5"), ("run", "--dataset", "d.jsonl", "--system", "quick.py:system")):
        done = ran(here, *words, PYTHONIOENCODING="ascii")
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("word", ["metrics", "--help"])
def test_full_disk_on_stdout_is_a_storage_error(here: Path, word: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "auepora_eval", word],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 4
    assert done.stderr.startswith("auepora: ")
    assert "Traceback" not in done.stderr


def with_closed_reader(*words: str, together: bool = False, **environment: str) -> tuple[int, str]:
    """The exit code of a command that writes to a pipe nobody reads, and what it said beside it."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "auepora_eval", *words],
        stdout=writer,
        stderr=writer if together else subprocess.PIPE,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    os.close(writer)
    return done.returncode, done.stderr or ""


@pytest.mark.parametrize("form", [(), ("--json",), ("--markdown",)])
@pytest.mark.parametrize("together", [False, True])
def test_exit_code_does_not_depend_on_the_reader(here: Path, form: tuple[str, ...], together: bool) -> None:
    run = ("--dataset", "d.jsonl", "--system", "quick.py:system", "--metrics", "exact_match")
    assert main(["run", *run, "--id", "x"]) == 0
    for rule, code in (("exact_match=1", 0), ("exact_match=1.1", 1), ("mrr=0.1", 3)):
        found, err = with_closed_reader("gate", "x", "--min", rule, *form, together=together)
        assert found == code
        assert "Traceback" not in err
        assert "Exception ignored" not in err


def test_sentences_fit_the_terminal_though_stdout_is_a_pipe(here: Path) -> None:
    """`auepora compare a b | less`: both streams end on a screen of 60 columns."""
    keyboard, screen = pty.openpty()
    termios.tcsetwinsize(screen, (24, 60))
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    words = [sys.executable, "-m", "auepora_eval", "score", "rows.jsonl", "--id", "wrapped"]
    row = {"question": "What?", "answer": "42", "contexts": ["It is 42."], "ground_truth": "42"}
    (here / "rows.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=screen, env=environment, check=False)
    os.close(screen)
    printed = os.read(keyboard, 65536).decode()
    os.close(keyboard)
    assert done.returncode == 0, printed
    assert "sample ids are made from the queries" in " ".join(printed.split())
    assert max(len(line) for line in printed.splitlines() if "\x1b" not in line) <= 60
