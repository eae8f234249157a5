"""Excel workbooks as rows, read by openpyxl within bounds on what a small file may unpack to.

A workbook is a ZIP archive, in which a megabyte may stand for a gigabyte, and its XML is built up
in memory a row at a time. So the bytes are counted where openpyxl reads them, and the rows and
columns where it gives them.
"""

import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
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
_FORMULA = re.compile(rb"<f[ >/]")
_ERROR = re.compile(rb"""\st=["']e["']""")
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")


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


@dataclass(kw_only=True)
class Marks:
    """What stands in a sheet beside its values.

    Attributes:
        merged: first row, last row, first and last column, each from 1, of all merged cells: only
            the first cell of such a range holds its value.
        has_formulas: some cells are formulas.
        has_errors: the value of some cells is an error.
    """

    merged: list[tuple[int, int, int, int]] = field(default_factory=list)
    has_formulas: bool = False
    has_errors: bool = False


class Book:
    """A workbook that gives the rows of its sheets as they are asked for; close it.

    Args:
        stored: the file, open for as long as the book.

    Attributes:
        sheets: in their order.

    Raises:
        InputError: it is damaged, something else, or too large.
    """

    def __init__(self, stored: BinaryIO, source: Source) -> None:
        self._stored, self._source = stored, source
        self._books: list[Any] = []
        self.sheets = [Sheet(self, sheet) for sheet in self.read(data_only=True).worksheets]
        if not self.sheets:
            raise InputError("expected a worksheet, found none; add one", place=source.shown)

    def read(self, *, data_only: bool) -> Any:
        """openpyxl's workbook: with the results of formulas, or with the formulas."""
        from openpyxl.reader.excel import ExcelReader  # takes long to import; workbooks are rare

        with self.readable():
            reader = ExcelReader(
                self._stored, read_only=True, data_only=data_only, keep_links=False
            )
            reader.archive = _BoundedArchive(self._stored)
            reader.read()
        self._books.append(reader.wb)
        return reader.wb

    def close(self) -> None:
        """Close it; the file stays open."""
        for book in self._books:
            book.close()

    @contextmanager
    def readable(self) -> Iterator[None]:
        """Raise InputError for whatever openpyxl raises.

        It lets out whatever its XML and ZIP layers raise (KeyError, ValueError, BadZipFile,
        ParseError, ...), so any exception inside it means a file that it cannot read.
        """
        try:
            yield
        except InputError:
            raise
        except _OversizedError as error:
            raise InputError(error.args[0], place=self._source.shown) from error
        except Exception as error:
            raise damaged(self._source, Phrase("an Excel workbook"), error) from error

    def rows(self, sheet: Any, *, values_only: bool = True) -> Iterator[tuple[int, Sequence[Any]]]:
        """Number and cells of each row of one of openpyxl's sheets, blank ones included.

        Raises:
            InputError: it is damaged, or has more than a sheet can hold.
        """
        # The size that a sheet declares is often wrong, and openpyxl would stop there.
        sheet.reset_dimensions()
        rows = sheet.iter_rows(values_only=values_only)
        number = cells = 0
        while True:
            with self.readable():
                row = next(rows, None)
            if row is None:
                return
            number += 1
            cells += len(row)
            if number > SHEET_ROWS or len(row) > SHEET_COLUMNS or cells > MOST_CELLS:
                raise InputError(
                    "expected at most {rows:,} rows, {columns:,} columns and {cells:,} cells in a "
                    "sheet, found more; take out what is empty, or save the table as .csv",
                    place=f"{self._source.shown}:{number}",
                    rows=SHEET_ROWS,
                    columns=SHEET_COLUMNS,
                    cells=MOST_CELLS,
                )
            yield number, row

    def marks_in(self, sheet: Any) -> Marks:
        """Look through the XML of one of openpyxl's sheets for what it does not tell when it
        streams.

        Raises:
            InputError: the sheet is damaged.
        """
        found = Marks()
        with (
            self.readable(),
            _BoundedArchive(self._stored) as archive,
            archive.open(sheet._worksheet_path) as part,
        ):
            before = b""
            while chunk := part.read(1 << 20):
                block = before + chunk
                for match in _MERGED.finditer(block):
                    (left, top), (right, bottom) = map(_column_row, match[1].decode().split(":"))
                    found.merged.append((top, bottom, left, right))
                found.has_formulas = found.has_formulas or _FORMULA.search(block) is not None
                found.has_errors = found.has_errors or _ERROR.search(block) is not None
                # A tag that two chunks share is found with the second.
                cut = block.rfind(b"<")
                before = block[cut:] if cut >= 0 else b""
        return found


