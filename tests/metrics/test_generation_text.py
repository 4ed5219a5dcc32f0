"""Text metrics: by hand, then SQuAD's rules, rouge-score and sacrebleu as judges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.stem.porter import PorterStemmer
from rouge_score.rouge_scorer import RougeScorer

from auepora_eval.metrics.generation_text import Bleu, ExactMatch, RougeLAnswer, TokenF1
from auepora_eval.metrics.parse import parse_metric
from auepora_eval.metrics.porter import stem
from auepora_eval.metrics.text import words
from tests.builders import a_failure, a_sample, an_output

Texts = list[tuple[str, str]]


def value(metric: Any, answer: str, reference: str, *alternatives: str) -> float:
    sample = a_sample(reference=reference, alternatives=list(alternatives))
    result: float = metric.compute([sample], [an_output(answer=answer)]).value
    return result


@pytest.mark.parametrize(
    ("answer", "reference", "exact", "f1"),
    [
        pytest.param("The cat.", "cat", 1.0, 1.0, id="case, punctuation and articles do not count"),
        pytest.param("a cat sat", "the cat ran", 0.0, 0.5, id="one word of two shared"),
        pytest.param("cat cat", "cat", 0.0, 2 / 3, id="a repeat counts against precision"),
        pytest.param("", "", 1.0, 1.0, id="both empty"),
        pytest.param("", "cat", 0.0, 0.0, id="no answer"),
        pytest.param("the", "a", 1.0, 1.0, id="nothing left of either"),
        pytest.param("dog", "cat", 0.0, 0.0, id="nothing shared"),
    ],
)
def test_exact_match_and_token_f1(answer: str, reference: str, exact: float, f1: float) -> None:
    assert value(ExactMatch(), answer, reference) == exact
    assert value(TokenF1(), answer, reference) == pytest.approx(f1)


def test_the_best_of_several_references_counts() -> None:
    assert value(ExactMatch(), "42 days", "six weeks", "42 days") == 1.0
    assert value(TokenF1(), "42 long days", "six weeks", "42 days") == pytest.approx(0.8)


def test_alternatives_that_are_no_texts_fail_the_sample() -> None:
    sample = a_sample(reference="a")
    assert sample.reference_answer is not None
    sample.reference_answer.metadata["alternatives"] = "not a list"
    result = ExactMatch().compute([sample], [an_output(answer="a")])
    assert result.details["num_failed"] == 1
    assert "alternatives" in result.scores[0].reason


@pytest.mark.parametrize(
    ("name", "expected"), [("rouge1", 5 / 6), ("rouge2", 0.6), ("rougeL_answer", 5 / 6), ("bleu", 37.99178)]
)
def test_the_cat_on_the_mat(name: str, expected: float) -> None:
    got = value(parse_metric(name), "the cat is on the mat", "the cat sat on the mat")
    assert got == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    "text", ["东京塔高333米", "Москва — столица", "नमस्ते दुनिया", "café naïve", "東京タワー"]
)
@pytest.mark.parametrize("name", ["rouge1", "rougeL_answer", "token_f1", "exact_match"])
def test_identical_texts_agree_fully_in_any_script(name: str, text: str) -> None:
    assert value(parse_metric(name), text, text) == 1.0


def test_words_in_several_scripts() -> None:
    assert words("नमस्ते, Welt!") == ["नमस्ते", "welt"]
    assert words("cafe\u0301") == words("café")


ascii_text = st.text(alphabet="aeiousrtlnmy ed.ing,tion's-0123\n", max_size=60)
any_text = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=40)
SCORER = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True)
PLAIN_SCORER = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=False)


@settings(max_examples=300, deadline=None)
@given(ascii_text, ascii_text)
def test_rouge_equals_rouge_score_to_the_last_bit(answer: str, reference: str) -> None:
    for scorer, option in ((SCORER, ""), (PLAIN_SCORER, "[stem=false]")):
        theirs = scorer.score(reference, answer)
        for ours, key in (("rouge1", "rouge1"), ("rouge2", "rouge2"), ("rougeL_answer", "rougeL")):
            assert value(parse_metric(ours + option), answer, reference) == theirs[key].fmeasure


SUFFIXES = st.sampled_from(
    """ational tional enci anci izer bli abli alli entli eli ousli ization ation ator alism iveness fulness
    ousness aliti iviti biliti fulli logi icate ative alize iciti ical ful ness al ance ence er ic able ible
    ant ement ment ent sion tion ou ism ate iti ous ive ize ed ing eed ied ies sses s y e ll""".split()
)


@settings(max_examples=1000, deadline=None)
@given(st.text("abcdefghilmnoprstuvwy", max_size=6), st.lists(SUFFIXES, max_size=2))
def test_stems_equal_those_of_nltk(start: str, suffixes: list[str]) -> None:
    word = start + "".join(suffixes)
    assert stem(word) == PorterStemmer().stem(word)


sentence = st.lists(
    st.sampled_from(
        "the cat sat on a mat , . 3.5 it's U.S. 12-13 &amp; (x) naïve 猫 -\n <skipped>".split(" ")
    ),
    max_size=9,
).map(" ".join)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(sentence, sentence, sentence), min_size=1, max_size=5))
def test_bleu_equals_sacrebleu(corpus: list[tuple[str, str, str]]) -> None:
    answers, first, second = ([texts[n] for texts in corpus] for n in range(3))
    samples = [a_sample(str(n), reference=a, alternatives=[b]) for n, (_, a, b) in enumerate(corpus)]
    result = Bleu().compute(samples, [an_output(answer=answer) for answer in answers])
    assert result.value == pytest.approx(sacrebleu.corpus_bleu(answers, [first, second]).score, abs=1e-9)
    for score, answer, references in zip(
        result.scores, answers, zip(first, second, strict=True), strict=True
    ):
        theirs = sacrebleu.sentence_bleu(answer, list(references)).score
        assert score.value == pytest.approx(theirs, abs=1e-9)


def test_bleu_bounds_a_failed_answer_by_silence_and_by_the_reference() -> None:
    samples = [a_sample(str(n), reference="the cat sat on the mat") for n in range(2)]
    result = Bleu().compute(samples, [an_output(answer="the cat sat on the mat"), a_failure()])
    low, high = result.details["bounds_if_failed"]
    silent = sacrebleu.corpus_bleu(["the cat sat on the mat", ""], [["the cat sat on the mat"] * 2]).score
    assert (low, high) == (pytest.approx(silent), pytest.approx(100.0))


@settings(max_examples=200, deadline=None)
@given(any_text, any_text)
def test_any_text_gets_a_score_within_bounds(answer: str, reference: str) -> None:
    for name in ("exact_match", "token_f1", "rouge1", "rouge2", "rougeL_answer", "bleu"):
        metric = parse_metric(name)
        low, high = metric.bounds
        assert low <= value(metric, answer, reference) <= high + 1e-9


def test_a_text_of_a_megabyte_is_scored() -> None:
    long_text = "word " * 200_000
    assert value(RougeLAnswer(), long_text, long_text) == 1.0
    assert value(TokenF1(), long_text, "word") == pytest.approx(2 / 200_001)


@pytest.mark.parametrize("build", [ExactMatch, TokenF1, RougeLAnswer, Bleu])
def test_an_empty_answer_scores_zero_and_is_counted(build: Callable[[], Any]) -> None:
    result = build().compute([a_sample(reference="cat")], [an_output(answer="")])
    assert (result.value, result.details["num_samples"]) == (0.0, 1)
