"""auepora score and rescore on several processors: the same results, and errors."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from auepora_eval.cli.main import main
from auepora_eval.core import scoring as scored_chunks
from auepora_eval.runs.store.storage import EvaluationResultsStorage
from tests.stable import stable_bytes

SIZE = 1_700
WORDS = ["north", "pier", "light", "boat", "keeper"]
METRICS = "recall@3,token_f1,rougeLsum,failure_rate"
Run = Callable[..., str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("scoring")
    with (here / "d.jsonl").open("w") as data, (here / "p.jsonl").open("w") as outputs:
        for n in range(SIZE):
            answer = " ".join(WORDS[(n + place) % 5] for place in range(n % 7))
            gold = {"relevant_docs": [f"d{n % 3}"], "reference_answer": "north pier light"}
            data.write(json.dumps({"sample_id": f"s{n}", "query": f"query {n}", **gold}) + "\n")
            if n % 50 != 7:  # a sample without a line has failed
                found = {"sample_id": f"s{n}", "retrieved": ["d0", "d1"], "answer": answer}
                outputs.write(json.dumps(found) + "\n")
    return here


@pytest.fixture
def auepora(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(scored_chunks, "WORTH_SENDING", 0.0)

    def run(*words: str, code: int) -> str:
        assert main([*words, "--out", "runs"]) == code
        return capsys.readouterr().err

    return run


def stored(name: str) -> bytes:
    return stable_bytes(EvaluationResultsStorage("runs").load_results(name))


def others_cpu() -> float:
    """Processor time of processes that this one has started and that have ended."""
    times = psutil.Process().cpu_times()
    return float(times.children_user + times.children_system)


@pytest.mark.skipif(sys.platform == "win32", reason="the time of ended processes is not known here")
@pytest.mark.parametrize("flags", [("--executor", "processes", "--concurrency", "2"), ("--concurrency", "2")])
def test_workers_score_the_same(auepora: Run, flags: tuple[str, ...]) -> None:
    name = f"a{len(flags)}"
    score = ("score", "--dataset", "d.jsonl", "--outputs", "p.jsonl", "--metrics", METRICS)
    before = others_cpu()
    auepora(*score, "--id", f"{name}-plain", code=3)  # some samples have failed: coverage is not whole
    assert others_cpu() == before
    err = auepora(*score, "--id", name, *flags, code=3)
    assert others_cpu() > before
    assert "scored here" not in err
    assert stored(name) == stored(f"{name}-plain")
    rescore = ("rescore", name, "--metrics", "bleu,chrf,mrr")
    auepora(*rescore, "--id", f"{name}-more-plain", code=0)
    before = others_cpu()
    auepora(*rescore, "--id", f"{name}-more", *flags, code=0)
    assert others_cpu() > before
    assert stored(f"{name}-more") == stored(f"{name}-more-plain")


def test_ray_address_needs_the_ray_executor(auepora: Run) -> None:
    for words in (("score", "--dataset", "d.jsonl", "--outputs", "p.jsonl"), ("rescore", "none")):
        err = auepora(*words, "--metrics", "mrr", "--address", "auto", code=2)
        assert "--address is for a cluster: add --executor ray" in err


def test_threads_cannot_score(auepora: Run) -> None:
    err = auepora("rescore", "a", "--metrics", "mrr", "--executor", "threads", code=2)
    assert "invalid choice: 'threads'" in err
