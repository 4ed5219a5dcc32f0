"""auepora run --resume: what is compared with the stored settings, and what is asked again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from auepora_eval.calls.executors import ThreadExecutor
from auepora_eval.calls.policy import CallPolicy
from auepora_eval.cli.main import main
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.core.systems.named import load_system
from auepora_eval.errors import DataError, RunStoppedError
from auepora_eval.io.loader import load_dataset
from auepora_eval.metrics.parse import parse_metrics
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import plan
from tests.servers import ChatServer, chat_server
from tests.stable import stable_bytes

SIZE = 8
Said = pytest.CaptureFixture[str]
PLAIN = "def answer(query):\n    return 'hello'\n"
MINE = ("--dataset", "d.jsonl", "--system", "mine.py:answer", "--metrics", "exact_match")


def lines(size: int) -> str:
    made = ({"sample_id": f"s{n}", "query": f"q {n}", "reference_answer": "hello"} for n in range(size))
    return "".join(json.dumps(line) + "\n" for line in made)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "d.jsonl").write_text(lines(SIZE), encoding="utf-8")
    (tmp_path / "more.jsonl").write_text(lines(SIZE + 2), encoding="utf-8")
    (tmp_path / "mine.py").write_text(PLAIN, encoding="utf-8")
    (tmp_path / "other.py").write_text(PLAIN.replace("hello", "no"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> int:
    return main(["run", "--out", "out", *words])


def stored() -> EvaluationResultsStorage:
    return EvaluationResultsStorage("out")


def on(server: ChatServer) -> tuple[str, ...]:
    return ("--dataset", "d.jsonl", "--system", f"openai:{server.url}#m", "--metrics", "exact_match")


DIFFERENT = [
    pytest.param(["--metrics", "bleu"], "metrics was exact_match, now it is bleu", id="metrics"),
    pytest.param(["--top-k", "9"], "top_k was 5, now it is 9", id="top_k"),
    pytest.param(["--dataset", "more.jsonl"], "the dataset was 'd', 8 samples, now it is 'more'", id="data"),
    pytest.param(["--limit", "4"], "now it is 'd', 4 samples", id="limit"),
    pytest.param(
        ["--system", "other.py:answer"], "system was 'mine.py:answer', now it is 'other.py:answer'", id="file"
    ),
    pytest.param(["--config", "p.config.yaml"], "top_k was 5, now it is 7", id="plan"),
]


@pytest.mark.parametrize("is_finished", [True, False], ids=["finished", "unfinished"])
@pytest.mark.parametrize(("words", "told"), DIFFERENT)
def test_changed_settings_are_rejected(
    here: Path, capsys: Said, is_finished: bool, words: list[str], told: str
) -> None:
    (here / "p.config.yaml").write_text("top_k: 7\n", encoding="utf-8")
    code = run(*MINE, "--id", "x", *([] if is_finished else ["--budget-calls", "3"]))
    assert code == (0 if is_finished else 1)
    before = {path: path.read_bytes() for path in (here / "out").rglob("*") if path.is_file()}
    capsys.readouterr()
    assert run("--resume", "x", *words, *([] if is_finished else ["--budget-calls", "9"])) == 4
    said = capsys.readouterr().err
    assert told in said
    assert "is finished" not in said
    assert {path: path.read_bytes() for path in (here / "out").rglob("*") if path.is_file()} == before


def test_unchanged_finished_run_stays_finished(here: Path, capsys: Said) -> None:
    assert run(*MINE, "--id", "x") == 0
    for words in ([], MINE, ["--concurrency", "4"], ["--metrics", "exact_match"]):
        capsys.readouterr()
        assert run("--resume", "x", *words) == 0, words
        assert "Run 'x' is already complete; nothing to resume." in capsys.readouterr().err
    # The dataset need not be there, unless something is to be compared.
    (here / "d.jsonl").unlink()
    assert run("--resume", "x") == 0


def test_finished_run_keeps_its_exit_code(here: Path, capsys: Said) -> None:
    (here / "mine.py").write_text(
        "def answer(query):\n    if query in ('q 1', 'q 2'):\n        raise LookupError('no')\n"
        "    return 'hello'\n",
        encoding="utf-8",
    )
    assert run(*MINE, "--id", "x") == 3
    capsys.readouterr()
    assert run("--resume", "x") == 3
    said = capsys.readouterr().err
    assert "2 failures would happen again" in said
    assert "coverage 75.0%, less than the 99.0% asked for" in said
    assert run("--resume", "x", "--json") == 3
    assert run("--resume", "x", "--min-coverage", "0.5") == 0
    assert run(*MINE, "--id", "y", "--min-coverage", "0.7") == 0
    assert run("--resume", "y") == 0
    assert run("--resume", "y", "--min-coverage", "0.9") == 3


def started_in_python(here: Path) -> None:
    plan = EvaluationPlan(parse_metrics("exact_match"))
    evaluator = AueporaEvaluator(
        load_system("mine.py:answer"),
        plan,
        policy=CallPolicy(max_calls=3),
        executor=ThreadExecutor(concurrency=2),
    )
    with pytest.raises(RunStoppedError):
        evaluator.run(load_dataset("d.jsonl"), evaluation_id="x", storage=stored())


def test_python_run_is_resumed_in_python(here: Path, capsys: Said) -> None:
    started_in_python(here)
    for more in ((), ("--dataset", "d.jsonl", "--system", "mine.py:answer")):
        assert run("--resume", "x", *more) == 2
        assert "was started in Python" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((*MINE, "--retry-failed"), "--retry-failed needs a run to resume: add --resume ID."),
        (("--resume", "x", "--id", "y"), "--id y contradicts --resume x: leave one of them out."),
        (("--resume",), "--resume needs a run id: --resume ID. Unfinished: a, b."),
    ],
    ids=["retry", "two ids", "no id"],
)
def test_conflicting_arguments_are_rejected(
    here: Path, capsys: Said, words: tuple[str, ...], told: str
) -> None:
    for name in "ab":
        assert run(*MINE, "--budget-calls", "3", "--id", name) == 1
    capsys.readouterr()
    assert run(*words) == 2
    assert told in capsys.readouterr().err


def test_metrics_keep_their_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path)
    words = ["--dataset", "demo", "--system", "auepora_eval.demo.systems:bm25", "--limit", "12"]
    metrics = ["recall@5", "mrr", "map", "exact_match"]  # not that of the alphabet
    assert main(["run", *words, "--metrics", ",".join(metrics), "--id", "x", "--out", out]) == 0
    storage = EvaluationResultsStorage(out)
    before = storage.load_results("x")
    (tmp_path / "x.results.json").unlink()  # as if it had been killed before the last step
    assert main(["run", "--resume", "x", "--out", out]) == 0
    assert "resuming: 12 of 12" in capsys.readouterr().err
    after = storage.load_results("x")
    assert after["configuration"]["metrics"] == metrics
    assert stable_bytes(after) == stable_bytes(before)


def test_resume_retries_an_outage_of_a_finished_run(here: Path, capsys: Said) -> None:
    with chat_server(["503"] * SIZE + ["ok"]) as server:
        assert run(*on(server), *plan(retries=0), "--id", "x") == 3
        assert stored().load_tally("x").failed == SIZE
        assert run("--resume", "x") == 0
        assert len(server.requests) == 2 * SIZE
        said = capsys.readouterr()
        assert f"resuming: {SIZE} of {SIZE} samples have an output; {SIZE} of them failed" in said.err
        assert f"{SIZE}/{SIZE}" in said.out
        assert stored().load_tally("x").failed == 0
        assert run("--resume", "x") == 0  # now there is nothing to do
        assert len(server.requests) == 2 * SIZE
    assert "nothing to resume." in capsys.readouterr().err
    assert main(["show", "x", "--verify", "--out", "out"]) == 0


def test_retry_failed_repeats_lasting_failures(here: Path, capsys: Said) -> None:
    (here / "mine.py").write_text("def answer(query):\n    raise LookupError(query)\n", encoding="utf-8")
    assert run(*MINE, "--id", "x") == 3
    assert run("--resume", "x") == 3
    assert f"{SIZE} failures would happen again; --retry-failed" in capsys.readouterr().err
    (here / "mine.py").write_text(PLAIN, encoding="utf-8")
    assert run("--resume", "x", "--retry-failed") == 0
    said = capsys.readouterr()
    assert f"{SIZE}/{SIZE}" in said.out
    assert "The file of the system was changed" in said.err
    results = stored().load_results("x")
    first, last = json.loads((here / "out" / "x.results.json").read_text())["configuration"][
        "programs_sha256"
    ]
    assert first != last
    assert results["configuration"]["programs_sha256"] == [first, last]


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
    assert "resume with a larger one" in said
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


# Old results are kept until new ones are complete, and a kill in between is repaired.


@pytest.mark.full
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


@pytest.mark.full
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


@pytest.mark.parametrize(
    ("system", "keys", "why", "kept"),
    [
        ("mine.py:answer", {"budget_calls": 5}, "the budget of 5 calls is used up", 5),
        ("down.py:answer", {"breaker": 3}, "https://u:***@h/ is down", 3),
    ],
)
def test_a_stopped_run_prints_one_json_document(
    here: Path, capsys: Said, system: str, keys: dict[str, object], why: str, kept: int
) -> None:
    text = "def answer(query):\n    raise ConnectionError('https://u:pw-canary@h/ is down')\n"
    (here / "down.py").write_text(text, encoding="utf-8")
    words = ("--dataset", "d.jsonl", "--system", system, "--metrics", "exact_match", "--id", "r")
    assert run(*words, "--json", *plan(**keys)) == 1
    told = json.loads(capsys.readouterr().out)
    assert why in told.pop("stopped")
    resume = "auepora run --resume r --out out"
    assert told == {"evaluation_id": "r", "kept": kept, "samples": SIZE, "resume": resume}
