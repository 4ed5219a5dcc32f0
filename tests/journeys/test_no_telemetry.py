"""No telemetry, ever: every command works where there is no network, and does not even look for one.

All jobs run in one process, in a network namespace without interfaces where the system lets us make one. In
any case the interpreter is told to refuse, and to write down, every attempt to connect or to look up a name.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.cli.main import COMMANDS

pytestmark = pytest.mark.full

SYSTEM = "auepora_eval.demo.systems:bm25"
RESULTS = "data/evaluation/results"

# For each command at least one real job, in an order in which each finds what it needs. A new command needs a
# line here: without one the first test below fails.
JOBS: list[tuple[str, str]] = [
    ("demo", ""),
    ("init", f"--dataset demo --system {SYSTEM}"),
    ("run", f"--dataset demo --system {SYSTEM} --limit 20 --estimate --id pilot"),
    ("run", f"--dataset demo --system {SYSTEM} --limit 20 --id first"),
    ("show", "first --spans spans.jsonl"),
    ("run", f"--dataset demo --system {SYSTEM} --limit 20 --id again --concurrency 4 --executor async"),
    ("score", f"--dataset demo --outputs {RESULTS}/first.run.db --metrics recall@3 --limit 20"),
    ("score", "--run first --metrics recall@1"),
    ("judge", "first --judge support:lexical --probe"),
    ("import-traces", "spans.jsonl --samples live.jsonl --outputs live.predictions.jsonl"),
    ("compare", "demo-bm25 demo-hybrid"),
    ("experiment", "demo"),
    ("gate", "demo-hybrid --min recall@5=0.1"),
    ("power", "demo-bm25 demo-hybrid --metric recall@5"),
    ("show", "demo-bm25 --html report.html"),
    ("metrics", "recall"),
    ("list", ""),
    ("diagnose", "demo-bm25"),
    ("stress", f"{SYSTEM} --dataset demo --sample 10"),
    ("show", "demo-bm25"),
    ("show", "demo-bm25 --verify"),
    ("view", "--no-open"),
    ("annotate", "demo-hybrid"),
    ("annotate", "--questions demo --out reviewed.jsonl"),
    ("annotate", "--agree demo"),
    ("judge-audit", "--labels demo --judge support:lexical --threshold 0.7"),
    ("dataset generate", "demo --out offline_dataset.jsonl"),
    ("dataset build", "--offline-dataset offline_dataset.jsonl --version v1"),
    ("dataset check", f"{RESULTS}/demo-bm25.results.json"),
    ("dataset convert", "demo demo.eval.json"),
    ("dataset check", "demo --sample 2"),
    ("dataset diff", "demo demo"),
    ("labels score", "--dataset demo --metric grounding_overlap"),
    ("labels sweep", "--dataset demo --metric grounding_overlap"),
]

WORKER = """
import fcntl, json, os, signal, socket, struct, sys, threading, time
from contextlib import suppress
attempts = []
serving = threading.Event()  # a port is bound

# The loopback interface of a new namespace is down. A server of this machine needs it, and nothing else.
with suppress(OSError), socket.socket() as any_socket:
    fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", 0x41))  # SIOCSIFFLAGS: up, running

def stop_the_server():
    serving.wait()
    time.sleep(1.5)
    os.kill(os.getpid(), signal.SIGINT)

def refuse(event, args):
    if event == "socket.bind":
        serving.set()
    # AF_UNIX stays on the machine: its addresses are texts or bytes, those of a network are tuples.
    reaching = event in ("socket.connect", "socket.sendto", "socket.sendmsg") and isinstance(args[1], tuple)
    if reaching or event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        attempts.append(f"{event} {args!r}"[:300])
        raise PermissionError("there is no network here")

sys.addaudithook(refuse)
from auepora_eval.cli.main import main
done = []
for name, words in json.load(open(sys.argv[1])):
    attempts.clear()
    print("JOB", name, file=sys.stderr)
    # It serves pages until Ctrl-C, which comes a moment after it listens.
    if name == "view" or (name == "annotate" and "--agree" not in words):
        serving.clear()
        threading.Thread(target=stop_the_server, daemon=True).start()
    code = main([*name.split(), *words.split()])
    done.append({"name": name, "code": code, "attempts": list(attempts)})
    with open(sys.argv[2], "w") as file:
        json.dump(done, file)
"""
TRY = "import socket; socket.create_connection(('127.0.0.1', 9), 1)"


def test_every_command_has_a_job() -> None:
    missing = sorted(set(COMMANDS) - {name for name, _ in JOBS})
    assert missing == [], "give each new command a line in JOBS"
    assert {name for name, _ in JOBS} <= set(COMMANDS)


def without_network() -> list[str]:
    """The words before a command that take the network from it; none where that is not allowed."""
    unshare = shutil.which("unshare")
    words = [unshare, "--net", "--map-root-user"] if unshare else []
    for prefix in (words, words[:2]):
        if prefix and subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0:
            return prefix
    return []


def run_jobs(folder: Path, jobs: list[tuple[str, str]]) -> tuple[list[dict[str, Any]], str]:
    """What became of jobs, done one after the other in a folder of their own."""
    (folder / "jobs.json").write_text(json.dumps(jobs), encoding="utf-8")
    command = [*without_network(), sys.executable, "-c", WORKER, "jobs.json", "done.json"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    done = folder / "done.json"
    return (json.loads(done.read_text(encoding="utf-8")) if done.exists() else []), ran.stderr


def test_every_command_works_without_a_network(tmp_path: Path) -> None:
    done, said = run_jobs(tmp_path, JOBS)
    assert [job["name"] for job in done] == [name for name, _ in JOBS], said[-3000:]
    assert [job for job in done if job["attempts"]] == []
    assert [job for job in done if job["code"] != 0] == [], said[-3000:]


def test_check_finds_a_command_that_uses_the_network(tmp_path: Path) -> None:
    (tmp_path / "chatty.py").write_text(
        "import socket\n"
        "try:\n    socket.create_connection(('127.0.0.1', 9), 1)\nexcept OSError:\n    pass\n"
        "def answer(query):\n    return 'a'\n",
        encoding="utf-8",
    )
    ((job,), _) = run_jobs(tmp_path, [("run", "--dataset demo --system chatty.py:answer --limit 2 --id x")])
    assert any("127.0.0.1" in attempt for attempt in job["attempts"])


@pytest.mark.skipif(not without_network(), reason="this system does not let us make a network namespace")
def test_namespace_has_no_network() -> None:
    ran = subprocess.run([*without_network(), sys.executable, "-c", TRY], capture_output=True, check=False)
    assert b"Network is unreachable" in ran.stderr
