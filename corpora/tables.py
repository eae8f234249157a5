"""Tables as rows: CSV, TSV, Excel and Parquet, each streamed, each with its own line numbers."""

import csv
import io
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, BinaryIO

import pyarrow
import pyarrow.parquet
from openpyxl import load_workbook

from corpora.decoding import open_text
from corpora.errors import InputError
from corpora.sources import Source
from corpora.spreadsheet_cells import unguarded

# Long enough for any text; a bound, because an unclosed quote would swallow the whole file.
LONGEST_CSV_FIELD_CHARACTERS = 1 << 24
PARQUET_BATCH_ROWS = 4096
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")

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
    # strict: otherwise an unclosed quote takes the rest of the file as one field, silently.
    reader = csv.reader(text, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            if "field limit" in str(error):
                raise InputError(
                    f"{source.shown}:{line}: expected a CSV row, found a field of more than "
                    f"{LONGEST_CSV_FIELD_CHARACTERS:,} characters; close the quote that opens it, "
                    "or take the row out"
                ) from error
            raise InputError(
                f"{source.shown}:{line}: expected a CSV row, found one with broken quoting "
                f"({error}); close the quote and double the quotes inside a field"
            ) from error
        if row is None:
            return
        yield line, row


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
        # openpyxl lets out whatever its XML and ZIP layers raise (KeyError, ValueError, BadZipFile,
        # ParseError, ...), so any exception inside it means a file that it cannot read.
        try:
            book = load_workbook(stored, read_only=True, data_only=True)
        except Exception as error:
            raise _damaged(source, "an Excel workbook", error) from error
        try:
            if not book.worksheets:
                raise InputError(f"{source.shown}: expected a worksheet, found none; add one")
            rows = _xlsx_rows(book.worksheets[0], source)
            header = next(((number, row) for number, row in rows if _holds_something(row)), None)
            if header is None:
                raise InputError(f"{source.shown}: the first sheet is empty; expected a header")
            columns = [str(cell) if cell is not None else "" for cell in header[1]]
            while columns and not columns[-1]:
                columns.pop()

            def read(picks: Sequence[int]) -> Iterator[Row]:
                try:
                    _refuse_bare_formulas(source, stored, picks)
                except InputError:
                    raise
                except Exception as error:  # as above
                    raise _damaged(source, "an Excel workbook", error) from error
                for number, cells in rows:
                    if keep_blank or _holds_something(cells):
                        yield number, [_cell(cells[i]) if i < len(cells) else None for i in picks]

            yield Table(columns=columns, read=read)
        finally:
            book.close()


def _refuse_bare_formulas(source: Source, stored: BinaryIO, picks: Sequence[int]) -> None:
    """Refuse formulas without a result, which would be read as empty cells.

    Excel stores the result beside the formula; programs that only write files do not.
    """
    if not _has_formulas(stored):
        return
    with source.open_stored() as again:
        formulas = load_workbook(again, read_only=True, data_only=False)
        results = load_workbook(stored, read_only=True, data_only=True)
        sheets = [book.worksheets[0] for book in (formulas, results)]
        for sheet in sheets:
            sheet.reset_dimensions()
        pairs = zip(*(sheet.iter_rows() for sheet in sheets), strict=True)
        for number, (with_formulas, with_results) in enumerate(pairs, 1):
            for pick in picks:
                if pick < len(with_formulas) and with_formulas[pick].value is not None:
                    found = with_results[pick] if pick < len(with_results) else None
                    # A formula whose result is an empty text has the type of a text.
                    if found is not None and (found.value is not None or found.data_type == "str"):
                        continue
                    raise InputError(
                        f"{source.shown}:{number}: expected a value, found a formula without its "
                        "result; open the file in a spreadsheet program and save it"
                    )
        formulas.close()
        results.close()


def _has_formulas(stored: BinaryIO) -> bool:
    with zipfile.ZipFile(stored) as archive:
        for name in archive.namelist():
            if name.startswith("xl/worksheets/") and name.endswith(".xml"):
                with archive.open(name) as sheet:
                    before = b""
                    while chunk := sheet.read(1 << 20):
                        if re.search(rb"<f[ >/]", before + chunk):
                            return True
                        before = chunk[-2:]
    return False


def _xlsx_rows(sheet: Any, source: Source) -> Iterator[Row]:
    # The size that a sheet declares is often wrong, and openpyxl would stop there.
    sheet.reset_dimensions()
    cells = sheet.iter_rows(values_only=True)
    number = 0
    while True:
        try:
            row = next(cells, None)
        except Exception as error:  # as above
            raise _damaged(source, "an Excel workbook", error) from error
        if row is None:
            return
        number += 1
        yield number, row


def _holds_something(row: Sequence[object]) -> bool:
    """Formatting without text leaves rows that hold nothing."""
    return any(cell is not None for cell in row)


def _cell(value: object) -> object:
    # Excel writes a carriage return as _x000D_, and other control characters likewise (ECMA-376,
    # Part 1, 22.9.2.19).
    if not isinstance(value, str):
        return value
    if "_x" in value:
        value = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), value)
    return unguarded(value)  # of a CSV file that was saved as a workbook


@contextmanager
def _open_parquet(source: Source, keep_blank: bool) -> Iterator[Table]:
    with source.open_stored() as stored:
        try:
            file = pyarrow.parquet.ParquetFile(stored, pre_buffer=False)
        except (pyarrow.ArrowException, OSError) as error:
            raise _damaged(source, "a Parquet file", error) from error
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
    batches = file.iter_batches(batch_size=PARQUET_BATCH_ROWS, columns=names)
    while True:
        try:
            batch = next(batches, None)
        except (pyarrow.ArrowException, OSError) as error:
            raise _damaged(source, "a Parquet file", error) from error
        if batch is None:
            return
        yield batch


def _refuse_twins(columns: Sequence[str], source: Source) -> None:
    twins = sorted({name for name in columns if list(columns).count(name) > 1})
    if twins:
        raise InputError(
            f"{source.shown}: expected different column names, found {', '.join(twins)} twice; "
            "rename one"
        )


def _damaged(source: Source, kind: str, error: Exception) -> InputError:
    with source.open_stored() as stored:
        if not stored.read(1):
            return InputError(f"{source.shown}: the file is empty; expected {kind}")
    reason = " ".join(str(error).split())[:200]
    return InputError(
        f"{source.shown}: expected {kind}, found a damaged file or another kind ({reason}); "
        "export or download it again"
    )


def all_rows(source: Source, file_format: str) -> tuple[list[str], list[Row]]:
    """A whole table in memory: its header, unnamed columns numbered, and its rows.

    Raises:
        InputError: as `open_table`, or two columns have one name, or there are no rows.
    """
    with open_table(source, file_format, keep_blank=True) as table:
        stripped = [name.strip("\ufeff ") for name in table.columns]
        columns = [name or f"column {number}" for number, name in enumerate(stripped, 1)]
        _refuse_twins(columns, source)
        # Blank rows keep their place, for whoever pastes a column back; those at the end have
        # none, and a formatted sheet has a million of them, so they are only counted.
        rows: list[Row] = []
        blank = 0
        for number, cells in table.read(range(len(columns))):
            if not _holds_something(cells):
                blank += 1
                continue
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
