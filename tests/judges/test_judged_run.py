"""Judged metrics on a stored run, asked of a scripted model on loopback through the command line."""

from __future__ import annotations

import json
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.cli.main import main
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.types import Document, Response, RetrievedDocument, SystemOutputs
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import a_sample, plan, scored_run
from tests.judges.oracles import RUBRIC
from tests.judges.scripted import Material, material_of, supported, verdicts_by
from tests.pages.serving import serving
from tests.pages.test_pages import text_of
from tests.servers import chat_server, completion

VALUES = {
    "judged_faithfulness": 0.5,  # "… old" is in no passage
    "judged_contradiction": 0.0,
    "unsupported_span_share": 0.5,
    "judged_relevance@2": (1 + 1 / 3) / 2,
    "umbrela_ndcg@2": 1.0,
    "judged_answer_relevance": 0.5,
    "judged_correctness": 0.5,
    "nugget_recall[assign=judge]": 0.5,
    "claim_f1[check=judge]": 2 / 3,  # one of two claims of the answer, and the only one of the reference
    f"rubric[{RUBRIC}]": 1.0,
}


def reply(body: dict[str, Any]) -> dict[str, Any]:
    """A model that answers every kind of question, by the options that it may choose from."""
    material = material_of(body)
    options = body["messages"][-1]["content"].rpartition("one of: ")[2].rstrip(".").split(", ")
    if any(name.endswith(" 1") for name in material):
        return completion(json.dumps({"verdicts": list(verdicts_by(partial(one_of, options), material))}))
    quote = material.get("passage") or material.get("answer") or ""
    return completion(json.dumps({"quote": quote, "verdict": one_of(options, material)}))


def one_of(options: list[str], material: Material) -> str:
    if options == ["yes", "no"] or "supported" in options:
        return supported(material)
    if options == ["0", "1", "2", "3"]:
        return "3" if "red" in material["passage"] else "1"
    chosen = ("partly", "incomplete", "partial", "2")
    return next(option for option in chosen if option in options)


@pytest.fixture
def storage(tmp_path: Path) -> EvaluationResultsStorage:
    storage = EvaluationResultsStorage(tmp_path)
    sample = a_sample("1", "What is the Annet?", reference="The Annet is red.")
    sample.labels = {"nuggets": [{"text": "red hull"}]}
    texts = ("The Annet is red.", "The harbour is large.")
    hits = [RetrievedDocument(Document(f"d{n}", text), 1 / n, n) for n, text in enumerate(texts, 1)]
    output = SystemOutputs(hits, Response("The Annet is red. The Annet is old."))
    storage.save_run(scored_run(EvaluationPlan("non_answer_rate"), [sample], [output], evaluation_id="first"))
    return storage


def test_the_command_asks_for_every_judged_metric_and_replays_it(
    storage: EvaluationResultsStorage, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = ["--metrics", ",".join(VALUES), "--out", str(tmp_path)]
    with chat_server(["ok"], says=reply, bare=True) as server:
        asked = ["judge", "first", "--judge", f"{server.url}#m", "--mode", "label"]
        asked += plan(tmp_path, plain_http=True)
        assert main([*asked, *metrics]) == 0
    run = storage.load_run("first")
    assert {name: run[name].value for name in VALUES} == pytest.approx(VALUES)
    assert "Judged@2 of umbrela_ndcg@2 is 1.00." in " ".join(capsys.readouterr().out.split())
    stored = storage.find("first").read_bytes()
    verdicts = storage.state("first").database
    time.sleep(1.1)  # the moment of saving has a resolution of a second
    # Of one metric, too: the others stay where they are.
    for again in (metrics, ["--metrics", "judged_faithfulness", "--out", str(tmp_path)]):
        assert main(["judge", "first", "--replay", str(verdicts), *again]) == 0
        assert storage.find("first").read_bytes() == stored


def test_a_metric_that_needs_no_judge_is_not_judged(
    storage: EvaluationResultsStorage, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["judge", "first", "--judge", "support:lexical", "--out", str(tmp_path)]
    assert main([*command, "--metrics", "claim_f1"]) == 2
    assert "claim_f1 needs no judge." in capsys.readouterr().err
    assert main([*command, "--metrics", "judged_faithfulness"]) == 0


def test_every_place_that_shows_a_value_names_its_judge(
    storage: EvaluationResultsStorage, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page and the list too; with two judges on a run, each value has its own."""
    folder = ["--out", str(tmp_path)]
    for judge, metric in (
        ("support:lexical", "judged_faithfulness"),
        ("support:trained", "unsupported_span_share"),
    ):
        assert main(["judge", "first", "--judge", judge, "--metrics", metric, *folder]) == 0
    capsys.readouterr()
    files = [str(tmp_path / "run.html"), str(tmp_path / "run.md")]
    assert main(["show", "first", "--html", files[0], "--markdown", files[1], *folder]) == 0
    assert main(["show", "first", *folder]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for text in (printed, *(Path(file).read_text() for file in files)):
        assert "judged_faithfulness: uncalibrated judge support:lexical" in text
        assert "unsupported_span_share: uncalibrated judge support:trained" in text
    assert main(["list", "--trend", "judged_faithfulness", *folder]) == 0
    assert "judge grounding/support:lexical" in " ".join(capsys.readouterr().out.split())
    assert main(["list", "--json", *folder]) == 0
    [head] = json.loads(capsys.readouterr().out)
    assert head["judges"] == {
        "judged_faithfulness": "support:lexical",
        "unsupported_span_share": "support:trained",
    }


def test_claims_are_shown_by_the_verdicts_of_their_own_metric(
    storage: EvaluationResultsStorage, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of several judges, each metric has its own; a jury votes; a failed verdict is none on the claim."""
    functions = tmp_path / "judging.py"
    functions.write_text(
        "def yes(question): return 'yes'\ndef no(question): return 'no'\ndef bad(question): 1/0"
    )
    folder = ["--out", str(tmp_path)]
    asked = {
        f"{functions}:yes": "judged_faithfulness,unsupported_span_share",
        f"{functions}:no": "judged_faithfulness@0.6",
        f"jury:[{functions}:yes,{functions}:yes,{functions}:no]": "judged_faithfulness@0.7",
        f"{functions}:bad": "judged_faithfulness[ask=claim]",
    }
    for judge, metrics in asked.items():
        main(["judge", "first", "--judge", judge, "--metrics", metrics, *folder])
    capsys.readouterr()
    assert main(["show", "first", "--sample", "1", *folder]) == 0
    _, *panels = capsys.readouterr().out.replace("\n  judged_f", " judged_f").split("  claims (")
    shown = {panel.partition(")")[0]: panel.split("\n")[1].strip() for panel in panels}
    assert shown == {
        "judged_faithfulness, unsupported_span_share": "supported 1.00: The Annet is red.",
        "judged_faithfulness@0.6": "unsupported 0.00: The Annet is red.",
        "judged_faithfulness@0.7": "unsupported 0.67: The Annet is red.",
        "judged_faithfulness[ask=claim]": "failed: The Annet is red.",
    }
    with serving(tmp_path) as client:
        page = text_of(client.enter().get("/run/first/sample?id=1").text)
    assert "Claims, judged_faithfulness, unsupported_span_share ✓ supported The Annet is red. — 1.00" in page
    assert "Claims, judged_faithfulness[ask=claim] ? failed The Annet is red. — ZeroDivisionError" in page
