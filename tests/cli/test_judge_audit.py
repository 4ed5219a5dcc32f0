"""auepora judge-audit: several raters, stored scores, unlabelled claims."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import pearsonr, spearmanr

from auepora_eval.cli.main import main

Run = Callable[..., tuple[str, str]]


@pytest.fixture
def audit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Eighty rated answers and two hundred that only the judge has seen; it says a little too much."""
    chance = random.Random(5)
    monkeypatch.chdir(tmp_path)

    def answer(place: int) -> dict[str, Any]:
        good = chance.random()
        stars = [min(4, max(1, round(1 + 3 * good + chance.gauss(0, 0.5)))) for _ in range(3)]
        said = min(5.0, max(1.0, 1.4 + 4 * good + chance.gauss(0, 0.4)))
        return {
            "stars": dict(zip(("ada", "ben", "c\x1b[2J"), stars, strict=True)),
            "said": said,
            "set": "xy"[place % 2],
        }

    answers = [answer(place) for place in range(280)]
    Path("rated.jsonl").write_text("\n".join(map(json.dumps, answers[:80])))
    rest = [{"said": one["said"], "set": "x"} for one in answers[80:]]
    Path("rest.jsonl").write_text("\n".join(map(json.dumps, rest)))

    def run(*words: str, columns: tuple[str, ...] = (), code: int = 0) -> tuple[str, str]:
        capsys.readouterr()
        named = ",".join(["label=stars", *columns])
        flags = ["--labels", "rated.jsonl", "--columns", named, "--scale", "1,4", "--score", "said"]
        assert main(["judge-audit", *flags, "--score-scale", "1,5", *words]) == code
        shown = capsys.readouterr()
        assert "Traceback" not in shown.err
        return shown.out, shown.err

    return run


def test_sections_of_the_report(audit: Run) -> None:
    words = ("--unlabelled", "rest.jsonl", "--threshold", "0.6")
    out, _ = audit(*words, columns=("by=set",))
    for text in (
        "said compared with 80 labelled claims",
        "accuracy at 0.6",
        "mean of the judge minus that",
        "Expected calibration error",
        "The human ceiling: 3 people, 80 claims rated by several",
        "Estimate for all claims: 80 with a label, 200 without",
        "80 labels are worth about",
    ):
        assert " ".join(text.split()) in " ".join(out.split())
    assert "\x1b[2J" not in out


def test_json_output(audit: Run) -> None:
    document = json.loads(audit("--unlabelled", "rest.jsonl", "--json")[0])
    assert document["judge"] == "said"
    assert document["calibration"]["bins"] == len(document["calibration"]["table"]) == 10
    assert document["bias"]["value"] > 0
    mean = document["estimate"]["mean"]
    assert mean["judge_alone"] > mean["corrected"]["value"]
    again = json.loads(audit("--unlabelled", "rest.jsonl", "--json")[0])
    assert again == document


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--scale", "4,1"), "is not a number and a higher one"),
        (("--scale", "1,3"), "rated.jsonl:"),
        (("--judge", "lexical"), "not allowed with argument"),
        (("--unscored-as", "2"), "is not from 0 to 1"),
        (("--columns", "label=stars,cluster=nope"), "there is no 'nope' in it. Name the column: --columns"),
        (("--columns", "colour=set"), "--columns has no 'colour'. There are evidence, claim"),
        (("--unlabelled", "none.jsonl"), "none.jsonl"),
        (("--unlabelled", "one.jsonl"), "A correction needs at least two of each"),
    ],
)
def test_impossible_requests(audit: Run, words: tuple[str, ...], says: str) -> None:
    Path("one.jsonl").write_text('{"said": 3}')
    assert says in audit(*words, code=2)[1]


def test_scores_that_are_missing(audit: Run) -> None:
    lines = [json.loads(line) for line in Path("rated.jsonl").read_text().splitlines()]
    Path("rated.jsonl").write_text("\n".join(json.dumps({**one, "said": None}) for one in lines))
    out, err = audit(code=3)
    assert "80 claims could not be scored" in out
    assert "the judge could score no claim; nothing was measured." in err
    assert json.loads(audit("--json", code=3)[0])["accuracy"]["value"] is None  # not measured, not 0
    assert "nothing to draw" in audit("--plot", "c.png", code=2)[1]
    assert "80 labelled claims" in audit("--unscored-as", "0")[0]
    assert "could not be scored" not in audit("--unscored-as", "0")[0]


def test_a_judge_that_scores_too_few_claims_is_exit_code_3(audit: Run) -> None:
    lines = [json.loads(line) for line in Path("rated.jsonl").read_text().splitlines()]
    some = [{**one, "said": None} if place < 4 else one for place, one in enumerate(lines)]
    Path("rated.jsonl").write_text("\n".join(map(json.dumps, some)))
    _, err = audit(code=3)
    assert "4 of 80 claims failed (said): coverage 95.0%, less than the 99.0% asked for" in err
    audit("--min-coverage", "0.95")
    audit("--unscored-as", "0")


@pytest.mark.parametrize("scale", [True, False])
def test_labels_of_0_and_1_have_correlations_if_they_are_on_a_scale(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], scale: bool
) -> None:
    rows = [(0.9, 1), (0.8, 1), (0.6, 0), (0.4, 1), (0.3, 0), (0.1, 0)]
    lines = [json.dumps({"label": label, "judge": score}) for score, label in rows]
    (tmp_path / "rated.jsonl").write_text("\n".join(lines), encoding="utf-8")
    words = ["judge-audit", "--labels", str(tmp_path / "rated.jsonl"), "--score", "judge"]
    flags = ["--scale", "0,1"] if scale else []
    assert main([*words, *flags, "--json"]) == 0
    correlations = json.loads(capsys.readouterr().out)["correlation"]
    if not scale:
        assert correlations is None
        return
    scores, labels = zip(*rows, strict=True)
    assert correlations["pearson"]["value"] == pytest.approx(pearsonr(scores, labels).statistic)
    assert correlations["spearman"]["value"] == pytest.approx(spearmanr(scores, labels).statistic)
    assert main([*words, *flags]) == 0
    assert "Spearman with people's mean" in capsys.readouterr().out
