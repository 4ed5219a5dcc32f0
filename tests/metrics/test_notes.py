"""Values that are likely not what they seem: noted in Python, on the command line and in stored results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import auepora_eval as ae
from auepora_eval.cli.main import main
from auepora_eval.core.types import Document, Response, RetrievedDocument, SystemOutputs
from auepora_eval.core.watches import SuspectValueWarning
from tests.builders import a_sample

SAMPLES = [a_sample(str(n), relevant={f"doc-{n}": 1}, reference="an answer") for n in range(3)]


def retrieving(ids: list[str], scores: list[float]) -> SystemOutputs:
    hits = [
        RetrievedDocument(Document(doc_id, "text"), score, rank)
        for rank, (doc_id, score) in enumerate(zip(ids, scores, strict=True), start=1)
    ]
    return SystemOutputs(hits, Response("an answer"))


def test_ids_that_never_match_are_noted_with_an_example_of_each_side() -> None:
    with pytest.warns(
        SuspectValueWarning, match=r"equals a relevant one in 3 samples.*'0.txt'.*'doc-0'"
    ) as caught:
        run = ae.evaluate(
            lambda sample: retrieving(["0.txt"], [1.0]), SAMPLES, metrics="recall@5,mrr,token_precision"
        )
    assert caught[0].filename == __file__
    assert run["recall@5"].value == 0.0
    assert "'0.txt'" in run["recall@5"].notes[0]
    assert not run["token_precision"].notes
    assert "Check that both sides have the same" in str(run)


@pytest.mark.parametrize("ranks", [(2, 1), (1, 0)], ids=["from 1", "from 0"])
def test_ranks_of_a_system_without_scores_contradict_nothing(ranks: tuple[int, int]) -> None:
    def system(query: str) -> dict[str, object]:
        return {"retrieved": [{"doc_id": "x", "rank": ranks[0]}, {"doc_id": "doc-0", "rank": ranks[1]}]}

    run = ae.evaluate(system, SAMPLES[:1], metrics="mrr")
    assert (run["mrr"].value, run["mrr"].notes) == (1.0, [])


def test_notes_are_printed_stored_and_shown_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("questions.jsonl").write_text('{"sample_id": "1", "query": "q", "relevant_docs": ["a"]}\n')
    record = {"sample_id": "1", "retrieved": ["A"], "response": {"text": "x"}}
    Path("answers.jsonl").write_text(json.dumps(record) + "\n")
    arguments = ["--dataset", "questions.jsonl", "--outputs", "answers.jsonl", "--metrics", "recall@5"]
    Path("system.py").write_text("def system(query):\n    return {'retrieved': ['A'], 'answer': 'x'}\n")
    run = ["run", "--dataset", "questions.jsonl", "--system", "system.py:system", "--metrics", "recall@5"]
    text = "No retrieved document id equals a relevant one in 1 sample"
    for words in (["score", *arguments], run, ["score", "--run", "mine", "--metrics", "recall@5", "--only"]):
        for flags, stream in ((("--force",), "out"), (("--force", "--json"), "err")):
            name = "mine" if words[0] == "score" else "other"
            assert main([*words, *flags, "--out", "results", "--id", name]) == 0
            printed = capsys.readouterr()
            # Once for a reader: under the table, or beside a document.
            assert f"note: {text}" in printed.err or text in printed.out
            assert getattr(printed, stream).count(text) == 1
            assert stream == "err" or text not in printed.err
    main(["show", "mine", "--out", "results"])
    assert "No retrieved document id equals a relevant one" in capsys.readouterr().out
