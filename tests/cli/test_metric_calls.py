"""Metrics that ask a model, on the command line: `run`, `score` and `rescore` make their calls alike."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.cli.main import main
from auepora_eval.core.metrics_base import METRICS

SIZE = 8
JUDGE = '''
import os, threading, time
from pathlib import Path
from auepora_eval import SampleScore, metric

lock, under_way = threading.Lock(), [0]

@metric("slow_judge", target="tone", asks_a_model=True)
def slow_judge(sample, output):
    """A number that a model gives."""
    with lock:
        under_way[0] += 1
        with Path("asked.txt").open("a") as file:
            file.write(sample.sample_id + "\\n")
        with Path("at_once.txt").open("a") as file:
            file.write(f"{under_way[0]}\\n")
    time.sleep(float(os.environ.get("JUDGE_SECONDS", "0")))
    with lock:
        under_way[0] -= 1
    if Path("down").exists() and int(sample.sample_id) >= 3:
        raise KeyboardInterrupt
    usage = {"input_tokens": 8, "output_tokens": 2}
    return SampleScore(int(sample.sample_id) % 2, usage=usage)

def system(query):
    return f"answer to {query}"
'''
COMMANDS = ("run", "score", "rescore")
Command = Callable[..., tuple[str, str]]


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Command]:
    """A project with a stored run `first`; the function runs `run`, `score` or `rescore` with the judge."""
    monkeypatch.chdir(tmp_path)
    module = f"judge_{tmp_path.name}".replace("-", "_")
    Path(f"{module}.py").write_text(JUDGE, encoding="utf-8")
    rows = [{"sample_id": str(n), "query": f"q {n}", "reference_answer": "x"} for n in range(SIZE)]
    Path("d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    start = ["run", "--dataset", "d.jsonl", "--system", f"{module}.py:system"]
    assert main([*start, "--metrics", "token_f1", "--id", "first"]) == 0
    journal = "data/evaluation/results/first.run/journal.jsonl"
    words = {
        "run": start,
        "score": ["score", "--dataset", "d.jsonl", "--outputs", journal],
        "rescore": ["rescore", "first", "--only"],
    }

    def run(name: str, *flags: str, code: int = 0) -> tuple[str, str]:
        capsys.readouterr()
        metrics = [] if "--resume" in flags else [*words[name], "--metrics", f"{module}.py:slow_judge"]
        assert main([*(metrics or ["run"]), *flags]) == code
        printed = capsys.readouterr()
        return printed.out, printed.err

    yield run
    sys.modules.pop(module, None)
    METRICS._things.pop("slow_judge", None)


@pytest.fixture
def experiment(command: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """An experiment on two files of predictions, whose primary metric is the judge."""
    module = f"judge_{tmp_path.name}".replace("-", "_")
    for name in ("old", "new"):
        rows = [{"sample_id": str(n), "retrieved": [], "answer": f"{name} {n}"} for n in range(SIZE)]
        Path(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    def run(plan: str, *flags: str, code: int = 0) -> tuple[str, str]:
        text = f"""dataset: d.jsonl
{plan}
ab_testing:
  experiment_id: words
  variants: [{{variant_id: old, outputs: old.jsonl}}, {{variant_id: new, outputs: new.jsonl}}]
  primary_metric: {module}.py:slow_judge
