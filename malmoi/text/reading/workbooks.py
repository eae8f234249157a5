"""Excel workbooks as rows, read by openpyxl within bounds on what a small file may unpack to.

A workbook is a ZIP archive, in which a megabyte may stand for a gigabyte, and its XML is built up
in memory a row at a time. So the bytes are counted where openpyxl reads them, and the rows and
columns where it gives them.
"""

import re
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from malmoi.errors import InputError
from malmoi.messages import Phrase
from malmoi.text.reading.sources import Source, damaged
from malmoi.text.reading.spreadsheet_cells import unguarded

# Limits of the format itself (ECMA-376; Excel refuses more).
SHEET_ROWS = 1_048_576
SHEET_COLUMNS = 16_384
# Assumptions, each far beyond what people make: a full sheet of 64 columns; what is read of one
# workbook, all of it twice; of it one row, string or other thing that is held in memory as a whole;
# the tags in it, for each of which openpyxl makes an object: 32 a cell; and the strings in the
# table of strings.
MOST_CELLS = 1 << 26
MOST_BYTES = 1 << 31
LONGEST_ROW_BYTES = 1 << 23
MOST_ROW_TAGS = 32 * SHEET_COLUMNS
MOST_STRINGS = 1 << 22

# Where a row or a string begins, and what such a beginning means nothing inside of.
_marks = re.compile(rb"<(?:[\w.\-]+:)?(?:row|si)[\s/>]|<!\[CDATA\[|\]\]>|<!--|-->|<\?|\?>").finditer
_ENDS = {b"<![CDATA[": b"]]>", b"<!--": b"-->", b"<?": b"?>"}
_LONGEST_MARK = 32
_BLOCK_BYTES = 1 << 16
_MERGED = re.compile(rb'<(?:[\w.\-]+:)?mergeCell [^>]*?ref="([A-Z]{1,3}\d{1,7}:[A-Z]{1,3}\d{1,7})"')
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
_KIND = "an Excel workbook"


class _OversizedError(Exception):
    """What is in a workbook is larger than it may be. No ValueError, which openpyxl would wrap."""


class _BoundedArchive(zipfile.ZipFile):
    """A ZIP archive whose parts, together, give a bounded number of bytes.

    Each part is gone through before it is first given: counting is many times as fast as parsing.
    """

    def __init__(self, stored: BinaryIO) -> None:
        super().__init__(stored)
        self.bytes_read = 0
        self._seen: set[str] = set()

    def open(self, name: Any, mode: Any = "r", *args: Any, **options: Any) -> Any:
        """A part, to be read within the bounds."""
        info = self.getinfo(name) if isinstance(name, str) else name
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise zipfile.BadZipFile(f"{info.filename} is compressed as no workbook's part is")
        if info.filename not in self._seen:
            with _Part(super().open(info), self) as part:
                while part.read(_BLOCK_BYTES):
                    pass
            self._seen.add(info.filename)
        return _Part(super().open(info, mode, *args, **options), self)


