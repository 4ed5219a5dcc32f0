"""SIGHUP during a run keeps finished outputs, and the log records it."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.stored import kept

pytestmark = pytest.mark.full

SYSTEM = "import time\ndef system(query):\n    time.sleep(0.03)\n    return 'answer'\n"
WORDS = "run --dataset d.jsonl --system s.py:system --metrics exact_match --out runs".split()
ROOT = Path(__file__).parents[2]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "s.py").write_text(SYSTEM, encoding="utf-8")
    lines = [f'{{"sample_id": "{n}", "query": "{n}", "reference_answer": "answer"}}\n' for n in range(2000)]
    (tmp_path / "d.jsonl").write_text("".join(lines), encoding="utf-8")
    return tmp_path


def test_sighup_stops_a_run(here: Path) -> None:
    keyboard, screen = pty.openpty()
    running = subprocess.Popen(
        [sys.executable, "-m", "auepora_eval", *WORDS, "--id", "x"],
        cwd=here,
        stdin=screen,
        stdout=screen,
        stderr=screen,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # noqa: PLW1509 - pytest may run by nohup
    )
    os.close(screen)
    path = here / "runs" / "x.run.db"
    for _ in range(600):
        if path.exists() and path.stat().st_size and kept(path):
            break
        time.sleep(0.05)
    os.close(keyboard)  # from here on every word to the terminal is an error
    for _ in range(2):  # the shell and the system both tell
        running.send_signal(signal.SIGHUP)
        time.sleep(0.05)
    assert running.wait(30) == 128 + signal.SIGHUP
    assert 0 < kept(path) < 2000
