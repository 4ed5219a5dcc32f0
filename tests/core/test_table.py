"""The table and its renderers, with hostile cells."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.core.table import Table, columns

TABLE = Table(
    ("Metric", "Value", "Note"),
    [("RETRIEVAL",), ("recall@5", "0.5000", "five of ten"), ("mrr_x", "-", "a & b <c>")],
    title="Run a",
    notes=["2 samples failed."],
    numeric=(1,),
)


def test_terminal() -> None:
    assert TABLE.to_terminal(80).splitlines() == [
        "Run a",
        "Metric     Value Note",
        "────────────────────────────",
        "RETRIEVAL",
        "recall@5  0.5000 five of ten",
        "mrr_x          - a & b <c>",
        "2 samples failed.",
    ]


def test_the_last_column_is_wrapped_between_words() -> None:
    assert TABLE.to_terminal(23).splitlines()[4:6] == ["recall@5  0.5000 five", "                 of ten"]


def test_narrow_terminal_gets_one_cell_per_line() -> None:
    assert TABLE.to_terminal(15).splitlines()[1:5] == [
        "RETRIEVAL",
        "recall@5",
        "  Value: 0.5000",
        "  Note: five of",
    ]


def test_html() -> None:
    html = TABLE.to_html()
    assert html == TABLE._repr_html_()
    assert "<caption>Run a</caption>" in html
    assert '<tr><th colspan="3">RETRIEVAL</th></tr>' in html
    assert '<th scope="row">recall@5</th><td>0.5000</td><td>five of ten</td>' in html
    assert "<td>a &amp; b &lt;c&gt;</td>" in html
    assert html.endswith("<p>2 samples failed.</p>")


HOSTILE = st.text(
    st.sampled_from("<>&|`\x1b[]31m\x07\u202e\n\\_$ aB漢é\u0301") | st.characters(), max_size=20
)


@settings(max_examples=100, deadline=None)
@given(cells=st.lists(HOSTILE, min_size=3, max_size=3), width=st.integers(10, 120))
def test_no_cell_can_break_a_table(cells: list[str], width: int) -> None:
    table = Table(("a", "b", "c"), [cells, ("1", "2", "3")], title=cells[0], notes=[cells[1]])
    assert "\x1b" not in table.to_terminal(width)
    rows = Table(table.headings, table.rows).to_terminal(width).splitlines()
    if set(rows[1]) == {"─"}:  # the rows are columns, and not one cell below the other
        assert all(columns(line) <= width for line in rows)
    assert all(
        line.count("|") - line.count("\\|") == 4
        for line in Table(("a", "b", "c"), [cells]).to_markdown().splitlines()
    )
    assert table.to_html().count("<td") == 4  # the first cell of a row is its heading
    assert "<script" not in table.to_html()
