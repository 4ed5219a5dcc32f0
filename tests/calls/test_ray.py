"""The executor `ray` on real clusters, in processes of their own: Ray leaves threads behind in its driver."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.calls.ray import RayExecutor
from auepora_eval.errors import MissingDependencyError
from auepora_eval.store.storage import EvaluationResultsStorage
from tests import commands
from tests.builders import plan
from tests.calls.ray_nodes import ROOT, Nodes, left_over, loopback_only, ray_nodes
from tests.servers import chat_server
from tests.stable import stable_bytes
from tests.stored import kept

pytestmark = pytest.mark.full

needs_ray = pytest.mark.skipif(
    find_spec("ray") is None, reason="Ray is not installed: pip install 'auepora-eval[ray]'"
)
SYSTEM = """
import os, time
log = os.open({log!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
def system(query):
    os.write(log, b"asked\\n")
    time.sleep(float({pace!r}))
    os.write(log, b"answered\\n")
    return "answer " + query[-1]
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Nodes]:
    """Two nodes that outlive the drivers of the tests."""
    with ray_nodes(2, 1) as nodes:
        yield nodes


@needs_ray
def test_what_every_executor_promises_holds_on_a_cluster(cluster: Nodes, tmp_path: Path) -> None:
    cases = (
        "tests/calls/ray_cases.py",
        "tests/contracts/test_every_executor.py",
        "tests/reliability/test_killed_runs.py::test_random_kills[ray]",
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *cases, "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'sub'}"],
        cwd=ROOT,
        env={**cluster.environment, "AUEPORA_RAY": cluster.address},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    lines = [
        f'{{"sample_id": "{n}", "query": "q {n}", "reference_answer": "answer 3"}}\n' for n in range(150)
    ]
    (tmp_path / "d.jsonl").write_text("".join(lines), encoding="utf-8")
    return tmp_path


@pytest.fixture
def environment() -> Iterator[dict[str, str]]:
    """That of a driver which starts a Ray of its own; afterwards nothing of it is left."""
    folder = tempfile.mkdtemp(prefix="ray", dir="/tmp")
    try:
        yield loopback_only(folder)
        assert left_over(folder) == []
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def started(
    here: Path,
    environment: dict[str, str],
    *words: str,
    pace: float = 0.0,
    out: str = "runs",
    system: str = "s.py:system",
) -> subprocess.Popen[str]:
    text = SYSTEM.format(log=str(here / "log"), pace=pace)
    (here / "s.py").write_text(text, encoding="utf-8")
    common = ("--dataset", "d.jsonl", "--system", system, "--metrics", "exact_match", "--id", "x")
    settings = {**environment, "PYTHONPATH": str(ROOT)}
    return commands.started(here, "run", *common, "--out", out, *words, **settings)


def ended(running: subprocess.Popen[str], code: int) -> tuple[str, str]:
    out, err = running.communicate(timeout=120)
    assert running.returncode == code, err
    assert "Traceback" not in err
    return out, err


@needs_ray
@pytest.mark.skipif(sys.platform == "win32", reason="there are no groups of processes here")
def test_a_ray_of_its_own_is_stopped_by_ctrl_c_and_resumed(here: Path, environment: dict[str, str]) -> None:
    running = started(here, environment, "--executor", "ray", "--concurrency", "2", pace=0.1)
    limit = time.monotonic() + 90
    while time.monotonic() < limit and running.poll() is None:
        if (here / "log").exists() and (here / "log").read_text().count("answered") > 8:
            break
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does: to Ray's processes too
    _, err = ended(running, 130)
    assert "resume: auepora run --resume x --out runs" in err
    stored, answered = kept(here / "runs" / "x.run.db"), (here / "log").read_text().count("answered")
    assert 8 < stored == answered < 150
    ended(started(here, environment, "--executor", "threads", "--resume", "x"), 0)
    assert (here / "log").read_text().count("asked") == 150
    ended(started(here, environment, "--executor", "serial", out="plain"), 0)
    stable = [
        stable_bytes(EvaluationResultsStorage(here / out).load_results("x")) for out in ("runs", "plain")
    ]
    assert stable[0] == stable[1]


@needs_ray
@pytest.mark.skipif(sys.platform == "win32", reason="there are no groups of processes here")
def test_ctrl_c_ends_the_waits_of_ray_workers(here: Path, cluster: Nodes) -> None:
    asked: list[float] = []

    def mode_of(body: dict[str, Any]) -> str:
        asked.append(time.time())
        return "429"

    with chat_server(
        says=lambda body: {"answer": "answer 3"}, bare=True, mode_of=mode_of, retry_after="60"
    ) as server:
        flags = ("--executor", "ray", "--concurrency", "3", *plan(here, address=cluster.address))
        running = started(here, cluster.environment, *flags, system=f"http:{server.url}/ask")
        limit = time.monotonic() + 90
        while len(asked) < 3 and time.monotonic() < limit and running.poll() is None:
            time.sleep(0.02)
        sent = time.time()
        os.killpg(running.pid, signal.SIGINT)
        _, err = ended(running, 130)
        seconds = time.time() - sent
    late = [moment - sent for moment in asked if moment > sent + 1.0]
    print(f"\nray: {len(late)} of {len(asked)} requests after the signal, {seconds:.1f} s")
    assert late == []
    assert "resume: auepora run --resume x --out runs" in err
    assert "again to stop now" in err
    assert kept(here / "runs" / "x.run.db") == 0  # they have no outcome: they are asked on resume
    assert seconds < 9


@needs_ray
def test_a_cluster_that_is_not_there_is_named(here: Path, environment: dict[str, str]) -> None:
    waits = ("RAY_py_gcs_connect_timeout_s", "RAY_gcs_rpc_server_connect_timeout_s")
    impatient = {**environment, **dict.fromkeys(waits, "1")}
    _, err = ended(started(here, impatient, "--executor", "ray", *plan(here, address="127.0.0.1:1")), 2)
    assert "the Ray cluster 127.0.0.1:1 cannot be reached" in err


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in loopback_only("/nowhere").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingDependencyError, match=r"pip install .*\[ray\]'"):
        list(RayExecutor().map(abs, [1]))