class _Part:
    """A part of a workbook as a stream that stops at what would fill the memory."""

    def __init__(self, stream: Any, archive: _BoundedArchive) -> None:
        self._stream, self._archive = stream, archive
        self._rows = self._strings = 0
        self._bytes = self._tags = 0  # since the last row or string began
        self._tail = b""
        self._inside = b""  # what ends the comment, the like, that we are in

    def __enter__(self) -> "_Part":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it."""
        self._stream.close()

    def read(self, size: int = -1) -> bytes:
        """As any stream's `read`; all of it is at most `LONGEST_ROW_BYTES`.

        Raises:
            _OversizedError: it holds too much, or the archive does.
        """
        whole = size is None or size < 0
        data: bytes = self._stream.read(LONGEST_ROW_BYTES + 1 if whole else size)
        self._archive.bytes_read += len(data)
        if self._archive.bytes_read > MOST_BYTES:
            raise _OversizedError(
                Phrase(
                    "expected at most {most} GiB in the workbook once it is unpacked, found more; "
                    "save the table as .csv",
                    most=MOST_BYTES >> 31,
                )
            )
        start = self._last_record(data)
        self._bytes = len(data) - start if start else self._bytes + len(data)
        tags = data.count(b"<", start)
        self._tags = tags if start else self._tags + tags
        if self._bytes > LONGEST_ROW_BYTES or self._tags > MOST_ROW_TAGS:
            raise _OversizedError(
                Phrase(
                    "expected rows of at most {most} MiB and {cells:,} cells in the workbook, "
                    "found a longer row, cell or list; make it shorter, or save the table as .csv",
                    most=LONGEST_ROW_BYTES >> 20,
                    cells=SHEET_COLUMNS,
                )
            )
        if self._rows > SHEET_ROWS or self._strings > MOST_STRINGS:
            raise _OversizedError(
                Phrase(
                    "expected at most {rows:,} rows a sheet and {strings:,} different strings in "
                    "the workbook, found more; save the table as .csv",
                    rows=SHEET_ROWS,
                    strings=MOST_STRINGS,
                )
            )
        return data

    def _last_record(self, data: bytes) -> int:
        """Where in `data` its last row or string begins, behind the tag's name; 0 for nowhere."""
        before = len(self._tail)
        last = 0
        for mark in _marks(self._tail + data):
            if mark.end() <= before:
                continue  # seen with the data before
            if self._inside:
                if mark[0] == self._inside:
                    self._inside = b""
            elif mark[0] in _ENDS:
                self._inside = _ENDS[mark[0]]
            elif mark[0] not in _ENDS.values():
                is_row = b"row" in mark[0]
                self._rows += is_row
                self._strings += not is_row
                last = mark.end() - before
        self._tail = (self._tail + data)[-_LONGEST_MARK:]
        return last


def open_book(stored: BinaryIO, source: Source, *, data_only: bool = True) -> Any:
    """An openpyxl workbook that gives rows as they are asked for; close it.

    Args:
        stored: the file, open for as long as the book.
        source: what messages name.
        data_only: give the results of formulas, and not the formulas.

    Raises:
        InputError: it is damaged, something else, or too large.
    """
    from openpyxl.reader.excel import ExcelReader  # takes long to import; workbooks are rare

    try:
        reader = ExcelReader(stored, read_only=True, data_only=data_only, keep_links=False)
        reader.archive = _BoundedArchive(stored)
        reader.read()
    except Exception as error:
        raise book_error(source, error) from error
    if not reader.wb.worksheets:
        raise InputError("expected a worksheet, found none; add one", place=source.shown)
    return reader.wb


def book_error(source: Source, error: Exception) -> InputError:
    """The error for whatever was raised while openpyxl read.

    openpyxl lets out whatever its XML and ZIP layers raise (KeyError, ValueError, BadZipFile,
    ParseError, ...), so any exception inside it means a file that it cannot read.
    """
    if isinstance(error, InputError):
        return error
    if isinstance(error, _OversizedError):
        return InputError(error.args[0], place=source.shown)
    return damaged(source, _KIND, error)


def sheet_rows(sheet: Any, source: Source, *, values_only: bool = True) -> Iterator[Any]:
    """Number and cells of each row of a sheet, blank ones included.

    Raises:
        InputError: it is damaged, or has more than a sheet can hold.
    """
    # The size that a sheet declares is often wrong, and openpyxl would stop there.
    sheet.reset_dimensions()
    rows = sheet.iter_rows(values_only=values_only)
    number = cells = 0
    while True:
        try:
            row = next(rows, None)
        except Exception as error:
            raise book_error(source, error) from error
        if row is None:
            return
        number += 1
        cells += len(row)
        if number > SHEET_ROWS or len(row) > SHEET_COLUMNS or cells > MOST_CELLS:
            raise InputError(
                "expected at most {rows:,} rows, {columns:,} columns and {cells:,} cells in a "
                "sheet, found more; take out what is empty, or save the table as .csv",
                place=f"{source.shown}:{number}",
                rows=SHEET_ROWS,
                columns=SHEET_COLUMNS,
                cells=MOST_CELLS,
            )
        yield number, row


