"""Help, and the errors of a mistyped command or flag."""

from __future__ import annotations

from argparse import ArgumentParser
from types import ModuleType
from typing import cast

import pytest

from auepora_eval.cli import echo
from auepora_eval.cli.main import COMMANDS, FOLDED, GROUPS, Command, command_parser, load_command, main


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 0
    return capsys.readouterr().out


def test_the_overview_has_groups_and_six_first_commands(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "--help")
    assert [line.rstrip(":") for line in out.splitlines() if line.rstrip(":") in GROUPS] == list(GROUPS)
    first = out[out.index("Getting started:") : out.index("\nStart:")].split("\n")[1:]
    assert len([line for line in first if line.strip()]) == 6
    assert all(f"\n  {name} " in out for name in COMMANDS)


@pytest.mark.parametrize("words", [("help", "run"), ("run", "--help"), ("run", "-h")], ids=" ".join)
def test_three_ways_to_the_help_of_a_command(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert printed(capsys, *words).startswith("usage: auepora run ")


def test_help_of_a_family_lists_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "help", "dataset") == printed(capsys, "dataset")
    assert printed(capsys, "help", "dataset", "check").startswith("usage: auepora dataset check ")


@pytest.mark.parametrize("name", COMMANDS)
def test_from_is_the_format_in_every_command(name: str) -> None:
    flags = command_parser(name, load_command(name))._option_string_actions
    if "--format" in flags:
        assert flags["--from"] is flags["--format"]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_summary_is_one_sentence_that_starts_with_a_verb(name: str) -> None:
    summary = load_command(name).__doc__.splitlines()[0]
    assert summary[0].isupper()
    assert summary.endswith(".")
    assert len(summary) <= 80
    assert summary.split()[0] not in ("The", "A", "An", "What", "How", "Is", "Are", "Does", "May")


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
        ("list a", "auepora list: error: unknown argument a. Help: auepora list --help"),
    ],
)
def test_typo_gets_a_suggestion(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    assert capsys.readouterr().err == f"{message}\n"


@pytest.mark.parametrize("name", FOLDED)
def test_a_folded_command_names_its_new_form(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*name.split(), "some", "words"]) == 2
    assert capsys.readouterr().err == f"auepora: Unknown command {name!r}. Use: auepora {FOLDED[name]}\n"
    assert name not in COMMANDS
    command = next(one for one in COMMANDS if FOLDED[name].startswith(f"{one} "))
    flags = {word for word in FOLDED[name].split(",")[0].split() if word.startswith("--")}
    assert flags <= set(command_parser(command, load_command(command))._option_string_actions)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_wraps_at_words(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    out = printed(capsys, "help", *name.split())
    # Indented lines are examples or flags, which are never broken.
    assert [line for line in out.splitlines() if len(line) > 70 and not line.startswith(" ")] == []


def command_with_flags(**attributes: object) -> Command:
    module = ModuleType("fetch")
    module.__doc__ = "Fetch something.\n\nExample:\n\n  auepora fetch\n"
    for name, value in attributes.items():
        setattr(module, name, value)
    return cast(Command, module)


def add_two_flags(parser: ArgumentParser) -> None:
    parser.add_argument("--often", help="needed every day")
    parser.add_argument("--rarely", help="needed once a year")


def test_help_shows_the_everyday_flags_and_help_all_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    parser = command_parser("fetch", command_with_flags(add_arguments=add_two_flags, EVERYDAY=("--often",)))
    assert "--often" in parser.format_help()
    assert "--help-all" in parser.format_help()
    assert "--rarely" not in parser.format_help()
    assert parser.parse_args(["--rarely", "x"]).rarely == "x"
    with pytest.raises(SystemExit):
        parser.parse_args(["--help-all"])
    assert "needed once a year" in capsys.readouterr().out


def test_a_note_wraps_on_a_terminal_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    text = "note: the file data/evaluation/results/a-long-name.results.json was written again"
    echo.note(text)
    assert capsys.readouterr().err == f"{text}\n"
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    echo.note(text)
    assert capsys.readouterr().err.splitlines() == [
        "note: the file",
        "data/evaluation/results/a-long-name.results.json",
        "was written again",
    ]


def test_score_has_no_flag_for_a_setting_that_run_has_no_flag_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "--help"]) == 0
    assert "--judge-metrics" not in capsys.readouterr().out
