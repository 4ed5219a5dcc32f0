"""Tables and lists of records with any field names: CSV, TSV, Excel, Parquet, JSON and JSON Lines."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.dataset import InMemoryDataset, rows_of_columns
from ..errors import DataError, MissingDependencyError, install_command, warn_user
from ..read.fields import Reading, ReadingNote, read_foreign
from ..read.names import has_only, has_query
from ..read.text import parse_json
from ..read.tools import TOOLS, Row, promptfoo_table
from .csv import COLUMNS as OUR_COLUMNS
from .csv import check_columns, load_eval_csv, read_rows
from .detect import kind_of_file, record_on
from .documents import is_yaml, read_document
from .files import stem
from .jsonl import BYTE_ORDER_MARK, opened, placed_lines, read_records
from .parquet import import_pyarrow, load_parquet_dataset, parquet_rows

Columns = Mapping[str, str] | None
_DELIMITERS = (",", ";", "\t")
_START = 65_536  # bytes that are looked at
_LISTS = ("query_results", "detailed_results", "samples")  # of seeds 003 and 004: their records


def load_records(
    path: Path, columns: Columns = None, is_answered: bool = False, *, tool: str | None = None
) -> InMemoryDataset:
    """Load a dataset, and the answers in it, from a table, a list of records or a document of a tool.

    Which tool it is of is found by its content. "" means none.
    """
    tool = tool_in(path) if tool is None else tool
    readings = readings_in(path, columns, is_answered=is_answered, tool=tool)
    if tool and not readings:
        fix = "Is it another kind of file? Traces go to auepora import-traces."
        raise DataError(path.name, f"there is no question in it, read as {tool}.", fix=fix)
    _report_without_place(path.name, readings)
    return InMemoryDataset.of_readings(stem(path), readings)


def tool_in(path: Path) -> str | None:
    """Return the tool whose document a file is; None if its records have a place of their own each."""
    kind = kind_of_file(path)
    if kind == "csv" and {"scenario", "turns"} <= set(csv_heading(path)):
        return "deepeval-conversations"
    return kind if kind in TOOLS else None


def _report_without_place(where: str, readings: Sequence[Reading]) -> None:
    """Count the asserts of promptfoo that say nothing about the right answer, by their type."""
    asserts = (one for sample, _ in readings for one in sample.metadata.get("promptfoo", ()))
    types = Counter(str(one.get("type")) for one in asserts if isinstance(one, Mapping))
    if types:
        listed = ", ".join(f"{count} {name[:40]}" for name, count in types.most_common(8))
        warn_user(
            f"{where}: asserts without an answer are kept in metadata.promptfoo: {listed}.", ReadingNote
        )


def load_csv(path: Path, columns: Columns = None, is_answered: bool = False) -> InMemoryDataset:
    """Load a CSV file: one with our own columns as it is, any other by the names of its columns."""
    if columns is None and _is_eval_csv(csv_heading(path)) and delimiter_of(path) == ",":
        return load_eval_csv(path)
    return load_records(path, columns, is_answered)


def _is_eval_csv(names: list[str]) -> bool:
    """Return whether a table is one of ours: with all of our columns, or with no known name besides them."""
    is_written_by_us = set(names) >= {*OUR_COLUMNS}
    return {"query_id", "query_text"} <= set(names) and (is_written_by_us or has_only({*OUR_COLUMNS}, names))


def load_parquet(path: Path, columns: Columns = None, is_answered: bool = False) -> InMemoryDataset:
    """Load a Parquet file: one with our own columns as it is, any other by the names of its columns."""
    if columns is None and _is_native(parquet_names(path)):
        return load_parquet_dataset(path)
    return load_records(path, columns, is_answered)


def _is_native(names: list[str]) -> bool:
    return {"sample_id", "query"} <= set(names) or not has_query(names)


def readings_in(
    path: Path,
    columns: Columns = None,
    *,
    is_answered: bool = False,
    for_outputs: bool = False,
    tool: str | None = None,
) -> list[Reading]:
    """Return the samples and outputs of a table, a list of records or a document of a tool."""
    if not tool:
        placed = placed_rows(path)
    else:
        rows = TOOLS[tool].rows(_document(path), path.name)
        placed = [(f"{path.name}[{number}]", row) for number, row in enumerate(rows)]
    return read_foreign(
        [row for _, row in placed],
        path.name,
        columns,
        place=lambda number: placed[number][0],
        is_table=not tool,
        for_outputs=for_outputs,
        is_answered=is_answered,
    )


def placed_rows(path: Path) -> list[tuple[str, Row]]:
    """Return the rows with their places; one object of columns, as pandas writes JSON, is rows too."""
    placed = list(_rows(path))
    is_one_object = len(placed) == 1 and not _is_table(path) and has_query(placed[0][1])
    columns = rows_of_columns(placed[0][1]) if is_one_object else None
    return placed if columns is None else [(f"{path.name}: row {n}", row) for n, row in enumerate(columns, 1)]


def _is_table(path: Path) -> bool:
    """Return whether a file has cells, in which a list is a text."""
    return path.name.lower().removesuffix(".gz").endswith((".csv", ".tsv", ".xlsx", ".xls"))


def _rows(path: Path) -> Iterator[tuple[str, Row]]:
    name = path.name.lower().removesuffix(".gz")
    start = start_of(path)
    if start[:4] == b"PAR1":
        for number, row in enumerate(parquet_rows(path)[0], start=1):
            yield f"{path.name}: row {number}", row
    elif name.endswith((".xlsx", ".xls")):
        yield from _excel_rows(path)
    elif name.endswith((".csv", ".tsv")):
        yield from _table_rows(path)
    elif start.lstrip()[:1] == b"[" or is_yaml(path) or _is_one_document(path, name):
        yield from _listed_rows(path)
    else:
        yield from read_records(path)


def _is_one_document(path: Path, name: str) -> bool:
    """Return whether a file is one object rather than one per line."""
    _, first = next(placed_lines(path), ("", b"{}"))
    record = record_on(first)
    is_cut_off = record is None and not name.endswith((".jsonl", ".ndjson"))
    return is_cut_off or (record is not None and _records_in(record) is not None)


def _records_in(document: Mapping[str, Any]) -> Any:
    """Return the records in a document; None if it is one itself."""
    return None if has_query(document) else next((document[key] for key in _LISTS if key in document), None)


def _table_rows(path: Path) -> Iterator[tuple[str, Row]]:
    table = [
        (f"{path.name}: row {number}", row)
        for number, row in read_rows(path, delimiter_of(path), is_ours=False)
    ]
    rows: Iterator[Row] = (row for _, row in table)
    if table and any(name.startswith("__expected") for name in table[0][1]):
        rows = promptfoo_table(rows)
    for (place, _), row in zip(table, rows, strict=True):
        # A column without a heading is the trailing comma of a spreadsheet. An empty cell has no value.
        yield place, {name: value for name, value in row.items() if name and value != ""}


def _listed_rows(path: Path) -> Iterator[tuple[str, Row]]:
    document = read_document(path)
    if isinstance(document, dict):
        records = _records_in(document)
        document = [document] if records is None else records
    if not isinstance(document, list):
        raise DataError(path.name, "a list of records was expected.", fix="Write [{...}, {...}].")
    for number, row in enumerate(document):
        if not isinstance(row, dict):
            raise DataError(f"{path.name}: $[{number}]", "an object was expected.", fix="Write {...}.")
        yield f"{path.name}: $[{number}]", row


def _excel_rows(path: Path) -> Iterator[tuple[str, Row]]:
    """Yield the rows of the first sheet."""
    try:
        openpyxl: Any = import_module("openpyxl")
    except ImportError as error:
        raise MissingDependencyError(f"Excel files need openpyxl: {install_command('excel')}") from error
    names: list[str] = []
    for number, cells in enumerate(_excel_cells(path, openpyxl), start=1):
        if all(cell is None for cell in cells):
            continue
        if not names:
            names = ["" if cell is None else str(cell).strip() for cell in cells]
            check_columns([name for name in names if name], f"{path.name}: row {number}")
        else:
            cells_by_name = zip(names, cells, strict=False)
            yield (
                f"{path.name}: row {number}",
                {name: cell for name, cell in cells_by_name if name and cell is not None},
            )


def _excel_cells(path: Path, openpyxl: Any) -> Iterator[Sequence[Any]]:
    from zipfile import ZipFile

    try:
        # openpyxl leaves a damaged file open, so it gets one that is closed here.
        with path.open("rb") as file:
            check_unpacked_size(ZipFile(file), path.name)
            # data_only: the value of a formula, as Excel last computed it, instead of its text.
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            yield from book.worksheets[0].iter_rows(values_only=True)
    except DataError:
        raise
    # A damaged file raises whatever the parser of XML, the archive or openpyxl stumbles over.
    except Exception as error:
        what = f"cannot be read as Excel: {error!s:.100}."
        raise DataError(path.name, what, fix="Save it again as .xlsx, or as .csv.") from error


def _document(path: Path) -> Any:
    """Return the document of a tool's file, out of its archive if it is in one."""
    if start_of(path)[:2] == b"PK":
        return read_eval_log(path)
    if path.name.lower().removesuffix(".gz").endswith(".csv"):
        return [row for _, row in read_rows(path, delimiter_of(path), is_ours=False)]
    return read_document(path)


