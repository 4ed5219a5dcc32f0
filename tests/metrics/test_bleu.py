"""BLEU: by hand, and sacrebleu as the judge on text in several languages."""

from __future__ import annotations

import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from auepora_eval.metrics.answers.translation import Bleu
from auepora_eval.text.tokens import tokens_13a
from tests.builders import a_failure, a_sample, an_output, quick_scores

Corpus = list[tuple[str, list[str]]]

tokens = st.sampled_from(
    [
        *"the cat sat on a mat , . 3.5 it's U.S. 12-13 &amp; &quot;x&quot; (x) ... a.b,c <skipped>".split(),
        *("naïve", "猫が", "고양이", "кошка", "-\n", "\t", ""),
    ]
)
text = st.one_of(
    st.lists(tokens, max_size=12).map(" ".join),
    st.text(alphabet="ab.,-&;19 \n\u00a0\u2028\x1c\u3000猫é/{~", max_size=20),
    st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="["), max_size=20),
)


def of(corpus: Corpus) -> tuple[list[object], list[object]]:
    samples = [
        a_sample(str(n), reference=golds[0], alternatives=golds[1:]) for n, (_, golds) in enumerate(corpus)
    ]
    return samples, [an_output(answer=answer) for answer, _ in corpus]  # type: ignore[return-value]


@settings(max_examples=100, deadline=None)
@given(
    st.integers(1, 3).flatmap(
        lambda n: st.lists(st.tuples(text, st.lists(text, min_size=n, max_size=n)), min_size=1, max_size=5)
    )
)
def test_equal_to_sacrebleu(corpus: Corpus) -> None:
    samples, outputs = of(corpus)
    value, scores = quick_scores(Bleu(), samples, outputs)  # type: ignore[arg-type]
    answers = [answer for answer, _ in corpus]
    streams = [list(stream) for stream in zip(*(golds for _, golds in corpus), strict=True)]
    assert value == pytest.approx(sacrebleu.corpus_bleu(answers, streams).score, abs=1e-9)
    for score, (answer, golds) in zip(scores, corpus, strict=True):
        assert score.value == pytest.approx(sacrebleu.sentence_bleu(answer, golds).score, abs=1e-9)
    for sample, output, score in zip(samples, outputs, scores, strict=True):
        plain = Bleu().score(sample, output)  # type: ignore[arg-type]
        assert plain.parts == score.parts
        assert plain.value == pytest.approx(score.value, abs=1e-12)


@settings(max_examples=500, deadline=None)
@given(text)
def test_tokens_equal_those_of_sacrebleu(line: str) -> None:
    assert " ".join(tokens_13a(line)) == Tokenizer13a()(line)


def test_the_cat_on_the_mat() -> None:
    result = Bleu().compute(
        [a_sample(reference="the cat sat on the mat")], [an_output(answer="the cat is on the mat")]
    )
    assert result.value == pytest.approx(37.991784, abs=1e-6)
    assert result.details["signature"]["signature"] == "case:mixed|eff:no|tok:13a|smooth:exp"


@pytest.mark.parametrize(
    ("answer", "worst"),
    [
        ("the cat sat on the mat", ""),
        ("the cat sat on the mat and it sat and it sat and sat", "z " * 14),
    ],
    ids=["silence is worse where answers are short", "words without a match where they are long"],
)
def test_a_failed_answer_is_bounded_by_the_worse_of_two_and_by_the_reference(answer: str, worst: str) -> None:
    reference = "the cat sat on the mat"
    samples = [a_sample(str(n), reference=reference) for n in range(2)]
    low, high = Bleu().compute(samples, [an_output(answer=answer), a_failure()]).details["bounds_if_failed"]
    expected = [sacrebleu.corpus_bleu([answer, text], [[reference] * 2]).score for text in (worst, reference)]
    assert [low, high] == pytest.approx(expected)


@pytest.mark.parametrize("answer", [None, "red"], ids=["all failed", "one answered"])
def test_short_references_do_not_bound_failed_answers_at_zero(answer: str | None) -> None:
    # Answers of fewer than four words have no 4-grams: sacrebleu prints 0 for them even if all are right, but
    # not for a longer answer.
    samples = [a_sample(str(n), reference="red") for n in range(2)]
    answered = a_failure() if answer is None else an_output(answer=answer)
    assert Bleu().compute(samples, [answered, a_failure()]).details["bounds_if_failed"] == [0.0, 100.0]
    assert sacrebleu.corpus_bleu(["red", "red or blue or grey"], [["red"] * 2]).score > 0
