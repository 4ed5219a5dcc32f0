"""Chunks: where they are from, how long they are, and that nothing is lost between them."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from auepora_eval.builder.corpus import SourceDocument
from auepora_eval.generate.passages import TOKEN, CutDocument, cut

TEXT = """# The pier

The pier is long. It was built by Dr. J. Brae in 1911. Nobody knows why.

## Size

- 40 metres long
- 3 metres wide

It has a lamp.
"""


def source(text: str, **fields: object) -> SourceDocument:
    return SourceDocument("pier.md", "pier.md", text, **fields)  # type: ignore[arg-type]


def test_chunk_has_its_source() -> None:
    document = cut(source(TEXT, title="Piers", page_starts=(0, TEXT.index("## Size"))), tokens=30, overlap=0)
    first, second = document.chunks
    assert (first.id, first.section_title, first.page, first.token_start) == ("pier.md#0", "The pier", 1, 0)
    assert (second.id, second.section_title, second.page, second.title) == ("pier.md#1", "Size", 2, "Piers")
    assert second.text.startswith("## Size")
    assert second.token_start == first.token_end


def test_whole_sentences_overlap() -> None:
    text = " ".join(f"Sentence {number} is here." for number in range(20))  # five tokens each
    chunks = cut(source(text), tokens=20, overlap=5).chunks
    assert chunks[0].text == "Sentence 0 is here. Sentence 1 is here. Sentence 2 is here. Sentence 3 is here."
    assert chunks[1].text.startswith("Sentence 3 is here. Sentence 4")
    assert all(after.token_start == before.token_end - 5 for before, after in pairwise(chunks))


PIECES = st.sampled_from(
    ["The pier is long. ", "One. ", "\n\n", "# Size\n", "- an item\n", "word " * 30, "é 漢字。", "! ", "a,b;"]
)


@given(st.lists(PIECES, max_size=30).map("".join), st.integers(1, 40), st.integers(0, 39))
def test_chunks_are_exact_and_cover_the_text(text: str, tokens: int, overlap: int) -> None:
    overlap = min(overlap, tokens - 1)
    document = cut(source(text), tokens=tokens, overlap=overlap)
    places = [match.span() for match in TOKEN.finditer(text)]
    assert covered(document) == set(range(len(places)))
    for before, chunk in zip([None, *document.chunks], document.chunks, strict=False):
        assert chunk.text == text[chunk.start : chunk.end]
        assert (chunk.start, chunk.end) == (places[chunk.token_start][0], places[chunk.token_end - 1][1])
        assert 0 < chunk.token_end - chunk.token_start <= tokens
        if before is not None:
            assert before.token_start < chunk.token_start  # each brings something new
            assert before.token_end - chunk.token_start <= overlap
            assert before.token_end < chunk.token_end
    assert len({chunk.id for chunk in document.chunks}) == len(document.chunks)


def covered(document: CutDocument) -> set[int]:
    return {place for chunk in document.chunks for place in range(chunk.token_start, chunk.token_end)}
