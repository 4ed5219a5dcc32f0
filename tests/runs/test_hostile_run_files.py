"""Files of a run that somebody changed, linked or may not read, and ids of many letters."""

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
FOLDER = Path("runs/x.run")
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
@pytest.mark.parametrize(("mask", "mode"), [(0o000, 0o600), (0o022, 0o600), (0o277, 0o400)])
def test_only_the_owner_reads_what_a_run_stores(here: Path, mask: int, mode: int) -> None:
    Path("runs/x.run").mkdir(parents=True)
    before = os.umask(mask)
    try:
        assert main(RUN) == 0
    finally:
        os.umask(before)
    files = [Path("runs/x.results.json"), *(path for path in FOLDER.iterdir() if path.name != "lock")]
    modes = {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in files}
    assert {"x.results.json", "samples.jsonl", "header.json", "journal.jsonl"} <= set(modes)
    assert set(modes.values()) == {oct(mode)}


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege here")
@pytest.mark.parametrize("name", ["journal.jsonl", "header.json", "lock", "log.jsonl", "samples.jsonl"])
def test_linked_file_of_a_run_leads_nowhere_else(
    here: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is written to what a link points to, and a run that cannot go on says so in a line."""
    assert main([*RUN, "--budget-calls", "3"]) == 1
    target = here / "precious"
    content = (FOLDER / name).read_bytes() if (FOLDER / name).exists() else b"mine\n"
    target.write_bytes(content)
    (FOLDER / name).unlink(missing_ok=True)
    (FOLDER / name).symlink_to(target)
    capsys.readouterr()
    code = main(RESUME)
    assert target.read_bytes() == content
    assert "Traceback" not in capsys.readouterr().err
    assert code == (4 if name in ("journal.jsonl", "lock") else 0)


def test_damaged_fields_of_a_header_are_one_line_errors(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*RUN, "--budget-calls", "3"]) == 1
    whole = json.loads((FOLDER / "header.json").read_text(encoding="utf-8"))
    journal = (FOLDER / "journal.jsonl").read_bytes()
    capsys.readouterr()
    for field in whole:
        for odd in (None, 3, "x", [], {"a": [1]}, [None]):
            (FOLDER / "header.json").write_text(json.dumps({**whole, field: odd}), encoding="utf-8")
            (FOLDER / "journal.jsonl").write_bytes(journal)
            Path("runs/x.results.json").unlink(missing_ok=True)
            code = main(RESUME)
            err = capsys.readouterr().err
            assert "Traceback" not in err, (field, odd, err)
            assert code in (0, 2, 4), (field, odd)