"""
        Path("words.config.yaml").write_text(text, encoding="utf-8")
        capsys.readouterr()
        assert main(["experiment", "words.config.yaml", *flags]) == code
        printed = capsys.readouterr()
        return printed.out, printed.err

    return run


def asked() -> list[str]:
    path = Path("asked.txt")
    return path.read_text().split() if path.exists() else []


def result(name: str) -> dict[str, Any]:
    document = json.loads(Path(f"data/evaluation/results/{name}.results.json").read_text())
    return next(group["slow_judge"] for group in document.values() if "slow_judge" in group)


@pytest.mark.parametrize("name", COMMANDS)
def test_calls_are_concurrent_and_counted_once(
    command: Command, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_SECONDS", "0.05")
    command(name, "--concurrency", "4", "--id", "x")
    assert sorted(asked()) == [str(n) for n in range(SIZE)]
    assert max(map(int, Path("at_once.txt").read_text().split())) > 1
    assert result("x")["value"] == 0.5


@pytest.mark.parametrize("name", COMMANDS)
def test_a_call_that_takes_too_long_has_failed(
    command: Command, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_SECONDS", "0.3")
    flags = ("--timeout", "0.02", "--concurrency", "8")
    _, err = command(name, *flags, "--id", "x", code=3)
    assert f"{SIZE} of {SIZE} samples failed (slow_judge)" in err
    assert result("x")["value"] is None
    command(name, *flags, "--id", "y", "--min-coverage", "0")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_cache_keeps_the_scores_for_other_runs(command: Command, name: str) -> None:
    command(name, "--cache", "cache", "--id", "x")
    assert len(asked()) == SIZE
    for other in COMMANDS:
        command(other, "--cache", "cache", "--id", f"x-{other}")
        assert result(f"x-{other}")["value"] == 0.5
    assert len(asked()) == SIZE
    _, err = command("run", "--cache", "cache", "--id", "y")
    assert f"{SIZE} scores reused" in err


@pytest.mark.parametrize("name", COMMANDS)
def test_what_was_asked_before_a_stop_is_not_asked_again(command: Command, name: str) -> None:
    Path("down").touch()
    command(name, "--id", "x", code=130)
    assert asked() == ["0", "1", "2", "3"]
    assert not Path("data/evaluation/results/x.results.json").exists()
    Path("down").unlink()
    if name == "run":
        command(name, "--resume", "x")
    else:
        command(name, "--id", "x")
    assert asked() == ["0", "1", "2", "3", *map(str, range(3, SIZE))]
    assert result("x")["value"] == 0.5


@pytest.mark.parametrize("name", ["score", "rescore"])
def test_a_stopped_command_says_how_its_scores_are_used(command: Command, name: str) -> None:
    Path("down").touch()
    _, err = command(name, "--id", "x", code=130)
    assert "kept: 3 scores in data/evaluation/results/x.run/scores" in err
    assert "Repeat the command with --id x to use them." in err


@pytest.mark.parametrize("name", COMMANDS)
def test_a_budget_covers_the_calls_of_metrics(command: Command, name: str) -> None:
    # A run calls its system first: one budget for both.
    calls = 3 + (SIZE if name == "run" else 0)
    _, err = command(name, "--budget-calls", str(calls), "--id", "x", code=1)
    assert f"the budget of {calls} calls is used up" in err
    assert asked() == ["0", "1", "2"]
    more = str(calls + 2)
    flags = ("--resume", "x") if name == "run" else ("--id", "x")
    _, err = command(name, *flags, "--budget-calls", more, code=1)
    assert asked() == ["0", "1", "2", "3", "4"]  # the three of the first session count
    command(name, *flags, "--budget-calls", "100")
    assert len(asked()) == SIZE
    assert result("x")["value"] == 0.5


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize(
    ("budget", "more", "words"),
    [
        # 10 tokens each, 8 of them input.
        pytest.param(["--budget-tokens", "30"], ["--budget-tokens", "50"], "30 tokens", id="tokens"),
        pytest.param(["--budget-cost", "3"], ["--budget-cost", "5"], "3.0000 US dollars", id="cost"),
    ],
)
def test_budgets_count_the_tokens_of_metrics(
    command: Command, name: str, budget: list[str], more: list[str], words: str
) -> None:
    prices = ["--price-input", "100", "--price-output", "100"]
    _, err = command(name, *budget, *prices, "--id", "x", code=1)
    assert f"stopped: {words} were" in err
    assert asked() == ["0", "1", "2"]
    flags = ("--resume", "x") if name == "run" else ("--id", "x", *prices)
    command(name, *flags, *more, code=1)
    assert asked() == ["0", "1", "2", "3", "4"]  # the tokens of the first session count


def test_tokens_that_a_metric_reports_are_counted_without_a_warning(command: Command) -> None:
    _, err = command("rescore", "--budget-tokens", "1000", "--id", "x")
    assert "tokens" not in err


def test_an_experiment_on_predictions_asks_concurrently(
    experiment: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_SECONDS", "0.05")
    experiment("concurrency: 4")
    assert len(asked()) == 2 * SIZE
    assert max(map(int, Path("at_once.txt").read_text().split())) > 1
    experiment("concurrency: 4", "--resume")
    assert len(asked()) == 2 * SIZE  # nothing is asked twice
    experiment("concurrency: 4", "--force")
    assert len(asked()) == 4 * SIZE


def test_an_experiment_on_predictions_has_budgets_and_a_cache(experiment: Command) -> None:
    _, err = experiment("budget_tokens: 30\ncache: answers", code=1)
    assert "30 tokens were used, of a budget of 30" in err
    assert asked() == ["0", "1", "2"]
    experiment("budget_tokens: 1000\ncache: answers", "--resume")
    assert len(asked()) == 2 * SIZE
    experiment("cache: answers", "--force")
    assert len(asked()) == 2 * SIZE
