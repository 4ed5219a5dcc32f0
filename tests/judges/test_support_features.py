"""The features of the trained support function are in their range on any text."""

from __future__ import annotations

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


@given(st.text(), st.text())
@settings(deadline=None, max_examples=200)
def test_any_two_texts_have_features_from_0_to_1(documents: str, claim: str) -> None:
    evidence, read = Evidence(documents), read_claim(claim)
    if read.content and not evidence.is_empty:
        row = evidence.features(read)
        assert ((row >= 0) & (row <= 1)).all()
