"""A full disk ends a command with code 4, and what was stored is kept."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from auepora_eval.cli.main import main
from tests.stored import kept

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs RLIMIT_FSIZE")
SIZE = 400
# A file cannot grow beyond the limit, as on a full disk.
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
from auepora_eval.cli.main import main
sys.exit(main(sys.argv[2:]))
"""
SYSTEM = "def answer(query):\n    open('asked', 'a').write(query + '\\n')\n    return 'long ' * 400\n"
RUN = "run --dataset d.jsonl --system mine.py:answer --metrics exact_match --id x --out out".split()
SCORE = "score --dataset d.jsonl --outputs p.jsonl --metrics exact_match --id y --out out".split()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    samples = [{"sample_id": f"s{n}", "query": f"q{n}", "reference_answer": "a"} for n in range(SIZE)]
    outputs = [{"sample_id": f"s{n}", "answer": "long " * 400} for n in range(SIZE)]
    for name, records in (("d.jsonl", samples), ("p.jsonl", outputs)):
        Path(name).write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    Path("mine.py").write_text(SYSTEM, encoding="utf-8")
    return tmp_path


def limited(limit: int, words: list[str]) -> tuple[int, str]:
    command = [sys.executable, "-c", LIMITED, str(limit), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_a_full_disk_stops_a_run_that_can_be_resumed(here: Path) -> None:
    code, said = limited(500_000, [*RUN, "--concurrency", "8"])
    assert code == 4, said
    assert "x.run.db cannot be written" in said
    assert "What was stored before is kept" in said
    assert "Traceback" not in said
    asked, stored = len(Path("asked").read_text().split()), kept(here / "out" / "x.run.db")
    print(f"\n{asked} calls were made, {stored} are stored")
    assert 0 < asked - stored <= 8, "only the calls under way were not stored"
    assert main(["run", "--resume", "x", "--out", "out"]) == 0
    assert len(Path("asked").read_text().split()) == asked + SIZE - stored
    assert main(["show", "x", "--verify", "--out", "out"]) == 0


def test_a_full_disk_leaves_nothing_of_a_scored_run(here: Path) -> None:
    code, said = limited(500_000, SCORE)
    assert code == 4, said
    assert "cannot be written" in said
    assert "Traceback" not in said
    assert not (here / "out").exists()
