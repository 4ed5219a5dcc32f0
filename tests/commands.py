"""The command in a process of its own, in a folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = str(Path(__file__).parents[1])


def ran(
    folder: Path, *words: str, timeout: float = 120, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "auepora_eval", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": ROOT, **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def started(folder: Path, *words: str, **environment: str) -> subprocess.Popen[str]:
    """Start the command in a group of its own, as a terminal does: Ctrl-C can be sent to all of it."""
    return subprocess.Popen(
        [sys.executable, "-m", "auepora_eval", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": ROOT, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell that runs the tests in the background has Ctrl-C ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )
