"""Variants for the robustness targets, with the labels that the metrics read."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.builder.corpus import Corpus, SourceDocument, read_corpus
from auepora_eval.core.types import Document, EvaluationSample, Response, RetrievedDocument, SystemOutputs
from auepora_eval.demo.world import DATA
from auepora_eval.generate.generator import Generation, Settings
from auepora_eval.generate.variants import RATIOS, VARIANTS
from auepora_eval.io.builds import load_split
from auepora_eval.io.jsonl import save_records
from auepora_eval.metrics.parse import parse_metric
from auepora_eval.metrics.robustness.counterfactual import holds_answer
from auepora_eval.text.spelled_numbers import spellings
from auepora_eval.text.tokens import words


def long_documents() -> Corpus:
    """Documents of several passages each, so that packs of every ratio can be filled."""
    names = ("Annet", "Dunlin", "Petrel", "Curlew", "Heron", "Plover")
    fill = "Nobody had thought of that before the storm, and so the harbour was left as it had been. " * 6
    texts = [
        f"{fill}\n\nThe ship {name} carries {40 + 7 * place} passengers. {fill}\n\n"
        f"The ship {name} was built in {1901 + 11 * place}. {fill}\n\nEverybody likes the {name} well. {fill}"
        for place, name in enumerate(names)
    ]
    return Corpus(
        [SourceDocument(f"{name}.txt", f"{name}.txt", text) for name, text in zip(names, texts, strict=True)],
        [],
    )


@pytest.fixture(scope="module")
def records() -> list[dict[str, Any]]:
    """Every question of the demo corpus with all its variants."""
    generation = Generation(read_corpus(DATA / "corpus.jsonl"), Settings(tasks=("qa",), variant_share=1))
    return list(generation.records())


def of_scenario(records: list[dict[str, Any]], scenario: str) -> list[dict[str, Any]]:
    chosen = [each for each in records if each["metadata"]["labels"]["scenario"] == scenario]
    assert chosen, f"no {scenario}"
    return chosen


def texts_of(record: dict[str, Any]) -> list[str]:
    return [each["text"] for each in record["rag"]["retrieved"]]


def test_every_variant_names_its_base_question_and_shares_its_cluster(records: list[dict[str, Any]]) -> None:
    bases = {each["task_id"] for each in of_scenario(records, "base")}
    for record in records:
        metadata = record["metadata"]
        if metadata["labels"]["scenario"] != "base":
            assert metadata["labels"]["variant_of"] in bases
        assert metadata["cluster"] == metadata["labels"].get("variant_of", record["task_id"])
    assert {each["metadata"]["labels"]["scenario"] for each in records} == {"base", *VARIANTS}


def test_noise_ratio_is_the_share_of_passages_without_the_answer() -> None:
    generation = Generation(
        long_documents(), Settings(chunk_tokens=130, overlap=0, variant_share=1, tasks=("qa",))
    )
    packs = of_scenario(list(generation.records()), "noise")
    assert {pack["metadata"]["labels"]["noise_ratio"] for pack in packs} == set(RATIOS)
    for pack in packs:
        metadata, retrieved = pack["metadata"], pack["rag"]["retrieved"]
        ratio = metadata["labels"]["noise_ratio"]
        own = [each for each in retrieved if each["document"] == metadata["document"]]
        assert metadata["selected_chunk_ids"][0] in {each["id"] for each in own}
        assert metadata["closed_context"] is True
        if ratio:
            assert len(retrieved) == 5
            assert 1 - len(own) / 5 == pytest.approx(ratio)
        else:
            assert own == retrieved


def test_noise_never_contains_the_answer(records: list[dict[str, Any]]) -> None:
    for pack in of_scenario(records, "noise"):
        for each in pack["rag"]["retrieved"]:
            if each["id"] not in pack["metadata"]["selected_chunk_ids"]:
                assert not holds_answer(each["text"], spellings(pack["expected_response"]))


def test_unanswerable_questions_have_no_answer(records: list[dict[str, Any]]) -> None:
    bases = {each["task_id"]: each for each in of_scenario(records, "base")}
    kinds: Counter[str] = Counter()
    for record in of_scenario(records, "unanswerable"):
        labels = record["metadata"]["labels"]
        kinds[labels["unanswerable"]] += 1
        base = bases[labels["variant_of"]]
        assert labels["answerable"] is False
        assert record["metadata"]["selected_chunk_ids"] == []
        assert "answer_span" not in record["metadata"]
        if labels["unanswerable"] == "fact_removed":
            assert record["instruction"] == base["instruction"]
            assert record["metadata"]["closed_context"] is True
            assert not holds_answer("\n".join(texts_of(record)), spellings(base["expected_response"]))
        else:
            assert record["instruction"] != base["instruction"]
            assert "closed_context" not in record["metadata"]
    assert set(kinds) == {"fact_removed", "no_such_name"}


def test_counterfactual_variant_shows_only_the_edited_fact(records: list[dict[str, Any]]) -> None:
    for record in of_scenario(records, "counterfactual"):
        labels = record["metadata"]["labels"]
        everything = "\n".join(texts_of(record))
        edited = [each for each in record["rag"]["retrieved"] if "~edited-" in each["id"]]
        assert len(edited) == 1
        assert edited[0]["counterfactual_of"] in record["metadata"]["selected_chunk_ids"]
        assert edited[0]["counterfactual_of"] not in record["metadata"]["retrieved_chunk_ids"]
        assert holds_answer(edited[0]["text"], labels["fake_answer"])
        assert not holds_answer(everything, labels["true_answer"])
        assert record["expected_response"] == labels["true_answer"] != labels["fake_answer"]


def test_paraphrases_and_typos_ask_for_the_same(records: list[dict[str, Any]]) -> None:
    bases = {each["task_id"]: each for each in of_scenario(records, "base")}
    for scenario in ("paraphrase", "typo"):
        for record in of_scenario(records, scenario):
            base = bases[record["metadata"]["labels"]["variant_of"]]
            assert record["instruction"] != base["instruction"]
            assert record["expected_response"] == base["expected_response"]
            assert record["metadata"]["selected_chunk_ids"] == base["metadata"]["selected_chunk_ids"]


class Quoting:
    """A trivial system: quotes the sentence that shares most words with the question, or declines."""

    def __init__(self, corpus: list[Document]) -> None:
        self._corpus = corpus

    def run(self, sample: EvaluationSample) -> SystemOutputs:
        closed = sample.metadata.get("closed_context")
        documents = sample.candidate_docs if closed and sample.candidate_docs else self._corpus
        wanted = set(words(sample.query))
        ranked = sorted(documents, key=lambda doc: -len(wanted & set(words(doc.text))))[:5]
        sentences = [each for doc in ranked for each in re.split(r"(?<=[.?!]) ", doc.text)]
        best = max(sentences, key=lambda each: len(wanted & set(words(each))))
        if len(wanted & set(words(best))) < 0.4 * len(wanted):
            best = "The documents do not say."
        hits = [RetrievedDocument(doc, 1 / rank, rank) for rank, doc in enumerate(ranked, start=1)]
        return SystemOutputs(hits, Response(best))


def test_robustness_metrics_can_be_computed(tmp_path: Path) -> None:
    generation = Generation(read_corpus(DATA / "corpus.jsonl"), Settings(variant_share=1, tasks=("qa",)))
    save_records(generation.records(), tmp_path / "offline_dataset.jsonl")
    corpus = [Document(each["doc_id"], each["text"]) for each in generation.corpus_records()]
    samples = list(load_split(tmp_path / "offline_dataset.jsonl"))
    outputs = [Quoting(corpus).run(sample) for sample in samples]
    values: dict[str, float] = defaultdict(float)
    names = (
        "recall@5 contains_answer noise_accuracy@0.8[contains_answer] noise_drop[contains_answer]"
        " noise_retention[contains_answer] noise_slope[contains_answer]"
        " flip_rate[contains_answer,scenario=typo] variant_drop[contains_answer,scenario=paraphrase]"
        " rejection_rate over_refusal_rate abstention_f1 counterfactual_accuracy fake_adoption_rate"
        " misleading_rate"
    )
    for name in names.split():
        result = parse_metric(name).compute(samples, outputs)
        assert result.details["num_samples"] >= 10, name
        values[name] = result.value
    assert all(value == value for value in values.values()), values
    assert values["recall@5"] > 0.5
    assert values["fake_adoption_rate"] > 0.3  # it quotes whatever it is given
    assert values["counterfactual_accuracy"] == 0  # the true answer is in no passage that it sees
    assert 0 <= values["rejection_rate"] <= 1
