"""The first Ctrl-C or SIGTERM finishes calls in progress, the second stops at once."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests import commands
from tests.stored import kept as kept_in

LONGEST = 80.0  # seconds; a process that is to end
TIMES = int(os.environ.get("AUEPORA_SIGNALS", "1"))  # each kind; `make soak` does 10
SYSTEM = """
import os, time
from pathlib import Path
log = os.open("log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
def system(query):
    os.write(log, f"asked {query}\\n".encode())
    time.sleep(float(os.environ.get("PACE", "0.03")))
    os.write(log, f"answered {query}\\n".encode())
    return "answer"
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "s.py").write_text(SYSTEM, encoding="utf-8")
    lines = [f'{{"sample_id": "{n}", "query": "{n}", "reference_answer": "answer"}}\n' for n in range(400)]
    (tmp_path / "d.jsonl").write_text("".join(lines), encoding="utf-8")
    return tmp_path


def started(here: Path, name: str, *words: str, pace: str = "0.03") -> subprocess.Popen[str]:
    common = "run --dataset d.jsonl --system s.py:system --metrics exact_match --out runs --id".split()
    running = commands.started(here, *common, name, *words, PACE=pace)
    for _ in range(1200):
        if (here / "log").exists() and (here / "log").read_text().count("asked") > 10:
            break
        time.sleep(0.05)
    return running


@pytest.mark.parametrize(
    "words", [("--executor", "serial"), ("--concurrency", "8")], ids=["serial", "threads"]
)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_first_signal_finishes_calls_in_progress(
    here: Path, number: int, code: int, words: tuple[str, ...]
) -> None:
    answered = kept = 0
    slowest = 0.0
    for turn in range(TIMES):
        (here / "log").unlink(missing_ok=True)
        running = started(here, f"x{turn}", *words)
        clock = time.perf_counter()
        running.send_signal(number)
        _, err = running.communicate(timeout=LONGEST)
        slowest = max(slowest, time.perf_counter() - clock)
        assert running.returncode == code, err
        assert f"resume: auepora run --resume x{turn} --out runs" in err
        assert "Traceback" not in err
        kept += kept_in(here / "runs" / f"x{turn}.run.db")
        answered += (here / "log").read_text().count("answered")
    print(f"\n{signal.Signals(number).name} once: {kept} of {answered} answered are kept, {slowest:.1f} s")
    assert kept == answered
    done = commands.ran(here, *"run --resume x0 --out runs --concurrency 16".split(), PACE="0")
    assert done.returncode == 0, done.stderr
    assert "400 samples" in done.stdout


def test_second_signal_stops_at_once(here: Path) -> None:
    running = started(here, "x", "--concurrency", "20", pace="40")
    clock = time.perf_counter()
    running.send_signal(signal.SIGINT)
    time.sleep(0.3)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=LONGEST)
    seconds = time.perf_counter() - clock
    print(f"\ntwice: {seconds:.1f} s, with calls of 40 s under way")
    assert running.returncode == 130, err
    assert seconds < 9  # it waits neither for them, nor ten seconds
    assert "Traceback" not in err
    assert (here / "runs" / "x.run.db").exists()
