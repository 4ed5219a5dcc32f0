"""`auepora stress` and `ae.robustness`: a robust and a fragile generator, the metrics of three targets."""

from __future__ import annotations

import itertools
import json
from functools import cache
from pathlib import Path
from random import Random

import pytest

import auepora_eval as ae
from auepora_eval import Robustness
from auepora_eval.cli.main import main
from auepora_eval.interventions.stress import Row

from .planted import Faulty, Reader, World

DEMO = "auepora_eval.demo.systems:bm25"


@cache
def stressed(fragile: bool) -> Robustness:
    world = World(sound=True)
    pool = [one for one in world.samples if one.labels["scenario"] == "base"]
    sixty = Random(3).sample([one for one in pool if one.labels["answerable"] is not False], 60)
    system = (Faulty(world, {}).retrieve, Reader(world, fragile=fragile))
    return ae.robustness(ae.probe(system, sixty, world.corpus.documents, names="stress"))


def by_name(fragile: bool) -> dict[str, Row]:
    return {row.name: row for row in stressed(fragile).rows}


def test_a_robust_and_a_fragile_generator_are_told_from_each_other() -> None:
    robust, fragile = by_name(False), by_name(True)
    good_is_high = ("noise_near@0.8", "noise_random@0.8", "gold_middle", "gold_last", "no_gold")
    for name in good_is_high:
        assert robust[name].interval[0] > fragile[name].interval[1], name  # type: ignore[index]
    for name in ("conflict", "injected"):
        assert robust[name].value < fragile[name].value, name
    assert robust["gold"].value == fragile["gold"].value
    assert robust["gold_last"].change == 0
    assert fragile["false_fact"].value == 1
    assert fragile["false_fact"].n < fragile["false_fact"].of == 60
    assert fragile["false_fact"].not_made


def test_the_screen() -> None:
    text = str(stressed(True))
    assert text.startswith("The documents reach the generator: 60 of 60 answers change without them.")
    assert "Breaks at:" in text
    assert "obeys its documents" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80
    assert "Breaks at none of these" in str(stressed(False))


def test_documents_that_do_not_reach_the_generator_end_the_table() -> None:
    world = World(sound=True)
    system = (Faulty(world, {}).retrieve, lambda query, documents: "42")
    found = ae.robustness(ae.probe(system, world.samples[:20], world.corpus.documents, names="stress"))
    assert found.rows == []
    assert "Documents do not reach the generator: 0 of" in str(found)


def test_what_documents_do_not_reach_is_not_measured_in_the_stored_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "deaf.py").write_text("deaf = (lambda query, top_k=5: [], lambda query, documents: '42')\n")
    stress = ["stress", f"{tmp_path / 'deaf.py'}:deaf", "--dataset", "demo", "--sample", "20", "--id", "s"]
    for _ in range(2):  # made, and resumed
        assert main([*stress, "--out", str(tmp_path)]) == 0
        assert "No stress is measured" in " ".join(capsys.readouterr().out.split())
        run = ae.load_run(tmp_path / "s")
        assert {result.coverage.scored for result in run.results} == {0}
        assert {result.not_measured for result in run.results} == {
            "documents do not reach the generator: 0 of 13 answers change without them"
        }
        assert main(["gate", "s", "--out", str(tmp_path), "--min", "noise_accuracy@0.8=0"]) == 3


def test_a_generator_that_fails_without_documents_is_measured() -> None:
    documents = [ae.Document(f"d{n}", f"The value of item {n} is v{n}7.") for n in range(30)]
    samples = [
        ae.EvaluationSample(f"q{n}", f"What is the value of item {n}?", [doc], reference_answer=f"v{n}7")
        for n, doc in enumerate(documents)
    ]
    first = (lambda query, top_k=5: documents[:top_k], lambda query, documents: documents[0].text)
    with pytest.warns(UserWarning, match="calls failed"):
        found = ae.robustness(ae.probe(first, samples, documents, names="stress"))
    assert found.changed == found.asked == 30
    assert "30 of 30 answers change with others" in str(found)
    assert "gold last" in str(found)


def test_a_false_fact_beside_the_true_one_breaks_a_generator() -> None:
    text = " ".join(str(stressed(True)).split())
    assert "takes a false fact beside the true one" in text
    assert "takes a false fact" not in str(stressed(False))


def test_few_questions_are_too_few_to_show_that_nothing_breaks() -> None:
    world = World(sound=True)
    system = (Faulty(world, {}).retrieve, Reader(world, fragile=False))
    text = str(ae.robustness(ae.probe(system, world.samples[:1], world.corpus.documents, names="stress")))
    assert "too few to show where it breaks" in text
    assert "nan" not in text


