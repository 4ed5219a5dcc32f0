"""Start the command `auepora`: choose a command, print help, turn errors into one line and an exit code."""

from __future__ import annotations

import gc
import os
import sys
import threading
from argparse import ArgumentParser, HelpFormatter, Namespace
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn, Protocol, cast

from ..calls.streams import lasting_streams
from ..errors import (
    AccessRefusedError,
    AueporaError,
    EvaluationError,
    RunStoppedError,
    StorageError,
    did_you_mean,
    nearest_names,
)
from . import echo
from .completion import SCRIPTS, completions
from .interrupts import StopNow, stopping_at_once

EXIT_OK, EXIT_NO, EXIT_CANNOT, EXIT_INCOMPLETE, EXIT_STORAGE, EXIT_INTERRUPTED = 0, 1, 2, 3, 4, 130
# The first class that an error has decides.
_CODES: dict[type[AueporaError], int] = {
    AccessRefusedError: EXIT_CANNOT,
    RunStoppedError: EXIT_NO,
    StorageError: EXIT_STORAGE,
    AueporaError: EXIT_CANNOT,
}

# Each command is one module of this folder: its docstring is the help, the first line of it the summary.
# A command of two words (`dataset check`) is a module of a subfolder.
GROUPS = {
    "Start": ("demo", "init", "run", "score", "judge", "show", "list", "view", "metrics"),
    "Decide": ("compare", "gate", "diagnose", "stress", "power", "experiment"),
    "Data": (
        "dataset generate",
        "dataset build",
        "dataset check",
        "dataset diff",
        "dataset convert",
        "import-traces",
    ),
    "People": ("annotate", "judge-audit", "labels score", "labels sweep"),
}
COMMANDS = tuple(name for names in GROUPS.values() for name in names)

FIRST_COMMANDS = (
    "auepora demo",
    "auepora run --dataset questions.jsonl --system my_rag.py:my_rag --id mine",
    "auepora compare before after",
)

# The commands of two words, by the first one.
_FAMILIES = {
    "dataset": "Create, check and inspect datasets.",
    "labels": "Evaluate detectors of hallucinations and contradictions.",
}
_HELP = ("-h", "--help", "help")
# Commands whose --config is a plan file.
_WITH_PLANS = ("init", "run", "score", "judge", "compare", "judge-audit")
# Commands that call no system.
_OURS_ALONE = ("compare", "gate", "list", "power", "score", "show", "view")


class Command(Protocol):
    """What the module of a command has."""

    __doc__: str

    def add_arguments(self, parser: ArgumentParser) -> None: ...

    def run(self, args: Namespace) -> int: ...


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code, which does not depend on whether the output can be written."""
    echo.prepare_streams()
    try:
        with lasting_streams():
            return _call(list(sys.argv[1:] if argv is None else argv))
    except OSError as error:  # the help itself cannot be written, e.g. stdout is on a full disk
        # Python flushes stdout once more at exit. That would fail too, and end with code 120.
        sys.stdout = None
        return _failed(error, EXIT_STORAGE)


def process() -> NoReturn:
    """Run the command of this process and end the process."""
    code = main()
    if any(not each.daemon and each is not threading.main_thread() for each in threading.enumerate()):
        # A client that the system used has left a thread, for which Python would wait.
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
        os._exit(code)
    # Python searches all objects for garbage at its end, three times. None of them matters any more.
    gc.freeze()
    raise SystemExit(code)


def _call(words: list[str]) -> int:
    if words[:1] == ["help"]:  # `auepora help run` is `auepora run --help`
        words = [*words[1:], "--help"]
    if not words or words[0] in _HELP:
        print(_overview())
        return EXIT_OK
    if words[0] in ("-V", "--version"):
        from importlib.metadata import version

        print(f"auepora {version('auepora-eval')}")
        return EXIT_OK
    if words[0] == "completion":
        return _completion(words[1:])
    if words[0] == "--complete":  # asked by the scripts of `completion`
        print("\n".join(_completions(words[1:])))
        return EXIT_OK
    name, rest = _split(words)
    if name in _FAMILIES and (not rest or rest[0] in _HELP):
        print(_overview(name))
        return EXIT_OK
    if name not in COMMANDS:
        return _unknown_command(name)
    if name in _OURS_ALONE:
        spare_the_start()
    command = load_command(name)
    parser = command_parser(name, command)
    try:
        # Not `parse_args`: its own error about an unknown flag has no suggestion.
        args, unknown = parser.parse_known_args(rest)
        parser.check_no_unknown(unknown)
    except SystemExit as stop:
        return int(stop.code or 0)
    return _guarded(command, args)


def spare_the_start() -> None:
    """Leave out what costs a short command a quarter of its processor time and gives it nothing."""
    # numpy starts a thread per core when it is imported, for products of large matrices.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Modules are not garbage: do not search them every 700 objects.
    gc.set_threshold(100_000)


def _split(words: list[str]) -> tuple[str, list[str]]:
    """Split the words into the command's name, of one word or two, and its arguments."""
    if words[0] in _FAMILIES and len(words) > 1 and words[1] not in _HELP:
        return f"{words[0]} {words[1]}", words[2:]
    return words[0], words[1:]