def start_of(path: Path) -> bytes:
    """Return the first bytes of a file, unpacked if it is gzip."""
    with opened(path) as file:
        return file.read(_START).removeprefix(BYTE_ORDER_MARK)


def csv_heading(path: Path) -> list[str]:
    """Return the names of the columns of a table."""
    first = next(islice(read_rows(path, delimiter_of(path), is_ours=False), 1), None)
    return [] if first is None else list(first[1])


def delimiter_of(path: Path) -> str:
    """Return what separates the cells of a table: the one of , ; and tab that its heading has most of."""
    heading = start_of(path).split(b"\n")[0].decode("utf-8", "replace")
    # A quoted name may contain commas that separate nothing.
    unquoted = "".join(heading.split('"')[::2])
    # A table of one column has none of them: the first, the comma, is then as good as any.
    return max(_DELIMITERS, key=unquoted.count)


def parquet_names(path: Path) -> list[str]:
    """Return the names of the columns of a Parquet file."""
    pyarrow, parquet = import_pyarrow()
    try:
        return list(parquet.read_schema(path).names)
    except (pyarrow.ArrowException, OSError, ValueError):
        return []  # the reader says what is wrong with it


# Logs of Inspect in an archive: `.eval` files are ZIP, with entries packed by DEFLATE or, lately, ZSTD.

