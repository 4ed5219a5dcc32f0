"""Questions by rules: the questions, the rejected candidates, and the records."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auepora_eval.cli.main import main
from auepora_eval.demo.world import DATA
from auepora_eval.errors import UnknownNameError
from auepora_eval.generate.checks import Candidate, Checker
from auepora_eval.generate.clauses import clause
from auepora_eval.generate.corpus import Corpus, SourceDocument, read_corpus
from auepora_eval.generate.generator import Generation, Settings
from auepora_eval.generate.passages import cut, vocabulary_of
from auepora_eval.generate.questions import amounts, questions_by_rule

REAL = Path(__file__).parents[2] / "../shared/data/chunking_evaluation/corpora"


def corpus_of(*texts: str, title: str = "") -> Corpus:
    documents = [SourceDocument(f"{n}.txt", f"{n}.txt", text, title) for n, text in enumerate(texts)]
    return Corpus(documents, [])


def candidates_of(text: str, *, title: str = "") -> list[Candidate]:
    documents = [cut(document) for document in corpus_of(text, title=title).documents]
    return list(questions_by_rule(documents[0], vocabulary_of(documents), Random(0)))


# Names must be seen within a sentence to be known as names.
KNOWN = (
    " Later we saw Gull Rock, the Annet and Ansel Brae, and then Port Ennick again. Ansel Brae was a keeper."
)


@pytest.mark.parametrize(
    ("sentence", "question", "answer"),
    [
        ("The Annet carries 64 passengers.", "How many passengers does the Annet carry?", "64"),
        ("The Annet weighs 190 tonnes.", "How much does the Annet weigh?", "190 tonnes"),
        ("Gull Rock was sold for $5 million.", "For how much was Gull Rock sold?", "$5 million"),
        ("Gull Rock is 40 metres high.", "How high is Gull Rock?", "40 metres"),
        ("The Annet is painted every two years.", "How often is the Annet painted?", "every two years"),
        ("The Annet had been moored for six weeks.", "For how long had the Annet been moored?", "six weeks"),
        ("The Annet was built in 1911.", "When was the Annet built?", "1911"),
        ("In May 1911, the Annet left Port Ennick.", "When did the Annet leave Port Ennick?", "May 1911"),
        ("Gull Rock is a bare island in the bay.", "What is Gull Rock?", "a bare island in the bay"),
        ("Gull Rock lies in the bay of Ennick.", "Where does Gull Rock lie?", "in the bay of Ennick"),
        ("Ansel Brae built the light on Gull Rock.", "Who built the light on Gull Rock?", "Ansel Brae"),
        ("The Annet was built by Ansel Brae.", "By whom was the Annet built?", "Ansel Brae"),
        ("Some 6,380 people live on Gull Rock.", "How many people live on Gull Rock?", "6,380"),
    ],
)
def test_question_of_each_kind(sentence: str, question: str, answer: str) -> None:
    answers = {each.question: each.answer for each in candidates_of(sentence + KNOWN)}
    assert answers.get(question) == answer


@pytest.mark.parametrize(
    ("text", "question"),
    [
        pytest.param(
            "The board has seven members.",
            'According to "How the board works", how many members does the board have?',
            id="the topic says which board",
        ),
        pytest.param(
            "Ansel Brae keeps the light. He leads a crew of nine, and owns two goats." + KNOWN,
            None,
            id="nothing is asked about nine that is cut off",
        ),
        pytest.param(
            "The Annet was built in 1911. It carries 64 passengers." + KNOWN,
            "How many passengers does the Annet carry?",
            id="it is the subject of the sentence before",
        ),
        pytest.param(
            "How early must I arrive? Walkers ten minutes before sailing. Can I bring a dog? Yes, on a lead.",
            'According to "How the board works", how early must I arrive?',
            id="the text asks itself",
        ),
        pytest.param(
            "People live on the three islands: Gull Rock, Annet and Ennick.",
            'According to "How the board works", what are the three islands?',
            id="a list in a sentence",
        ),
    ],
)
def test_questions_can_be_understood_alone(text: str, question: str | None) -> None:
    questions = {each.question for each in candidates_of(text, title="How the board works")}
    assert question in questions if question else not any("nine" in each for each in questions)


@pytest.mark.parametrize(
    "sentence",
    [
        "The ferry rules apply to all.",  # "rules" is not a verb here
        "The company founded in 1911 was sold in 1944.",
        "It was not built in 1911.",
        "When the Annet was built, it cost 5 crowns.",
        "Is the Annet 40 metres long?",
        "",
        "one",
    ],
)
def test_complex_sentence_gives_no_wrong_clause(sentence: str) -> None:
    main_clause = clause(sentence)
    assert main_clause is None or (main_clause.subject, main_clause.verb) == ("The ferry rules", "apply")


@given(st.text(max_size=200))
def test_any_text_gives_exact_spans(text: str) -> None:
    for each in candidates_of(text):
        assert text[each.start : each.end] == each.answer


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("carries 64 passengers", [("64", "passengers", "count")]),
        ("costs $5.5 million", [("$5.5 million", "", "money")]),
        ("rose by 12 per cent in 1911", [("12 per cent", "", "percent")]),
        ("about twenty-five minutes", [("twenty-five", "minutes", "time")]),
        ("see Table 3 and version 2", []),
        ("on 3 May 1911", []),
        ("the KM-4 and the 0160 expenditures", []),
    ],
)
def test_amounts(text: str, expected: list[tuple[str, str, str]]) -> None:
    assert [(text[each.start : each.end], each.noun, each.kind) for each in amounts(text)] == expected


def candidate(question: str, answer: str, text: str, **fields: Any) -> Candidate:
    start = text.index(answer)
    span = {"start": start, "end": start + len(answer), "evidence": (0, len(text))}
    topic = {"topic": "the Annet", "kind": "number"}
    return Candidate("number", question, answer, document="0.txt", **{**span, **topic, **fields})


SENTENCE = "The Annet carries 64 passengers to Port Ennick."


@pytest.mark.parametrize(
    ("question", "fields", "reason"),
    [
        ("How many passengers does the Annet carry?", {}, ""),
        ("How many passengers, 64, does the Annet carry?", {}, "the answer is in the question"),
        ("How many passengers does she carry?", {"topic": ""}, "cannot be understood alone"),
        ("How many passengers does it carry?", {}, "cannot be understood alone"),
        ("How many passengers does the ship carry?", {"topic": ""}, "cannot be understood alone"),
        ("How many passengers does the Annet carry to?", {}, "not well formed"),
        ("the Annet carries how many passengers", {}, "not well formed"),
        ("How many passengers does the <unk> carry?", {}, "not plain prose"),
        ("How many?", {}, "too short or too long"),
        ("How many passengers does the Annet carry?", {"start": 3, "end": 5}, "the span is not the answer"),
        (
            "How many passengers does the Annet carry?",
            {"evidence": (0, 900)},
            "no passage holds the whole evidence",
        ),
    ],
)
def test_bad_candidates_are_rejected(question: str, fields: dict[str, Any], reason: str) -> None:
    checker = Checker([cut(each) for each in corpus_of(SENTENCE).documents])
    assert checker.rejection(candidate(question, "64", SENTENCE, **fields)) == reason


def test_one_question_per_sentence_and_no_duplicates() -> None:
    text = SENTENCE + " In winter the Annet carries fewer than 64 passengers."
    checker = Checker([cut(each) for each in corpus_of(text).documents])
    first = candidate("How many passengers does the Annet carry?", "64", text, evidence=(0, len(SENTENCE)))
    checker.take(first)
    assert checker.rejection(first) == "another question asks about the sentence"
    variant = candidate("What passengers does the Annet carry?", "64", text)
    assert checker.rejection(variant) == "near duplicate"


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ("The Annet carries 80 passengers to Port Ennick.", "answered elsewhere, too, and differently"),
        ("The Annet carries 64 passengers to Port Ennick.", ""),
        ("The Dunlin carries 80 passengers to Port Ennick.", ""),
    ],
)
def test_question_with_two_answers_is_rejected(other: str, reason: str) -> None:
    checker = Checker([cut(each) for each in corpus_of(SENTENCE, other).documents])
    assert checker.rejection(candidate("How many passengers does the Annet carry?", "64", SENTENCE)) == reason


def demo_generation(**settings: Any) -> Generation:
    return Generation(read_corpus(DATA / "corpus.jsonl"), Settings(**settings))


def test_records_have_the_raw_form_and_exact_spans() -> None:
    generation = demo_generation()
    texts = {document.source.name: document.source.text for document in generation.documents}
    records = list(generation.records())
    passages = {record["doc_id"] for record in generation.corpus_records()}
    assert len({record["task_id"] for record in records}) == len(records) > 300
    for record in records:
        assert list(record) == ["task_id", "task_type", "instruction", "expected_response", "rag", "metadata"]
        rag, metadata = record["rag"], record["metadata"]
        assert list(rag) == ["prompt", "contexts", "sources", "scores", "citations", "retrieved"]
        assert len({len(rag[name]) for name in rag if name != "prompt"}) == 1
        assert all(text.startswith(f"[{n}] ") for n, text in enumerate(rag["contexts"], start=1))
        assert set(metadata["selected_chunk_ids"]) <= passages
        span = metadata.get("answer_span")
        if record["task_type"] == "qa" and span:
            assert texts[span["document"]][span["start"] : span["end"]] == record["expected_response"]
        if record["task_type"] == "summaries":
            parts = [
                texts[each["document"]][each["start"] : each["end"]] for each in metadata["summary_spans"]
            ]
            assert " ".join(parts) == record["expected_response"]
        if record["task_type"] == "citations":
            number = int(record["expected_response"].rpartition("[")[2].rstrip("]"))
            assert rag["retrieved"][number - 1]["id"] in metadata["selected_chunk_ids"]


def test_report_adds_up() -> None:
    generation = demo_generation(per_document=1)
    records = list(generation.records())
    report = generation.report()
    assert sum(report["tasks"].values()) == sum(report["scenarios"].values()) == len(records)
    assert report["candidates"] == report["questions"] + sum(report["rejected"].values())
    assert report["documents_without_questions"] == report["documents"] - report["questions"]
    assert report["questions"] == sum(report["families"].values())
    base = [each for each in records if each["metadata"]["labels"]["scenario"] == "base"]
    assert Counter(each["task_type"] for each in base)["qa"] == report["questions"]
    ranks = [each["metadata"]["checks"]["bm25_rank"] for each in base if each["task_type"] == "qa"]
    assert report["gold_first_share"] == pytest.approx(ranks.count(1) / len(ranks))


def test_bytes_depend_on_the_seed_only(tmp_path: Path) -> None:
    contents = []
    for place, seed in (("a", "0"), ("b", "0"), ("c", "1")):
        out = tmp_path / place / "tasks.jsonl"
        assert main(["dataset", "generate", "demo", "--out", str(out), "--seed", seed, "--json"]) == 0
        contents.append((out.read_bytes(), out.with_name("corpus.jsonl").read_bytes()))
    assert contents[0] == contents[1]
    assert contents[0][0] != contents[2][0]
    assert contents[0][1] == contents[2][1]


def test_only_the_requested_tasks_are_generated() -> None:
    generation = demo_generation(tasks=("summaries",))
    assert {record["task_type"] for record in generation.records()} == {"summaries"}
    assert generation.report()["accepted_share"] is None
    with pytest.raises(UnknownNameError, match="there is no task 'poems'"):
        Settings(tasks=("poems",))


def test_command_rejects_harmful_arguments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.txt").write_text("Nothing here can be asked about.")
    out = tmp_path / "out" / "tasks.jsonl"

    def error(*flags: str) -> str:
        assert main(["dataset", "generate", *flags]) == 2
        return capsys.readouterr().err

    assert "is among the documents" in error(str(folder), "--out", str(folder / "tasks.jsonl"))
    assert "is the same file" in error(str(folder), "--out", str(out), "--corpus", str(out))
    assert "gave no task" in error(str(folder), "--out", str(out))
    assert not out.parent.exists()
    assert "there is no such folder" in error(str(tmp_path / "nowhere"), "--out", str(out))
    assert "must be less than" in error(str(folder), "--out", str(out), "--overlap", "300")
    assert "there is no variant 'poem'" in error(str(folder), "--out", str(out), "--variants", "poem")
    out.parent.mkdir()
    out.write_text("mine")
    assert main(["dataset", "generate", "demo", "--out", str(out)]) == 4
    assert out.read_text() == "mine"
    assert [path.name for path in out.parent.iterdir()] == ["tasks.jsonl"]


def test_report_is_one_json_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "tasks.jsonl"
    assert main(["dataset", "generate", "demo", "--out", str(out), "--variants", "none", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["documents"] == 88
    assert report["scenarios"] == {"base": len(out.read_text().splitlines())}


@pytest.mark.skipif(not REAL.is_dir(), reason="the shared real documents are not on this machine")
def test_real_documents_give_questions_with_exact_spans() -> None:
    generation = Generation(read_corpus(REAL / "wikitexts.md"), Settings(per_document=100, tasks=("qa",)))
    text = generation.documents[0].source.text
    base = [each for each in generation.records() if each["metadata"]["labels"]["scenario"] == "base"]
    assert len(base) >= 40
    for record in base:
        span = record["metadata"]["answer_span"]
        assert text[span["start"] : span["end"]] == record["expected_response"]
    assert generation.report()["gold_never_share"] == 0
