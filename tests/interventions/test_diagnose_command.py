"""`auepora diagnose`: the screen, its JSON, the stored runs, and one line for each bad case."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

import auepora_eval as ae
from auepora_eval import EvaluationResultsStorage
from auepora_eval.cli.main import main
from auepora_eval.interventions.report import Diagnosis
from auepora_eval.store.lock import locked
from tests.pages.serving import serving

SYSTEM = """
import pathlib, json
HERE = pathlib.Path(__file__)
DOCS = [json.loads(line) for line in HERE.with_name("corpus.jsonl").read_text().splitlines()]
CALLS = HERE.with_name("calls.txt")
def retrieve(query, top_k=5):
    names = [word.strip("?") for word in query.split()]
    is_best = lambda doc: doc["doc_id"] in names
    # The best are last, but for five of them.
    return sorted(DOCS, key=lambda doc: (is_best(doc) and doc["doc_id"] > "d04", not is_best(doc)))[:top_k]
def generate(query, documents):
    with CALLS.open("a") as calls:
        calls.write("x")
    name = query.split()[-1].strip("?")
    if len(documents) == 1 and name > "d15" and HERE.with_name("down").exists():
        raise OSError("the model is down")
    for doc in documents:
        if doc.doc_id == name:
            return doc.text.rpartition(" ")[2]
    return "I don't know."
rag = (retrieve, generate)
mended = (lambda query, top_k=5: retrieve(query, 100)[::-1][:top_k], generate)
perfect = (lambda query, top_k=5: retrieve(query, 100)[::-1][:top_k] + retrieve(query, 5), generate)
no_depth = (lambda query: retrieve(query), generate)
def black_box(query):
    return "42"
deaf = (retrieve, lambda query, documents: "v17")
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of forty questions, whose retriever puts the best documents last."""
    folder = tmp_path_factory.mktemp("project")
    records = [{"doc_id": f"d{n:02}", "text": f"The value of d{n:02} is v{n}7"} for n in range(40)]
    questions = [
        {
            "sample_id": f"q{n}",
            "query": f"What is the value of d{n:02}?",
            "reference_answer": {"text": f"v{n}7"},
            "relevant_docs": [{"doc_id": f"d{n:02}"}],
        }
        for n in range(40)
    ]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    (folder / "questions.jsonl").write_text("".join(json.dumps(one) + "\n" for one in questions))
    (folder / "app.py").write_text(SYSTEM)
    return folder


@pytest.fixture
def here(project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(project)
    monkeypatch.setenv("COLUMNS", "80")
    run = "run --dataset questions.jsonl --system app.py:rag --id base"
    assert main([*run.split(), "--out", str(tmp_path)]) == 0
    return tmp_path


def diagnosed(out: Path, *flags: str, run: str = "base") -> int:
    return main(["diagnose", run, "--corpus", "corpus.jsonl", "--out", str(out), *flags])


def test_failed_calls_are_made_again(project: Path, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "down").touch()
    diagnosed(here)
    assert "have an intervention that failed" in capsys.readouterr().out
    assert diagnosed(here) == 0  # though none of these calls is answered
    (project / "down").unlink()
    capsys.readouterr()
    assert diagnosed(here) == 0
    assert "an intervention that failed" not in capsys.readouterr().out


def test_the_screen(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert diagnosed(here) == 0
    text = capsys.readouterr().out
    assert "35 of 40 answers are wrong: right 0.12" in text
    assert "  below the cutoff                        35   88%" in text
    assert "First: the order of the candidates" in text
    assert "calls of the generator" in text
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[-1] == "More: --stage cutoff (its answers), --save wrong.jsonl, --json"


EXPERIMENT = """
dataset: questions.jsonl
concurrency: 3
ab_testing:
  experiment_id: sizes
  primary_metric: contains_answer
  variants:
    - {variant_id: small, system: "app.py:Sized", config_overrides: {size: 5}}
    - {variant_id: large, system: "app.py:Sized", config_overrides: {size: 40}}
"""
SIZED = """
class Sized:
    def __init__(self, size=1):
        self.size = size
    def run(self, sample, *, top_k=5, documents=None):
        found = retrieve(sample.query, self.size) if documents is None else documents
        return {"answer": generate(sample.query, found), "documents": found}
