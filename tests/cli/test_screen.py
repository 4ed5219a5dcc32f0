"""What is printed on a terminal and elsewhere: colours, widths, completion, the list of runs, default ids."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from auepora_eval.cli import echo
from auepora_eval.cli.main import main
from auepora_eval.core.display import ago
from auepora_eval.core.settings import DEFAULT_OUT
from auepora_eval.core.table import Table

TABLE = Table(
    ("Metric", "Verdict"), [("mrr", "better"), ("map", "worse"), ("hit@5", "no worse"), ("x", "n/a")]
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    for name in ("NO_COLOR", "COLUMNS", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    return Terminal()


def test_verdicts_are_coloured_on_a_terminal(screen: Terminal) -> None:
    with redirect_stdout(screen):
        echo.show(TABLE)
        echo.say("gate FAILED", "bold red")
    printed = screen.getvalue()
    assert "\x1b[32mbetter\x1b[0m" in printed
    assert "\x1b[1;31mworse\x1b[0m" in printed
    assert "no worse" in printed
    assert "\x1b[33mn/a\x1b[0m" in printed
    assert "\x1b[1;31mgate FAILED\x1b[0m" in printed


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_no_colour_is_honoured(
    screen: Terminal, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with redirect_stdout(screen):
        echo.show(TABLE)
    assert "Verdict" in screen.getvalue()
    assert "\x1b" not in screen.getvalue()


def test_sentences_and_notes_wrap_to_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    errors = Terminal()
    monkeypatch.setattr("sys.stderr", errors)
    echo.note("note: " + "word " * 30)
    echo.say_words("  " + "word " * 30)
    lines = [*errors.getvalue().splitlines(), *capsys.readouterr().out.splitlines()]
    assert max(map(len, lines)) <= 40


@pytest.mark.parametrize(
    ("back", "text"),
    [
        (timedelta(seconds=5), "just now"),
        (timedelta(minutes=2, seconds=3), "2 min ago"),
        (timedelta(hours=5), "5 h ago"),
        (timedelta(days=1, hours=2), "1 day ago"),
        (timedelta(days=6), "6 days ago"),
    ],
)
def test_how_long_ago(back: timedelta, text: str) -> None:
    assert ago((datetime.now(UTC) - back).strftime("%Y-%m-%dT%H:%M:%SZ")) == text


def test_older_and_foreign_times_stay_readable() -> None:
    assert [ago("2001-01-05T02:00:00Z"), ago("yesterday"), ago("-")] == ["2001-01-05", "yesterday", "-"]


def completed(script: str, *words: str) -> list[str]:
    line = " ".join(f'"{word}"' for word in words)
    code = f'{script}\nCOMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _auepora; echo "${{COMPREPLY[@]}}"'
    return in_shell("bash", code)


def in_shell(shell: str, code: str) -> list[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [shell, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "PATH": path}
    )
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_commands_flags_and_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert completed(script, "auepora", "comp") == ["compare", "completion"]
    assert completed(script, "auepora", "dataset", "c") == ["check", "convert"]
    assert completed(script, "auepora", "show", "x", "--wo") == ["--worst"]
    assert "--previous" in completed(script, "auepora", "dataset", "check", "--")
    assert completed(script, "auepora", "show", "de") == []  # the shell completes files
    runs = Path(DEFAULT_OUT)
    runs.mkdir(parents=True, exist_ok=True)
    for name in ("demo-bm25", "demo-hybrid", "demo-hybrid~gold"):
        (runs / f"{name}.results.json").touch()
    assert completed(script, "auepora", "show", "de") == ["demo-bm25", "demo-hybrid"]
    assert completed(script, "auepora", "run", "de") == []


@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh")
def test_zsh_completes(capsys: pytest.CaptureFixture[str]) -> None:
    main(["completion", "zsh"])
    # Outside of its line editor, zsh lets no function complete: what it would offer is printed.
    code = (
        "compdef() { }; compadd() { print -l -- $found }; _files() { print files }\n"
        f"{capsys.readouterr().out}\nwords=(auepora dataset c); CURRENT=3; _auepora\n"
        "words=(auepora score x); _auepora"
    )
    assert in_shell("zsh", code) == ["check", "convert", "files"]


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish")
def test_fish_completes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    main(["completion", "fish"])
    Path("mine.csv").touch()
    code = f"{capsys.readouterr().out}\ncomplete -C 'auepora dataset c'; complete -C 'auepora score mi'"
    assert in_shell("fish", code) == ["check", "convert", "mine.csv"]


def test_each_shell_has_its_script(capsys: pytest.CaptureFixture[str]) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert main(["completion", shell]) == 0
        assert "auepora --complete" in capsys.readouterr().out
    assert main(["completion", "tcsh"]) == 2
    assert "bash, zsh or fish" in capsys.readouterr().err


def test_runs_are_called_after_their_system_and_numbered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rag.py").write_text("def my_rag(query):\n    return query\n", encoding="utf-8")
    Path("d.csv").write_text("question,answer,ground_truth\na,a,a\n", encoding="utf-8")
    for _ in range(2):
        assert main(["run", "--dataset", "d.csv", "--system", "rag.py:my_rag"]) == 0
        assert main(["score", "d.csv"]) == 0
    capsys.readouterr()
    assert main(["list"]) == 0
    runs = {line.split()[0] for line in capsys.readouterr().out.splitlines()[2:]}
    assert runs == {"my-rag", "my-rag-2", "d", "d-2"}
