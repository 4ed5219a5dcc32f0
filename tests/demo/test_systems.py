"""The systems on board: real ones, on real text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import wordllama

from auepora_eval.core.types import Document
from auepora_eval.demo import systems
from auepora_eval.demo.answers import DECLINED, ExtractiveAnswerer
from auepora_eval.demo.world import demo_corpus, demo_dataset
from auepora_eval.errors import MissingDependencyError
from auepora_eval.models import embeddings
from tests.builders import a_sample


@pytest.mark.parametrize("build", [systems.bm25, systems.bigram, systems.hybrid])
def test_a_question_in_the_documents_own_words_is_found_and_answered(build: object) -> None:
    system = build()  # type: ignore[operator]
    output = system.run(a_sample(query="How long is the North cable?"), top_k=3)
    assert [hit.rank for hit in output.retrieved] == [1, 2, 3]
    assert "9.2 kilometres" in output.retrieved[0].doc.text
    assert output.response.text == "9.2 kilometres"
    assert set(output.timings) == {"retrieval", "generation", "end_to_end"}


def test_a_closed_context_is_answered_from_it_alone() -> None:
    sample = next(s for s in demo_dataset() if s.labels["scenario"] == "counterfactual")
    found = systems.bm25().run(sample, top_k=10).retrieved
    assert {hit.doc.doc_id for hit in found} == {doc.doc_id for doc in sample.candidate_docs or ()}


@pytest.mark.parametrize("query", ["", "   ", "\x00", "zzzz qqqq", "?" * 5000])
def test_any_query_gets_an_answer(query: str) -> None:
    for system in (systems.bm25(), systems.hybrid()):
        output = system.run(a_sample(query=query))
        assert len(output.retrieved) == 5
        assert output.response.text


def test_questions_without_an_answer_are_declined() -> None:
    answerer = ExtractiveAnswerer(demo_corpus())
    response = answerer.generate("What does a penguin weigh?", [Document("d", "Soup is served at noon.")])
    assert (response.text, response.structured) == (DECLINED, {"declined": True})


def test_the_vectors_equal_those_of_the_package_that_they_come_from() -> None:
    texts = [doc.text for doc in demo_corpus()[:20]] + ["x", "Naïve 东京"]
    theirs = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    assert np.allclose(embeddings.StaticEmbedder().embed(texts), theirs.embed(texts, norm=True), atol=1e-6)
    assert not embeddings.StaticEmbedder().embed([""]).any()


def test_without_the_extra_the_demo_compares_with_word_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "find_spec", lambda name: None)
    embeddings.embedder.cache_clear()
    with pytest.raises(MissingDependencyError, match=r"pip install 'auepora-eval\[embeddings\]'"):
        systems.hybrid()
    assert systems.second_system().name == "bigram"
    monkeypatch.undo()
    embeddings.embedder.cache_clear()
    assert systems.second_system().name == "hybrid"