def _unknown_command(name: str) -> int:
    # `auepora build` is meant to be `auepora dataset build`.
    by_last_word = {command.split()[-1]: command for command in COMMANDS}
    near = by_last_word.get(name.rpartition(" ")[2])
    otherwise = f"Did you mean {near}?" if near else "List the commands with: auepora --help"
    hint = did_you_mean(name, COMMANDS, otherwise)
    echo.note(f"auepora: Unknown command {echo.one_line(name, 60)!r}. {hint}")
    return EXIT_CANNOT


def summary_of(name: str) -> str:
    """Return the summary of a command: the first line of its module, which is not imported for it."""
    path = Path(__file__).parent / f"{name.replace('-', '_').replace(' ', '/')}.py"
    with path.open(encoding="utf-8") as source:
        return source.readline().strip().strip('"')


def load_command(name: str) -> Command:
    """Import the module of a command."""
    module = import_module(f".{name.replace('-', '_').replace(' ', '.')}", __package__)
    return cast(Command, module)


def _completion(words: list[str]) -> int:
    """Print the script that completes commands and flags in a shell."""
    if len(words) != 1 or words[0] not in SCRIPTS:
        echo.note("auepora: Name the shell: auepora completion bash, zsh or fish.")
        return EXIT_CANNOT
    print(SCRIPTS[words[0]])
    return EXIT_OK


def _completions(words: list[str]) -> list[str]:
    name = _split(words)[0] if words else ""
    flags: Iterable[str] = ()
    if name in COMMANDS and words[-1].startswith("-"):
        flags = command_parser(name, load_command(name)).flags
    return completions(words, (*COMMANDS, "completion", "help"), flags)


def _guarded(command: Command, args: Namespace) -> int:
    """Run the command; whatever a user can cause ends in one line and an exit code, not in a traceback."""
    echo.notes_from_warnings()
    try:
        with stopping_at_once():
            code = command.run(args)
        # Here, not at exit: a full disk is then reported, and has its own exit code.
        sys.stdout.flush()
        return code
    except EvaluationError as error:
        if error.traceback:
            echo.note(_without_secrets(error.traceback))
        return _failed(error.message, EXIT_INCOMPLETE)
    except AueporaError as error:
        return _failed(error, next(code for kind, code in _CODES.items() if isinstance(error, kind)))
    except StopNow as stop:
        return 128 + int(stop.args[0])
    except KeyboardInterrupt:
        echo.note("interrupted")
        return EXIT_INTERRUPTED
    except OSError as error:  # the output itself cannot be written, e.g. stdout is on a full disk
        sys.stdout = None
        return _failed(error, EXIT_STORAGE)
    except Exception:  # noqa: BLE001 - the last resort: a bug gets its whole traceback
        import traceback

        echo.note(_without_secrets(traceback.format_exc().rstrip()))
        echo.note("auepora: This is a bug in auepora or in one of your metrics. Finished outputs are kept.")
        return EXIT_CANNOT


def _failed(error: Exception | str, code: int) -> int:
    echo.note(f"auepora: {echo.one_line(_without_secrets(str(error)), 1000)}", "red")
    return code


def _without_secrets(text: str) -> str:
    """Return the text with secrets masked: an error of the user's own code may quote its API keys."""
    from ..calls.keys import without_secrets

    return without_secrets(text)


# Help and the errors of argparse.


