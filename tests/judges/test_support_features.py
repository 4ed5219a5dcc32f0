"""The features of the trained support function: each by hand, and in its range on any text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.judges.support_features import FEATURES, Evidence, read_claim

FERRIES = (
    "The Annet moors at the north pier. It carries 22 cars. The crew might repaint the hull. "
    "Tickets rose in May."
)


def features(claim: str, documents: str = FERRIES) -> dict[str, float]:
    row = Evidence(documents).features(read_claim(claim))
    return dict(zip(FEATURES, row.tolist(), strict=True))


@pytest.mark.parametrize(
    ("feature", "claim", "expected"),
    [
        pytest.param("words", "The Annet moors in Bergen.", 2 / 3, id="annet, moor; not bergen"),
        pytest.param("bigrams", "The Annet moors at Bergen.", 3 / 4, id="not at-bergen"),
        pytest.param("bigrams", "Annet", 1.0, id="one word is its own pair"),
        pytest.param("copied_run", "The Annet moors by the north pier.", 2 / 6, id="the-annet-moor"),
        pytest.param("best_window", "The Annet carries 22 tickets.", 3 / 4, id="sentences 1 to 3"),
        pytest.param("best_two", "The Annet sells tickets.", 2 / 3, id="sentences 1 and 4"),
        pytest.param("same_window", "Annet pier tickets", 1 / 3, id="only annet and pier are near"),
        pytest.param("same_window", "Annet", 1.0, id="one word has no pairs"),
        pytest.param("gap", "The Annet moors in rainy Bergen harbour.", 3 / 5, id="three in a row"),
        pytest.param("number_absent", "It carries 22 cars and 40 bikes.", 1 / 2, id="40"),
        pytest.param("number_absent", "It carries cars.", 0.0, id="no number"),
        pytest.param("name_absent", "The Annet moors in Bergen.", 1 / 2, id="Bergen"),
        pytest.param(
            "number_elsewhere",
            "Tickets rose in May when the crew repainted the hull 22 times.",
            1.0,
            id="22 is of the cars",
        ),
        pytest.param("negated", "The Annet does not moor at the pier.", 1.0, id="not"),
        pytest.param("negated", "The Annet moors at the pier.", 0.0, id="as it is"),
        pytest.param("opposite", "Tickets fell in May.", 1.0, id="rose, fell"),
        pytest.param("only_negation", "The Annet never moors.", 1.0, id="the documents negate nothing"),
        pytest.param("lost_modal", "The crew will repaint the hull.", 1.0, id="might"),
        pytest.param("lost_modal", "The crew may repaint the hull.", 0.0, id="may"),
    ],
)
def test_by_hand(feature: str, claim: str, expected: float) -> None:
    assert features(claim)[feature] == pytest.approx(expected)


def test_a_negation_in_the_documents_is_not_the_only_one() -> None:
    documents = f"{FERRIES} Bikes are not carried."
    assert features("The Annet never moors.", documents)["only_negation"] == 0.0


@given(st.text(), st.text())
@settings(deadline=None, max_examples=200)
def test_any_two_texts_have_features_from_0_to_1(documents: str, claim: str) -> None:
    evidence, read = Evidence(documents), read_claim(claim)
    if read.content and not evidence.is_empty:
        row = evidence.features(read)
        assert ((row >= 0) & (row <= 1)).all()
