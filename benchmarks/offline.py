"""Check that auepora needs no network: its commands run without one, and open no inet socket.

    python benchmarks/offline.py
    python benchmarks/offline.py --run "auepora metrics" --run "python -c 'import auepora_eval'"

Each command runs in a network namespace without any interface that is up, with an empty home (so that no
cache of an earlier download helps), while strace counts the AF_INET and AF_INET6 sockets. The exit code is 0
if all commands succeed and open none, 1 if not, 2 if this machine cannot check it: that needs Linux,
`unshare` (util-linux), the right to use it, and strace.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import site
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

EXIT_OK, EXIT_ONLINE, EXIT_NOT_CHECKED = 0, 1, 2
TIMEOUT_SECONDS = 900

# They run in a fresh temporary folder, so the demo meets no old files and leaves none behind.
COMMANDS = ("auepora demo --out demo", "auepora metrics", "auepora --help")

# The second needs no root if the system lets users create namespaces.
NAMESPACES = (("unshare", "--net", "--"), ("unshare", "--user", "--map-root-user", "--net", "--"))

# Fails unless both the world and this machine are out of reach; UDP, so nothing is sent.
# Its sockets are known, so it is the control for the count.
NO_NETWORK = """
import errno, socket
for address in ("192.0.2.1", "127.0.0.1"):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        if probe.connect_ex((address, 9)) != errno.ENETUNREACH:
            raise SystemExit(f"{address} can be reached")
"""


class Calls(NamedTuple):
    """How often a command tried to open an inet socket, and to connect one."""

    sockets: int
    connects: int

    def __str__(self) -> str:
        return f"inet sockets: {self.sockets} (connected: {self.connects})"


@dataclass(frozen=True)
class Outcome:
    """The result of a command; `calls` is None if they were not counted."""

    exit_code: int
    last_words: str
    calls: Calls | None

    def __str__(self) -> str:
        ending = f" ({self.last_words})" if self.exit_code else ""
        return f"exit code {self.exit_code}{ending}, {self.calls or 'inet sockets not counted'}"


def main(arguments: Sequence[str] | None = None) -> int:
    args = parse_arguments(arguments)
    with tempfile.TemporaryDirectory(prefix="auepora-offline-") as folder:
        home = Path(folder)
        namespace = find_namespace(home)
        if namespace is None:
            print("not checked: no network namespace can be created. Needs Linux, unshare and root.")
            return EXIT_NOT_CHECKED
        counts = can_count(namespace, home)
        if not counts:
            print("the sockets will not be counted: strace is not installed, or may not trace.")
        outcomes = []
        for command in args.run or COMMANDS:
            outcomes.append(run_offline(to_argv(command), namespace, home, counts))
            print(f"{command}: {outcomes[-1]}", flush=True)
    return verdict(outcomes)


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Show that auepora's commands need and open no network.")
    parser.add_argument(
        "--run",
        action="append",
        metavar="COMMAND",
        help="instead of the demo, the metrics and the help: a command that starts with auepora or python"
        " (those of this environment); may be given several times",
    )
    return parser.parse_args(arguments)


def to_argv(command: str) -> list[str]:
    """The command's words; auepora and python are those of the environment that runs this file.

    >>> to_argv("auepora metrics")[1:]
    ['-m', 'auepora_eval', 'metrics']
    """
    first, *rest = shlex.split(command) or [""]
    programs = {"auepora": [sys.executable, "-m", "auepora_eval"], "python": [sys.executable]}
    return [*programs.get(first, [first]), *rest]


def find_namespace(home: Path) -> tuple[str, ...] | None:
    """Return the words that start a command without a network, or None if this machine has none."""
    if shutil.which("unshare") is None:
        return None
    for namespace in NAMESPACES:
        if run_offline([*to_argv("python -c"), NO_NETWORK], namespace, home, counts=False).exit_code == 0:
            return namespace
    return None


def can_count(namespace: tuple[str, ...], home: Path) -> bool:
    """Return whether strace is installed and finds the sockets of a program that opens some."""
    if shutil.which("strace") is None:
        return False
    control = run_offline([*to_argv("python -c"), NO_NETWORK], namespace, home, counts=True)
    return control.calls == Calls(sockets=2, connects=2)


def run_offline(argv: Sequence[str], namespace: tuple[str, ...], home: Path, counts: bool) -> Outcome:
    """Run a command without a network and, if `counts`, count the inet sockets that it asks for."""
    trace = home / "strace.log"
    trace.unlink(missing_ok=True)
    strace = ["strace", "-f", "-qq", "-e", "trace=socket,connect", "-o", str(trace), "--"] if counts else []
    try:
        done = subprocess.run(
            [*namespace, *strace, *argv],
            capture_output=True,
            text=True,
            check=False,
            cwd=home,
            env=environment(home),
            timeout=TIMEOUT_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return Outcome(124, f"no end after {TIMEOUT_SECONDS} s", count_calls(trace))
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    last_words = lines[-1] if lines else "no message"
    return Outcome(done.returncode, last_words, count_calls(trace))


def environment(home: Path) -> dict[str, str]:
    """Our variables with an empty home; packages that pip put into the user's home are still found."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "HF_"))}
    return {**kept, "HOME": str(home), "PYTHONUSERBASE": site.getuserbase()}


def count_calls(trace: Path) -> Calls | None:
    """Return the calls for AF_INET and AF_INET6 in the output of strace, or None if there is none."""
    if not trace.exists():
        return None
    calls = trace.read_text(encoding="utf-8", errors="replace")
    return Calls(
        sockets=len(re.findall(r"\bsocket\(AF_INET6?\b", calls)),
        connects=len(re.findall(r"\bconnect\(\d+, \{sa_family=AF_INET6?\b", calls)),
    )


def verdict(outcomes: Sequence[Outcome]) -> int:
    if any(outcome.exit_code or (outcome.calls and any(outcome.calls)) for outcome in outcomes):
        print("MISSED: a command failed without a network, or opened an inet socket.")
        return EXIT_ONLINE
    if any(outcome.calls is None for outcome in outcomes):
        print("not checked: the commands succeed without a network, but their sockets were not counted.")
        return EXIT_NOT_CHECKED
    print("holds: all commands succeeded without a network and opened no inet socket.")
    return EXIT_OK


if __name__ == "__main__":
    raise SystemExit(main())
