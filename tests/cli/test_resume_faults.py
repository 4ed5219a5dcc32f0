"""Resume after an outage, a spent budget or a change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auepora_eval.cli.main import main
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import plan
from tests.servers import ChatServer, chat_server

SIZE = 8
Said = pytest.CaptureFixture[str]


def lines(size: int) -> str:
    made = ({"sample_id": f"s{n}", "query": f"q {n}", "reference_answer": "hello"} for n in range(size))
    return "".join(json.dumps(line) + "\n" for line in made)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "d.jsonl").write_text(lines(SIZE), encoding="utf-8")
    (tmp_path / "mine.py").write_text("def answer(query):\n    return 'hello'\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> int:
    return main(["run", "--out", "out", *words])


def on(server: ChatServer) -> tuple[str, ...]:
    return ("--dataset", "d.jsonl", "--system", f"openai:{server.url}#m", "--metrics", "exact_match")


MINE = ("--dataset", "d.jsonl", "--system", "mine.py:answer", "--metrics", "exact_match")


def test_resume_retries_an_outage_of_a_finished_run(here: Path, capsys: Said) -> None:
    with chat_server(["503"] * SIZE + ["ok"]) as server:
        assert run(*on(server), *plan(retries=0), "--id", "x") == 3
        assert EvaluationResultsStorage("out").load_tally("x").failed == SIZE
        assert run("--resume", "x") == 0
        assert len(server.requests) == 2 * SIZE
        said = capsys.readouterr()
        assert f"resuming: {SIZE} of {SIZE} samples have an output; {SIZE} of them failed" in said.err
        assert f"{SIZE}/{SIZE}" in said.out
        assert EvaluationResultsStorage("out").load_tally("x").failed == 0
        assert run("--resume", "x") == 0  # now there is nothing to do
        assert len(server.requests) == 2 * SIZE
    assert "nothing to resume." in capsys.readouterr().err
    assert main(["show", "x", "--verify", "--out", "out"]) == 0


def test_retry_failed_repeats_lasting_failures(here: Path, capsys: Said) -> None:
    (here / "mine.py").write_text("def answer(query):\n    raise LookupError(query)\n", encoding="utf-8")
    assert run(*MINE, "--id", "x") == 3
    assert run("--resume", "x") == 3
    assert f"{SIZE} failures would happen again; --retry-failed" in capsys.readouterr().err
    (here / "mine.py").write_text("def answer(query):\n    return 'hello'\n", encoding="utf-8")
    assert run("--resume", "x", "--retry-failed") == 0
    said = capsys.readouterr()
    assert f"{SIZE}/{SIZE}" in said.out
    assert "The file of the system was changed" in said.err
    stored = EvaluationResultsStorage("out").load_results("x")
    first, last = json.loads((here / "out" / "x.results.json").read_text())["configuration"][
        "programs_sha256"
    ]
    assert first != last
    assert stored["configuration"]["programs_sha256"] == [first, last]


def test_an_answer_to_another_prompt_is_not_in_the_cache(here: Path, capsys: Said) -> None:
    cached = ("--cache", "cache")
    prompt = here / "mine.md"
    with chat_server() as server:
        for name, text, asked in [
            ("a", "", SIZE),
            ("b", "Say {{material}}", SIZE),
            ("c", "Tell {{material}}", SIZE),
        ]:
            prompt.write_text(f"# system\nAnswer.\n# user\n{text}\n", encoding="utf-8")
            server.requests.clear()
            assert run(*on(server), *cached, "--id", name, *(plan(prompt="mine.md") if text else ())) == 0
            assert len(server.requests) == asked
        server.requests.clear()
        assert run(*on(server), *cached, "--id", "d", *plan(prompt="mine.md")) == 0
        assert server.requests == []
    assert f"cache: {SIZE} of {SIZE} answers reused" in capsys.readouterr().err


def test_spent_budget_needs_a_new_one(here: Path, capsys: Said) -> None:
    (here / "mine.py").write_text(
        "def answer(query):\n    print('ASKED')\n    return 'hello'\n", encoding="utf-8"
    )
    assert run(*MINE, "--budget-calls", "3", "--id", "x") == 1
    said = capsys.readouterr().err
    assert said.count("ASKED") == 3
    assert "resume with a larger number for --budget-calls" in said
    assert run("--resume", "x") == 1
    said = capsys.readouterr().err
    assert "ASKED" not in said
    assert "the budget of 3 calls is used up" in said
    assert run("--resume", "x", "--budget-calls", "5") == 1
    assert capsys.readouterr().err.count("ASKED") == 2
    assert run("--resume", "x", "--budget-calls", "9") == 0
    assert capsys.readouterr().err.count("ASKED") == 3


def test_other_server_or_prompt_is_rejected(here: Path, capsys: Said) -> None:
    (here / "mine.md").write_text("# system\nAnswer.\n# user\nSay {{material}}\n", encoding="utf-8")
    with chat_server() as server, chat_server() as other:
        assert run(*on(server), *plan(prompt="mine.md"), "--budget-calls", "3", "--id", "x") == 1
        capsys.readouterr()
        again = ("--resume", "x", "--budget-calls", "9")
        assert run(*again, "--system", f"openai:{other.url}#m") == 4
        said = capsys.readouterr().err
        assert "is another run: endpoint was" in said
        assert "resuming" not in said
        assert "resume:" not in said
        (here / "mine.md").write_text("# system\nAnswer.\n# user\nTell {{material}}\n")
        assert run(*again) == 4
        assert "prompt_sha256 was" in capsys.readouterr().err
        assert (len(server.requests), len(other.requests)) == (3, 0)
