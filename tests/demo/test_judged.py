"""`auepora demo --judge`: an audit of a judge on claims whose answers are known."""

from __future__ import annotations

import json

import pytest

from auepora_eval.cli.main import main
from auepora_eval.demo import judged
from auepora_eval.demo.judged import judged_claims
from auepora_eval.errors import MissingDependencyError
from auepora_eval.judges.judge import FunctionJudge
from auepora_eval.judges.question import Question


def oracle(question: Question) -> str:
    return "yes" if question.material["claim"] in question.material["passage"] else "no"


def test_the_audit_tells_a_good_judge_from_one_that_says_yes() -> None:
    good, yes = judged_claims(FunctionJudge(oracle)), judged_claims(FunctionJudge(lambda question: "yes"))
    assert (good.yes_of(True), good.yes_of(False)) == ((8, 8), (0, 8))
    assert good.calibration is not None
    assert good.calibration.auroc.value == 1.0
    assert (yes.yes_of(True), yes.yes_of(False)) == ((8, 8), (8, 8))
    assert yes.calibration is not None
    assert yes.calibration.auroc.value == 0.5


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_the_demo_shows_the_audit(
    flags: list[str],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(judged, "judged_by_local_model", lambda: judged_claims(FunctionJudge(oracle)))
    assert main(["demo", "--judge", *flags, "--out", str(tmp_path_factory.mktemp("runs"))]) == 0
    printed = capsys.readouterr().out
    if flags:
        assert json.loads(printed)["judge"]["wrong_claims"] == {"yes": 0, "claims": 8}
    else:
        assert "It said yes to 8 of 8" in " ".join(printed.split())
        assert "too small to trust" in printed


def test_without_the_model_the_demo_says_how_to_install_it(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def missing() -> None:
        raise MissingDependencyError("The local model is not installed: pip install it")

    monkeypatch.setattr(judged, "judged_by_local_model", missing)
    assert main(["demo", "--judge", "--out", str(tmp_path_factory.mktemp("runs"))]) == 0
    assert "The local model is not installed: pip install it" in capsys.readouterr().err
