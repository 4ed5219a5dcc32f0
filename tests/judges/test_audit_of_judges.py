"""judge-audit of judges that are asked: functions and models on loopback."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest

from auepora_eval.calls.chat import ChatModel
from auepora_eval.cli.main import main
from auepora_eval.judges.ask import Asking
from auepora_eval.judges.llm import LlmJudge
from auepora_eval.judges.trust.audit import judge_scores, read_audit
from auepora_eval.judges.trust.calibration import calibrate
from auepora_eval.judges.trust.labels import Labelled
from tests.builders import plan
from tests.judges.scripted import Material, Rule, judge_server, supported

FERRY = "The ferry leaves at noon."
CLAIMS = [
    *(Labelled((FERRY, f"Car {n} is red."), f"Car {n} is red.", True) for n in range(30)),
    *(Labelled((FERRY, f"Car {n} is red."), f"Car {n} is blue.", False) for n in range(30)),
]


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    path = tmp_path / "labels.jsonl"
    records = [
        {"evidence": list(one.evidence), "claim": one.claim, "label": int(one.is_supported)} for one in CLAIMS
    ]
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    return path


def test_the_command_audits_a_model_and_stores_what_it_found(
    labels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, cache = tmp_path / "runs", tmp_path / "cache"
    with judge_server(supported) as server:
        command = ["judge-audit", "--labels", str(labels), "--judge", f"{server.url}#small"]
        command += [*plan(tmp_path, judge_mode="label"), "--out", str(out), "--cache", str(cache)]
        assert main(command) == 0
        calls = len(server.requests)
        first = capsys.readouterr()
        assert main(command) == 0
        assert len(server.requests) == calls == 60, "the cache has every verdict"
        again = capsys.readouterr()
    assert "AUROC (0.5 is chance) 1.0000" in " ".join(first.out.split())
    assert "accuracy at 0.5" in first.out
    assert again.out == first.out
    assert "stored: grounding/small@" in first.err
    identity = first.err.split("stored: ")[1].split(": AUROC")[0]
    stored = read_audit(out, identity).calibration
    assert stored is not None
    assert (stored.labels, stored.auroc.value) == (60, 1.0)


def noisy(material: Material) -> str:
    """A judge with sensitivity 0.9 and specificity 0.8, the same for the same claim each time."""
    chance = zlib.crc32(material["claim"].encode()) % 1_000 / 1_000
    truth = supported(material) == "yes"
    return "yes" if (chance < 0.9 if truth else chance >= 0.8) else "no"


@pytest.mark.parametrize(
    ("rule", "auroc", "sensitivity", "specificity"),
    [
        pytest.param(supported, 1.0, 1.0, 1.0, id="oracle"),
        pytest.param(lambda each: "no" if supported(each) == "yes" else "yes", 0.0, 0.0, 0.0, id="inverse"),
        pytest.param(lambda each: "yes", 0.5, 1.0, 0.0, id="always yes"),
        pytest.param(noisy, 0.85, 0.9, 0.8, id="noisy"),
    ],
)
@pytest.mark.parametrize("mode", ["label", "logprob"])
def test_models_on_loopback(
    rule: Rule, auroc: float, sensitivity: float, specificity: float, mode: str
) -> None:
    claims = [Labelled((f"Car {n} is red.",), f"Car {n} is red.", True) for n in range(60)]
    claims += [Labelled((f"Car {n} is red.",), f"Car {n} is blue.", False) for n in range(60)]
    with judge_server(rule) as server, ChatModel(server.url, "m", timeout=10) as chat:
        scores = judge_scores(Asking(LlmJudge(chat, mode)), claims)
    found = calibrate("m", scores, claims, date="d")
    assert found.auroc.value == pytest.approx(auroc, abs=0.08)
    assert found.sensitivity.value == pytest.approx(sensitivity, abs=0.08)
    assert found.specificity.value == pytest.approx(specificity, abs=0.12)


def test_the_command_takes_juries_and_functions(
    labels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    common = ["judge-audit", "--labels", str(labels), "--out", str(tmp_path / "runs")]
    assert main([*common, "--judge", "jury:[support:lexical,support:consistent]", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["identity"].startswith("grounding/jury:[grounding/support:lexical")
    assert main([*common, "--judge", "tests.judges.functions:ORACLE"]) == 0
    assert "compared with 60 labelled claims, 30 of the scored ones supported" in capsys.readouterr().out
    assert main([*common, "--judge", "support:nonsense"]) == 2
    assert "nonsense" in capsys.readouterr().err
