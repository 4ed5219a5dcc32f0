"""The features of the trained support function are in their range on any text."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.judges.support_features import Evidence, read_claim


@given(st.text(), st.text())
@settings(deadline=None, max_examples=200)
def test_any_two_texts_have_features_from_0_to_1(documents: str, claim: str) -> None:
    evidence, read = Evidence(documents), read_claim(claim)
    if read.content and not evidence.is_empty:
        row = evidence.features(read)
        assert ((row >= 0) & (row <= 1)).all()