def merged_ranges(source: Source, stored: BinaryIO, sheet: Any) -> list[tuple[int, int, int, int]]:
    """First row, last row, first and last column, each from 1, of all merged cells of a sheet.

    Only the first cell of a merged range holds its value; openpyxl tells nothing of the ranges when
    it streams.

    Raises:
        InputError: the sheet is damaged.
    """
    found = []
    try:
        with _BoundedArchive(stored) as archive, archive.open(sheet._worksheet_path) as part:
            before = b""
            while chunk := part.read(1 << 20):
                for match in _MERGED.finditer(before + chunk):
                    first, _, last = match[1].decode().partition(":")
                    if last:
                        found.append((*_row_column(first), *_row_column(last)))
                # A tag that two chunks share is found with the second.
                cut = (before + chunk).rfind(b"<")
                before = (before + chunk)[cut:] if cut >= 0 else b""
    except Exception as error:
        raise book_error(source, error) from error
    return [(top, bottom, left, right) for top, left, bottom, right in found]


def _row_column(cell: str) -> tuple[int, int]:
    letters = cell.rstrip("0123456789")
    column = 0
    for letter in letters:
        column = column * 26 + ord(letter) - ord("A") + 1
    return int(cell[len(letters) :]), column


def refuse_bare_formulas(
    source: Source, stored: BinaryIO, sheet: Any, picks: Sequence[int]
) -> None:
    """Refuse formulas without a result, which would be read as empty cells.

    Excel stores the result beside the formula; programs that only write files do not.

    Args:
        source: what messages name.
        stored: the file, open.
        sheet: the sheet of it that is read.
        picks: columns to look at.

    Raises:
        InputError: with the row of the first of them.
    """
    try:
        if not _has_formulas(stored, sheet):
            return
        with source.open_stored() as again:
            formulas = open_book(again, source, data_only=False)
            results = open_book(stored, source)
            _compare(formulas[sheet.title], results[sheet.title], source, picks)
            formulas.close()
            results.close()
    except Exception as error:
        raise book_error(source, error) from error


def _compare(formulas: Any, results: Any, source: Source, picks: Sequence[int]) -> None:
    rows = [sheet_rows(sheet, source, values_only=False) for sheet in (formulas, results)]
    for (number, with_formulas), (_, with_results) in zip(*rows, strict=True):
        for pick in picks:
            if pick < len(with_formulas) and with_formulas[pick].value is not None:
                found = with_results[pick] if pick < len(with_results) else None
                # A formula whose result is an empty text has the type of a text.
                if found is not None and (found.value is not None or found.data_type == "str"):
                    continue
                raise InputError(
                    "expected a value, found a formula without its result; open the file in a "
                    "spreadsheet program and save it",
                    place=f"{source.shown}:{number}",
                )


def _has_formulas(stored: BinaryIO, sheet: Any) -> bool:
    return _sheet_has(re.compile(rb"<f[ >/]"), stored, sheet)


def has_errors(source: Source, stored: BinaryIO, sheet: Any) -> bool:
    """Whether a sheet has cells whose value is an error.

    Raises:
        InputError: the sheet is damaged.
    """
    try:
        return _sheet_has(re.compile(rb"""\st=["']e["']"""), stored, sheet)
    except Exception as error:
        raise book_error(source, error) from error


def _sheet_has(pattern: re.Pattern[bytes], stored: BinaryIO, sheet: Any) -> bool:
    """Whether up to `_LONGEST_MARK` bytes of a sheet's XML match."""
    with _BoundedArchive(stored) as archive, archive.open(sheet._worksheet_path) as part:
        before = b""
        while chunk := part.read(1 << 20):
            if pattern.search(before + chunk):
                return True
            before = chunk[-_LONGEST_MARK:]
    return False


class ErrorCell(str):
    """What a cell shows whose value is an error, such as #N/A; a text may read the same."""

    __slots__ = ()


def value_or_error(cell: Any) -> object:
    """The value of one of openpyxl's cells, an `ErrorCell` where that is an error."""
    error = cell.data_type == "e" and cell.value is not None
    return ErrorCell(cell.value) if error else cell.value


def plain_cell(value: object) -> object:
    """A cell with its escapes undone, and without the mark of a CSV file that was saved as XLSX.

    Excel writes a carriage return as _x000D_, and other control characters likewise (ECMA-376,
    Part 1, 22.9.2.19).
    """
    if not isinstance(value, str):
        return value
    if "_x" in value:
        value = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), value)
    return unguarded(value)
