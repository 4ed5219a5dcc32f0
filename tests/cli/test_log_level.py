"""--log-level: messages on stderr."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from auepora_eval.cli.main import main

SYSTEM = """
def shouts(query):
    raise RuntimeError(f"\\x1b[31mno\\nluck with {query}")
"""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = [{"sample_id": f"s{n}", "query": f"q{n}", "reference_answer": "a"} for n in range(8)]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (tmp_path / "loud.py").write_text(SYSTEM, encoding="utf-8")
    return tmp_path


RUN = ("run", "--dataset", "d.jsonl", "--system", "loud.py:shouts", "--metrics", "exact_match", "--id", "r")


@pytest.mark.parametrize(
    ("flags", "failures", "others"),
    [
        pytest.param((), 0, 0, id="by default the command reports them"),
        pytest.param(("--log-level", "error"), 0, 0, id="error"),
        pytest.param(("--log-level", "warning"), 8, 0, id="warning"),
        pytest.param(("--log-level", "info"), 8, 10, id="info: attempts, start and end too"),
    ],
)
def test_level_selects_the_messages(
    work: Path, capsys: pytest.CaptureFixture[str], flags: tuple[str, ...], failures: int, others: int
) -> None:
    main([*RUN, *flags])
    said = capsys.readouterr()
    lines = said.err.splitlines()
    assert sum(line.startswith("warning: sample.failed") for line in lines) == failures
    assert sum(line.startswith("info: ") for line in lines) == others
    assert "... and more" not in said.err
    assert "\x1b" not in said.err
    assert "sample.failed" not in said.out
    log = Path("data/evaluation/results/r.run/log.jsonl").read_text(encoding="utf-8")
    events = [json.loads(line)["event"] for line in log.splitlines()]
    assert events.count("sample.failed") == 8  # the file has them all, whatever is said


def test_json_output_is_not_mixed_with_the_log(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([*RUN, "--json", "--log-level", "debug"])
    assert json.loads(capsys.readouterr().out)["evaluation_id"] == "r"


def test_logger_is_restored(work: Path) -> None:
    logger = logging.getLogger("auepora_eval")
    before = logger.level, logger.propagate, list(logger.handlers)
    main([*RUN, "--log-level", "debug"])
    assert (logger.level, logger.propagate, list(logger.handlers)) == before


def test_unknown_level_is_an_error(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN, "--log-level", "loud"]) == 2
    assert "--log-level" in capsys.readouterr().err
