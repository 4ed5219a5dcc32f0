"""Spans: intervals that can be checked by hand, then real documents cut in every way."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auepora_eval.core.types import (
    Document,
    EvaluationSample,
    Response,
    RetrievedDocument,
    SystemOutputs,
)
from auepora_eval.metrics.retrieval.spans import (
    SpanIoU,
    SpanPrecision,
    SpanRecall,
    length,
    merged,
    shared_length,
)
from tests.builders import a_sample, an_output

Chunk = tuple[str, int, int]
CHUNKING = Path(__file__).parents[3] / "shared" / "data" / "chunking_evaluation"


def gold(*spans: Chunk) -> EvaluationSample:
    docs = [Document(source, "", {"spans": [{"start": start, "end": end}]}) for source, start, end in spans]
    return EvaluationSample("1", "q", relevant_docs=docs)


def chunks(*pieces: Chunk) -> SystemOutputs:
    hits = [
        RetrievedDocument(
            Document(f"chunk {rank}", "", {"source": source, "start": start, "end": end}), 0.0, rank
        )
        for rank, (source, start, end) in enumerate(pieces, start=1)
    ]
    return SystemOutputs(hits, Response(""))


@pytest.mark.parametrize(
    ("found", "recall", "precision", "iou"),
    [
        # The gold is 10-20 of a and 0-10 of b: 20 characters.
        pytest.param([("a", 10, 20), ("b", 0, 10)], 1.0, 1.0, 1.0, id="just that"),
        pytest.param([("a", 0, 40), ("b", 0, 40)], 1.0, 0.25, 0.25, id="all of it, and as much again thrice"),
        pytest.param([("a", 0, 15)], 0.25, 1 / 3, 5 / 30, id="5 of 20, 5 of 15"),
        pytest.param([("a", 0, 15), ("a", 5, 15)], 0.25, 1 / 3, 5 / 30, id="an overlap counts once"),
        pytest.param([("a", 10, 15), ("a", 15, 20)], 0.5, 1.0, 0.5, id="end to end"),
        pytest.param([("c", 10, 20)], 0.0, 0.0, 0.0, id="another source"),
        pytest.param([("a", 20, 30)], 0.0, 0.0, 0.0, id="the end is not included"),
        pytest.param([], 0.0, 0.0, 0.0, id="nothing retrieved"),
        pytest.param(
            [("c", 0, 9), ("c", 0, 9), ("c", 0, 9), ("a", 10, 20)], 0.0, 0.0, 0.0, id="below the cutoff"
        ),
    ],
)
def test_by_hand(found: list[Chunk], recall: float, precision: float, iou: float) -> None:
    sample, output = gold(("a", 10, 20), ("b", 0, 10)), chunks(*found)
    values = [
        metric.compute([sample], [output]).value for metric in (SpanRecall(3), SpanPrecision(3), SpanIoU(3))
    ]
    assert values == pytest.approx([recall, precision, iou])


def test_gold_spans_that_overlap_count_once() -> None:
    assert SpanRecall(1).compute([gold(("a", 0, 10), ("a", 5, 20))], [chunks(("a", 0, 10))]).value == 0.5


def test_a_document_without_start_and_end_is_the_whole_of_itself() -> None:
    sample = gold(("a", 3, 8))
    output = an_output("a")  # its text, "text of a", has nine characters
    assert SpanRecall(1).compute([sample], [output]).value == 1.0
    assert SpanPrecision(1).compute([sample], [output]).value == pytest.approx(5 / 9)


def test_a_sample_whose_gold_has_no_spans_is_skipped() -> None:
    zero = gold(("a", 0, 5))
    for doc in zero.relevant_docs or ():
        doc.metadata["relevance"] = 0
    result = SpanRecall(3).compute([a_sample(relevant="a"), zero], [an_output("a"), an_output("a")])
    assert result.details["num_skipped"] == 2


@pytest.mark.parametrize(
    ("start", "end"), [(5, 5), (6, 5), (-1, 5), (None, 5), ("0", "5"), (0.0, 5.0), (True, 5), (0, None)]
)
def test_what_is_no_span_fails_the_sample(start: Any, end: Any) -> None:
    bad_gold = gold(("a", start, end)), chunks(("a", 0, 5))
    bad_chunk = gold(("a", 0, 5)), chunks(("a", start, end))
    for sample, output in (bad_gold, bad_chunk):
        result = SpanIoU(3).compute([sample], [output])
        assert result.details["num_failed"] == 1
        assert "span" in result.scores[0].reason


interval = st.tuples(st.integers(0, 30), st.integers(1, 9)).map(lambda pair: (pair[0], pair[0] + pair[1]))
pieces = st.lists(st.tuples(st.sampled_from("ab"), interval), max_size=6)


@given(pieces, pieces)
def test_lengths_are_those_of_sets_of_characters(
    one: list[tuple[str, tuple[int, int]]], other: list[tuple[str, tuple[int, int]]]
) -> None:
    marked = [
        {(source, n) for source, (start, end) in piece for n in range(start, end)} for piece in (one, other)
    ]
    assert length(merged(one)) == len(marked[0])
    assert shared_length(merged(one), merged(other)) == len(marked[0] & marked[1])


@given(st.lists(interval, min_size=1, max_size=5), st.integers(1, 40), st.integers(0, 8))
def test_recall_survives_any_way_of_cutting(spans: list[tuple[int, int]], size: int, overlap: int) -> None:
    sample = gold(*(("a", start, end) for start, end in spans))
    cut = [("a", max(0, start - overlap), min(40, start + size)) for start in range(0, 40, size)]
    assert SpanRecall(len(cut)).compute([sample], [chunks(*cut)]).value == 1.0


def questions() -> list[EvaluationSample]:
    with (CHUNKING / "questions_df.csv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    return [
        EvaluationSample(
            str(number),
            row["question"],
            relevant_docs=[
                Document(
                    row["corpus_id"],
                    "",
                    {
                        "spans": [
                            {"start": span["start_index"], "end": span["end_index"]}
                            for span in json.loads(row["references"])
                        ]
                    },
                )
            ],
        )
        for number, row in enumerate(rows)
    ]


def perfect_retriever(sample: EvaluationSample, size: int) -> SystemOutputs:
    """Every chunk of that size that holds a gold character, and no other."""
    assert sample.relevant_docs is not None
    (doc,) = sample.relevant_docs
    starts = {
        n * size
        for span in doc.metadata["spans"]
        for n in range(span["start"] // size, (span["end"] - 1) // size + 1)
    }
    return chunks(*((doc.doc_id, start, start + size) for start in sorted(starts)))


@pytest.mark.skipif(not CHUNKING.is_dir(), reason="needs chunking_evaluation's data, not part of the project")
def test_a_perfect_retriever_has_recall_one_however_real_documents_are_cut() -> None:
    samples = questions()
    assert len(samples) == 472
    precisions = []
    for size in (50, 200, 777, 4_000):
        outputs = [perfect_retriever(sample, size) for sample in samples]
        recall = SpanRecall(1_000).compute(samples, outputs)
        assert {score.value for score in recall.scores} == {1.0}
        precisions.append(SpanPrecision(1_000).compute(samples, outputs).value)
    assert precisions == sorted(precisions, reverse=True)


@pytest.mark.skipif(not CHUNKING.is_dir(), reason="needs chunking_evaluation's data, not part of the project")
def test_iou_of_the_first_real_question() -> None:
    # Its spans are 27346-27425 and 27866-28023 of the speech: 79 + 157 characters. Of chunks of 400 that is
    # 27200-27600, 27600-28000 and 28000-28400: 1200 characters, which hold all of it.
    sample = questions()[0]
    output = perfect_retriever(sample, 400)
    assert [hit.doc.metadata["start"] for hit in output.retrieved] == [27200, 27600, 28000]
    assert SpanIoU(5).compute([sample], [output]).value == pytest.approx(236 / 1200)
    # The first chunk alone: 79 of 236 characters, among 400.
    assert SpanRecall(1).compute([sample], [output]).value == pytest.approx(79 / 236)
    assert SpanIoU(1).compute([sample], [output]).value == pytest.approx(79 / (236 + 400 - 79))


BILLING = "Invoices are sent monthly. They are due in a week. Late payments cost five percent."
DUE = BILLING.index("They"), BILLING.index(" Late")


def of_billing(text: str = BILLING) -> EvaluationSample:
    spans = [{"start": DUE[0], "end": DUE[1]}]
    return EvaluationSample("1", "q", relevant_docs=[Document("billing.md", text, {"spans": spans})])


def chunk_of_billing(text: str, **metadata: Any) -> SystemOutputs:
    doc = Document("8d0f", text, {"source": "billing.md", **metadata})
    return SystemOutputs([RetrievedDocument(doc, 1.0, 1)], Response(""))


@pytest.mark.parametrize(
    "metadata",
    [
        {"start": DUE[0], "end": DUE[1]},
        {"start_index": DUE[0]},
        {"start_char_idx": DUE[0], "end_char_idx": DUE[1]},
        {"start_char": DUE[0], "end_char": DUE[1]},
        {"split_idx_start": DUE[0]},
        {},
    ],
    ids=["ours", "LangChain", "LlamaIndex", "spaCy", "Haystack", "found in the document"],
)
def test_a_perfect_retrieval_scores_1_whoever_cut_the_chunk(metadata: dict[str, Any]) -> None:
    output = chunk_of_billing(BILLING[slice(*DUE)], **metadata)
    for metric in (SpanRecall(5), SpanPrecision(5), SpanIoU(5)):
        assert metric.compute([of_billing()], [output]).value == 1.0


@pytest.mark.parametrize(
    ("sample", "text"),
    [
        (of_billing(), "They are due in a month."),
        (of_billing(BILLING * 2), "They are due in a week."),
        (of_billing(""), "They are due in a week."),
        (of_billing(), ""),
    ],
)
def test_a_chunk_that_cannot_be_located_skips_its_sample(sample: EvaluationSample, text: str) -> None:
    result = SpanRecall(5).compute([sample], [chunk_of_billing(text)])
    assert result.coverage.skipped == 1
    assert "the chunk '8d0f' of 'billing.md' has no start, and its text is not" in result.scores[0].reason


def test_chunks_of_other_sources_keep_their_lengths() -> None:
    docs = [Document(f"c{n}", text, {"source": "tides.md"}) for n, text in enumerate(("1234", "12345"))]
    hits = [RetrievedDocument(doc, 1.0, rank) for rank, doc in enumerate(docs, start=1)]
    both = [*hits, *chunk_of_billing("x", start=DUE[0], end=DUE[0] + 1).retrieved]
    output = SystemOutputs([RetrievedDocument(h.doc, 1.0, n) for n, h in enumerate(both, 1)], Response(""))
    assert SpanPrecision(5).compute([of_billing()], [output]).value == pytest.approx(1 / 10)


@pytest.mark.parametrize(
    "chunk",
    [
        pytest.param(
            Document("b.md#1", "22 cars", {"document": "b.md", "start": 40, "end": 47}), id="seed 000"
        ),
        pytest.param(Document("b.md#1", "22 cars", {"start": 40, "end": 47}), id="id and place"),
        pytest.param(
            Document("n", "22 cars", {"source_path": "/srv/b.md", "start": 40, "end": 47}), id="path"
        ),
        pytest.param(Document("n", "22 cars", {"source": "b.md"}), id="source and text"),
        pytest.param(Document("n", " 22 cars\n"), id="text"),
    ],
)
def test_a_gold_chunk_is_found_by_any_of_its_names(chunk: Document) -> None:
    place = {"document": "b.md", "start": 40, "end": 47}
    spans = [{"source": "b.md", "start": 40, "end": 42}]
    sample = EvaluationSample(
        "1", "q", relevant_docs=[Document("b.md#1", "22 cars", {**place, "spans": spans})]
    )
    output = SystemOutputs([RetrievedDocument(chunk, 1.0, 1)], Response(""))
    assert SpanRecall(5).compute([sample], [output]).value == 1.0


def test_a_text_in_another_file_is_not_the_gold_one() -> None:
    place = {"document": "b.md", "start": 40, "end": 47}
    spans = [{"source": "b.md", "start": 40, "end": 42}]
    sample = EvaluationSample(
        "1", "q", relevant_docs=[Document("b.md#1", "22 cars", {**place, "spans": spans})]
    )
    output = SystemOutputs(
        [RetrievedDocument(Document("n", "22 cars", {"source": "c.md"}), 1.0, 1)], Response("")
    )
    assert SpanRecall(5).compute([sample], [output]).value == 0.0
