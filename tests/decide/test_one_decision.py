"""The same rule on the same runs has the same outcome in gate (command and Python), experiment and pytest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import auepora_eval as ae
from auepora_eval import EvaluationResultsStorage
from auepora_eval.cli.main import main
from auepora_eval.core.verdict import Outcome
from auepora_eval.pytest_plugin import Gate

SYSTEM = """
class Rag:
    def __init__(self, right, fails=0):
        self.right, self.fails = right, fails
    def __call__(self, query):
        number = int(query.split()[1])
        if number >= 40 - self.fails:
            raise RuntimeError("down")
        good = number < self.right
        return [("light" if good else "ferry", "text")], "white" if good else "no"
"""
SIZE = 40
# The control has 30 of 40 right.
CHANGES: dict[str, dict[str, Any]] = {
    "the same": {"right": 30},
    "one lost": {"right": 29},
    "many lost": {"right": 15},
    "better": {"right": 38},
    "crashing": {"right": 30, "fails": 6},
}
RULES = [
    ("min", "hit@1", 0.7),
    ("min", "nonsense", 1.0),
    ("max", "failure_rate", 0.05),
    ("margin", "hit@1", 0.1),
    ("max_loss", "hit@1", 0.1),
]
RAILS = {kind: {name: limit for one, name, limit in RULES if one == kind} for kind, _, _ in RULES}


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The results of an experiment for each change, in the folder that is the current one."""
    folder = tmp_path_factory.mktemp("one_decision")
    sample = {"relevant_docs": ["light"], "reference_answer": "white"}
    rows = (json.dumps({"sample_id": f"{n}", "query": f"q {n}", **sample}) for n in range(SIZE))
    (folder / "d.jsonl").write_text("\n".join(rows), encoding="utf-8")
    (folder / "decided_rag.py").write_text(SYSTEM, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield {change: experiment(change.replace(" ", "_"), made) for change, made in CHANGES.items()}


def experiment(name: str, made: dict[str, Any]) -> dict[str, Any]:
    variants = [
        {"variant_id": one, "system": "decided_rag.py:Rag", "config_overrides": arguments}
        for one, arguments in (("a", {"right": 30}), ("b", made))
    ]
    block = {"experiment_id": name, "variants": variants, "primary_metric": "hit@1", "min_sample_size": 1}
    plan = {"dataset": "d.jsonl", "ab_testing": {**block, "guard_rails": RAILS}}
    Path("e.config.json").write_text(json.dumps(plan), encoding="utf-8")
    assert main(["experiment", "e.config.json"]) == 0
    found: dict[str, Any] = EvaluationResultsStorage().load_results(f"ab_test_{name}")
    return found


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(("kind", "name", "limit"), RULES)
def test_one_rule_has_one_outcome(
    documents: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
    assert_gate: Gate,
    change: str,
    kind: str,
    name: str,
    limit: float,
) -> None:
    document, title = documents[change], (kind, name)
    rails = [one for one in document["guard_rails"] if one["variant"] == "b"]
    rail = next(one for one in rails if (one["rule"], one["name"]) == title)
    control, candidate = (document["variants"][one]["run"] for one in "ab")
    baseline = control if kind in ("margin", "max_loss") else None

    Path("gate.json").write_text(json.dumps({kind: {name: limit}}), encoding="utf-8")
    flags = ["--rules", "gate.json", *(["--baseline", baseline] if baseline else [])]
    code = main(["gate", candidate, *flags, "--json"])
    printed = json.loads(capsys.readouterr().out)["verdicts"][0]
    assert {**printed, "variant": "b"} == rail

    storage = EvaluationResultsStorage()
    run, before = storage.load_run(candidate), storage.load_run(baseline) if baseline else None
    report = ae.gate(run, before, rules={kind: {name: limit}})
    assert (report.verdicts[0].outcome, report.exit_code) == (rail["outcome"], code)

    how: dict[str, Any] = {"out": str(Path.cwd() / storage.results_directory), kind: {name: limit}}
    if code:
        with pytest.raises(pytest.fail.Exception):
            assert_gate(candidate, baseline, **how)
    else:
        assert assert_gate(candidate, baseline, **how).verdicts[0].outcome == rail["outcome"]


def test_every_outcome_is_among_them(documents: dict[str, Any]) -> None:
    found = {rail["outcome"] for document in documents.values() for rail in document["guard_rails"]}
    assert found == set(Outcome)
    # "nonsense" is not measured, so no variant passes all guardrails.
    assert {document["winner"] for document in documents.values()} == {"none"}


@pytest.mark.parametrize("change", CHANGES)
def test_one_metric_has_one_verdict(
    documents: dict[str, Any], capsys: pytest.CaptureFixture[str], change: str
) -> None:
    """Of the metric alone. With others beside it, `compare` corrects for all of them, and may need more."""
    document = documents[change]
    test = document["statistical_tests"]["a_vs_b"]
    assert main(["compare", *(document["variants"][one]["run"] for one in "ab"), "--json"]) == 0
    compared = next(one for one in json.loads(capsys.readouterr().out)["metrics"] if one["name"] == "hit@1")
    assert (compared["p_value"], compared["difference"]) == (test["p_value"], test["difference"])
    assert compared["verdict"] in (test["verdict"], "inconclusive")
