"""Create an environment per peer (.venv-peers/NAME), and run programs in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PEERS = ("ragas", "deepeval", "inspect-ai")
LONGEST = 600  # seconds for one program
# No peer reports home while it is measured.
QUIET = {
    "RAGAS_DO_NOT_TRACK": "true",
    "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
    "DEEPEVAL_NO_INSPECT_PROMPT": "1",
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    "NO_COLOR": "1",
}


def peer_says(name: str, *words: str) -> dict[str, Any]:
    """Return what a workload of benchmarks/peers_workloads.py prints, or {"problem": reason}."""
    try:
        python = _python(name)
    except subprocess.CalledProcessError as error:
        return {"problem": f"cannot be installed: {_last_line(error.stderr)}"}
    program = str(ROOT / "benchmarks" / "peers_workloads.py")
    with tempfile.TemporaryDirectory(prefix="peer-") as folder:  # they leave files in the current folder
        try:
            done = subprocess.run(
                [python, program, name, *words],
                cwd=folder,
                env={**os.environ, **QUIET, "TMPDIR": folder},
                capture_output=True,
                text=True,
                timeout=LONGEST,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {"problem": f"not ready after {LONGEST} s"}
    if done.returncode:
        return {"problem": f"cannot be run: {_last_line(done.stderr)}"}
    said: dict[str, Any] = json.loads(_last_line(done.stdout))
    return said


def _python(name: str) -> str:
    """Return the Python of a peer's environment. Create it if it is missing or its requirements changed."""
    folder, needs = ROOT / ".venv-peers" / name, ROOT / "benchmarks" / f"peers_{name}.txt"
    python, stamp = folder / "bin" / "python", folder / "installed.txt"
    wanted = needs.read_text(encoding="utf-8")
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        print(f"installing {name} into {folder.relative_to(ROOT)} ...", file=sys.stderr)
        pip = [
            str(python),
            "-m",
            "pip",
            "--disable-pip-version-check",
            "install",
            "--quiet",
            "-r",
            str(needs),
        ]
        for command in ([sys.executable, "-m", "venv", str(folder)], pip):
            subprocess.run(command, check=True, capture_output=True, text=True)
        stamp.write_text(wanted, encoding="utf-8")
    return str(python)


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it printed nothing"
