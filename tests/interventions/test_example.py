"""The example project: two faults, found and corrected one after the other, as its page prints them."""

from __future__ import annotations

from pathlib import Path

import pytest

from auepora_eval.cli.main import main

ROOT = Path(__file__).parents[2]


def test_two_faults_are_found_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT / "examples" / "what_to_fix")
    page = (ROOT / "docs" / "how-to" / "what-to-fix.md").read_text(encoding="utf-8")
    out = ["--out", str(tmp_path)]
    screens = {}
    for name in ("first", "second", "third"):
        assert main([*f"run --dataset questions.jsonl --system rag.py:{name} --id {name}".split(), *out]) == 0
        capsys.readouterr()
        assert main(["diagnose", name, "--corpus", "corpus.jsonl", *out]) == 0
        screens[name] = capsys.readouterr().out.replace(f" --out {tmp_path}", "")
    assert screens["first"].strip() in page
    assert "First: how the generator reads its documents." in screens["second"]
    assert screens["third"].startswith("0 of 60 answers are wrong")
    assert main(["compare", "first", "second", *out]) == 0
    printed = capsys.readouterr().out
    table = printed[printed.index("Where answers are lost") :].split("\n\n")[0].rstrip()
    assert table in page