"""


def test_the_variant_of_an_experiment_is_made_with_its_arguments(
    project: Path, here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "sizes.config.yaml").write_text(EXPERIMENT)
    edited(project, SYSTEM.replace("doc.doc_id == name", "getattr(doc, 'doc_id', None) == name") + SIZED)
    try:
        assert main(["experiment", "sizes.config.yaml", "--out", str(here)]) == 0
        capsys.readouterr()
        assert diagnosed(here, run="sizes-small") == 0
    finally:
        edited(project, SYSTEM)
    text = " ".join(capsys.readouterr().out.split())
    assert "calls of the generator" in text
    assert "other documents than the run has" not in text


def test_the_runs_are_stored_and_no_call_is_made_twice(here: Path, project: Path) -> None:
    assert diagnosed(here) == 0
    made = len((project / "calls.txt").read_text())
    assert diagnosed(here) == 0
    assert len((project / "calls.txt").read_text()) == made
    gold = ae.load_run(here / "base~gold")
    assert gold["right"].value == 1
    assert ae.compare(here / "base", here / "base~gold")["contains_answer"].effect.change == pytest.approx(
        0.875
    )
    assert main(["show", "base~gold", "--out", str(here)]) == 0


def test_json_is_what_is_stored(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert diagnosed(here, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    stored = EvaluationResultsStorage(here).load_fact("base", "diagnosis")
    assert stored == document
    assert stored["corpus"] == "corpus.jsonl"
    assert Diagnosis.of(stored).to_dict() == Diagnosis.of(document).to_dict()
    assert document["stages"][0]["name"] == "cutoff"
    assert document["first"] == "rerank"
    assert document["wrong"] == len(document["stages"][0]["sample_ids"]) == 35
    fix = document["fixes"][0]
    assert {"name", "text", "kind", "gain", "interval", "p", "p_holm", "expected", "run_id"} == fix.keys()
    assert fix["run_id"] == "base~gold_first"


def test_stage_and_save(here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    file = tmp_path / "wrong.jsonl"
    assert diagnosed(here, "--stage", "cutoff", "--save", str(file)) == 0
    text = capsys.readouterr().out
    assert "q7: What is the value of d07?" in text
    assert "gold alone v77 [d07]" in text
    saved = ae.load_dataset(file)
    assert len(saved) == 35
    assert {one.labels["stage"] for one in saved} == {"cutoff"}
    assert diagnosed(here, "--save", str(file)) == 4
    assert "--force" in capsys.readouterr().err
    assert diagnosed(here, "--save", str(file), "--force") == 0


def test_many_stages_and_fixes_fit_a_small_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["demo", "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    assert main(["diagnose", "demo-hybrid", "--out", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert len(text.splitlines()) < 24
    assert "at other stages (--json)" in text


def test_calls_that_all_fail_end_it_with_what_to_do(
    here: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = SYSTEM.replace("name = query", "raise OSError('the model is down')\n    name = query")
    edited(project, broken)
    try:
        assert diagnosed(here) == 3
        assert "keep_going: true in the plan (--config)" in capsys.readouterr().err
        (here / "plan.yaml").write_text("keep_going: true\n")
        assert diagnosed(here, "--config", str(here / "plan.yaml")) == 0
    finally:
        edited(project, SYSTEM)


def test_an_estimate_makes_no_call(here: Path, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = len((project / "calls.txt").read_text())
    assert diagnosed(here, "--estimate") == 0
    assert "calls of the generator" in capsys.readouterr().out
    assert len((project / "calls.txt").read_text()) == before


def test_a_budget_stops_it_and_the_rest_is_asked_later(
    here: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = len((project / "calls.txt").read_text())
    assert diagnosed(here, "--budget-calls", "80") == 1
    assert "budget" in capsys.readouterr().err
    assert len((project / "calls.txt").read_text()) - before <= 80
    made = len((project / "calls.txt").read_text())
    assert diagnosed(here, "--budget-calls", "80") == 1  # it is that of all sessions, as for a run
    assert len((project / "calls.txt").read_text()) == made
    assert diagnosed(here) == 0
    assert ae.load_run(here / "base~gold")["right"].value == 1


def test_a_part_of_the_questions_is_not_paid_for_again(here: Path, project: Path) -> None:
    def made(*flags: str) -> int:
        before = len((project / "calls.txt").read_text())
        assert diagnosed(here, *flags) == 0
        return len((project / "calls.txt").read_text()) - before

    part, rest = made("--sample", "30"), made()
    assert made() == made("--sample", "30") == 0
    EvaluationResultsStorage(here).state("base").remove_interventions()
    assert part + rest <= made() + 20  # others are asked without documents


def test_what_people_or_judges_added_to_an_intervention_stays(here: Path) -> None:
    assert diagnosed(here) == 0
    EvaluationResultsStorage(here).save_fact("base~gold", judge={"seen": True})
    assert diagnosed(here, "--stage", "cutoff") == 0
    assert EvaluationResultsStorage(here).load_fact("base~gold", "judge") == {"seen": True}


def test_a_run_of_the_user_with_the_name_of_an_intervention_stays(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = "run --dataset questions.jsonl --system app.py:rag --id base~gold"
    assert main([*own.split(), "--out", str(here)]) == 0
    before = (here / "base~gold.results.json").read_bytes()
    assert diagnosed(here) == 4
    assert "base~gold.results.json exists already" in capsys.readouterr().err
    assert (here / "base~gold.results.json").read_bytes() == before


def test_a_sample_has_runs_of_its_own(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert diagnosed(here, "--sample", "10") == 0
    assert "too few" in capsys.readouterr().out
    assert len(ae.load_run(here / "base~gold@10").samples) == 10


def test_a_black_box_is_told_what_a_hook_would_add(
    project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    monkeypatch.setenv("COLUMNS", "80")
    run = "run --dataset questions.jsonl --system app.py:black_box --id black"
    assert main([*run.split(), "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    assert diagnosed(tmp_path, run="black") == 0
    text = capsys.readouterr().out
    assert "cannot be handed documents, so no fix was tried" in " ".join(text.split())
    assert "what was retrieved is not known" in " ".join(text.split())
    assert "What a fix would bring" not in text
    assert diagnosed(tmp_path, "--json", run="black") == 0
    assert json.loads(capsys.readouterr().out)["calls"] == {"generate": 0, "retrieve": 0}


def test_compare_says_which_stage_changed(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert diagnosed(here) == 0
    run = "run --dataset questions.jsonl --system app.py:mended --id second"
    assert main([*run.split(), "--out", str(here)]) == 0
    assert diagnosed(here, run="second") == 0
    capsys.readouterr()
    assert main(["compare", "base", "second", "--out", str(here)]) == 0
    text = capsys.readouterr().out
    assert "below the cutoff                    35    5  -75%" in text
    before, _, stages = text.partition("Where answers are lost")
    assert "better" in stages.partition("Verdict")[0]
    assert "Verdict" not in before
    assert max(map(len, stages.partition("Verdict")[0].splitlines())) <= 80


def stages_of_comparison(out: Path, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert main(["compare", "base", "second", "--out", str(out)]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_compare_does_not_mix_stages_by_two_metrics_or_with_fewer_texts(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = "run --dataset questions.jsonl --system app.py:rag --id second"
    assert main([*run.split(), "--out", str(here)]) == 0
    assert diagnosed(here) == 0
    assert diagnosed(here, "--metric", "exact_match", run="second") == 0
    assert "the runs were not diagnosed alike" in stages_of_comparison(here, capsys)
    assert main([*run.split(), "--out", str(here), "--force"]) == 0
    assert main(["diagnose", "second", "--system", "app.py:no_depth", "--out", str(here)]) == 0
    assert "the runs were not diagnosed alike" in stages_of_comparison(here, capsys)


def test_a_diagnosis_that_says_less_does_not_replace_a_better_one(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert diagnosed(here) == 0
    best = EvaluationResultsStorage(here).load_fact("base", "diagnosis")
    assert best["traced"] == 40
    for flags in (["--system", "app.py:no_depth"], ["--system", "app.py:black_box"]):
        assert main(["diagnose", "base", *flags, "--out", str(here)]) == 0
        assert "says more (--corpus, --system)" in capsys.readouterr().err
        assert EvaluationResultsStorage(here).load_fact("base", "diagnosis") == best


def test_the_system_of_another_run_is_noticed(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert diagnosed(here, "--system", "app.py:mended") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "app.py:mended is not the system of the run (app.py:rag)" in text
    assert "other documents for 20 of 20 questions" in text
    assert "First:" not in text
    assert not list(here.glob("base~gold*"))


def edited(project: Path, system: str) -> None:
    (project / "app.py").write_text(system)
    importlib.invalidate_caches()


def test_an_edited_system_is_diagnosed_after_a_diagnosis_that_was_stopped(
    here: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert diagnosed(here, "--budget-calls", "80") == 1
    assert (here / "base~calls.db").exists()
    assert not (here / "base~gold.results.json").exists()
    assert "The same command again asks for the rest" in capsys.readouterr().err
    edited(project, SYSTEM + "# edited\n")
    try:
        capsys.readouterr()
        assert diagnosed(here) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert "First: the order of the candidates" in text
        assert "The file of the system was changed after the run: run it again" in text
    finally:
        edited(project, SYSTEM)


def test_a_run_that_is_replaced_by_force_leaves_no_interventions(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert diagnosed(here) == 0
    other = "run --dataset questions.jsonl --system app.py:rag --id base~mine"
    assert main([*other.split(), "--out", str(here)]) == 0
    run = "run --dataset questions.jsonl --system app.py:rag --id base --force"
    assert main([*run.split(), "--out", str(here)]) == 0
    assert "runs of its diagnosis" in capsys.readouterr().err
    assert {path.name for path in here.glob("*.run.db")} == {"base.run.db", "base~mine.run.db"}


def test_a_run_is_not_replaced_while_it_is_diagnosed(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert diagnosed(here) == 0
    calls = EvaluationResultsStorage(here).state("base").calls
    run = "run --dataset questions.jsonl --system app.py:rag --id base --force"
    with locked(calls):
        assert main([*run.split(), "--out", str(here)]) == 4
    assert "base~calls.db is being written by process" in capsys.readouterr().err
    assert calls.exists()
    assert ae.load_run(here / "base~gold")["right"].value == 1


def test_one_question_has_no_limits_on_the_screen_and_on_the_page(
    project: Path, here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    question = (project / "questions.jsonl").read_text().splitlines()[7]
    (tmp_path / "one.jsonl").write_text(question)
    run = f"run --dataset {tmp_path / 'one.jsonl'} --system app.py:rag --id one"
    assert main([*run.split(), "--out", str(here)]) == 0
    capsys.readouterr()
    assert diagnosed(here, run="one") == 0
    text = capsys.readouterr().out
    assert "1 of 1 answers are wrong: right 0.00\n" in text
    assert "nan" not in text
    with serving(here) as client:
        page = client.enter().get("/run/one/diagnosis")
    assert page.status == 200
    assert "Below the cutoff" in page.text


def test_the_page_names_no_stage_if_documents_do_not_reach_the_generator(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = "run --dataset questions.jsonl --system app.py:deaf --id deaf"
    assert main([*run.split(), "--out", str(here)]) == 0
    assert diagnosed(here, run="deaf") == 0
    with serving(here) as client:
        page = client.enter().get("/run/deaf/diagnosis").text
    assert "0 of 40 answers change without them" in page
    assert "Test set" not in page
    assert "Cannot be traced" not in page


def test_where_nothing_is_wrong_no_call_is_made(
    here: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    perfect = "run --dataset questions.jsonl --system app.py:perfect --id perfect"
    assert main([*perfect.split(), "--out", str(here)]) == 0
    capsys.readouterr()
    assert diagnosed(here, run="perfect") == 0
    text = capsys.readouterr().out
    assert text.startswith("0 of 40 answers are wrong")
    assert "there is nothing to fix" in text
    assert "calls of the" not in text
    assert diagnosed(here) == 0
    capsys.readouterr()
    assert main(["compare", "base", "perfect", "--out", str(here)]) == 0
    assert "below the cutoff                    35    0  -88%" in capsys.readouterr().out


def test_compare_does_not_mix_stages_that_one_of_the_runs_cannot_tell_apart(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert diagnosed(here) == 0
    run = "run --dataset questions.jsonl --system app.py:no_depth --id flat"
    assert main([*run.split(), "--out", str(here)]) == 0
    assert diagnosed(here, run="flat") == 0
    capsys.readouterr()
    assert main(["compare", "base", "flat", "--out", str(here)]) == 0
    text = capsys.readouterr().out
    assert "the runs were not diagnosed alike" in " ".join(text.split())
    assert "below the cutoff" not in text


def test_interventions_are_not_listed_beside_their_run(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    monkeypatch.setenv("COLUMNS", "80")
    run = "run --dataset questions.jsonl --system app.py:rag --id mine"
    assert main([*run.split(), "--out", str(tmp_path)]) == 0
    assert diagnosed(tmp_path, "--system", "app.py:rag", run="mine") == 0
    capsys.readouterr()
    assert main(["list", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr()
    assert "mine" in shown.out
    assert "~gold" not in shown.out
    assert "runs of diagnose and stress (RUN~NAME), 9 in all" in shown.err
