"""No command opens a socket, by the audit events of the interpreter."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

WITNESS = """
import json, sys
opened = []
sys.addaudithook(lambda event, args: opened.append(event) if event.startswith("socket.") else None)
from auepora_eval.cli.main import main
told = []
for words in json.loads(sys.argv[1]):
    opened.clear()
    try:
        code = main(words)
    except SystemExit as end:
        code = end.code
    told.append([words[0], code, list(opened)])
print("TOLD", json.dumps(told), file=sys.stderr)
"""
COMMANDS = [
    ["--help"],
    ["metrics"],
    ["demo"],
    ["run", "--dataset", "demo", "--system", "auepora_eval.demo.systems:hybrid", "--limit", "5"],
    ["list"],
]


def test_no_socket_is_opened(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITNESS, json.dumps(COMMANDS)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    told = json.loads(done.stderr.rpartition("TOLD ")[2])
    assert told == [[words[0], 0, []] for words in COMMANDS]
