"""Which document a file name means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auepora_eval.text.document_names import DocumentNames

NAMES: DocumentNames[int] = DocumentNames()
for place, names in enumerate(
    [
        ("d0", "docs/tides.pdf", "Tides"),
        ("d1", "docs/ferries.v2.pdf", "Ferries"),
        ("harbour", "", "The harbour"),
        ("d3", "north/readme.md", "North"),
        ("d4", "south/readme.md", "South"),
        ("Tides",),
    ]
):
    NAMES.add(place, *names)


@pytest.mark.parametrize(
    ("file_name", "place"),
    [
        pytest.param("docs/tides.pdf", 0, id="path"),
        pytest.param("tides.pdf", 0, id="base name"),
        pytest.param("old\\tides.pdf", 0, id="base name in another folder"),
        pytest.param("tides.txt", 0, id="stem"),
        pytest.param("ferries.v2", 1, id="a stem with a dot, given as such"),
        pytest.param("ferries.v2.txt", 1, id="a stem with a dot"),
        pytest.param("harbour", 2, id="id"),
        pytest.param("harbour.pdf", 2, id="stem is an id"),
        pytest.param("The harbour", 2, id="title"),
        pytest.param("Tides", 5, id="an id before a title"),
        pytest.param("readme.md", None, id="two of that name"),
        pytest.param("south/readme.md", 4, id="the path tells"),
        pytest.param("absent.pdf", None, id="none"),
        pytest.param("", None, id="nothing"),
        pytest.param(".pdf", None, id="a suffix only"),
    ],
)
def test_a_file_name_means_a_document(file_name: str, place: int | None) -> None:
    assert NAMES.find(file_name) == place


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1), unique=True), st.text())
def test_every_path_finds_its_own_document(paths: list[str], stranger: str) -> None:
    names: DocumentNames[int] = DocumentNames()
    for place, path in enumerate(paths):
        names.add(place, f"id {place}", path)
    assert [names.find(path) for path in paths] == list(range(len(paths)))
    found = names.find(stranger)
    assert found is None or found in range(len(paths))
