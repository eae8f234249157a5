"""Tables as rows: CSV, TSV, Excel and Parquet, each streamed, each with its own line numbers."""

import csv
import io
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow
import pyarrow.parquet

from corpora.columns import shown_columns
from corpora.decoding import LONGEST_LINE_BYTES, open_text
from corpora.errors import InputError
from corpora.sources import Source, damaged
from corpora.spreadsheet_cells import unguarded
from corpora.workbooks import (
    SHEET_COLUMNS,
    open_book,
    plain_cell,
    refuse_bare_formulas,
    sheet_rows,
)

# Long enough for any text; a bound, because an unclosed quote would swallow the whole file.
LONGEST_CSV_FIELD_CHARACTERS = 1 << 24
LONGEST_CSV_ROW_CHARACTERS = 2 * LONGEST_CSV_FIELD_CHARACTERS
PARQUET_BATCH_ROWS = 4096
# What one table held in memory may be (assumptions): as many columns as a sheet has, 32 of them for
# a full sheet, and a few times the characters of the largest upload.
MOST_COLUMNS = SHEET_COLUMNS
MOST_CELLS = 1 << 25
MOST_CHARACTERS = 1 << 28

Row = tuple[int, Sequence[object]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A header, and a way to stream the rows below it.

    Attributes:
        columns: the header as written.
        read: given column positions, yields each row's number (a line of a text file, a row of a
            sheet or of a Parquet file) and its cells at these positions.
    """

    columns: list[str]
    read: Callable[[Sequence[int]], Iterator[Row]]


@contextmanager
def open_table(
    source: Source,
    file_format: str | None = None,
    header: Sequence[str] | None = None,
    *,
    keep_blank: bool = False,
) -> Iterator[Table]:
    """Open a table by its format.

    Args:
        source: the table.
        file_format: overrules the file's own suffix.
        header: the column names of a tab-separated file that has no header row.
        keep_blank: give rows below the header that hold nothing, as cells of None, instead of
            leaving them out.

    Raises:
        InputError: here or while reading: the file is empty, damaged or malformed.
    """
    if header is not None:
        with _open_tsv(source, keep_blank, header) as table:
            yield table
        return
    opener = {
        ".csv": _open_csv,
        ".tsv": _open_tsv,
        ".xlsx": _open_xlsx,
        ".parquet": _open_parquet,
    }[file_format or source.format]
    with opener(source, keep_blank) as table:
        yield table


def no_rows(source: Source) -> InputError:
    """The error for a header with nothing below it."""
    return InputError(f"{source.shown}: expected rows below the header, found none; add texts")


def split_tsv(line: str) -> list[str]:
    """The fields of one line of a TSV file."""
    return [_tsv_cell(field) for field in line.split("\t")]


@contextmanager
def _open_csv(source: Source, keep_blank: bool) -> Iterator[Table]:
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_CSV_FIELD_CHARACTERS))
    with open_text(source, keep_newlines=True) as text:
        rows = _csv_rows(text, source)
        advice = "quote a field that contains a comma"
        yield _table_of_rows(rows, source, keep_blank, advice=advice, convert=unguarded)


def _csv_rows(text: io.TextIOWrapper, source: Source) -> Iterator[tuple[int, list[str]]]:
    # Each line may close a quote and open the next: no field is long, and the row never ends.
    held = 0

    def lines() -> Iterator[str]:
        nonlocal held
        for line in text:
            held += len(line)
            if held > LONGEST_CSV_ROW_CHARACTERS:
                raise InputError(
                    f"{source.shown}:{start}: expected a CSV row, found one of more than "
                    f"{LONGEST_CSV_ROW_CHARACTERS:,} characters; close the quote that opens in it"
                )
            yield line

    # strict: otherwise an unclosed quote takes the rest of the file as one field, silently.
    reader = csv.reader(lines(), strict=True)
    while True:
        start, held = reader.line_num + 1, 0
        try:
            row = next(reader, None)
        except csv.Error as error:
            if "field limit" in str(error):
                raise InputError(
                    f"{source.shown}:{start}: expected a CSV row, found a field of more than "
                    f"{LONGEST_CSV_FIELD_CHARACTERS:,} characters; close the quote that opens it, "
                    "or take the row out"
                ) from error
            raise InputError(
                f"{source.shown}:{start}: expected a CSV row, found one with broken quoting "
                f"({error}); close the quote and double the quotes inside a field"
            ) from error
        if row is None:
            return
        yield start, row


@contextmanager
def _open_tsv(
    source: Source, keep_blank: bool, header: Sequence[str] | None = None
) -> Iterator[Table]:
    with open_text(source) as text:
        rows = _tsv_rows(text)
        if header is not None:
            rows = chain([(0, list(header))], rows)
        advice = "a field cannot contain a tab or a line break; save such texts as .csv"
        yield _table_of_rows(rows, source, keep_blank, advice=advice, convert=_tsv_cell)


def _tsv_rows(text: io.TextIOWrapper) -> Iterator[tuple[int, list[str]]]:
    # One record a line and no quoting (IANA text/tab-separated-values): NSMC holds lone quotes.
    for number, line in enumerate(text, 1):
        line = line.removesuffix("\n")
        yield number, line.split("\t") if line.strip(" ") else []


def _tsv_cell(field: str) -> str:
    return unguarded(_unquote(field))


def _unquote(field: str) -> str:
    # pandas and Excel quote fields in a TSV file too, and double the quotes inside.
    if len(field) >= 2 and field[0] == field[-1] == '"':
        inside = field[1:-1]
        if '"' not in inside:
            return inside
        if '"' not in inside.replace('""', ""):
            return inside.replace('""', '"')
    return field


def _table_of_rows(
    rows: Iterator[tuple[int, list[str]]],
    source: Source,
    keep_blank: bool,
    *,
    advice: str,
    convert: Callable[[str], str],
) -> Table:
    """A table from rows of text, the first of which that holds something is the header."""
    header = next(((line, row) for line, row in rows if row), None)
    if header is None:
        raise InputError(f"{source.shown}: the file is empty; expected a header and rows")
    width = len(header[1])

    def read(picks: Sequence[int]) -> Iterator[Row]:
        for line, row in rows:
            if not row:
                if keep_blank:
                    yield line, [None] * len(picks)
                continue
            if len(row) != width:
                raise InputError(
                    f"{source.shown}:{line}: expected {width} fields as in the header, "
                    f"found {len(row)}; {advice}"
                )
            yield line, [convert(row[pick]) for pick in picks]

    return Table(columns=[convert(name) for name in header[1]], read=read)


@contextmanager
def _open_xlsx(source: Source, keep_blank: bool) -> Iterator[Table]:
    with source.open_stored() as stored:
        book = open_book(stored, source)
        try:
            sheet = book.worksheets[0]
            rows = sheet_rows(sheet, source)
            header = next(((number, row) for number, row in rows if _holds_something(row)), None)
            if header is None:
                raise InputError(f"{source.shown}: the first sheet is empty; expected a header")
            columns = [str(cell) if cell is not None else "" for cell in header[1]]
            while columns and not columns[-1]:
                columns.pop()

            def read(picks: Sequence[int]) -> Iterator[Row]:
                refuse_bare_formulas(source, stored, sheet, picks)
                for number, cells in rows:
                    if keep_blank or _holds_something(cells):
                        yield (
                            number,
                            [plain_cell(cells[i]) if i < len(cells) else None for i in picks],
                        )

            yield Table(columns=columns, read=read)
        finally:
            book.close()


def _holds_something(row: Sequence[object]) -> bool:
    """Formatting without text leaves rows that hold nothing."""
    return row.count(None) < len(row)


@contextmanager
def _open_parquet(source: Source, keep_blank: bool) -> Iterator[Table]:
    with source.open_stored() as stored:
        try:
            file = pyarrow.parquet.ParquetFile(stored, pre_buffer=False)
        except (pyarrow.ArrowException, OSError) as error:
            raise damaged(source, "a Parquet file", error) from error
        columns = list(file.schema_arrow.names)
        _refuse_twins(columns, source)

        def read(picks: Sequence[int]) -> Iterator[Row]:
            names = [columns[pick] for pick in picks]
            first = 1
            for batch in _parquet_batches(file, names, source):
                try:
                    cells = [batch.column(name).to_pylist() for name in names]
                except UnicodeDecodeError as error:
                    raise InputError(
                        f"{source.shown}: expected texts in UTF-8 in rows {first:,} to "
                        f"{first + batch.num_rows - 1:,}, found other bytes; write the file again"
                    ) from error
                yield from enumerate(zip(*cells, strict=True), first)
                first += batch.num_rows

        yield Table(columns=columns, read=read)


def _parquet_batches(file: Any, names: list[str], source: Source) -> Iterator[Any]:
    rows = _rows_a_batch(file, names, source)
    batches = file.iter_batches(batch_size=rows, columns=names)
    while True:
        try:
            batch = next(batches, None)
        except (pyarrow.ArrowException, OSError) as error:
            raise damaged(source, "a Parquet file", error) from error
        if batch is None:
            return
        yield batch


def _rows_a_batch(file: Any, names: list[str], source: Source) -> int:
    """How many rows to read at once; less than `PARQUET_BATCH_ROWS` where cells are long."""
    picked = set(names)
    longest = 0  # bytes a row, on average over a row group
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        columns = (group.column(place) for place in range(group.num_columns))
        sizes = (
            column.total_uncompressed_size
            for column in columns
            # A column of lists has a path of several parts, and so has one with a dot in its name.
            if {path := column.path_in_schema, path.split(".")[0]} & picked
        )
        longest = max(longest, sum(sizes) // max(1, group.num_rows))
    if longest > LONGEST_LINE_BYTES:
        raise InputError(
            f"{source.shown}: expected rows of texts, found some of more than "
            f"{LONGEST_LINE_BYTES >> 20} MiB; put each text in a row of its own"
        )
    return max(1, min(PARQUET_BATCH_ROWS, LONGEST_LINE_BYTES // max(1, longest)))


def _refuse_twins(columns: Sequence[str], source: Source) -> None:
    twins = [name for name, count in Counter(columns).items() if count > 1]
    if twins:
        raise InputError(
            f"{source.shown}: expected different column names, found {shown_columns(twins)} twice; "
            "rename one"
        )


class HeldTable:
    """Counts what of a table is in memory: a small compressed file may hold any number of cells.

    Args:
        source: what messages name.
    """

    def __init__(self, source: Source) -> None:
        self._shown = source.shown
        self._rows = self._characters = 0

    def add(self, cells: Collection[object], *, columns: int, rows: int = 1) -> None:
        """Count rows of cells.

        Args:
            cells: those of the last of these rows; the others are blank.
            columns: of the whole table, as far as it is known.
            rows: how many they are.

        Raises:
            InputError: it has become too large.
        """
        self._rows += rows
        self._characters += sum(len(cell) for cell in cells if isinstance(cell, str))
        if columns > MOST_COLUMNS:
            raise InputError(
                f"{self._shown}: expected at most {MOST_COLUMNS:,} columns, found {columns:,}; "
                "leave only those that are needed"
            )
        if self._rows * columns > MOST_CELLS or self._characters > MOST_CHARACTERS:
            raise InputError(
                f"{self._shown}: expected a table of at most {MOST_CELLS:,} cells and "
                f"{MOST_CHARACTERS:,} characters, found more; split it into several files"
            )


def all_rows(source: Source, file_format: str) -> tuple[list[str], list[Row]]:
    """A whole table in memory: its header, unnamed columns numbered, and its rows.

    Raises:
        InputError: as `open_table`, or two columns have one name, or there are no rows, or it is
            too large (`HeldTable`).
    """
    held = HeldTable(source)
    with open_table(source, file_format, keep_blank=True) as table:
        stripped = [name.strip("\ufeff ") for name in table.columns]
        columns = [name or f"column {number}" for number, name in enumerate(stripped, 1)]
        held.add(columns, columns=len(columns))
        _refuse_twins(columns, source)
        # Blank rows keep their place, for whoever pastes a column back; those at the end have
        # none, and a formatted sheet has a million of them, so they are only counted.
        rows: list[Row] = []
        blank = 0
        for number, cells in table.read(range(len(columns))):
            if not _holds_something(cells):
                blank += 1
                continue
            held.add(cells, columns=len(columns), rows=blank + 1)
            rows += [(number, [None] * len(columns))] * blank
            rows.append((number, cells))
            blank = 0
    if not rows:
        raise no_rows(source)
    return columns, rows


def first_line(text: io.TextIOWrapper) -> tuple[str, Iterator[str]]:
    """The first line without its end, and an iterator over all lines, the first included."""
    line = next(text, "")
    return line.removesuffix("\n"), chain([line] if line else [], text)