class Sheet:
    """A sheet of a workbook.

    Attributes:
        title: its name.
        is_visible: whether a person sees it.
    """

    def __init__(self, book: Book, sheet: Any) -> None:
        self._book, self._sheet = book, sheet
        self.title: str = sheet.title
        self.is_visible: bool = sheet.sheet_state == "visible"

    @cached_property
    def marks(self) -> Marks:
        """What stands beside its values.

        Raises:
            InputError: it is damaged.
        """
        return self._book.marks_in(self._sheet)

    def rows(self) -> Iterator[tuple[int, Sequence[object]]]:
        """Number and cells of each row, blank ones included.

        Raises:
            InputError: it is damaged, or has more than a sheet can hold.
        """
        return self._book.rows(self._sheet)

    def rows_with_errors(self) -> Iterator[tuple[int, Sequence[object]]]:
        """The same, with an `ErrorCell` for each error; slower where there are some."""
        if not self.marks.has_errors:
            yield from self.rows()
            return
        for number, cells in self._book.rows(self._sheet, values_only=False):
            yield number, list(map(_value_or_error, cells))

    def formats(self, rows: int) -> dict[int, str]:
        """How numbers and dates are shown in each column, as far as the first rows say it.

        Raises:
            InputError: as `rows`.
        """
        found: dict[int, str] = {}
        for _, cells in islice(self._book.rows(self._sheet, values_only=False), rows):
            for column, cell in enumerate(cells):
                # A header that is a number says nothing about what is below it.
                is_shown = cell.data_type in ("n", "d") and cell.number_format != "General"
                if is_shown and cell.value is not None:
                    found.setdefault(column, cell.number_format)
        return found

    def filled_rows(self) -> int:
        """How many rows hold something."""
        return sum(holds_something(cells) for _, cells in self.rows())

    def bare_formula(self, columns: Sequence[int]) -> int | None:
        """The first row in which one of these columns has a formula without its result.

        Excel stores the result beside the formula; programs that only write files do not, and the
        cell would be read as an empty one.
        """
        if not self.marks.has_formulas:
            return None
        formulas = self._book.read(data_only=False)[self.title]
        results = self._book.read(data_only=True)[self.title]
        both = [self._book.rows(one, values_only=False) for one in (formulas, results)]
        for (number, with_formulas), (_, with_results) in zip(*both, strict=True):
            for column in columns:
                if column < len(with_formulas) and with_formulas[column].value is not None:
                    found = with_results[column] if column < len(with_results) else None
                    # A formula whose result is an empty text has the type of a text.
                    if found is None or (found.value is None and found.data_type != "str"):
                        return number
        return None


def holds_something(row: Sequence[object]) -> bool:
    """Whether a row is more than formatting without text."""
    return row.count(None) < len(row)


def _column_row(cell: str) -> tuple[int, int]:
    letters = cell.rstrip("0123456789")
    column = 0
    for letter in letters:
        column = column * 26 + ord(letter) - ord("A") + 1
    return column, int(cell[len(letters) :])


class ErrorCell(str):
    """What a cell shows whose value is an error, such as #N/A; a text may read the same."""

    __slots__ = ()


def _value_or_error(cell: Any) -> object:
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
