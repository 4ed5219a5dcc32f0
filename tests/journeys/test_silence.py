"""No command opens a socket: the interpreter itself is the witness."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WITNESS = """
import sys
opened = []
sys.addaudithook(lambda event, args: opened.append((event, args)) if event.startswith("socket.") else None)
from auepora_eval.cli.main import main
code = main(sys.argv[1:])
print("SOCKETS", [event for event, _ in opened], file=sys.stderr)
raise SystemExit(code)
"""


@pytest.mark.parametrize(
    "words",
    [
        ("demo",),
        ("metrics",),
        ("run", "--dataset", "demo", "--system", "auepora_eval.demo.systems:hybrid", "--limit", "5"),
        ("list",),
        ("--help",),
    ],
    ids=lambda words: words[0],
)
def test_no_socket_is_opened(words: tuple[str, ...], tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITNESS, *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "SOCKETS []" in done.stderr