class Parser(ArgumentParser):
    """A parser whose errors suggest the right flag."""

    @property
    def flags(self) -> list[str]:
        return [flag for flag in self._option_string_actions if flag.startswith("--")]

    def check_no_unknown(self, words: Sequence[str]) -> None:
        """Exit with a suggestion if there are words that no flag or argument of the command takes."""
        if words:
            kind = "flag" if words[0].startswith("-") else "argument"
            hint = self._hint(words[0].partition("=")[0]) if kind == "flag" else ""
            self.error(f"unknown {kind} {echo.one_line(words[0], 60)}. {hint}".rstrip())

    def _hint(self, flag: str) -> str:
        from ..core.settings import PLAN_KEYS

        command, key = self.prog.removeprefix("auepora "), flag.removeprefix("--").replace("-", "_")
        if command in ("judge", "judge-audit") and f"judge_{key}" in PLAN_KEYS:
            key = f"judge_{key}"  # the other is of the system's calls
        if command in _WITH_PLANS and key in PLAN_KEYS:
            return f"It is a key of the plan file: write '{key}: ...' into FILE, and give --config FILE."
        # Without the dashes, which would make all flags look alike.
        near = nearest_names(flag.removeprefix("--"), tuple(each.removeprefix("--") for each in self.flags))
        return f"Did you mean --{near[0]}?" if near else ""

    def error(self, message: str) -> NoReturn:
        """Print what is wrong and where the help is, and exit with code 2."""
        ending = "" if message.endswith((".", "?")) else "."
        echo.note(f"{self.prog}: error: {echo.one_line(message, 1000)}{ending} Help: {self.prog} --help")
        self.exit(EXIT_CANNOT)


class _Formatter(HelpFormatter):
    """Wraps paragraphs at words and keeps indented lines, which are commands and examples, as they are."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26, width=echo.text_width())

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = []
        for paragraph in text.split("\n\n"):
            lines = paragraph.splitlines()
            if any(line.startswith(" ") for line in lines):
                paragraphs.append("\n".join(f"{indent}{line}" for line in lines))
            else:
                paragraphs.append("\n".join(echo.wrapped(" ".join(lines), width)))
        return "\n\n".join(paragraphs)


def command_parser(name: str, command: Command) -> Parser:
    """Return the parser of a command."""
    summary, _, rest = command.__doc__.partition("\n")
    parser = Parser(
        prog=f"auepora {name}",
        description=summary,
        epilog=rest.strip("\n"),
        formatter_class=_Formatter,
        # A script that abbreviates a flag would break when another one with the same start is added.
        allow_abbrev=False,
    )
    command.add_arguments(parser)
    parser.usage = _usage(parser)
    return parser


def _usage(parser: ArgumentParser) -> str:
    """Return the arguments, and the flags that must be given, in one line: the list of flags follows."""
    words = [parser.prog]
    for action in parser._actions:
        if not action.option_strings:
            word = f"{action.metavar} ..." if action.nargs in ("*", "+") else str(action.metavar)
            words.append(f"[{word}]" if action.nargs in ("*", "?") else word)
        elif action.required:
            words.append(f"{action.option_strings[0]} {action.metavar}")
    return " ".join([*words, "[options]"])


def _overview(family: str = "") -> str:
    """Return the list of commands: all of them by group, or those of a family such as `dataset`."""
    if family:
        lines = [f"usage: auepora {family} COMMAND [options]", "", _FAMILIES[family], ""]
        lines += _summaries(name for name in COMMANDS if name.split()[0] == family)
    else:
        lines = ["usage: auepora COMMAND [options]", "Evaluate retrieval-augmented generation (RAG).", ""]
        lines += ["Getting started:", *(f"  {line}" for line in FIRST_COMMANDS)]
        for title, names in GROUPS.items():
            lines += ["", f"{title}:", *_summaries(names)]
    ending = f"Details of a command: auepora help {f'{family} COMMAND' if family else 'COMMAND'}"
    if not family:
        ending += "\nVersion: auepora --version. Tab completion: auepora completion bash, zsh or fish"
    return "\n".join([*lines, "", ending])


def _summaries(names: Iterable[str]) -> list[str]:
    """Return one line per command; summaries are short enough for a terminal of 80 columns."""
    width = max(map(len, COMMANDS)) + 2
    return [f"  {name:<{width}}{summary_of(name)}" for name in names]