if TYPE_CHECKING:
    from zipfile import ZipFile, ZipInfo

_ZSTD = 93  # the method of an entry in the directory of a ZIP file
_SAMPLE = re.compile(r"samples/.+_epoch_[0-9]+\.json")
MOST_BYTES = 500_000_000  # of all entries, unpacked


def read_eval_log(path: Path) -> dict[str, Any]:
    """Return the samples of a log, in the order of their ids, as the JSON form of a log has them."""
    from zipfile import BadZipFile, ZipFile

    try:
        with ZipFile(path) as archive:
            entries = [entry for entry in archive.infolist() if _SAMPLE.fullmatch(entry.filename)]
            samples, left = [], MOST_BYTES
            for entry in sorted(entries, key=lambda entry: _order(entry.filename)):
                content = _content(archive, entry, left, path.name)
                left -= len(content)
                samples.append(parse_json(content, f"{path.name}: {entry.filename}"))
    except (BadZipFile, zlib.error, OSError, EOFError, NotImplementedError) as error:
        raise DataError(path.name, f"not a log of Inspect: {error!s:.100}.", fix="Get it again.") from error
    if not samples:
        raise DataError(path.name, "there are no samples in it.", fix="Is it a log of Inspect?")
    return {"samples": samples}


def check_unpacked_size(archive: ZipFile, where: str) -> None:
    """Raise DataError for an archive that is small as a file and fills the memory when it is read."""
    left = MOST_BYTES
    for entry in archive.infolist():
        # What the directory says of the size may be false: the entry itself is read, a piece at a time.
        with archive.open(entry) as file:
            while piece := file.read(1 << 20):
                left -= len(piece)
                if left < 0:
                    raise _too_large(where)


def _too_large(where: str) -> DataError:
    return DataError(where, f"it unpacks to more than {MOST_BYTES / 1e6:g} MB.")


def _order(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts 2 before 10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"([0-9]+)", name)]


def _content(archive: ZipFile, entry: ZipInfo, left: int, where: str) -> bytes:
    """Return the content of an entry; DataError if it has more bytes than are left."""
    if entry.compress_type != _ZSTD:
        with archive.open(entry) as file:
            content = file.read(left + 1)
    else:
        content = _unpacked(_packed(archive, entry), left, where)
    if len(content) > left:
        raise _too_large(where)
    return content


def _packed(archive: ZipFile, entry: ZipInfo) -> bytes:
    # The standard library reads ZSTD entries from Python 3.14 on: here the packed bytes are cut out.
    file: Any = archive.fp
    file.seek(entry.header_offset + 26)
    sizes = file.read(4)
    name_size, extra_size = (int.from_bytes(sizes[start : start + 2], "little") for start in (0, 2))
    file.seek(entry.header_offset + 30 + name_size + extra_size)
    packed: bytes = file.read(entry.compress_size)
    return packed


def _unpacked(packed: bytes, left: int, where: str) -> bytes:
    try:
        zstandard: Any = import_module("zstandard")
    except ImportError as error:
        raise MissingDependencyError(
            f"{where} is packed by ZSTD, which needs zstandard: {install_command('inspect')}. Or "
            "convert it: inspect log convert --to json"
        ) from error
    try:
        with zstandard.ZstdDecompressor().stream_reader(packed) as file:
            content: bytes = file.read(left + 1)
    except zstandard.ZstdError as error:
        raise DataError(where, f"an entry is damaged: {error}.", fix="Get it again.") from error
    return content
