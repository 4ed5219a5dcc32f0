"""A judge that fails, and a command that is killed: nothing is invented, lost or paid for twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NoReturn
from zlib import crc32

import pytest

from auepora_eval.cli.main import main
from auepora_eval.judges.question import Question, kind_named
from auepora_eval.store.database import Database
from tests.builders import plan
from tests.judges.functions import book_of
from tests.judges.killed_judge import CONCURRENCY, KILLS, RUN, judge_words, prepare
from tests.judges.scripted import Material, material_of, says
from tests.servers import ChatServer, chat_server

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
FAULTS = ("429", "500", "hung", "garbage")


def said(material: Material) -> str:
    """Whether the claim is in the passage, word by word."""
    return "yes" if material["claim"].strip(". ") in material["passage"] else "no"


def chance(material: Material) -> float:
    """A number from 0 to 1 that a question always has."""
    return crc32(json.dumps(dict(material), sort_keys=True).encode()) / 2**32


def failing_server(mode: str, share: list[float]) -> AbstractContextManager[ChatServer]:
    """A server that fails on a share of the questions, however often they are asked; it may be changed."""

    def mode_of(body: dict[str, Any]) -> str:
        return mode if chance(material_of(body)) < share[0] else "ok"

    return chat_server(says=says(said), bare=True, mode_of=mode_of, retry_after="0")


def asked(server: ChatServer, start: int = 0) -> set[str]:
    return {json.dumps(material_of(body), sort_keys=True) for body in server.requests[start:]}


def read_strictly(path: Path) -> dict[str, Any]:
    """The results of a run; a NaN or an infinity is an error."""

    def refuse(constant: str) -> NoReturn:
        raise AssertionError(f"{path.name} has {constant}")

    document: dict[str, Any] = json.loads(path.read_bytes(), parse_constant=refuse)
    return document


def judged_samples(path: Path) -> dict[str, Any]:
    """The score of each sample, or the reason why it has none: (reason, whether it failed)."""
    scores: dict[str, Any] = {}
    for sample in read_strictly(path)["query_results"]:
        missing = sample.get("not_measured", {}).get("judged_faithfulness")
        score = sample["individual_metrics"]["judged_faithfulness"]
        assert (score is None) == (missing is not None)
        scores[sample["query_id"]] = (missing["reason"], missing["failed"]) if missing else score
    return scores


def expected_failures(path: Path) -> set[str]:
    """The samples whose verdict failed."""
    return {verdict.about["sample_id"] for verdict in book_of(path).values() if verdict.failed}


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("mode", FAULTS)
def test_faults_are_counted_and_asked_again(
    mode: str, share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    prepare(limit=24 if share < 1 else 18)  # after 20 equal failures without an answer the command ends
    results, verdicts = tmp_path / f"runs/{RUN}.results.json", tmp_path / f"runs/{RUN}.run.db"
    failing = [share]
    with failing_server(mode, failing) as server:
        flags = ["--concurrency", "32", *plan(judge_retries=0, judge_timeout=0.5)]
        code = main([*judge_words(server.url), *flags])
        failures = expected_failures(verdicts)
        failed_verdicts = [one for one in book_of(verdicts).values() if one.failed]
        assert bool(failed_verdicts) == (share > 0)
        scores = judged_samples(results)
        failed = {sample for sample, score in scores.items() if isinstance(score, tuple) and score[1]}
        assert failed == failures
        value = read_strictly(results)["answer_quality_metrics"]["judged_faithfulness"]["value"]
        assert (value is None) == (len(failures) == len(book_of(verdicts)))
        assert code == (3 if failures else 0)
        # The server is well again: what was answered is not asked a second time.
        failing[0], before = 0.0, len(server.requests)
        assert main(judge_words(server.url)) == 0
        assert len(asked(server, before)) == len(failed_verdicts)
        assert not any(isinstance(score, tuple) and score[1] for score in judged_samples(results).values())
        before = len(server.requests)
        assert main(judge_words(server.url)) == 0
        assert len(server.requests) == before
    # Another server may have another model of that name: it is asked.
    with failing_server(mode, failing) as other:
        assert main(judge_words(other.url)) == 0
        assert 2 * len(asked(other)) == len(book_of(verdicts)), "verdicts of both servers are kept"


def test_a_server_that_never_answers_ends_the_command_and_changes_no_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    prepare()
    results = tmp_path / f"runs/{RUN}.results.json"
    with failing_server("429", [0.0]) as server:
        assert main(judge_words(server.url)) == 0
    before = results.read_bytes()
    with failing_server("429", [1.0]) as server:
        assert main([*judge_words(server.url), *plan(judge_retries=0)]) == 1
        assert len(server.requests) < 40
    assert "samples failed in a row" in capsys.readouterr().err
    assert results.read_bytes() == before


def keys_of(server: ChatServer, session: str, identity: str) -> list[str]:
    """The keys of the questions that a session asked."""
    return [
        Question(kind_named("grounding"), material_of(body)).key(identity)
        for body, headers in zip(server.requests, server.headers, strict=True)
        if headers["Authorization"] == f"Bearer {session}"
    ]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_kills_pay_for_no_verdict_twice(tmp_path: Path) -> None:
    """Twenty kills at random moments; each session is known by the key that it sends."""
    with chat_server(says=says(said, seconds=0.02), bare=True) as server:
        done = subprocess.run(
            [sys.executable, "-m", "tests.judges.killed_judge", str(tmp_path), server.url],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-2000:]
    identity = next(iter(book_of(tmp_path / "killed" / f"{RUN}.run.db").values())).identity
    quiet = book_of(tmp_path / "quiet" / f"{RUN}.run.db")
    stored: set[str] = set()
    total: Counter[str] = Counter()
    for number in range(KILLS + 1):
        session = keys_of(server, f"session-{number}", identity)
        assert not stored.intersection(session), f"session {number} asked what was stored"
        total.update(session)
        stored = set(json.loads((tmp_path / f"verdicts.{number}.json").read_bytes()))
        lost = set(session) - stored
        # Each worker may have had one call under way. A reply that it had received before is stored.
        assert len(lost) <= (CONCURRENCY if number < KILLS else 0), (
            f"session {number} lost {len(lost)} replies"
        )
    path = tmp_path / "killed" / f"{RUN}.run.db"
    killed = book_of(path)
    repeated = total.total() - len(quiet)
    print(f"{KILLS} kills, {len(quiet)} verdicts, {repeated} calls were repeated")
    assert 0 <= repeated <= KILLS * CONCURRENCY
    with Database.read(path) as database:
        ((stored_rows,),) = database.select("SELECT count(*) FROM call WHERE kind = 'judge'")
    assert stored_rows == len(killed), "no verdict is stored twice"
    assert {key: one.score for key, one in killed.items()} == {key: one.score for key, one in quiet.items()}
    one, other = (tmp_path / name / f"{RUN}.results.json" for name in ("quiet", "killed"))
    assert judged_samples(one) == judged_samples(other)
