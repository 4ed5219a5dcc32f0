"""Tasks by rules: questions that make sense, exact spans, the form of the records, and the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auepora_eval.builder.corpus import Corpus, SourceDocument, read_corpus
from auepora_eval.cli.main import main
from auepora_eval.demo.world import DATA
from auepora_eval.generate.generator import Generation, Settings
from auepora_eval.text.tokens import words

REAL = Path(__file__).parents[2] / "../shared/data/beir_nfcorpus"


def corpus_of(*texts: str) -> Corpus:
    return Corpus([SourceDocument(f"{n}.txt", f"{n}.txt", text) for n, text in enumerate(texts)], [])


def answers_of(*texts: str) -> dict[str, str]:
    """Return the answers by their questions."""
    generation = Generation(corpus_of(*texts), Settings(tasks=("qa",), per_document=99, variants=()))
    return {record["instruction"]: record["expected_response"] for record in generation.records()}


# Names must be seen within a sentence to be known as names.
KNOWN = " Later we saw Gull Rock, the Annet and Ansel Brae, and then Port Ennick again, the old port."


@pytest.mark.parametrize(
    ("sentence", "question", "answer"),
    [
        ("The Annet carries 64 passengers.", "How many passengers does the Annet carry?", "64"),
        ("The Annet weighs 190 tonnes.", "How much does the Annet weigh?", "190 tonnes"),
        ("Gull Rock was sold for $5 million.", "For how much was Gull Rock sold?", "$5 million"),
        ("Gull Rock is 40 metres high.", "How high is Gull Rock?", "40 metres"),
        ("The Annet is painted every two years.", "How often is the Annet painted?", "every two years"),
        ("Gull Rock has been dark for six weeks.", "For how many weeks has Gull Rock been dark?", "six"),
        ("The Annet was built in 1911.", "When was the Annet built?", "1911"),
        ("In May 1911, the Annet reached Gull Rock.", "When did the Annet reach Gull Rock?", "May 1911"),
        ("Gull Rock is a bare island in the bay.", "Who or what is Gull Rock?", "a bare island in the bay"),
        ("The Annet was built by Ansel Brae.", "By whom was the Annet built?", "Ansel Brae"),
        ("The tide clerk, Nils Avery, was away.", "What is the name of the tide clerk?", "Nils Avery"),
        ("The Annet was built in 1911. It carries 64 goats.", "How many goats does the Annet carry?", "64"),
        ("The Annet holds 9 cars and costs 70 crowns.", "How much does the Annet cost?", "70 crowns"),
        ("The old boat, Knot, carries 12 cows.", "How many cows does the old boat, Knot, carry?", "12"),
        ("Gull Rock (code GR-1) has 21 lamps.", "How many lamps does Gull Rock have?", "21"),
    ],
)
def test_question_of_each_kind(sentence: str, question: str, answer: str) -> None:
    text = sentence if "Ansel" in sentence else sentence + KNOWN
    assert answers_of(text).get(question) == answer


@pytest.mark.parametrize(
    "sentence",
    [
        pytest.param("It carries 64 passengers.", id="nobody knows what it is"),
        pytest.param("However, the Annet carries 64 passengers.", id="leans on another sentence"),
        pytest.param("The Annet does not carry 64 passengers.", id="negated"),
        pytest.param("The ship carries 64 passengers.", id="does not say which ship"),
        pytest.param("The company founded in 1911 was sold to Ansel Brae.", id="founded is not the verb"),
        pytest.param("When the Annet was built, she cost 5 crowns.", id="two clauses"),
        pytest.param("Is the Annet 40 metres long?", id="a question"),
        pytest.param("| The Annet | was built in 1911. |", id="a table"),
        pytest.param("Annet annets 40 metres.", id="an unknown verb"),
    ],
)
def test_no_question_is_better_than_a_bad_one(sentence: str) -> None:
    assert answers_of(sentence + " Later we saw the Annet again.") == {}


@pytest.mark.parametrize(
    ("other", "count"),
    [
        pytest.param("The Dunlin has 12 lamps.", 1, id="about something else"),
        pytest.param("The Annet carries 80 passengers to Port Ennick.", 0, id="another answer"),
        pytest.param("Some 64 passengers were late.", 0, id="the value is not unique"),
    ],
)
def test_question_with_two_answers_is_not_asked(other: str, count: int) -> None:
    answers = answers_of("The Annet carries 64 passengers to Port Ennick.", other)
    assert sum("passengers" in question for question in answers) == count


def test_a_page_of_ten_sentences_gives_questions() -> None:
    page = (
        "The Otter Mill stands on the river Senn, two miles above the town of Harrowby. It was built in 1847 "
        "by Josiah Threlkeld, a corn merchant. The mill has four pairs of stones and can grind 12 tonnes of "
        "flour in a day. Its great wheel was cast at the Brightside works. In 1912, the owners of the Otter "
        "Mill replaced the wheel. The present miller, Agnes Pollitt, bakes bread in the old room. Visitors "
        "pay 4 pounds to see the machinery. A flood carried away the footbridge. Repairs took years. "
        "Today it is a museum."
    )
    assert answers_of(page) == {
        "When was the Otter Mill built?": "1847",
        "How many tonnes of flour in a day can the mill grind?": "12",
        "When did the owners of the Otter Mill replace the wheel?": "1912",
        "What is the name of the present miller?": "Agnes Pollitt",
    }


@given(st.text(max_size=200))
def test_any_text_gives_exact_spans(text: str) -> None:
    generation = Generation(corpus_of(text + " The Annet left in 1911."), Settings(variants=()))
    source = generation.documents[0].source.text
    for record in generation.records():
        for span in (record["metadata"].get("answer_span"), *record["metadata"].get("summary_spans", ())):
            assert span is None or source[span["start"] : span["end"]] in record["expected_response"]


def demo_generation(**settings: Any) -> Generation:
    return Generation(read_corpus(DATA / "corpus.jsonl"), Settings(**settings))


def test_demo_questions_have_unique_exact_answers_and_do_not_name_the_title() -> None:
    generation = demo_generation(tasks=("qa",), variants=())
    sources = {document.source.name: document.source for document in generation.documents}
    everything = " ".join(word for source in sources.values() for word in words(source.text))
    records = list(generation.records())
    assert len(records) >= 60
    assert len({record["instruction"] for record in records}) == len(records)
    for record in records:
        span = record["metadata"]["answer_span"]
        source = sources[span["document"]]
        assert source.text[span["start"] : span["end"]] == record["expected_response"]
        assert source.title.lower() not in record["instruction"].lower()
        value = record["metadata"].get("alternatives", [record["expected_response"]])[0]
        assert f" {everything} ".count(f" {' '.join(words(value))} ") == 1, value


def test_records_have_the_raw_form() -> None:
    generation = demo_generation()
    texts = {document.source.name: document.source.text for document in generation.documents}
    records = list(generation.records())
    passages = {record["doc_id"] for record in generation.corpus_records()}
    assert len({record["task_id"] for record in records}) == len(records) > 200
    for record in records:
        assert list(record) == ["task_id", "task_type", "instruction", "expected_response", "rag", "metadata"]
        rag, metadata = record["rag"], record["metadata"]
        assert list(rag) == ["prompt", "contexts", "sources", "scores", "citations", "retrieved"]
        assert len({len(rag[name]) for name in rag if name != "prompt"}) == 1
        assert all(text.startswith(f"[{n}] ") for n, text in enumerate(rag["contexts"], start=1))
        assert set(metadata["selected_chunk_ids"]) <= passages
        if record["task_type"] == "summaries":
            spans = metadata["summary_spans"]
            parts = [texts[each["document"]][each["start"] : each["end"]] for each in spans]
            assert " ".join(parts) == record["expected_response"]
            assert len(parts) == 3
        if record["task_type"] == "citations":
            statement, _, mark = record["expected_response"].rpartition(" ")
            span = metadata["answer_span"]
            assert texts[span["document"]][span["start"] : span["end"]] == statement
            gold = rag["retrieved"][int(mark.strip("[]")) - 1]
            assert gold["id"] in metadata["selected_chunk_ids"]
            assert [statement in each["text"] for each in rag["retrieved"]].count(True) == 1


def test_bytes_depend_on_the_seed_only(tmp_path: Path) -> None:
    contents = []
    for place, seed in (("a", "0"), ("b", "0"), ("c", "1")):
        out = tmp_path / place / "tasks.jsonl"
        assert main(["dataset", "generate", "demo", "--out", str(out), "--seed", seed, "--json"]) == 0
        contents.append((out.read_bytes(), out.with_name("corpus.jsonl").read_bytes()))
    assert contents[0] == contents[1]
    assert contents[0][0] != contents[2][0]
    assert contents[0][1] == contents[2][1]


def test_prose_without_facts_is_named_with_the_way_to_questions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "speech.md").write_text("Tonight we meet again. We will go on, as we always have.\n" * 40)
    for documents, is_poor in ((str(tmp_path / "speech.md"), True), ("demo", False)):
        assert main(["dataset", "generate", documents, "--out", str(tmp_path / "t.jsonl"), "--force"]) == 0
        shown = capsys.readouterr()
        assert ("A model writes questions about any text: --llm" in shown.err) is is_poor
        assert "Next: auepora run --dataset" in shown.out


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
    assert "there is no such file or folder" in error(str(tmp_path / "nowhere"), "--out", str(out))
    (tmp_path / "default.yaml").write_text("generation: {overlap: 300}\n", encoding="utf-8")
    config = ("--config", str(tmp_path / "default.yaml"))
    assert "must be less than" in error(str(folder), "--out", str(out), *config)
    assert "there is no variant 'poem'" in error(str(folder), "--out", str(out), "--variants", "poem")
    out.parent.mkdir()
    out.write_text("mine")
    assert main(["dataset", "generate", "demo", "--out", str(out)]) == 4
    assert out.read_text() == "mine"
    assert [path.name for path in out.parent.iterdir()] == ["tasks.jsonl"]


@pytest.mark.full
@pytest.mark.skipif(not REAL.is_dir(), reason="the shared real documents are not on this machine")
def test_real_documents_give_questions_with_exact_spans() -> None:
    generation = Generation(read_corpus(REAL / "corpus.jsonl"), Settings(tasks=("qa",), variants=()))
    texts = {document.source.name: document.source.text for document in generation.documents}
    records = list(generation.records())
    assert len(records) >= 50
    for record in records:
        span = record["metadata"]["answer_span"]
        assert texts[span["document"]][span["start"] : span["end"]] == record["expected_response"]
    assert generation.report()["gold_never_share"] == 0


def test_rare_settings_are_in_the_project_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config, out = tmp_path / "default.yaml", tmp_path / "tasks.jsonl"

    def passages(section: str) -> int:
        config.write_text(f"generation: {section}\n", encoding="utf-8")
        words = ["dataset", "generate", "demo", "--out", str(out), "--config", str(config), "--json"]
        assert main([*words, "--force"]) == 0
        count: int = json.loads(capsys.readouterr().out)["passages"]
        return count

    assert passages("{chunk_tokens: 32, overlap: 0}") > passages("{}")
    config.write_text("generation: {chunk_tokens: 1}\n", encoding="utf-8")
    assert main(["dataset", "generate", "demo", "--out", str(out), "--config", str(config)]) == 2
    assert "chunk_tokens" in capsys.readouterr().err
