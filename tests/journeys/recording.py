"""How a scenario is run and how its output becomes a text that is the same on every machine and day."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import json
import os
import pty
import re
import shlex
import struct
import sys
import tempfile
import termios
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from auepora_eval.cli.main import main

ROOT = Path(__file__).parents[2]
RESULTS = Path("data/evaluation/results")
_HERE = "recorded-"  # begins the name of the folder that a scenario runs in

# Keys of JSON documents whose values differ from run to run, and hashes over such values or over how a plan
# is written down.
VOLATILE = {
    *("seconds", "duration_seconds", "total_evaluation_time_seconds"),
    *("resource_usage", "evaluation_environment", "outputs_sha256", "plan_sha256"),
}

# The same in texts. The order matters: the first rule that matches has the place.
VOLATILE_TEXTS = [
    (rf"[^\s\"'=(]*/{_HERE}\w+", "<here>"),
    (re.escape(str(ROOT)), "<repository>"),
    # Times that a scenario sets itself are in 2001.
    (r"20(?!01)\d\d-\d\d-\d\dT\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00)?", "<time>"),
    (r"20(?!01)\d\d-\d\d-\d\d", "<date>"),
    (rf"(?<![\d.]){re.escape(version('auepora-eval'))}(?![\d.])", "<version>"),
    (r"seconds=[\d.e-]+", "seconds=<seconds>"),
    (r"function:(\w+)@[0-9a-f]{8}", r"function:\1@<hash>"),
    # What a page says about the machine.
    (r"(?m)^- (python|platform|cpu_count|memory_gb|outputs_sha256|plan_sha256)\n.*", r"- \1\n*"),
    (r"(?m)(^- packages\..*\n.*\n)+", "- packages\n*\n"),
    (r"Python 3\.\d+\.\d+", "Python <version>"),
]

# What a terminal, a CI runner or a user may have set, and what it is here.
_SETTINGS = {"COLUMNS": "80", "LINES": "40", "NO_COLOR": "1", "TERM": "xterm"}
_UNSET = ("CI", "FORCE_COLOR", "GITHUB_STEP_SUMMARY", "SOURCE_DATE_EPOCH")

_LONGEST_LIST = 12  # of a list with more members, three are recorded, and a digest of the others
_LONGEST_TEXT = 240


class _Terminal(io.StringIO):
    """A screen: tables are as wide as it is."""

    def isatty(self) -> bool:
        return True


@dataclass(frozen=True)
class Printed:
    """What a command did."""

    code: int
    out: str
    err: str


def command(line: str) -> Printed:
    """Run `auepora LINE` in this process."""
    out, err = _Terminal(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(shlex.split(line))
    return Printed(code, out.getvalue(), err.getvalue())


def call(line: str) -> Any:
    """Run a command that works; return its exit code and, with --json, the document that it printed."""
    done = command(line)
    if done.code not in (0, 1, 3):
        raise RuntimeError(f"auepora {line}: exit code {done.code}\n{done.err}")
    return {"exit": done.code, **({"json": facts(json.loads(done.out))} if "--json" in line else {})}


def screens(*lines: str) -> str:
    """Run commands and return what a person at the terminal would see.

    Lines of stderr begin with "! ".
    """
    parts = []
    for line in lines:
        done = command(line)
        errors = [f"! {each}" for each in done.err.splitlines()]
        code = [f"(exit code {done.code})"] if done.code else []
        parts.append("\n".join([f"$ auepora {line}", *done.out.splitlines(), *errors, *code]))
    return stable_text("\n\n".join(parts))


def on_a_small_screen(*lines: str) -> str:
    """Run commands on a terminal of 80 columns and 24 lines and return what is on it when they end."""
    parts = []
    for line in lines:
        process, terminal = pty.fork()
        if not process:
            environment = {**os.environ, "TERM": "xterm", "CI": "1"}  # without a progress bar
            for name in ("COLUMNS", "LINES", "NO_COLOR"):
                environment.pop(name, None)
            words = [sys.executable, "-m", "auepora_eval", *shlex.split(line)]
            os.execve(sys.executable, words, environment)  # noqa: S606 - our own command
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        printed = b""
        with contextlib.suppress(OSError):  # how the end of a terminal is told
            while piece := os.read(terminal, 65_536):
                printed += piece
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        os.close(terminal)
        shown = printed.decode().replace("\r\n", "\n").rstrip("\n").split("\n")
        for escape, name in _STYLES.items():
            shown = [each.replace(escape, name) for each in shown]
        # The last line of the screen is that of the next command.
        parts.append("\n".join([f"$ auepora {line}  (exit code {code})", *shown[-23:]]))
    return stable_text("\n\n".join(parts))


# What styles are written as in a recorded screen.
_STYLES = {
    "\x1b[0m": "</>",
    "\x1b[1m": "<bold>",
    **{f"\x1b[1;3{code}m": f"<bold {name}>" for code, name in ((1, "red"), (2, "green"), (3, "yellow"))},
    **{f"\x1b[3{code}m": f"<{name}>" for code, name in ((1, "red"), (2, "green"), (3, "yellow"))},
}


def shown_file(path: str | Path) -> str:
    """Return a text file that a command wrote, below its name."""
    return stable_text(f"--- {Path(path).as_posix()}\n{Path(path).read_text(encoding='utf-8')}")


def stable_text(text: str) -> str:
    """Return a text with placeholders for what differs from run to run."""
    for pattern, placeholder in VOLATILE_TEXTS:
        text = re.sub(pattern, placeholder, text)
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def document(name: str) -> Any:
    """Return the results document of a stored run, with all its rows."""
    return facts(json.loads((RESULTS / f"{name}.results.json").read_text(encoding="utf-8")))


def stored(name: str) -> Any:
    """Return the results document of a stored run, with the scores of each metric as one digest."""
    head = json.loads((RESULTS / f"{name}.results.json").read_text(encoding="utf-8"))
    rows = head.pop("query_results", [])
    scores: dict[str, list[Any]] = {}
    for row in rows:
        for metric, value in sorted(row.get("individual_metrics", {}).items()):
            scores.setdefault(metric, []).append([row["query_id"], _rounded(value)])
    digests = {metric: digest(pairs) for metric, pairs in sorted(scores.items())}
    return {"document": facts(head), "rows": len(rows), "scores": digests}


def facts(value: Any) -> Any:
    """Return a JSON document with placeholders for what differs from run to run, and without its bulk."""
    if isinstance(value, dict):
        return {name: "*" if name in VOLATILE else facts(each) for name, each in sorted(value.items())}
    if isinstance(value, list):
        members = [facts(each) for each in value]
        if len(members) <= _LONGEST_LIST:
            return members
        return [*members[:3], f"and {len(members) - 3} more, digest {digest(members[3:])}"]
    if isinstance(value, str):
        text = stable_text(value).removesuffix("\n")
        return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}... digest {digest(text)}"
    return _rounded(value)


def _rounded(value: Any) -> Any:
    return float(f"{value:.10g}") if isinstance(value, float) else value


def digest(value: Any) -> str:
    """Return a short hash of bytes or of a JSON value."""
    data = value if isinstance(value, bytes) else json.dumps(value, sort_keys=True).encode()
    return hashlib.sha256(data).hexdigest()[:16]


@contextlib.contextmanager
def empty_folder() -> Iterator[Path]:
    """Work in an empty folder, with settings of our own; afterwards everything is as it was."""
    before, path, environment = Path.cwd(), list(sys.path), dict(os.environ)
    os.environ.update(_SETTINGS)
    for name in _UNSET:
        os.environ.pop(name, None)
    with tempfile.TemporaryDirectory(prefix=_HERE) as name:
        os.chdir(name)
        try:
            yield Path(name)
        finally:
            os.chdir(before)
            sys.path[:] = path
            os.environ.clear()
            os.environ.update(environment)
            _forget_modules(name)


def _forget_modules(folder: str) -> None:
    """A `rag.py` of one scenario must not be found by the next."""
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(folder):
            del sys.modules[name]
