"""Show what each tool reports if a quarter of 40 calls fail: the server answers 500 to ten.

    python benchmarks/faults.py            ours, and ragas, deepeval and inspect-ai
    python benchmarks/faults.py --ours     ours alone

Every answered sample scores 1. A peer calls the server on loopback in its own metric or solver
(benchmarks/peers_workloads.py), in an environment that is created in .venv-peers the first time. Ours is
`auepora run` on that server. The exit code is 0 if ours reports what is missing: the coverage, the range,
exit code 3.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from auepora_eval.cli.main import main as auepora
from benchmarks.peers_environments import PEERS, peer_says
from tests.servers import chat_server

SIZE = 40


def mode_of(body: dict[str, Any]) -> str:
    return "500" if int(body["query"].rpartition(" ")[2]) % 4 == 0 else "ok"


def ours(url: str) -> bool:
    """Run it as a user would. Show the line of the metric and the notes."""
    with tempfile.TemporaryDirectory() as folder:
        dataset = Path(folder, "d.jsonl")
        lines = [
            {"sample_id": str(n), "query": f"query number {n}", "reference_answer": {"text": "right"}}
            for n in range(SIZE)
        ]
        dataset.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        words = ["run", "--dataset", str(dataset), "--system", f"http:{url}", "--metrics", "exact_match"]
        plan = Path(folder, "faults.config.yaml")
        plan.write_text("retries: 1\nlongest_wait: 0.5\n", encoding="utf-8")
        words += ["--concurrency", "8", "--config", str(plan), "--out", folder]
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = auepora(words)
    told = out.getvalue().splitlines()
    shown = [line for line in told if line.startswith(("Metric", "exact_match"))]
    shown += [line for line in err.getvalue().splitlines() if "coverage" in line]
    for line in [*shown, f"exit code {code}"]:
        print(f"  {' '.join(line.split())}")
    return code == 3 and any("30/40" in line and "0.7500 to 1.0000" in line for line in shown)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--ours", action="store_true", help="leave the peers out")
    args = parser.parse_args()
    with chat_server(says=lambda body: {"answer": "right"}, bare=True, mode_of=mode_of) as server:
        url = f"{server.url}/ask"
        print("auepora-eval")
        good = ours(url)
        for name in () if args.ours else PEERS:
            said = peer_says(name, "faults", url, str(SIZE))
            print(f"{name} {said.get('version', '')}")
            for way, words in said.get("said", {"": said.get("problem")}).items():
                print(f"  {way}: {words}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
