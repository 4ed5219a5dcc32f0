"""`auepora judge`: one command on a stored run gives claims with evidence, coverage, cost and trust."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.cli.main import main
from auepora_eval.judges.ask import stored_verdicts
from tests.builders import plan
from tests.judges.scripted import Material, judge_server
from tests.pages.serving import serving


def said(material: Material) -> str:
    """A judge that looks for the first word of the claim, and has an answer to every kind of question."""
    if "claim" in material:
        return "yes" if material["claim"].split()[0] in material["passage"] else "no"
    if "first" in material:
        return "first"
    return "2" if "passage" in material else "same"


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the run `one` of eight samples of the demo."""
    monkeypatch.chdir(tmp_path)
    run("one")
    return tmp_path / "data/evaluation/results"


def run(name: str, *more: str) -> int:
    system = ("--system", "auepora_eval.demo.systems:bm25")
    return main(
        ["run", "--dataset", "demo", *system, "--limit", "8", "--id", name, "--metrics", *_metrics(more)]
    )


def _metrics(more: tuple[str, ...]) -> list[str]:
    return [*more] if more else ["recall@5"]


def scores(path: Path) -> dict[str, Any]:
    """The results of a run, without the note on when it was stored."""
    document: dict[str, Any] = json.loads(path.read_bytes())
    return {name: value for name, value in document.items() if name != "_metadata"}