def test_an_estimate_has_the_cost_of_the_last_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "app.py").write_text(
        "def app(query, documents=None):\n"
        "    return {'answer': '1', 'usage': {'input_tokens': 1000, 'output_tokens': 10}}\n"
    )
    plan = tmp_path / "plan.config.yaml"
    plan.write_text("price_input: 0.01\nprice_output: 0.02\n")
    named, out = f"{tmp_path / 'app.py'}:app", ["--out", str(tmp_path), "--config", str(plan)]
    stress = ["stress", named, "--dataset", "demo", "--sample", "10", "--estimate", *out]
    assert main(stress) == 0
    assert "no run of this system is stored" in capsys.readouterr().out
    assert main(["run", "--system", named, "--dataset", "demo", "--limit", "5", "--id", "r", *out]) == 0
    capsys.readouterr()
    assert main([*stress, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["estimate"]["cost"]["total"] == pytest.approx(0.0102 * document["calls"]["generate"])


def test_a_stress_is_a_stored_run_with_three_targets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["stress", DEMO, "--dataset", "demo", "--sample", "25", "--id", "s", "--out", str(tmp_path)]
    assert main([*command, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["reached"]["changed"] <= document["reached"]["asked"]
    assert {row["run_id"] for row in document["rows"]} == {"s"}
    run = ae.load_run(tmp_path / "s")
    targets = {result.target.name for result in run.results}
    assert targets == {"NOISE_ROBUSTNESS", "NEGATIVE_REJECTION", "COUNTERFACTUAL_ROBUSTNESS"}
    row = next(one for one in document["rows"] if one["name"] == "no_gold")
    assert row["value"] == pytest.approx(run["rejection_rate"].value)
    assert main([*command, "--json"]) == 0  # no call again
    assert json.loads(capsys.readouterr().out) == document
    gate = ["gate", "s", "--out", str(tmp_path), "--min"]
    assert main([*gate, "noise_accuracy@0.8=0.99"]) == 1
    assert main([*gate, "noise_accuracy@0.8=0.0"]) == 0


def test_bad_cases_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    black = tmp_path / "black.py"
    black.write_text("def box(query):\n    return 'no'\n")
    assert main(["stress", f"{black}:box", "--dataset", "demo", "--out", str(tmp_path)]) == 2
    assert "cannot be handed documents" in capsys.readouterr().err
    file = tmp_path / "q.jsonl"
    file.write_text('{"sample_id": "1", "query": "q", "reference_answer": {"text": "a"}}\n')
    assert main(["stress", DEMO, "--dataset", str(file), "--out", str(tmp_path)]) == 2
    assert "nothing can be stressed" in capsys.readouterr().err


def answers_in_turn(failing: int) -> ae.Robustness:
    """Stress a sound reader whose calls fail but for every third (or: every third fails)."""
    count = itertools.count()
    documents = [ae.Document(f"d{n}", f"The value of item {n} is v{n}7.") for n in range(30)]
    samples = [
        ae.EvaluationSample(f"q{n}", f"What is the value of item {n}?", [doc], reference_answer=f"v{n}7")
        for n, doc in enumerate(documents)
    ]

    def generate(query: str, documents: list[ae.Document]) -> str:
        if next(count) % 3 < failing:
            raise TimeoutError("slow")
        number = query.rsplit(maxsplit=1)[-1].strip("?")
        return next((doc.text for doc in documents if f" item {number} " in doc.text), "I don't know.")

    system = (lambda query, top_k=5: documents[:top_k], generate)
    policy = ae.CallPolicy(retries=0)
    return ae.robustness(ae.probe(system, samples, documents, names="stress", policy=policy))


@pytest.mark.filterwarnings("ignore:.*calls failed")
def test_failed_calls_are_counted_and_are_neither_unchanged_nor_not_made() -> None:
    found = answers_in_turn(1)
    text = str(found)
    assert "calls failed: TimeoutError" in text.splitlines()[0]
    assert found.changed == found.asked < 30
    row = next(one for one in found.rows if one.name == "gold_last")
    assert row.failed > 0
    assert row.n + row.failed == 30
    assert "30/30" in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.filterwarnings("ignore:.*calls failed")
def test_a_stress_whose_calls_mostly_failed_is_not_measured() -> None:
    text = str(answers_in_turn(2))
    assert "not measured" in text
    assert "nan" not in text
    assert "Breaks at none" not in text
    assert "The same command again" in text


def test_a_stress_that_could_not_be_made_of_any_question_is_said() -> None:
    documents = [ae.Document(f"d{n}", f"The value of item {n} is v{n}7.") for n in range(30)]
    samples = [
        ae.EvaluationSample(f"q{n}", f"What is the value of item {n}?", [doc], reference_answer=f"v{n}7")
        for n, doc in enumerate(documents)
    ]

    def generate(query: str, documents: list[ae.Document]) -> str:
        return " ".join(doc.text for doc in documents)

    found = ae.robustness(ae.probe((lambda query, top_k=5: [], generate), samples, documents, names="stress"))
    row = next(one for one in found.rows if one.name == "false_fact")
    assert (row.n, row.of) == (0, 30)
    assert sum(row.not_made.values()) == 30
    assert "could not be made" in str(found)
