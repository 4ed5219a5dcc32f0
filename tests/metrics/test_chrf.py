"""chrF and chrF++: sacrebleu as the judge; and the counting of n-grams beneath them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import CHRF

from auepora_eval.metrics.answers.translation import ChrF, ChrFPlusPlus
from tests.builders import a_failure, a_sample, an_output, quick_scores

Corpus = list[tuple[str, list[str]]]
BOTH: list[tuple[Any, Any]] = [(ChrF(), CHRF()), (ChrFPlusPlus(), CHRF(word_order=2))]
both = pytest.mark.parametrize(("ours", "theirs"), BOTH, ids=["chrf", "chrfpp"])

tokens = st.sampled_from("the cat sat on (mat) , . it's naïve 猫が 고양이 кошка! ... नमस्ते".split(" "))
text = st.one_of(
    st.lists(tokens, max_size=9).map(" ".join),
    st.text(alphabet="ab.() \n\u3000猫\x00\ud800", max_size=20),
    st.text(st.characters(exclude_characters="[")),  # ours leaves out citation marks such as [1]
)


@both
@settings(max_examples=80, deadline=None)
@given(
    st.integers(1, 3).flatmap(
        lambda n: st.lists(st.tuples(text, st.lists(text, min_size=n, max_size=n)), min_size=1, max_size=5)
    )
)
def test_equal_to_sacrebleu(ours: Any, theirs: Any, corpus: Corpus) -> None:
    samples = [
        a_sample(str(n), reference=golds[0], alternatives=golds[1:]) for n, (_, golds) in enumerate(corpus)
    ]
    outputs = [an_output(answer=answer) for answer, _ in corpus]
    value, scores = quick_scores(ours, samples, outputs)
    streams = [list(stream) for stream in zip(*(golds for _, golds in corpus), strict=True)]
    expected = theirs.corpus_score([answer for answer, _ in corpus], streams).score
    assert value == pytest.approx(expected, abs=1e-9)
    for score, (answer, golds) in zip(scores, corpus, strict=True):
        assert score.value == theirs.sentence_score(answer, golds).score
    for sample, output, score in zip(samples, outputs, scores, strict=True):
        plain = ours.score(sample, output)
        assert (plain.parts, plain.value) == (score.parts, score.value)


@pytest.mark.parametrize(("metric", "expected"), [(ChrF(), 61.925151), (ChrFPlusPlus(), 64.370341)])
def test_the_cat_on_the_mat(metric: Any, expected: float) -> None:
    result = metric.compute(
        [a_sample(reference="the cat sat on the mat")], [an_output(answer="the cat is on the mat")]
    )
    assert result.value == pytest.approx(expected, abs=1e-6)


@both
def test_a_failed_answer_is_bounded_by_one_without_a_match_and_by_the_reference(
    ours: Any, theirs: Any
) -> None:
    samples = [a_sample(str(n), reference="the cat sat on the mat") for n in range(2)]
    result = ours.compute(samples, [an_output(answer="the cat sat on the mat"), a_failure()])
    low, high = result.details["bounds_if_failed"]
    answers = ["the cat sat on the mat", "zzz zzz zzz zz zzz zzz"]
    unlike = theirs.corpus_score(answers, [["the cat sat on the mat"] * 2]).score
    assert (low, high) == (pytest.approx(unlike), pytest.approx(100.0))
