"""Tables as rows: CSV, TSV, Excel and Parquet, each streamed, each with its own line numbers."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from malmoi.errors import InputError
from malmoi.text.reading.bad_rows import BadRows, EmptySourceError
from malmoi.text.reading.columns import (
    ColumnPlaces,
    ColumnRequest,
    has_text_column,
    header_below,
    shown_columns,
)
from malmoi.text.reading.delimited import open_delimited
from malmoi.text.reading.delimiters import (
    Shape,
    delimiter_of_table,
    headerless_shape,
    named_delimiter,
    shape_of_lines,
)
from malmoi.text.reading.notes import SourceNotes
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.parquet_rows import open_arrow_table, open_parquet
from malmoi.text.reading.sheets import open_sheets
from malmoi.text.reading.sources import Source
from malmoi.text.reading.table import Table
from malmoi.text.reading.workbooks import SHEET_COLUMNS

# What one table held in memory may be (assumptions): as many columns as a sheet has, 32 of them for
# a full sheet, and a few times the characters of the largest upload.
MOST_COLUMNS = SHEET_COLUMNS
MOST_CELLS = 1 << 25
MOST_CHARACTERS = 1 << 28


def shape_of(source: Source, lines: Sequence[str], options: ReadOptions) -> Shape:
    """What kind of table a text file is; without a delimiter, it is one text a line.

    Args:
        source: the file.
        lines: its first lines that are not blank.
        options: what the user said of it.

    Raises:
        InputError: it is a table whose text column cannot be told.
    """
    text = options.text_column
    given = None if options.delimiter is None else named_delimiter(options.delimiter)
    if source.format == ".txt":
        if given is None and not options.no_header:
            return shape_of_lines(lines, text, source.shown)
        if given is None:
            given = delimiter_of_table(lines, "\t", text)
    elif given is None:
        given = delimiter_of_table(lines, "\t" if source.format == ".tsv" else ",", text)
    if options.no_header and given:
        return headerless_shape(lines, given, text, source.shown, certain=True)
    return Shape(delimiter=given)


@contextmanager
def open_table(
    source: Source,
    shape: Shape | None,
    request: ColumnRequest,
    options: ReadOptions,
    notes: SourceNotes,
    bad: BadRows,
    *,
    keep_blank: bool = False,
) -> Iterator[Table]:
    """Open a table by its format.

    Args:
        source: the table.
        shape: of one in a text file.
        request: the columns that a sheet of a workbook must have to be read.
        options: what the user said of it.
        notes: gets how it is read.
        bad: gets rows that cannot be read.
        keep_blank: give rows below the header that hold nothing, as cells of None, instead of
            leaving them out.

    Raises:
        InputError: here or while reading: the file is empty, damaged or malformed.
    """
    if shape is not None:
        with open_delimited(
            source, shape, notes, bad, header=request.header, keep_blank=keep_blank
        ) as table:
            yield table
    elif source.format == ".xlsx":
        with open_sheets(
            source,
            request,
            notes,
            bad,
            sheet=options.sheet,
            no_header=options.no_header,
            keep_blank=keep_blank,
        ) as table:
            yield table
    else:
        opener = open_arrow_table if source.format == ".arrow" else open_parquet
        with opener(source, notes) as table:
            yield table


def places_in(table: Table, request: ColumnRequest, source: Source) -> ColumnPlaces:
    """Where a table has the columns that are asked for.

    Raises:
        InputError: they are not there; a row below that looks like the header is named.
    """
    try:
        return request.locate(table.columns, source.shown, table.sample)
    except InputError as error:
        below = header_below(table.sample, request.text)
        if below is None or has_text_column(table.columns, request.text):
            raise
        raise InputError(
            f"{error}; row {below} below it looks like the header: delete what is above that"
        ) from error


def no_rows(source: Source) -> EmptySourceError:
    """The error for a header with nothing below it."""
    return EmptySourceError(
        f"{source.shown}: expected rows below the header, found none; add texts"
    )


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


def all_rows(
    table: Table, source: Source, bad: BadRows
) -> tuple[list[str], list[tuple[str, Sequence[object]]]]:
    """A whole table in memory: its header, unnamed columns numbered, and its rows.

    Returns:
        The names, and the place ("12", "sheet:12") and cells of each row.

    Raises:
        InputError: as `open_table`, or two columns have one name, or there are no rows, or it is
            too large (`HeldTable`).
    """
    held = HeldTable(source)
    stripped = [name.strip("\ufeff ") for name in table.columns]
    columns = [name or f"column {number}" for number, name in enumerate(stripped, 1)]
    held.add(columns, columns=len(columns))
    _refuse_twins(columns, source)
    # Blank rows keep their place, for whoever pastes a column back; those at the end have none, and
    # a formatted sheet has a million of them, so they are only counted.
    rows: list[tuple[str, Sequence[object]]] = []
    blank = 0
    for number, part, cells in table.read(range(len(columns)), [0]):
        if all(cell is None for cell in cells):
            blank += 1
            continue
        held.add(cells, columns=len(columns), rows=blank + 1)
        place = f"{part}:{number}" if part else str(number)
        rows += [(place, [None] * len(columns))] * blank
        rows.append((place, cells))
        blank = 0
    bad.raise_all()
    if not rows:
        raise no_rows(source)
    return columns, rows
