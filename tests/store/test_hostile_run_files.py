"""Who may read the files of a run, and ids of many letters."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest

from auepora_eval.cli.main import main

RUN = "run --dataset d.jsonl --system mine.py:answer --metrics exact_match --id x --out runs".split()
RESUME = "run --resume x --out runs --budget-calls 99".split()
LONG = "質問é🙂" * 50  # 200 characters


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    ids = [f"{LONG[:-2]}{n:02}" for n in range(8)]
    lines = [{"sample_id": name, "query": f"q {name[-1]}", "reference_answer": "a"} for name in ids]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    (tmp_path / "d.jsonl").write_text(text, encoding="utf-8")
    (tmp_path / "mine.py").write_text("def answer(query):\n    return 'a'\n", encoding="utf-8")
    return tmp_path


def test_ids_of_200_characters(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN, "--budget-calls", "3"]) == 1
    assert main(RESUME) == 0
    assert "3 of 8 samples have an output" in capsys.readouterr().err
    for line in ("show x", f"show x --sample {LONG[:-2]}07", "show x --verify"):
        assert main([*line.split(), "--out", "runs"]) == 0, capsys.readouterr().err
    rows = json.loads(Path("runs/x.results.json").read_text(encoding="utf-8"))["query_results"]
    assert rows[7]["query_id"] == f"{LONG[:-2]}07"
    assert main([*RUN[:-3], LONG, "--out", "runs"]) == 2  # a run's id is the name of its files
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="modes are other ones here")
@pytest.mark.parametrize("mask", [0o000, 0o022])
def test_only_the_owner_reads_what_a_run_stores(here: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        assert main([*RUN, "--cache", "cache.db"]) == 0
    finally:
        os.umask(before)
    files = [*Path("runs").iterdir(), Path("cache.db")]
    modes = {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in files}
    assert modes == dict.fromkeys(("x.results.json", "x.run.db", "cache.db"), oct(0o600))
