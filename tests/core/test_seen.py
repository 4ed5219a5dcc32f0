"""Ids by their keys: what went by, where each is, and that a shared key confuses nobody."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auepora_eval.core import seen
from auepora_eval.core.seen import PlacesById, SeenIds, key_of

TEXTS = st.lists(st.text(max_size=3), max_size=60)


@given(TEXTS)
def test_it_knows_what_a_set_knows(texts: list[str]) -> None:
    ids, oracle = SeenIds(), set[str]()
    for text in texts:
        assert ids.add(text) is (text not in oracle)
        oracle.add(text)
    assert len(ids) == len(oracle)
    assert all(text in ids for text in texts)
    assert "four" not in ids
    assert ids.has_all(map(key_of, texts))
    assert not ids.has_all([*map(key_of, texts), key_of("four")])


@given(TEXTS)
def test_places_are_those_of_a_dict(texts: list[str]) -> None:
    places = PlacesById(array("q", map(key_of, texts)))
    for text in {*texts, "four"}:
        assert places.find(text) == [place for place, one in enumerate(texts) if one == text]


@pytest.mark.parametrize("wide", [True, False], ids=["64 bits", "32 bits"])
def test_keys_are_never_nothing(monkeypatch: pytest.MonkeyPatch, wide: bool) -> None:
    monkeypatch.setattr(seen, "_WIDE", wide)
    keys = {key_of(text) for text in ("", "a", "b", "\ud800")}
    assert len(keys) == 4
    assert 0 not in keys
    assert all(-(2**63) <= key < 2**63 for key in keys)


def test_many_more_than_fit_at_first() -> None:
    ids = SeenIds()
    assert all(ids.add(f"s{n}") for n in range(5_000))
    assert not any(ids.add(f"s{n}") for n in range(5_000))
    assert len(ids) == 5_000
