"""From a citation to a document: by which names, and what it is when there is none."""

from __future__ import annotations

import pytest

from auepora_eval.core.types import Document
from auepora_eval.metrics.citations.sources import (
    FABRICATED,
    OUT_OF_RANGE,
    UNRESOLVED,
    Citation,
    Place,
    Sources,
)

FERRIES = Document(
    "d1", "The Annet carries 22 cars.", {"file_path": "docs/ferries.pdf", "title": "All Ferries"}
)
TIDES = Document("tides", "High water is at noon.")


@pytest.mark.parametrize(
    ("citation", "trouble"),
    [
        pytest.param(Citation("gulls.pdf"), UNRESOLVED, id="nobody's name"),
        pytest.param(Citation("ferries.pdf", None, (20, 27)), OUT_OF_RANGE, id="behind the end"),
        pytest.param(Citation("ferries.pdf", None, (9, 4)), OUT_OF_RANGE, id="no span"),
        pytest.param(Citation("ferries.pdf", None, (-1, 4)), OUT_OF_RANGE, id="before the beginning"),
        pytest.param(Citation(number=3), OUT_OF_RANGE, id="[3] of two"),
        pytest.param(Citation(number=0), OUT_OF_RANGE, id="[0]"),
        pytest.param(Citation("tides", excerpt="low water"), FABRICATED, id="not in it"),
        pytest.param(Citation("tides", excerpt="HIGH  water ... noon"), "", id="in it, with dots"),
        pytest.param(Citation(number=2), "", id="[2] of two"),
    ],
)
def test_what_is_wrong_with_a_citation(citation: Citation, trouble: str) -> None:
    found = Sources([], [FERRIES, TIDES]).find(citation)
    assert found.trouble == trouble
    assert trouble != OUT_OF_RANGE or found.text == ""


def test_a_span_of_a_source_is_found_in_its_chunk() -> None:
    chunks = [
        Document("f#1", "The Annet carries", {"source": "f.pdf", "start": 0, "end": 17}),
        Document("f#2", " 22 cars.", {"source": "f.pdf", "start": 17, "end": 26}),
    ]
    sources = Sources([], chunks)
    assert sources.find(Citation("f.pdf", None, (18, 25))).text == "22 cars"
    assert sources.find(Citation("f#2")).document is not None
    beyond = sources.find(Citation("f.pdf", None, (30, 40)))
    assert (beyond.text, beyond.trouble) == ("", "")  # the rest of the file was not retrieved: nobody knows
    assert sources.places([], [Citation(number=2)]) == ([], [Place("f.pdf", None, (17, 26))])


def test_places_give_one_file_one_name() -> None:
    gold = [Citation("docs/ferries.pdf", 1, (0, 5)), Citation("x/guide.pdf", 1, (0, 5))]
    cited = [Citation("d1", 1, (0, 5)), Citation("d1", 1, (0, 5)), Citation("guide.pdf", 1, (0, 5))]
    one, other = Sources([FERRIES]).places(gold, cited)
    assert one == other == [Place("d1", 1, (0, 5)), Place("x/guide.pdf", 1, (0, 5))]
    strangers = Sources([]).places([Citation("a/x.pdf")], [Citation("b/x.pdf")])
    assert strangers[0] != strangers[1]
