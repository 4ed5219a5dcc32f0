"""Chunks of a long text cover all of it, in order."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.judges.texts import chunk_spans, length


@settings(max_examples=80, deadline=None)
@given(st.text(alphabet="ab. 東京。\n", max_size=300), st.integers(1, 20))
def test_chunks_cover_everything_but_white_space_in_order(text: str, most: int) -> None:
    spans = chunk_spans(text, most)
    assert all(length(text[start:end]) <= most for start, end in spans)
    assert "".join("".join(text[start:end] for start, end in spans).split()) == "".join(text.split())
    assert list(spans) == sorted(spans)
