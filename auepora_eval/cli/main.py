"""auepora: evaluate retrieval-augmented generation."""

from __future__ import annotations

import signal
import sys
import threading
import traceback
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from typing import Protocol, cast

from ..core.lasting_streams import lasting_streams
from ..errors import AueporaError, MissingDependencyError, RunStoppedError, StorageError
from . import echo
from .interrupts import HANG_UP, StopNow, ending_signals
from .log_level import add_log_level, events_on_stderr

EXIT_OK, EXIT_NO, EXIT_CANNOT, EXIT_STORAGE, EXIT_INTERRUPTED = 0, 1, 2, 4, 130

# One module of this folder a command; its docstring is the help, its first line the summary. A command of
# two words (`dataset info`) is one of a group.
COMMANDS = (
    "demo",
    "run",
    "score",
    "rescore",
    "import-traces",
    "compare",
    "power",
    "experiment",
    "gate",
    "report",
    "metrics",
    "list",
    "show",
    "verify",
    "agree",
    "judge-audit",
    "bench-record",
    "dataset generate",
    "dataset build",
    "dataset validate",
    "dataset convert",
    "dataset check",
    "dataset info",
    "dataset diff",
    "dataset sample",
    "labels score",
    "labels sweep",
)


_ABOUT = {
    "dataset": "Make, check and look at datasets.",
    "labels": "Measure detectors of hallucinations and contradictions.",
}


class Command(Protocol):
    """What a module of a command has."""

    __doc__: str

    def add_arguments(self, parser: ArgumentParser) -> None: ...

    def run(self, args: Namespace) -> int: ...


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code, which stands whether or not anybody reads the output."""
    echo.prepare_streams()
    try:
        with lasting_streams():
            return _called(list(sys.argv[1:] if argv is None else argv))
    except OSError as error:  # the help itself cannot be written: a full disk behind a redirection
        sys.stdout = None
        return _failed(error, EXIT_STORAGE)


def _called(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(_overview())
        return EXIT_OK
    if words[0] in ("-V", "--version"):
        print(f"auepora {version('auepora-eval')}")
        return EXIT_OK
    name, rest = _split(words)
    if name in _groups() and (not rest or rest[0] in ("-h", "--help", "help")):
        print(_overview(name))
        return EXIT_OK
    if name not in COMMANDS:
        return _refuse_command(name)
    command = _command(name)
    parser = _parser(name, command)
    try:
        args = parser.parse_args(rest)
    except SystemExit as stop:
        return int(stop.code or 0)
    return _guarded(command, args)


def _groups() -> set[str]:
    """The first words of the commands of two."""
    return {name.split()[0] for name in COMMANDS if " " in name}


def _split(words: list[str]) -> tuple[str, list[str]]:
    """The command's name, of one word or two, and its arguments."""
    if words[0] in _groups() and len(words) > 1 and words[1] not in ("-h", "--help", "help"):
        return f"{words[0]} {words[1]}", words[2:]
    return words[0], words[1:]


def _guarded(command: Command, args: Namespace) -> int:
    """Whatever a user can cause ends in one line and an exit code, not in a traceback."""
    echo.notes_from_warnings()
    try:
        with _terminated_as_interrupted(), events_on_stderr(args.log_level):
            code = command.run(args)
        sys.stdout.flush()
        return code
    except RunStoppedError as error:
        return _failed(error, EXIT_NO)
    except StorageError as error:
        return _failed(error, EXIT_STORAGE)
    except MissingDependencyError as error:
        return _failed(error, EXIT_CANNOT)
    except AueporaError as error:
        return _failed(error, EXIT_CANNOT)
    except _Terminated as stop:
        return 128 + int(stop.args[0])
    except StopNow as stop:
        return 128 + int(stop.args[0])
    except KeyboardInterrupt:
        echo.note("interrupted")
        return EXIT_INTERRUPTED
    except OSError as error:  # the output itself cannot be written: a full disk behind a redirection
        sys.stdout = None
        return _failed(error, EXIT_STORAGE)
    except Exception:  # noqa: BLE001 - the last resort: a bug is shown whole, with an exit code of its own
        echo.note(_without_secrets(traceback.format_exc().rstrip()))
        echo.note("auepora: this is a bug in auepora or in a metric of yours; finished outputs are kept.")
        return EXIT_CANNOT


class _Terminated(BaseException):
    """SIGTERM, or a closed terminal: stop now, as Ctrl-C does, keeping what is finished."""


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    def stop(number: int, frame: object) -> None:
        if number == HANG_UP:
            signal.signal(number, signal.SIG_IGN)  # it comes twice
        raise _Terminated(number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, stop) for number in ending_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _failed(error: Exception, code: int) -> int:
    echo.note(f"auepora: {echo.one_line(_without_secrets(str(error)), 1000)}")
    return code


def _without_secrets(text: str) -> str:
    """What a system's own code says when it cannot even be loaded may hold its keys."""
    from ..core.redaction import without_secrets

    return without_secrets(text)


def _command(name: str) -> Command:
    return cast(Command, import_module(f".{name.replace('-', '_').replace(' ', '_')}_command", __package__))


def _parser(name: str, command: Command) -> ArgumentParser:
    summary, _, rest = command.__doc__.partition("\n")
    parser = ArgumentParser(
        prog=f"auepora {name}",
        description=summary,
        epilog=rest.strip(),
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.add_arguments(parser)
    add_log_level(parser)
    return parser


def _overview(group: str = "") -> str:
    """The commands and what they do; all of them, or those of a group."""
    shown = [name for name in COMMANDS if not group or name.split()[0] == group]
    about = _ABOUT.get(group, "Evaluate retrieval-augmented generation.")
    lines = [f"usage: auepora {group or 'COMMAND'} {'COMMAND ' if group else ''}[options]", "", about, ""]
    width = max(len(name) for name in shown) + 1
    lines += [f"  {name:<{width}} {_command(name).__doc__.splitlines()[0]}" for name in shown]
    lines += ["", "auepora COMMAND --help tells more; auepora demo shows it all on bundled data."]
    return "\n".join(lines)


def _refuse_command(word: str) -> int:
    import difflib

    near = difflib.get_close_matches(word, COMMANDS, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"The commands are {', '.join(COMMANDS)}."
    echo.note(f"auepora: there is no command {echo.one_line(word, 60)!r}. {hint}")
    return EXIT_CANNOT
