"""list, show and resume name unfinished runs with the command that resumes them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from auepora_eval.cli.main import main
from auepora_eval.store.lock import locked

Said = pytest.CaptureFixture[str]
MINE = ("--dataset", "d.jsonl", "--system", "mine.py:answer", "--metrics", "exact_match", "--out", "my runs")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said) -> Path:
    monkeypatch.chdir(tmp_path)
    made = ({"sample_id": f"s{n}", "query": f"q {n}", "reference_answer": "hello"} for n in range(8))
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(line) + "\n" for line in made), encoding="utf-8")
    (tmp_path / "mine.py").write_text("def answer(query):\n    return 'hello'\n", encoding="utf-8")
    assert main(["run", *MINE, "--id", "x", "--budget-calls", "3"]) == 1
    capsys.readouterr()
    return tmp_path


def flat(text: str) -> str:
    return " ".join(text.split())


def test_list_shows_unfinished_runs(here: Path, capsys: Said) -> None:
    assert main(["list", "--out", "my runs"]) == 0
    said = capsys.readouterr()
    assert "no runs" not in said.err
    assert "3 of 8 auepora run --resume x --out 'my runs'" in flat(said.out)
    assert main(["run", *MINE, "--id", "y"]) == 0
    capsys.readouterr()
    assert main(["list", "--out", "my runs"]) == 0
    out = flat(capsys.readouterr().out)
    assert out.index("Not finished") < out.index(" y ")
    assert "auepora run --resume x" in out
    assert "--resume y" not in out


def test_running_run_is_not_offered_for_resume(here: Path, capsys: Said) -> None:
    with locked(here / "my runs" / "x.run.db"):
        assert main(["list", "--out", "my runs"]) == 0
        out = flat(capsys.readouterr().out)
        assert "It is being written by process" in out
        assert "--resume" not in out
        assert main(["show", "x", "--out", "my runs"]) == 2
    said = capsys.readouterr().err
    assert f"have an output. It is being written by process {os.getpid()} on " in said


@pytest.mark.parametrize("content", [b"", b"[1]"])
def test_a_damaged_database_does_not_end_the_list(here: Path, capsys: Said, content: bytes) -> None:
    (here / "my runs" / "x.run.db").write_bytes(content)
    assert main(["list", "--out", "my runs"]) == 0
    assert "x.run.db cannot be read" in flat(capsys.readouterr().out)


@pytest.mark.parametrize("flags", [(), ("--verify",), ("--html", "page.html")])
def test_show_prints_the_resume_command(here: Path, capsys: Said, flags: tuple[str, ...]) -> None:
    assert main(["show", "x", *flags, "--out", "my runs"]) == 2
    said = capsys.readouterr().err
    assert "run 'x' is not finished: 3 of 8 samples have an output." in said
    assert "Resume it: auepora run --resume x --out 'my runs'" in said
