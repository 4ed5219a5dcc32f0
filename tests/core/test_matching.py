"""Retrieved documents are compared with the relevant ones by id, by source or by text."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import auepora_eval as ae
from auepora_eval.cli.main import main
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.scoring import score_outputs
from auepora_eval.core.types import Document, EvaluationSample, Response, RetrievedDocument, SystemOutputs
from auepora_eval.core.watches import SuspectValueWarning
from auepora_eval.io.jsonl import save_records


def retrieved(*docs: Document) -> SystemOutputs:
    hits = [RetrievedDocument(doc, 1 / rank, rank) for rank, doc in enumerate(docs, start=1)]
    return SystemOutputs(hits, Response("x"))


def gold(*docs: Document | str) -> EvaluationSample:
    return EvaluationSample("1", "How?", relevant_docs=docs, reference_answer="x")


def value(metric: str, match: str, sample: EvaluationSample, output: SystemOutputs) -> float:
    return score_outputs(EvaluationPlan(metric, match=match), [sample], [output])[0].value


@pytest.mark.parametrize(
    ("doc_id", "metadata", "recall"),
    [
        pytest.param("uuid-1", {"source": "billing.md"}, 1.0, id="metadata"),
        pytest.param("uuid-1", {"source": "/srv/docs/billing.md"}, 1.0, id="a path"),
        pytest.param("uuid-1", {"source": "C:\\docs\\billing.md"}, 1.0, id="a path of Windows"),
        pytest.param("billing.md#0", {}, 1.0, id="a chunk's id"),
        pytest.param("billing.md::chunk-2", {}, 1.0, id="another form"),
        pytest.param("billing.md:6:2", {}, 1.0, id="page and chunk"),
        pytest.param("billing.md_chunk_2", {}, 1.0, id="with a word"),
        pytest.param("billing.md", {}, 1.0, id="the document itself"),
        pytest.param("billing.md", {"source": "other.md"}, 0.0, id="the source decides"),
        pytest.param("tides.md#0", {}, 0.0, id="another document"),
    ],
)
def test_by_source(doc_id: str, metadata: dict[str, Any], recall: float) -> None:
    output = retrieved(Document(doc_id, "text", metadata))
    assert value("recall@5", "source", gold("billing.md"), output) == recall


def test_by_source_two_chunks_of_one_document_count_once() -> None:
    output = retrieved(Document("billing.md#0", ""), Document("billing.md#1", ""))
    assert value("precision@2", "source", gold("billing.md"), output) == 0.5
    both = gold(*(Document(f"billing.md#{n}", "", {"source": "billing.md"}) for n in (0, 7)))
    assert value("recall@5", "source", both, output) == 1.0


@pytest.mark.parametrize(
    ("relevant", "chunks", "recall", "mrr"),
    [
        pytest.param(["sent monthly"], ["a", "They are sent  monthly."], 1.0, 0.5, id="white space"),
        pytest.param(["sent monthly"], ["They are sent."], 0.0, 0.0, id="a part is not enough"),
        pytest.param(["sent", "monthly"], ["sent monthly"], 1.0, 1.0, id="two texts in one chunk"),
        pytest.param(["sent", "monthly", "paid"], ["sent", "monthly"], 2 / 3, 1.0, id="one in each"),
        pytest.param(["sent", "monthly"], ["sent", "sent monthly"], 1.0, 1.0, id="overlapping chunks"),
        pytest.param([""], ["anything"], math.nan, math.nan, id="no text cannot be compared"),
        pytest.param(["", "sent"], ["sent"], 1.0, 1.0, id="one text can"),
    ],
)
def test_by_text(relevant: list[str], chunks: list[str], recall: float, mrr: float) -> None:
    sample = gold(*(Document(f"g{n}", text) for n, text in enumerate(relevant)))
    # The ids are those of relevant documents: they must not count.
    output = retrieved(*(Document(f"g{n}", text) for n, text in enumerate(chunks)))
    assert value("recall@5", "text", sample, output) == pytest.approx(recall, nan_ok=True)
    assert value("mrr", "text", sample, output) == pytest.approx(mrr, nan_ok=True)


def test_variants_and_judgements_match_too() -> None:
    output = retrieved(Document("billing.md#0", ""))
    for metric in ("map[ragas]", "judged@1", "ndcg@5", "bpref", "r_precision"):
        assert value(metric, "source", gold("billing.md"), output) == 1.0, metric


@pytest.mark.parametrize(
    ("doc", "option"),
    [
        (Document("billing.md#0", ""), "source"),
        (Document("1f", "see: It is sent monthly."), "text"),
    ],
)
def test_note_names_the_option_that_would_match(doc: Document, option: str) -> None:
    samples = [gold(Document("billing.md", "sent monthly"))]
    advice = f"With --match {option} .*match='{option}'.*1 of the first 1 would match"
    expected = f"'{doc.doc_id}'.*'billing.md'. {advice}"
    with pytest.warns(SuspectValueWarning, match=expected):
        run = ae.evaluate(lambda query: retrieved(doc), samples, metrics="recall@5")
    assert run["recall@5"].value == 0
    run = ae.evaluate(lambda query: retrieved(doc), samples, metrics="recall@5", match=option)
    assert run["recall@5"].value == 1
    assert run["recall@5"].signature == {"metric": "recall@5", "match": option}


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dataset, outputs = tmp_path / "data.jsonl", tmp_path / "outputs.jsonl"
    save_records([{"sample_id": "1", "query": "How?", "relevant_docs": ["billing.md"]}], dataset)
    save_records([{"sample_id": "1", "answer": "x", "retrieved": ["billing.md#0"]}], outputs)
    files = ["--dataset", str(dataset), "--outputs", str(outputs), "--metrics", "recall@5"]
    out = ["--out", str(tmp_path / "runs")]
    assert main(["score", *files, *out, "--id", "by-id"]) == 0
    assert "With --match source" in capsys.readouterr().out
    assert main(["score", *files, *out, "--match", "source", "--id", "by-source"]) == 0
    assert main(["show", "by-source", "--verify", *out]) == 0
    assert main(["score", "--run", "by-source", "--metrics", "mrr", "--id", "more", *out]) == 0
    run = ae.load_run(tmp_path / "runs" / "more")
    assert [run[name].value for name in ("recall@5", "mrr")] == [1, 1]
    assert run["mrr"].signature == {"metric": "mrr", "match": "source"}
    capsys.readouterr()
    assert main(["compare", "by-id", "by-source", *out]) == 0
    assert "recall@5 is not compared" in capsys.readouterr().err