def test_one_command_judges_a_stored_run(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with judge_server(said) as server:
        prices = plan(judge_price_input=0.01, judge_price_output=0.02)
        assert main(["judge", "one", "--judge", f"{server.url}#m", "--mode", "label", *prices]) == 0
    out = capsys.readouterr().out
    assert "judged_faithfulness" in out
    assert "uncalibrated judge" in out
    assert "Next: auepora show one --sample q" in out
    assert "tokens, " in out
    assert "US dollars" in out
    assert main(["show", "one", "--sample", "q001"]) == 0
    shown = capsys.readouterr().out
    assert "claims (judged_faithfulness):" in shown
    assert "quoted in " in shown
    assert main(["show", "one", "--html", "page.html"]) == 0
    page = Path("page.html").read_text(encoding="utf-8")
    assert "Claims, judged_faithfulness" in page
    assert " — 1.00" in page


def test_a_jury_is_calibrated_and_keeps_it(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jury = "jury:[support:lexical,support:consistent]"
    assert main(["judge", "one", "--judge", jury, "--calibrate", "demo"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "(24 labels, " in out
    assert "uncalibrated judge" not in out
    (audit,) = (runs / "judges").glob("*.json")
    assert json.loads(audit.read_text("utf-8"))["calibration"]["identity"].startswith("grounding/jury:[")
    before = scores(runs / "one.results.json")
    assert main(["judge", "one", "--replay", str(runs / "one.run.db")]) == 0
    assert scores(runs / "one.results.json") == before
    capsys.readouterr()
    assert run("two", "recall@5,judged_faithfulness", "--judge", jury) == 0
    assert "uncalibrated judge" not in capsys.readouterr().out
    assert main(["compare", "one", "two"]) == 0


def test_a_replay_needs_no_network_and_gives_the_same_results(runs: Path) -> None:
    with judge_server(said) as server:
        assert main(["judge", "one", "--judge", f"{server.url}#m"]) == 0
    before = scores(runs / "one.results.json")
    for _ in range(2):  # the server is gone
        assert main(["judge", "--replay", str(runs / "one.run.db"), "one"]) == 0
        assert scores(runs / "one.results.json") == before


def test_a_replay_in_another_folder_has_the_evidence_too(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jury = "jury:[support:lexical,support:consistent]"
    assert main(["judge", "one", "--judge", jury]) == 0
    there = ["--out", "there"]
    assert run("one", "recall@5", *there) == 0
    replay = ["judge", "one", "--replay", str(runs / "one.run.db"), *there]
    for _ in range(2):
        assert main(replay) == 0
        assert len(stored_verdicts(Path("there/one.run.db"))) == len(stored_verdicts(runs / "one.run.db"))
    capsys.readouterr()
    assert main(["show", "one", "--sample", "q001", *there]) == 0
    assert "claims (judged_faithfulness):" in capsys.readouterr().out
    assert (
        main(["score", "--run", "one", "--id", "again", "--metrics", "judged_faithfulness@0.7", *there]) == 0
    )
    before = scores(Path("there/one.results.json"))
    # One member of the jury has no verdicts: every question would fail.
    for other in ("jury:[support:lexical,support:trained]", "support:trained"):
        assert main([*replay, "--judge", other]) == 2
        assert "has no verdicts of this judge for judged_faithfulness. It has" in capsys.readouterr().err
        assert scores(Path("there/one.results.json")) == before


@pytest.mark.parametrize("more", [[], ["--probe", "--calibrate", "demo"]])
def test_a_dry_run_sends_nothing_and_counts_what_is_sent(
    runs: Path, capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    metrics = ["--metrics", "judged_faithfulness,judged_relevance@5,judged_correctness", *more]
    with judge_server(said) as server:
        judge = ("--judge", f"{server.url}#m", "--mode", "label", *plan(judge_price_input=0.001), *metrics)
        assert main(["judge", "one", *judge, "--dry-run"]) == 0
        assert server.requests == []
        printed = capsys.readouterr().out.replace(",", "")
        calls, tokens = (int(printed.split(name)[1].split(" ")[0]) for name in ("Calls: ", "tokens: about "))
        assert main(["judge", "one", *judge]) == 0
        assert len(server.requests) == calls
        letters = sum(len(part["content"]) for body in server.requests for part in body["messages"])
        assert tokens == pytest.approx(letters / 4, rel=0.001)


def _names(section: tuple[str, Any]) -> list[str]:
    return list(section[1]) if section[0].endswith("_metrics") else []


def test_a_dead_judge_leaves_the_run_and_says_how_to_judge_it_later(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with judge_server(said, ["ok", "500"]) as server:
        flags = ("recall@5", "--judge", f"{server.url}#m", *plan(judge_budget_calls=3))
        assert run("two", *flags) == 1
    err = capsys.readouterr().err
    assert (runs / "two.results.json").exists()
    assert "The run is stored. Judge it later: auepora judge two --judge" in err


def test_judged_metrics_need_a_judge_before_anything_is_called(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("two", "judged_faithfulness") == 2
    assert "judged_faithfulness needs a judge. Give one: --judge URL#model" in capsys.readouterr().err
    assert not (runs / "two.results.json").exists()


def test_a_judge_that_prefers_the_first_answer_prefers_none(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    system = ("--system", "auepora_eval.demo.systems:hybrid")
    main(["run", "--dataset", "demo", *system, "--limit", "8", "--id", "two", "--metrics", "recall@5"])
    with judge_server(said) as server:
        assert main(["compare", "one", "two", "--full", "--judge", f"{server.url}#m"]) == 0
    captured = capsys.readouterr()
    assert "judged_preference: flip rate 1.00" in captured.err
    assert "judged_preference" in captured.out


def test_labels_of_people_correct_the_value(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", "one", "--judge", "support:lexical", "--calibrate", "demo", "--probe"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Probes of grounding/support:lexical: 40 questions, degraded: negation" in out
    assert "AUROC 0.90 [0.73, 1.00]" in out
    assert "corrected by labels of people" in out
    # What is known of a judge is printed beside every value of it from then on.
    run("two")
    assert main(["judge", "two", "--judge", "support:lexical"]) == 0
    assert "AUROC 0.90 [0.73, 1.00]" in " ".join(capsys.readouterr().out.split())


def test_labels_of_samples_correct_the_metric_that_they_are_about(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not another one: 1 is the best label, and the worst score of unsupported_span_share."""
    lines = [f'{{"sample_id": "q{number:03}", "label": {number % 2}}}\n' for number in range(1, 9)]
    Path("labels.jsonl").write_text("".join(lines))
    command = ["judge", "one", "--judge", "support:lexical", "--calibrate", "labels.jsonl", "--metrics"]
    for metrics in ("judged_faithfulness,judged_citation_recall", "unsupported_span_share"):
        before = scores(runs / "one.results.json")
        assert main([*command, metrics]) == 2
        assert "say how good each is, by one metric: they cannot correct" in capsys.readouterr().err
        assert scores(runs / "one.results.json") == before
    assert main([*command, "judged_faithfulness"]) == 0


def test_a_gate_says_how_to_judge_both_by_the_same_judge(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("two")
    for name, judge in (("one", "support:lexical"), ("two", "support:consistent")):
        assert main(["judge", name, "--judge", judge]) == 0
    capsys.readouterr()
    assert main(["gate", "two", "--baseline", "one", "--no-regression", "judged_faithfulness"]) == 3
    printed = " ".join(capsys.readouterr().out.split())
    assert "it has another judge in each run: grounding/support:lexical" in printed
    assert "Do so: auepora judge two --judge support:lexical --metrics judged_faithfulness" in printed
    with serving(runs) as client:
        page = client.enter().get("/compare?run=one&run=two").text
    before_folds = page.partition("<summary>Notes")[0]
    assert "judged_faithfulness: not compared, it has another judge in each run" in before_folds


@pytest.mark.parametrize("how", ["named", "by its id"])
def test_resume_judges_a_run_that_was_stopped_after_its_last_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with judge_server(said) as server:
        metrics = ("recall@5,judged_faithfulness", "--judge", f"{server.url}#m")
        keys: dict[str, object] = {"judge_mode": "label", "judge_concurrency": 1}
        assert run("half", *metrics, *plan(**keys, judge_budget_calls=3)) == 1
        assert "#m' --mode label --metrics judged_faithfulness" in capsys.readouterr().err
        flags = plan(**keys, judge_budget_calls=1000)
        if how == "named":
            assert run("half", *metrics, *flags, "--resume") == 0
        else:
            assert main(["run", "--resume", "half", *flags]) == 0
        assert "judged_faithfulness  " in capsys.readouterr().out
        asked = len(server.requests)
        assert run("half", *metrics, *flags, "--resume") == 0
        assert "nothing to resume" in capsys.readouterr().err
        assert len(server.requests) == asked
        assert run("whole", *metrics, *plan(**keys)) == 0
        assert len(server.requests) == 2 * asked  # nothing was asked twice


def test_answers_that_name_no_documents_are_not_unfaithful(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bare.py").write_text("def bare(query):\n    return 'It leaves at noon.'\n")
    system = ("--system", "bare.py:bare", "--limit", "3", "--id", "bare", "--metrics", "token_f1")
    assert main(["run", "--dataset", "demo", *system]) == 0
    capsys.readouterr()
    assert main(["judge", "bare", "--judge", "support:lexical"]) == 0
    assert "Not measured (no output names documents): judged_faithfulness" in capsys.readouterr().out


def test_score_of_a_run_computes_judged_metrics_from_stored_verdicts(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = "judged_faithfulness@0.7,unsupported_span_share,recall@3"
    assert main(["score", "--run", "one", "--metrics", names]) == 2
    command = "auepora judge one --judge NAME --metrics judged_faithfulness@0.7,unsupported_span_share"
    assert f"the run was not judged: {command}" in capsys.readouterr().err
    with judge_server(said) as server:
        assert main(["judge", "one", "--judge", f"{server.url}#m"]) == 0
    before = scores(runs / "one.results.json")
    capsys.readouterr()
    # The server is gone.
    assert main(["score", "--run", "one", "--metrics", names, "--id", "again"]) == 0
    assert "judged_faithfulness@0.7" in capsys.readouterr().out
    assert scores(runs / "one.results.json") == before
    rescored = scores(runs / "again.results.json")
    found = {name for section in rescored.items() for name in _names(section)}
    assert {"judged_faithfulness", "judged_faithfulness@0.7", "unsupported_span_share", "recall@3"} <= found
    # Its verdicts came along: they explain its scores, and can be used again.
    assert main(["show", "again", "--sample", "q001"]) == 0
    assert "judged_faithfulness@0.7" in capsys.readouterr().out.partition("claims (")[2]
    assert main(["score", "--run", "again", "--metrics", "judged_faithfulness@0.9"]) == 0
    assert main(["score", "--run", "one", "--metrics", "judged_answer_relevance"]) == 2
    assert (
        "The run has no verdicts for judged_answer_relevance. Ask for them: auepora judge one --judge "
        in (capsys.readouterr().err)
    )


def test_probes_ask_what_the_metrics_ask(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("kind_judge.py").write_text(
        "def judge(question):\n"
        "    if question.kind.name == 'relevance':\n"
        "        return '3'\n"
        "    claim = question.material['claim'].split('mentioning here. ')[-1]\n"
        "    return 'yes' if claim in question.material['passage'] else 'no'\n",
        encoding="utf-8",
    )
    metrics = "judged_faithfulness,judged_relevance@5"
    assert main(["judge", "one", "--judge", "kind_judge.py:judge", "--metrics", metrics, "--probe"]) == 0
    out = capsys.readouterr().out
    assert "40 questions, no probe failed" in out
    assert "16 questions, degraded: foreign (grading)" in out
    degraded = {
        name: result["details"]["judge"].get("degraded", [])
        for section, results in scores(runs / "one.results.json").items()
        if section.endswith("_metrics")
        for name, result in results.items()
        if name.startswith("judged_")
    }
    assert degraded == {"judged_faithfulness": [], "judged_relevance@5": ["foreign (grading)"]}
