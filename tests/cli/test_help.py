"""Help, and the errors of a mistyped command or flag."""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
from collections import Counter
from pathlib import Path

import pytest

from auepora_eval.cli.main import COMMANDS, GROUPS, command_parser, load_command, main

ROOT = Path(__file__).parents[2]


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("words", [(), ("--help",), ("help",)], ids=" ".join)
def test_the_overview_lists_every_command_on_one_screen(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = printed(capsys, *words).splitlines()
    assert [line.rstrip(":") for line in lines if line.rstrip(":") in GROUPS] == list(GROUPS)
    assert all(any(line.startswith(f"  {name} ") for line in lines) for name in COMMANDS)
    assert len(lines) <= 44
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("comapre a b", "auepora: Unknown command 'comapre'. Did you mean compare?"),
        ("build", "auepora: Unknown command 'build'. Did you mean dataset build?"),
        ("dataset biuld", "auepora: Unknown command 'dataset biuld'. Did you mean dataset build?"),
        ("xyzzy", "auepora: Unknown command 'xyzzy'. List the commands with: auepora --help"),
        ("help xyzzy", "auepora: Unknown command 'xyzzy'. List the commands with: auepora --help"),
        (
            "show r --worts mrr",
            "auepora show: error: unknown flag --worts. Did you mean --worst? Help: auepora show --help",
        ),
        (
            "run --rpm 60",
            "auepora run: error: unknown flag --rpm. It is a key of the plan file: write 'rpm: ...' into "
            "FILE, and give --config FILE. Help: auepora run --help",
        ),
        (
            "judge r --budget-calls 6",
            "auepora judge: error: unknown flag --budget-calls. It is a key of the plan file: write "
            "'judge_budget_calls: ...' into FILE, and give --config FILE. Help: auepora judge --help",
        ),
        ("list a", "auepora list: error: unknown argument a. Help: auepora list --help"),
    ],
)
def test_typo_gets_a_suggestion(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    assert capsys.readouterr().err == f"{message}\n"


def flags_of(name: str) -> list[str]:
    actions = command_parser(name, load_command(name))._actions
    return [
        action.option_strings[-1] for action in actions if action.option_strings and action.dest != "help"
    ]


def test_there_are_few_flags() -> None:
    counts = {name: len(flags_of(name)) for name in COMMANDS}
    assert counts["run"] <= 30
    assert sum(counts.values()) <= 300, counts


def test_every_flag_of_run_is_used_in_the_docs() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/how-to").glob("*.md")]
    words = set(
        re.findall(
            r"--[a-z][a-z-]*",
            "".join(page.read_text(encoding="utf-8") for page in pages if page.name != "commands.md"),
        )
    )
    assert set(flags_of("run")) <= words


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_one_screen(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    wide = printed(capsys, "help", *name.split())
    monkeypatch.setenv("COLUMNS", "80")
    out = printed(capsys, "help", *name.split())
    assert len(out.splitlines()) <= 40
    assert max(map(len, out.splitlines())) <= 80
    assert Counter(out.split()) == Counter(wide.split()), "a word is broken"


def examples(name: str) -> list[str]:
    lines = load_command(name).__doc__.splitlines()
    return [line.strip() for line in lines if line.startswith("  auepora ")]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    with contextlib.chdir(folder):
        assert main(["demo"]) == 0
    return folder


@pytest.mark.full
@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_works_on_bundled_data(
    name: str, demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("auepora_eval.cli.view.serve_pages", lambda *_, **__: None)
    lines = examples(name)
    assert lines[-1].startswith(f"auepora {name}")
    if lines[0] == "auepora demo" and name != "demo":
        shutil.copytree(demo, tmp_path, dirs_exist_ok=True)
        lines = lines[1:]
    for line in lines:
        assert main(shlex.split(line)[1:]) == 0, line
