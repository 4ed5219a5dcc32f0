"""The support seam: named functions, and what they may not return."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.errors import ScoringError
from auepora_eval.metrics.entailment import checked_support, lexical_support

PIER = "The Annet moors at the north pier. It carries 22 cars."


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        pytest.param("The Annet moors at the pier.", 1.0, id="annet moors pier"),
        pytest.param("The Annet sank at the pier.", 2 / 3, id="sank is new"),
        pytest.param("The Annet carries 22 cars [3].", 1.0, id="a mark is no number"),
        pytest.param("The Annet carries 23 cars.", 0.0, id="a wrong number outweighs the words"),
        pytest.param("The pier moors at the Annet.", 1.0, id="swapped: not seen"),
        pytest.param("It is.", 0.0, id="no content words: nothing to bear out"),
        pytest.param("", 0.0, id="nothing"),
    ],
)
def test_lexical(claim: str, expected: float) -> None:
    assert lexical_support(PIER, claim) == pytest.approx(expected)


@given(st.text(), st.text())
@settings(deadline=None)  # the first call reads the word lists
def test_any_two_texts_have_a_score(premise: str, claim: str) -> None:
    assert 0 <= checked_support(lexical_support, premise, claim) <= 1


@pytest.mark.parametrize("returned", [None, "yes", float("nan"), 1.01, -0.1, float("inf"), [1]])
def test_anything_else_is_refused(returned: Any) -> None:
    with pytest.raises(ScoringError, match="the support function returned"):
        checked_support(lambda premise, claim: returned, "a", "b")
