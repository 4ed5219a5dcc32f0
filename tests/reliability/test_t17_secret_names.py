"""T-17: secrets under many names, or without a variable, in the errors of a failing system."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auepora_eval.cli.main import main
from auepora_eval.core.redaction import without_secrets

HELD = {
    "PGPASSWORD": "canary-pg-1",
    "OPENAI_API_KEY_2": "canary-openai-2",
    "MYSQL_PWD": "canary-mysql-3",
    "GH_PAT": "canary-gh-4",
    "DATABASE_URL": "postgres://me:canary-url-5@db.example.com/prod",
    "SENTRY_DSN": "canary-dsn-6",
    "DB_PASS": "canary-pass-7",
}
SYSTEM = """
import logging
import os

SAYS = {
    "s0": lambda: " ".join(os.environ[name] for name in %(names)r),
    "s1": lambda: "sent Authorization: Bearer canary-bearer-8 to the server",
    "s2": lambda: "https://u:canary-user-9@h/?api_key=canary-query-10&token=canary-token-11",
}


def leaks(sample):
    text = SAYS[sample.sample_id]()
    logging.getLogger("auepora_eval").warning("about to fail: %%s", text)
    raise RuntimeError(text)
"""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, value in HELD.items():
        monkeypatch.setenv(name, value)
    lines = [{"sample_id": f"s{n}", "query": f"q {n}", "reference_answer": "a"} for n in range(3)]
    Path("d.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    Path("leaky.py").write_text(SYSTEM % {"names": list(HELD)}, encoding="utf-8")
    return tmp_path


def test_secrets_in_exceptions_are_neither_stored_nor_printed(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--metrics", "exact_match", "--id", "r", "--out", "out", "--spans", "out/spans.jsonl"]
    assert main(["run", "--dataset", "d.jsonl", "--system", "leaky.py:leaks", *flags, "--spans-content"]) == 3
    said = capsys.readouterr()
    assert "about to fail" in said.err
    assert "Authorization: Bearer ***" in said.out
    texts = {str(path): path.read_text(encoding="utf-8") for path in Path("out").rglob("*") if path.is_file()}
    assert any("journal" in name for name in texts)
    assert any("spans" in name for name in texts)
    texts |= {"stdout": said.out, "stderr": said.err}
    found = [name for name, text in texts.items() if "canary" in text]
    print(f"\nT-17 names: 11 secrets in {len(texts) - 2} files and two streams: found {len(found)}")
    assert found == []


def test_load_error_shows_no_secret(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("broken.py").write_text('import os\nraise ValueError(os.environ["GH_PAT"])\n', encoding="utf-8")
    assert main(["run", "--dataset", "d.jsonl", "--system", "broken.py:f", "--out", "out"]) == 2
    said = capsys.readouterr()
    assert "***" in said.err
    assert "canary" not in said.err


def test_traceback_shows_no_secret(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("odd.py").write_text(
        "import os\nfrom auepora_eval.core.metrics_base import Metric\n"
        "class Odd:\n"
        "    def run(self, sample, *, top_k=5):\n        return 'a'\n"
        "    @property\n"
        "    def name(self):\n        raise LookupError(os.environ['GH_PAT'])\n",
        encoding="utf-8",
    )
    assert main(["run", "--dataset", "d.jsonl", "--system", "odd.py:Odd", "--out", "out"]) == 2
    said = capsys.readouterr()
    assert "LookupError: ***" in said.err
    assert "canary" not in said.err


def test_answers_are_stored_unchanged(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = "Send Authorization: Bearer abc123def to https://u:pw@h/?key=1"
    assert without_secrets(answer) != answer
    Path("calm.py").write_text(f"def says(query):\n    return {answer!r}\n", encoding="utf-8")
    flags = ["--metrics", "exact_match", "--id", "r", "--out", "out"]
    assert main(["run", "--dataset", "d.jsonl", "--system", "calm.py:says", *flags]) == 0
    assert answer in Path("out/r.run/journal.jsonl").read_text(encoding="utf-8")
