"""Experiments: who wins, what keeps a leader from winning, and that `compare` and `gate` say the same."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.comparison.compare import compare_runs
from auepora_eval.core.dataset import InMemoryDataset
from auepora_eval.decide.experiment import ExperimentReport, run_experiment, save_experiment
from auepora_eval.errors import StorageError
from auepora_eval.io.config.experiment import Experiment, Variant
from auepora_eval.io.schema import DataFormatValidator
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import a_dataset, a_sample, an_output

EXPERIMENT = Experiment(
    "test",
    (Variant("a"), Variant("b")),
    primary_metric="recall@1",
    secondary_metrics=("token_f1",),
    min_sample_size=10,
)


def world(size: int = 60) -> InMemoryDataset:
    return a_dataset(
        *(a_sample(f"s{n}", f"q {n}", relevant="a", reference="white light") for n in range(size))
    )


def system(hits: int, *, words: int = 1000, seconds: float = 0.1, failing: int = 0) -> Callable[[str], Any]:
    """Finds the document of the first questions, says the right words to the first, fails on the first."""

    def answer(query: str) -> Any:
        number = int(query.split()[1])
        if number < failing:
            raise RuntimeError("down")
        text = "white light" if number < words else "dark"
        return an_output("ab" if number < hits else "ba", text, timings={"end_to_end": seconds})

    return answer


def report(tmp_path: Path, experiment: Experiment, *systems: Any) -> ExperimentReport:
    named = {one.variant_id: each for one, each in zip(experiment.variants, systems, strict=True)}
    return run_experiment(experiment, world(), named, EvaluationResultsStorage(tmp_path))


def guarded(**rules: Any) -> Experiment:
    return replace(EXPERIMENT, guard_rails=rules)


def test_the_better_one_wins(tmp_path: Path) -> None:
    found = report(tmp_path, EXPERIMENT, system(20), system(45))
    assert (found.winner, found.reason) == ("b", "b is better on recall@1 than a (+0.4167, p < 0.001).")
    # The control may win too.
    assert report(tmp_path / "x", EXPERIMENT, system(45), system(20)).winner == "a"


def test_why_a_primary_metric_cannot_be_tested_is_said_whichever_pair_it_is_of(tmp_path: Path) -> None:
    """The last one never declines: it has no precision of declining."""
    dataset = a_dataset(*(a_sample(f"s{n}", f"q {n}", labels={"answerable": n % 2 == 0}) for n in range(40)))

    def declining(every: int) -> Callable[[str], str]:
        return lambda query: "at noon" if int(query.split()[1]) % every else "I don't know."

    variants = (Variant("a"), Variant("b"), Variant("c"))
    experiment = replace(
        EXPERIMENT, variants=variants, primary_metric="abstention_precision", secondary_metrics=()
    )
    systems = {"a": declining(3), "b": declining(5), "c": lambda query: "at noon"}
    found = run_experiment(experiment, dataset, systems, EvaluationResultsStorage(tmp_path))
    assert found.winner == "none"
    assert found.reason.startswith(
        "abstention_precision cannot be tested: it has no value in one of the runs"
    )


@pytest.mark.parametrize("hits", [22, 25, 45])
def test_the_primary_metric_is_compared_as_compare_does(tmp_path: Path, hits: int) -> None:
    found = report(tmp_path, EXPERIMENT, system(20), system(hits))
    runs = (one.run for one in found.runs.values())
    alone = [replace(run, results=[run.result("recall@1")]) for run in runs]
    assert found.primary.pairs[0]["recall@1"] == replace(compare_runs(*alone)["recall@1"], run_to_run=None)


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ({"max_loss": {"mean_latency": 0.5}}, "a loss of 50.0% is allowed"),
        ({"max": {"mean_latency": 0.15}}, "is 0.2 s, at most 0.15 s is required"),
        ({"max": {"failure_rate": 0.05}}, "is 0.1, at most 0.05 is required"),
        ({"max_failed": 0.05}, "max_failed"),
        ({"margin": {"token_f1": 0.05}}, "a loss of 0.05 or more"),
        ({"min": {"token_f1": 0.99}}, "at least 0.99 is required"),
    ],
)
def test_a_guardrail_vetoes_the_winner(tmp_path: Path, rules: dict[str, Any], reason: str) -> None:
    better = system(50, words=40, seconds=0.2, failing=6)
    found = report(tmp_path, guarded(**rules), system(20), better)
    assert found.winner == "none"
    assert found.reason.startswith("b is best on recall@1, but ")
    assert reason in found.reason


def test_what_the_data_cannot_rule_out_is_not_allowed(tmp_path: Path) -> None:
    """One answer of sixty is lost: a loss of 0.02 may be, or may not."""
    found = report(tmp_path, guarded(margin={"token_f1": 0.02}), system(20), system(45, words=59))
    assert found.winner == "none"
    assert "a loss of 0.02 cannot be ruled out" in found.reason


@pytest.mark.parametrize(
    ("changes", "hits", "reason"),
    [
        pytest.param({"min_sample_size": 100}, 45, "60 samples.* 40 are missing", id="too few samples"),
        pytest.param({}, 22, r"inconclusive on .*: b and a .*about \d+ samples", id="inconclusive"),
        pytest.param({"alpha": 1e-9}, 45, "inconclusive", id="a strict alpha"),
        pytest.param({"primary_metric": "mean_latency"}, 45, "cannot be tested: one run each", id="times"),
    ],
)
def test_nobody_wins(tmp_path: Path, changes: dict[str, Any], hits: int, reason: str) -> None:
    found = report(tmp_path, replace(EXPERIMENT, **changes), system(20), system(hits))
    assert found.winner == "none"
    assert re.search(reason, found.reason)


def test_the_best_of_three_must_beat_both(tmp_path: Path) -> None:
    three = replace(EXPERIMENT, variants=tuple(map(Variant, "abc")))
    found = report(tmp_path, three, system(20), system(44), system(45))
    assert found.winner == "none"
    assert "inconclusive on recall@1: c and b" in found.reason
    assert [one.beats for one in found.primary.metrics[0].standings] == [(), (0,), (0,)]


def test_the_document(tmp_path: Path) -> None:
    storage = EvaluationResultsStorage(tmp_path)
    found = report(tmp_path, guarded(max={"failure_rate": 0.05}), system(20), system(45, failing=1))
    path = save_experiment(found, storage)
    assert path.name == "ab_test_test.results.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    assert DataFormatValidator().validate_evaluation_results(document) == []
    assert (document["winner"], document["status"], document["confidence_level"]) == ("b", "completed", 0.95)
    assert document["variant_samples"] == {"a": 60, "b": 60}
    assert document["statistical_tests"]["a_vs_b"]["verdict"] == "better"
    primary = document["primary_metric_results"]
    # What is tested counts the failure; what was answered is beside it.
    assert primary["means"] == {"a": pytest.approx(20 / 60), "b": pytest.approx(44 / 60)}
    assert primary["variant_results"]["b"]["value"] == pytest.approx(44 / 59)
    assert primary["significant"] is True
    assert set(document["secondary_metric_results"]) == {"token_f1"}
    assert [one["variant"] for one in document["guard_rails"]] == ["a", "b"]
    assert document["summary"]["failed_queries"] == 1
    with pytest.raises(StorageError, match="exists already"):
        save_experiment(found, storage)
    save_experiment(found, storage, force=True)


def test_what_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    storage, asked = EvaluationResultsStorage(tmp_path), []

    def counting(query: str) -> Any:
        asked.append(query)
        if len(asked) == 10:
            raise KeyboardInterrupt
        return system(20)(query)

    systems = {"a": counting, "b": system(45)}
    with pytest.raises(KeyboardInterrupt):
        run_experiment(EXPERIMENT, world(), systems, storage)
    assert len(asked) == 10
    for _ in range(2):
        assert run_experiment(EXPERIMENT, world(), systems, storage, resume=True).winner == "b"
    assert len(asked) == 61
    with pytest.raises(StorageError, match="exist"):
        run_experiment(EXPERIMENT, world(), systems, storage)


@pytest.mark.parametrize(
    ("other", "size", "says"),
    [
        pytest.param(Variant("a", arguments={"depth": 2}), 60, "depth was None, now it is 2", id="arguments"),
        pytest.param(Variant("a"), 50, "the dataset was", id="samples"),
    ],
)
def test_another_variant_is_not_resumed(tmp_path: Path, other: Variant, size: int, says: str) -> None:
    storage, systems = EvaluationResultsStorage(tmp_path), {"a": system(20), "b": system(20)}
    run_experiment(EXPERIMENT, world(), systems, storage)
    changed = replace(EXPERIMENT, variants=(other, Variant("b")))
    with pytest.raises(StorageError, match=says):
        run_experiment(changed, world(size), systems, storage, resume=True)
