"""auepora judge-audit: several raters and stored scores."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from auepora_eval.cli.main import main

Run = Callable[..., tuple[str, str]]


@pytest.fixture
def audit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Eighty answers, each with the labels of three people and the score of a judge."""
    chance = random.Random(5)
    monkeypatch.chdir(tmp_path)
    people = ("ada", "ben", "c\x1b[2J")
    lines = []
    for _ in range(80):
        good = chance.random()
        label = {name: int(good + chance.gauss(0, 0.2) > 0.5) for name in people}
        lines.append({"label": label, "said": min(1.0, max(0.0, good + chance.gauss(0, 0.1)))})
    Path("rated.jsonl").write_text("\n".join(map(json.dumps, lines)))

    def run(*words: str, code: int = 0) -> tuple[str, str]:
        capsys.readouterr()
        assert main(["judge-audit", "--labels", "rated.jsonl", "--score", "said", *words]) == code
        shown = capsys.readouterr()
        assert "Traceback" not in shown.err
        return shown.out, shown.err

    return run


def test_sections_of_the_report(audit: Run) -> None:
    out, _ = audit("--threshold", "0.6")
    for text in (
        "said compared with 80 labelled claims",
        "accuracy at 0.6",
        "people among themselves (alpha)",
        "Expected calibration error",
    ):
        assert " ".join(text.split()) in " ".join(out.split())
    assert "\x1b[2J" not in out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--judge", "lexical"), "not allowed with argument"),
        (("--score", "nope"), "there is no 'nope' in it"),
        (("--score", "label"), "rated.jsonl:1"),
        (("--labels", "none.jsonl"), "none.jsonl"),
    ],
)
def test_impossible_requests(audit: Run, words: tuple[str, ...], says: str) -> None:
    assert says in audit(*words, code=2)[1]


def test_scores_that_are_missing(audit: Run) -> None:
    lines = [json.loads(line) for line in Path("rated.jsonl").read_text().splitlines()]
    Path("rated.jsonl").write_text("\n".join(json.dumps({**one, "said": None}) for one in lines))
    out, err = audit(code=3)
    assert "80 claims could not be scored" in out
    assert "the judge could score no claim; nothing was measured." in err
    assert json.loads(audit("--json", code=3)[0])["accuracy"]["value"] is None  # not measured, not 0


def test_a_judge_that_scores_too_few_claims_is_exit_code_3(audit: Run) -> None:
    lines = [json.loads(line) for line in Path("rated.jsonl").read_text().splitlines()]
    some = [{**one, "said": None} if place < 4 else one for place, one in enumerate(lines)]
    Path("rated.jsonl").write_text("\n".join(map(json.dumps, some)))
    _, err = audit(code=3)
    assert "4 of 80 claims failed (said): coverage 95.0%, less than the 99.0% asked for" in err
    audit("--min-coverage", "0.95")
