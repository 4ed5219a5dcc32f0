"""ROUGE: by hand, Perl ROUGE-1.5.5's stored values, rouge-score to the last bit, NLTK's stems."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.stem.porter import PorterStemmer
from rouge_score.rouge_scorer import RougeScorer

from auepora_eval.core.scores import Batch
from auepora_eval.metrics.parse import parse_metric
from auepora_eval.text.porter import stem
from tests.builders import a_sample, an_output, quick_scores

DATA = Path(__file__).parents[3] / "shared" / "data" / "rouge_testdata"
needs_data = pytest.mark.skipif(not DATA.exists(), reason="no ROUGE test data beside the repository")

THEIRS = {"rouge1": "rouge1", "rouge2": "rouge2", "rougeL_answer": "rougeL", "rougeLsum": "rougeLsum"}
SCORERS = {
    "": RougeScorer(list(THEIRS.values()), use_stemmer=True),
    "[stem=false]": RougeScorer(list(THEIRS.values()), use_stemmer=False),
}


def value(metric: Any, answer: str, reference: str, *alternatives: str) -> float:
    sample = a_sample(reference=reference, alternatives=list(alternatives))
    result: float = metric.compute([sample], [an_output(answer=answer)]).value
    return result


def mean(name: str, targets: list[str], predictions: list[str]) -> float:
    samples = [a_sample(str(n), reference=target) for n, target in enumerate(targets)]
    outputs = [an_output(answer=prediction) for prediction in predictions]
    return float(parse_metric(name).score_batch(Batch(samples, outputs)).values.mean())


@pytest.mark.parametrize(
    ("name", "expected"),
    [("rouge1", 0.818182), ("rouge2", 0.5), ("rougeL_answer", 0.454545), ("rougeLsum", 0.727273)],
)
def test_sentences_in_another_order(name: str, expected: float) -> None:
    reference = "Paris is the capital of France.\nIt lies on the Seine."
    answer = "It lies on the Seine.\nParis is France's capital city."
    assert value(parse_metric(name), answer, reference) == pytest.approx(expected, abs=1e-6)


@needs_data
@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("rouge1[stem=false]", "pairs_0_1_rouge1_no_stem"),
        ("rouge1", "pairs_0_1_rouge1_stem"),
        ("rouge2[stem=false]", "pairs_0_1_rouge2"),
        ("rougeL_answer[stem=false]", "pairs_0_1_rougeL"),
    ],
)
def test_values_of_perl_rouge_on_two_pairs(name: str, key: str) -> None:
    expected = json.loads((DATA / "EXPECTED.json").read_text(encoding="utf-8"))[
        f"target.txt_vs_prediction.txt_{key}"
    ]
    targets, predictions = (
        (DATA / f"{side}.txt").read_text(encoding="utf-8").splitlines() for side in ("target", "prediction")
    )
    for target, prediction, stored in zip(targets, predictions, expected, strict=False):
        assert value(parse_metric(name), prediction, target) == pytest.approx(stored["F"], abs=1e-5)


@needs_data
@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("rouge1[stem=false]", "large_1000_mean_and_95ci_rouge1_no_stem"),
        ("rouge1", "large_1000_rouge1_stem"),
        ("rougeL_answer", "large_1000_rougeL_stem"),
    ],
)
def test_values_of_perl_rouge_on_a_thousand_pairs(name: str, key: str) -> None:
    low, middle, high = json.loads((DATA / "EXPECTED.json").read_text(encoding="utf-8"))[key]["F"]
    targets, predictions = (
        (DATA / f"{side}_large.txt").read_text(encoding="utf-8").splitlines()
        for side in ("target", "prediction")
    )
    # Perl's bootstrap mean moves in the fourth decimal; rouge-score allows itself 0.005 there.
    assert low < mean(name, targets, predictions) < high
    assert mean(name, targets, predictions) == pytest.approx(middle, abs=1e-3)


@needs_data
@pytest.mark.parametrize("name", ["rouge1", "rouge2", "rougeLsum"])
def test_values_of_pyrouge_on_texts_of_several_lines(name: str) -> None:
    stored = json.loads((DATA / "EXPECTED.json").read_text(encoding="utf-8"))["pyrouge_multi_250_stem"][name][
        "F"
    ]
    rows = [
        json.loads(line) for line in (DATA / "pyrouge_multi.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    keys = [key for key in rows[0] if key.startswith("pred")]
    found = mean(name, [row["target"] for row in rows], [row[keys[0]] for row in rows])
    assert found == pytest.approx(stored, abs=1e-3)


SUFFIXES = st.sampled_from(
    """ational tional enci anci izer bli abli alli entli eli ousli ization ation ator alism iveness fulness
    ousness aliti iviti biliti fulli logi icate ative alize iciti ical ful ness al ance ence er ic able ible
    ant ement ment ent sion tion ou ism ate iti ous ive ize ed ing eed ied ies sses s y e ll""".split()
)
few = st.sampled_from("the a cat cats sat ran running on mat relational relation it's 42 x".split())
lines = st.lists(st.lists(few, max_size=7).map(" ".join), max_size=4).map("\n".join)
ascii_text = st.one_of(lines, st.text(alphabet="aeiousrtlnmy ed.ing,tion's-0123\n\x00\t", max_size=60))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(ascii_text, ascii_text), min_size=1, max_size=4))
def test_equal_to_rouge_score_to_the_last_bit(rows: list[tuple[str, str]]) -> None:
    samples = [a_sample(reference=reference) for _, reference in rows]
    outputs = [an_output(answer=answer) for answer, _ in rows]
    batch = Batch(samples, outputs)
    for option, scorer in SCORERS.items():
        theirs = [scorer.score(reference, answer) for answer, reference in rows]
        for ours, key in THEIRS.items():
            metric = parse_metric(ours + option)
            assert metric.score_batch(batch).values.tolist() == [found[key].fmeasure for found in theirs]


@settings(max_examples=1000, deadline=None)
@given(st.text("abcdefghilmnoprstuvwy9", max_size=6), st.lists(SUFFIXES, max_size=2))
def test_stems_equal_those_of_nltk(start: str, suffixes: list[str]) -> None:
    word = start + "".join(suffixes)
    assert stem(word) == PorterStemmer().stem(word)


@pytest.mark.parametrize("name", ["rougeL_answer", "rougeLsum"])
def test_texts_that_are_too_long_are_refused_before_they_are_compared(name: str) -> None:
    answer, reference = ("yes no " * 50_000, "no yes " * 50_000)
    started = time.process_time()
    _, [score] = quick_scores(parse_metric(name), [a_sample(reference=reference)], [an_output(answer=answer)])
    assert (score.value, score.failed) == (None, True)
    assert "too long for a longest common subsequence" in score.reason
    assert time.process_time() - started < 2  # the comparison alone takes longer
