"""Two runs are never shown under the same letters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auepora_eval.comparison.compare import compare_runs
from auepora_eval.comparison.words import compared_names, comparison_in_plain_words, names_apart, shortened
from auepora_eval.pages.markdown import report_markdown
from tests.comparison.test_margins_and_repeats import scored


@pytest.mark.parametrize(
    ("systems", "ids", "names"),
    [
        (["old", "new"], ["r1", "r2"], ["old", "new"]),
        (["rag", "rag"], ["chunks-256", "chunks-512"], ["chunks-256", "chunks-512"]),
        (["rag", "rag"], ["r1", "r1"], ["r1 (1)", "r1 (2)"]),
        (["rag", "rag\n", "b"], ["r1", "r2", "r3"], ["r1", "r2", "r3"]),  # the same once on one line
        (["a\n::error::x", "b\x1b[31m"], ["r1", "r2"], ["a ::error::x", "b"]),
    ],
)
def test_names(systems: list[str], ids: list[str], names: list[str]) -> None:
    assert names_apart(systems, ids) == names


@given(st.lists(st.text(alphabet="ab-", max_size=30), min_size=2, max_size=4, unique=True))
def test_different_names_stay_different(names: list[str]) -> None:
    assert len(set(shortened(names, 8))) == len(names)
    assert len(set(names_apart(names, ["r"] * len(names)))) == len(names)


def test_two_runs_of_one_system_go_by_their_ids_everywhere() -> None:
    before, now = scored([1.0] * 12, "rag"), scored([0.0] * 10 + [1.0] * 2, "rag")
    before.evaluation_id, now.evaluation_id = "chunks-256", "chunks-512"
    comparison = compare_runs(before, now)
    assert compared_names(comparison) == ("chunks-256", "chunks-512")
    assert comparison_in_plain_words(comparison)[0].startswith("chunks-512 is worse at finding")
    comment = report_markdown([before, now], comparison)
    assert comment.startswith("### chunks-512 compared with chunks-256: ")
