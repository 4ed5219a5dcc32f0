"""One table for everything that is shown as rows and columns, with a renderer for each place it is shown."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

from ..errors import MissingDependencyError
from .display import html_text, markdown_cell, markdown_text, terminal_line, terminal_width

Row = Sequence[str]

_ROOMY = 100  # columns from which two spaces separate the cells of a row
_NOTE_LIMIT = 2000  # characters


@dataclass(frozen=True)
class Table:
    """Headings and rows of text, with a title above and notes below.

    A row with a single cell is a heading for the rows after it. The columns in `numeric`, counted from 0,
    are aligned to the right. A terminal that is too narrow gets the table without `spare` columns: as many
    as needed, the first in the list first. Cells may contain anything, such as model output: each renderer
    escapes them.
    """

    headings: Sequence[str]
    rows: Sequence[Row]
    title: str = ""
    notes: Sequence[str] = field(default=())
    numeric: Container[int] = ()
    spare: Sequence[int] = ()

    def __str__(self) -> str:
        return self.to_terminal(terminal_width())

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_terminal(self, width: int = 80) -> str:
        """Return the table as plain text; only its last column is wrapped, between words.

        If the other columns do not fit, the cells of a row are printed below each other: nothing is cut off.
        """
        whole = table = _with_terminal_text(self)
        for count in range(1, len(self.spare) + 1):
            if _least_width(table) > width:
                table = whole.only([n for n in range(len(self.headings)) if n not in self.spare[:count]])
        lines = _wrapped(table.title, width) if table.title else []
        lines += _aligned(table, width) if _least_width(table) <= width else _stacked(table, width)
        for note in table.notes:
            lines += _wrapped(note, width)
        return "\n".join(lines)

    def only(self, places: Sequence[int]) -> Table:
        """Return the table with some of its columns."""
        return replace(
            self,
            headings=[self.headings[place] for place in places],
            rows=[row if _is_group(self, row) else [row[place] for place in places] for row in self.rows],
            numeric=[new for new, place in enumerate(places) if place in self.numeric],
            spare=[places.index(place) for place in self.spare if place in places],
        )

    def to_markdown(self) -> str:
        """Return a Markdown table; the title is a heading, each note a paragraph."""
        lines = [
            _markdown_row(self.headings),
            "|" + "|".join("-" * (len(h) + 2) for h in self.headings) + "|",
        ]
        width = len(self.headings)
        lines += [_markdown_row([*row, *[""] * (width - len(row))]) for row in self.rows]
        parts = [f"### {markdown_text(self.title)}"] if self.title else []
        return "\n\n".join([*parts, "\n".join(lines), *map(markdown_text, self.notes)])

    def to_html(self) -> str:
        """Return an HTML table without styles, as a notebook shows it; every text is escaped."""
        caption = f"<caption>{html_text(self.title)}</caption>" if self.title else ""
        head = "".join(f"<th>{html_text(heading)}</th>" for heading in self.headings)
        rows = "".join(f"<tr>{''.join(_html_cells(self, row))}</tr>" for row in self.rows)
        notes = "".join(f"<p>{html_text(note)}</p>" for note in self.notes)
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{notes}"


def columns(text: str) -> int:
    """Return how many terminal columns a text takes: a Chinese character two, a combining accent none."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(
        0 if unicodedata.combining(letter) else 1 + (unicodedata.east_asian_width(letter) in "WF")
        for letter in text
    )


def _with_terminal_text(table: Table) -> Table:
    """Return the table with every text on one line and safe for a terminal."""
    return Table(
        headings=[terminal_line(heading) for heading in table.headings],
        rows=[[terminal_line(cell) for cell in row] for row in table.rows],
        title=terminal_line(table.title),
        notes=[terminal_line(note, _NOTE_LIMIT) for note in table.notes],
        numeric=table.numeric,
    )


def _widths(table: Table) -> tuple[list[int], int]:
    """Return the width of each column, were nothing wrapped, and that of the longest word in the last one."""
    rows = [table.headings, *(row for row in table.rows if not _is_group(table, row))]
    widths = [max(map(columns, cells)) for cells in zip(*rows, strict=True)]
    return widths, max(columns(word) for row in rows for word in row[-1].split(" "))


def _least_width(table: Table) -> int:
    """Return the width below which the rows do not fit: only the last column is wrapped, between words."""
    widths, longest_word = _widths(table)
    return sum(widths[:-1]) + longest_word + len(widths) - 1


def _is_group(table: Table, row: Row) -> bool:
    """Whether a row is a heading for the rows after it."""
    return len(row) == 1 < len(table.headings)


def _aligned(table: Table, width: int) -> list[str]:
    """Return the rows as aligned columns below their headings and a line."""
    gap = "  " if width >= _ROOMY else " "
    widths, _ = _widths(table)
    # The headings of groups widen the first column, as far as there is space.
    group_width = max((columns(row[0]) for row in table.rows if _is_group(table, row)), default=0)
    spare = width - _least_width(table) - (len(gap) - 1) * len(widths)
    widths[0] += max(0, min(group_width - widths[0], spare))
    indent = sum(widths[:-1]) + len(gap) * (len(widths) - 1)
    # In a roomy table one column stays free at the right edge.
    widths[-1] = min(widths[-1], width - indent - (len(gap) - 1))

    def lines_of(row: Row) -> list[str]:
        if _is_group(table, row):
            return _wrapped(row[0], width)
        *first, last = row
        start = "".join(_aligned_cell(table, place, cell, widths) + gap for place, cell in enumerate(first))
        pieces = [_aligned_cell(table, len(first), piece, widths) for piece in _wrapped(last, widths[-1])]
        return [((" " * indent if number else start) + piece).rstrip() for number, piece in enumerate(pieces)]

    line = "─" * (indent + widths[-1] + len(gap) - 1)
    return [*lines_of(table.headings), line, *(text for row in table.rows for text in lines_of(row))]


def _aligned_cell(table: Table, place: int, cell: str, widths: Sequence[int]) -> str:
    space = " " * (widths[place] - columns(cell))
    return space + cell if place in table.numeric else cell + space


def _wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a text, broken between words; at least one line."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if columns(longer) <= width or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _stacked(table: Table, width: int) -> list[str]:
    """Return the cells of each row below each other, for a terminal that is too narrow for columns."""
    import textwrap

    lines: list[str] = []
    for row in table.rows:
        lines += textwrap.wrap(row[0], width, break_on_hyphens=False) or [""]
        for heading, cell in zip(table.headings[1:], row[1:], strict=False):
            text = f"{heading}: {cell}"
            lines += textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="    ")
    return lines


def _html_cells(table: Table, row: Row) -> Iterator[str]:
    if _is_group(table, row):
        yield f'<th colspan="{len(table.headings)}">{html_text(row[0])}</th>'
        return
    yield f'<th scope="row">{html_text(row[0])}</th>'
    yield from (f"<td>{html_text(cell)}</td>" for cell in row[1:])


def _markdown_row(cells: Row) -> str:
    return "| " + " | ".join(map(markdown_cell, cells)) + " |"


def frame_of(records: list[dict[str, object]]) -> Any:
    """Return records as a DataFrame of pandas or, if only that is installed, of polars."""
    for package in ("pandas", "polars"):
        try:
            frames = import_module(package)
        except ImportError:
            continue
        # Types come from all rows: polars looks at the first 100 only, which may lack a score.
        options = {"infer_schema_length": None} if package == "polars" else {}
        return frames.DataFrame(records, **options)
    raise MissingDependencyError("to_frame() needs pandas or polars: pip install pandas")
