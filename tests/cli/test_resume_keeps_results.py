"""Resume keeps old results until new ones are complete, and a kill in between is repaired."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from auepora_eval.cli.main import main
from auepora_eval.errors import DataError
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import plan
from tests.servers import ChatServer, chat_server

pytestmark = pytest.mark.full

SIZE = 8
Said = pytest.CaptureFixture[str]
PLAIN = "def answer(query):\n    return 'hello'\n"


def lines(size: int, answer: str = "hello") -> str:
    made = ({"sample_id": f"s{n}", "query": f"q {n}", "reference_answer": answer} for n in range(size))
    return "".join(json.dumps(line) + "\n" for line in made)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "d.jsonl").write_text(lines(SIZE), encoding="utf-8")
    (tmp_path / "mine.py").write_text(PLAIN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> int:
    return main(["run", "--out", "out", *words])


def on(server: ChatServer) -> tuple[str, ...]:
    return ("--dataset", "d.jsonl", "--system", f"openai:{server.url}#m", "--metrics", "exact_match")


def stored() -> EvaluationResultsStorage:
    return EvaluationResultsStorage("out")


def test_old_results_are_kept_until_new_ones_are_complete(here: Path, capsys: Said) -> None:
    # Three of eight fail; the first time that the run is gone on with, one of them is mended; then none.
    answers = ["ok"] * 5 + ["503"] * 3 + ["ok"] + ["503"] * 5 + ["ok"]
    with chat_server(answers) as server:
        assert run(*on(server), *plan(retries=0), "--id", "x") == 3
        before = (here / "out" / "x.results.json").read_bytes()
        outputs = stored().load_run("x").outputs
        capsys.readouterr()
        assert run("--resume", "x", *plan(breaker=1)) == 1
        said = capsys.readouterr().err
        assert f"kept: {SIZE} outputs" in said
        assert "The results of x stay until there are new ones." in said
        assert "resume: auepora run --resume x --out out" in said
        assert (here / "out" / "x.results.json").read_bytes() == before
        assert stored().load_run("x").outputs == outputs  # also the one that is mended by now
        for words in (
            ["show", "x"],
            ["list"],
            ["show", "x", "--verify"],
            ["score", "--run", "x", "--metrics", "token_f1"],
        ):
            assert main([*words, "--out", "out"]) in (0, 3), words
        capsys.readouterr()
        assert run("--resume", "x", *plan(breaker=9)) == 3
        assert "2 of them failed and are retried" in capsys.readouterr().err
        assert stored().load_tally("x").failed == 2
        assert stored().load_run("x").outputs != outputs
        assert run("--resume", "x") == 3
        assert run("--resume", "x") == 0
    assert stored().load_tally("x").failed == 0
    assert main(["show", "x", "--verify", "--out", "out"]) == 0


FLAKY = """
import os
def answer(query):
    if query in os.environ.get('FAILS', ''):
        raise TimeoutError('late')
    return 'hello'
"""
KILLED_AT_A_RENAME = """
import os, signal, sys
from pathlib import Path
real, left = Path.replace, [int(sys.argv[1])]
def replace(self, target):
    left[0] -= 1
    if left[0] == 0: os.kill(os.getpid(), signal.SIGKILL)
    return real(self, target)
Path.replace = replace
from auepora_eval.cli.main import main
sys.exit(main(sys.argv[2:]))
"""


def killed_at(moment: int, folder: Path, *words: str, fails: str = "") -> int:
    """The exit code of a run in a folder that is killed at its so manieth rename."""
    return subprocess.run(
        [sys.executable, "-c", KILLED_AT_A_RENAME, str(moment), "run", "--out", "out", *words],
        cwd=folder,
        env=os.environ | {"FAILS": fails},
        capture_output=True,
        check=False,
    ).returncode


@pytest.fixture(scope="module")
def with_two_failed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of which two samples have failed."""
    folder = tmp_path_factory.mktemp("two_failed")
    (folder / "d.jsonl").write_text(lines(SIZE), encoding="utf-8")
    (folder / "flaky.py").write_text(FLAKY, encoding="utf-8")
    words = ("--dataset", "d.jsonl", "--system", "flaky.py:answer", "--metrics", "exact_match", "--id", "x")
    assert killed_at(99, folder, *words, fails="q 1, q 2") == 3
    return folder


def test_a_kill_before_the_results_have_their_name_is_repaired_by_a_resume(
    with_two_failed: Path, here: Path
) -> None:
    """The database has the new results, the document the old ones: a mixture is an error."""
    shutil.copytree(with_two_failed, here, dirs_exist_ok=True)
    assert killed_at(1, here, "--resume", "x") == -signal.SIGKILL
    with pytest.raises(DataError, match="Resume the run"):
        stored().load_run("x")
    assert run("--resume", "x") == 0
    assert stored().load_tally("x").failed == 0
    assert main(["show", "x", "--verify", "--out", "out"]) == 0
    assert sorted(path.name for path in (here / "out").iterdir()) == ["x.results.json", "x.run.db"]
