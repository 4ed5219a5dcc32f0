"""What a real model said about 100 claims, replayed: the same bytes each time, and an audit of chance.

tests/golden/judge_cassette has the claims and the verdicts; tests/judges/record_cassette.py recorded them.
"""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest

from auepora_eval.cli.main import main
from auepora_eval.judges.ask import Asking, stored_verdicts
from auepora_eval.judges.judge import FunctionJudge
from auepora_eval.judges.question import Judgement, Question, claim_material, kind_named
from auepora_eval.judges.trust.record import trust_of
from auepora_eval.store.database import Database
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.judges.record_cassette import CASSETTE, COUNT, LABELS, PREDICTIONS, score, write_material


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the run of the cassette, on a machine without a network."""

    def no_network(*args: object, **options: object) -> None:
        raise AssertionError("a replay opens no connection")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    assert score(CASSETTE, tmp_path / "runs") == 0
    return tmp_path / "runs"


def database(folder: Path) -> Path:
    """The cassette as the database of a run."""
    path = folder / "verdicts.run.db"
    if not path.exists():
        lines = (CASSETTE / "verdicts.jsonl").read_bytes().splitlines()
        with Database.write(path) as target:
            asking = Asking(FunctionJudge(str), database=target)
            for line in lines:
                verdict = msgspec.json.decode(line, type=Judgement)
                asked = asking.judge, Question(kind_named("support"), {})  # whom and what: not stored
                asking._store(asked, verdict)
            target.set_meta(judge=json.loads((CASSETTE / "judge.json").read_bytes()))
    return path


def replay(out: Path, *flags: str) -> bytes:
    """Replay the cassette and return the stored results, without the moment when they were stored."""
    replayed = str(database(out.parent))
    code = main(["judge", "cassette", "--replay", replayed, "--out", str(out), *flags])
    assert code == 3, "many verdicts of this model are void, and a run with that coverage is not passed"
    document: dict[str, Any] = json.loads((out / "cassette.results.json").read_bytes())
    del document["_metadata"]
    return json.dumps(document).encode()


def test_the_cassette_is_of_these_claims_and_this_prompt(tmp_path: Path) -> None:
    write_material(tmp_path)
    for name in (PREDICTIONS, LABELS):
        assert (tmp_path / name).read_bytes() == (CASSETTE / name).read_bytes()
    stored = stored_verdicts(database(tmp_path))
    known = {verdict.key for verdict in stored}
    identity = next(verdict.identity for verdict in stored if verdict.kind == "grounding")
    labelled = [json.loads(line) for line in (CASSETTE / LABELS).read_text("utf-8").splitlines()]
    kind = kind_named("grounding")
    keys = [
        Question(kind, claim_material(kind, one["claim"], [one["evidence"]])).key(identity)
        for one in labelled
    ]
    assert len({*keys}) == COUNT
    assert known.issuperset(keys), "a prompt has changed: record again (record_cassette.py)"


def test_replays_have_the_same_bytes_whatever_the_concurrency(out: Path) -> None:
    first = replay(out)
    for concurrency in ("1", "8", "32", "1", "8", "32"):
        assert replay(out, "--concurrency", concurrency) == first
    fresh = out.parent / "fresh"
    assert score(CASSETTE, fresh) == 0
    # Two stored runs differ in the moment when the answers were scored, and in nothing else.
    one, other = (json.loads(each)["answer_quality_metrics"] for each in (first, replay(fresh)))
    assert one == other


def test_the_audit_of_a_model_that_is_too_small_finds_chance(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replay(out, "--calibrate", str(CASSETTE / LABELS), "--probe")
    printed = capsys.readouterr().out
    assert "degraded" in printed
    result = EvaluationResultsStorage(out).load_run("cassette")["judged_faithfulness"]
    trust = trust_of(result)
    assert trust is not None
    assert trust.calibration is not None
    interval = trust.calibration.auroc.confidence_interval
    assert interval is not None
    print(f"AUROC {trust.calibration.auroc}, {trust.calibration.labels} of {COUNT} verdicts have a score")
    print(f"degraded by the probes {', '.join(trust.degraded)}")
    assert interval[0] <= 0.5 <= interval[1]
    assert trust.degraded
    shutil.rmtree(out / "judges")  # the audit is stored beside the runs
