"""`auepora view` as it is typed: it prints an address, serves, and ends with Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from auepora_eval.cli.main import main
from auepora_eval.errors import install_command

pytestmark = pytest.mark.full


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_view_serves_until_it_is_interrupted(demo_runs: Path, number: int) -> None:
    words = [sys.executable, "-m", "auepora_eval", "view", "demo-bm25", "--no-open", "--out", str(demo_runs)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    server = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert server.stdout is not None
        address = next(match[0] for line in server.stdout if (match := re.search(r"http://\S+", line)))
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=\S{32,}", address)
        port = int(address.split(":")[2].partition("/")[0])
        # Without a cookie jar the redirect ends at a refusal, which shows that the address was exchanged.
        with pytest.raises(OSError, match="401"):
            urlopen(address, timeout=20)  # noqa: S310 - the address of our own server
        server.send_signal(number)
        _, errors = server.communicate(timeout=20)
    finally:
        server.kill()
        server.wait()
    assert server.returncode == 0, errors
    assert "Traceback" not in errors
    with socket.socket() as again:  # the port is free again
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", port))


def test_a_taken_port_is_an_error_with_a_fix(demo_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["view", "--no-open", "--port", str(port), "--out", str(demo_runs)]) == 4
    assert f"Port {port} cannot be used" in capsys.readouterr().err


def test_an_unknown_run_is_an_error(demo_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", "demo-bm52", "--out", str(demo_runs)]) == 2
    assert "demo-bm25" in capsys.readouterr().err


def test_a_missing_extra_is_named(
    demo_runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "starlette", None)
    assert main(["view", "--out", str(demo_runs)]) == 2
    assert install_command("view") in capsys.readouterr().err


@pytest.mark.parametrize("port", ["65536", "99999"])
def test_a_port_that_no_machine_has_is_an_error(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", "--no-open", "--port", port]) == 2
    err = capsys.readouterr().err
    assert f"--port: '{port}' is not a number from 1 to 65535" in err
    assert "Traceback" not in err


def test_a_mistake_in_the_rules_is_reported_before_the_server_starts(
    demo_runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = tmp_path / "gate.yaml"
    rules.write_text("min: {recall@5: much}\n")
    assert main(["view", "--no-open", "--rules", str(rules), "--out", str(demo_runs)]) == 2
    assert "gate.yaml: min.recall@5: limit" in capsys.readouterr().err
